//! Every interleaving of the event's word, its waiters, its sleepers and its references, as far as loom is asked to
//! look. `rust/model/mutations.txt` says which planted defects each model must find.

mod rescue;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::thread;

use super::abi::{EventHeader, Waiter};
use super::*;
use purlin_base::sync::{UnsafeCell, explore};

/// Counts calls of its waiters, and, by its own count, whether their closures were destroyed.
#[derive(Clone, Default)]
struct Calls(Arc<AtomicUsize>);

impl Calls {
    fn waiter(&self) -> impl FnOnce(&Result<(), Error>) + Send + 'static {
        let calls = self.clone();
        move |_| _ = calls.0.fetch_add(1, Ordering::Relaxed)
    }

    fn assert_all_ran(&self, expected: usize) {
        assert_eq!(self.0.load(Ordering::Relaxed), expected);
        assert_eq!(Arc::strong_count(&self.0), 1, "every closure is destroyed");
    }
}

/// Memory without a lock of its own: loom reports accesses that nothing orders.
#[derive(Default)]
struct Bare(Arc<BareCell>);

struct BareCell(UnsafeCell<u32>);

// SAFETY: loom stops the model at the first race.
unsafe impl Send for BareCell {}
// SAFETY: as above.
unsafe impl Sync for BareCell {}

impl Default for BareCell {
    fn default() -> Self {
        Self(UnsafeCell::new(0))
    }
}

impl Bare {
    fn shared(&self) -> Self {
        Self(Arc::clone(&self.0))
    }

    fn write(&self, value: u32) {
        // SAFETY: loom checks that no other thread looks.
        self.0.0.with_mut(|place| unsafe { *place = value });
    }

    fn read(&self) -> u32 {
        // SAFETY: loom checks that no thread writes.
        self.0.0.with(|place| unsafe { *place })
    }
}

/// A waiter that looks at memory of its attacher's before it looks at the event, as C++'s may.
#[repr(C)]
struct Probe {
    waiter: Waiter,
    bare: Bare,
    calls: Calls,
}

impl Probe {
    unsafe extern "C" fn invoke(waiter: *mut Waiter, _event: *const EventHeader) {
        // SAFETY: the first field of the box that the test gave away.
        let probe = unsafe { Box::from_raw(waiter.cast::<Self>()) };
        assert_eq!(probe.bare.read(), 1);
        probe.calls.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_waiter_sees_what_its_attacher_did() {
    explore("attacher's memory in the waiter", None, || {
        let (promise, calls) = (EventPromise::new(c"e"), Calls::default());
        let event = promise.event();
        let setter = thread::spawn(move || assert!(promise.set_ready()));
        let waiter = Waiter { next: std::ptr::null_mut(), invoke: Probe::invoke };
        let probe = Box::new(Probe { waiter, bare: Bare::default(), calls: calls.clone() });
        probe.bare.write(1);
        // SAFETY: the event is alive; the probe is given away, and its first field is the waiter.
        unsafe { raw::attach(event.as_raw(), Box::into_raw(probe).cast()) };
        setter.join().unwrap();
        calls.assert_all_ran(1);
    });
}

#[test]
fn whoever_sees_the_event_ready_sees_what_was_done_before() {
    explore("setter's memory behind a look", None, || {
        let (promise, bare) = (EventPromise::new(c"e"), Bare::default());
        let (event, done) = (promise.event(), bare.shared());
        let setter = thread::spawn(move || {
            done.write(1);
            assert!(promise.set_ready());
        });
        if event.is_ready() {
            assert_eq!(bare.read(), 1);
        }
        setter.join().unwrap();
    });
}

#[test]
fn a_list_deferred_by_depth_runs_when_the_stack_unwinds() {
    explore("attach against a set at full depth", None, || {
        let (promise, calls) = (EventPromise::new(c"e"), Calls::default());
        let (event, early, late) = (promise.event(), calls.waiter(), calls.waiter());
        event.on_ready(early);
        let setter = thread::spawn(move || {
            waiters::nested(|| {
                let depth =
                    purlin_base::thread_state::with_state(|state| state.depth.replace(waiters::MAX_INLINE_DEPTH));
                promise.set_ready();
                drop(promise);
                purlin_base::thread_state::with_state(|state| state.depth.set(depth));
            });
        });
        event.on_ready(late);
        setter.join().unwrap();
        calls.assert_all_ran(2);
    });
}

#[test]
fn a_waiter_attached_while_the_event_completes_runs_once() {
    explore("attach against set", None, || {
        let (promise, calls) = (EventPromise::new(c"e"), Calls::default());
        let event = promise.event();
        let setter = thread::spawn(move || assert!(promise.set_ready()));
        event.on_ready(calls.waiter());
        setter.join().unwrap();
        calls.assert_all_ran(1);
    });
}

#[test]
fn two_attachers_against_a_set() {
    explore("two attach against set", Some(3), || {
        let (promise, calls) = (EventPromise::new(c"e"), Calls::default());
        let (one, other) = (promise.event(), promise.event());
        let (a, b) = (calls.waiter(), calls.waiter());
        let first = thread::spawn(move || one.on_ready(a));
        let second = thread::spawn(move || other.on_ready(b));
        promise.set_ready();
        first.join().unwrap();
        second.join().unwrap();
        calls.assert_all_ran(2);
    });
}

#[test]
fn the_first_of_two_sets_wins_and_is_what_everybody_sees() {
    explore("set ready against set error", None, || {
        let promise = Arc::new(EventPromise::new(c"e"));
        let (event, other) = (promise.event(), Arc::clone(&promise));
        let failer = thread::spawn(move || other.set_error(Error::aborted("lost or won")));
        let ready = promise.set_ready();
        let failed = failer.join().unwrap();
        assert!(ready ^ failed);
        assert_eq!(event.state(), if ready { EventState::Ready } else { EventState::Error });
        assert_eq!(event.error().is_none(), ready);
    });
}

#[test]
fn an_error_is_readable_by_whoever_sees_the_state() {
    explore("set error against read", None, || {
        let promise = EventPromise::new(c"e");
        let event = promise.event();
        let failer = thread::spawn(move || assert!(promise.set_error(Error::data_loss("x"))));
        if event.is_ready() {
            assert_eq!(event.error().unwrap().message(), "x");
        }
        failer.join().unwrap();
        assert_eq!(event.error().unwrap().message(), "x");
    });
}

#[test]
fn a_sleeper_is_woken() {
    explore("wait against set", None, || {
        let promise = EventPromise::new(c"e");
        let event = promise.event();
        let setter = thread::spawn(move || assert!(promise.set_ready()));
        event.wait().unwrap();
        setter.join().unwrap();
    });
}

#[test]
fn a_sleeper_and_a_waiter_both_hear_of_a_dropped_promise() {
    explore("wait and attach against drop", Some(3), || {
        let (promise, calls) = (EventPromise::new(c"e"), Calls::default());
        let (event, other) = (promise.event(), promise.event());
        let waiter = calls.waiter();
        let dropper = thread::spawn(move || drop(promise));
        let attacher = thread::spawn(move || other.on_ready(waiter));
        assert!(event.wait().is_err());
        dropper.join().unwrap();
        attacher.join().unwrap();
        calls.assert_all_ran(1);
    });
}

#[test]
fn the_last_reference_frees_on_any_thread() {
    explore("release against release against set", Some(3), || {
        let (promise, calls) = (EventPromise::new(c"e"), Calls::default());
        let (one, other) = (promise.event(), promise.event());
        one.on_ready(calls.waiter());
        let first = thread::spawn(move || drop(one));
        let second = thread::spawn(move || drop(other));
        assert!(promise.set_error(Error::internal("freed with the event")));
        drop(promise);
        first.join().unwrap();
        second.join().unwrap();
        calls.assert_all_ran(1);
    });
}

/// Release as every build but loom's does it: a look first, and a decrement only if there are others. Two threads, so
/// that one access per object is enough for loom: each has one look and one decrement, and the decrements depend on the
/// looks.
#[test]
fn a_look_at_the_count_may_stand_for_the_last_decrement() {
    explore("two releases that look first", None, || {
        let event = EventPromise::new(c"e");
        let bare = Bare::default();
        let release = |header: &EventHeader, bare: &Bare| {
            bare.read();
            let last = header.is_only_reference() || header.drop_one_reference();
            if last {
                bare.write(1);
            }
            last
        };
        let cell = event.0.as_raw().expose_provenance();
        // SAFETY: alive; the second thread's reference.
        unsafe { (*event.0.as_raw()).retain() };
        let shared = bare.shared();
        let other = thread::spawn(move || {
            // SAFETY: alive until the last reference is released; no thread frees it before the join below.
            release(unsafe { &*std::ptr::with_exposed_provenance::<EventHeader>(cell) }, &shared)
        });
        // SAFETY: as above.
        let here = release(unsafe { &*event.0.as_raw() }, &bare);
        let there = other.join().unwrap();
        assert!(here ^ there, "one of two is the last");
        // SAFETY: both are gone, so this thread is alone; the count goes back to the one that `event` gives up.
        unsafe { (*event.0.as_raw()).refs.store(1, loom::sync::atomic::Ordering::Relaxed) };
        drop(event);
    });
}

#[test]
fn a_join_completes_once_whoever_comes_last() {
    explore("join of two", Some(3), || {
        let promises = [EventPromise::new(c"a"), EventPromise::new(c"b")];
        let events = promises.each_ref().map(EventPromise::event);
        let calls = Calls::default();
        let waiter = calls.waiter();
        let [a, b] = promises;
        let first = thread::spawn(move || a.set_ready());
        let second = thread::spawn(move || b.set_error(Error::aborted("b")));
        let all = when_all(&events);
        drop(events);
        all.on_ready(waiter);
        first.join().unwrap();
        second.join().unwrap();
        assert_eq!(all.error().unwrap().message(), "b");
        calls.assert_all_ran(1);
    });
}

#[test]
fn of_two_who_close_a_cycle_one_is_told() {
    explore("forward against forward back", Some(3), || {
        let (a, b) = (EventPromise::new(c"a"), EventPromise::new(c"b"));
        let (event_a, event_b) = (a.event(), b.event());
        let source = event_b.clone();
        let other = thread::spawn(move || a.forward(&source));
        b.forward(&event_a);
        other.join().unwrap();
        assert!(event_a.is_ready() && event_b.is_ready(), "nobody else would complete them");
        assert!(event_a.error().unwrap().message().contains("would wait for itself"));
        assert!(event_b.error().is_some());
    });
}
