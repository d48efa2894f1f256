//! Every interleaving of the event's word, its waiters, its sleepers and its references, as far as loom is asked to look.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::thread;

use super::*;

/// Explores `f`; `preemptions` bounds how often a thread is interrupted, `None` explores everything. Prints how much was
/// seen.
fn explore(name: &str, preemptions: Option<usize>, f: impl Fn() + Send + Sync + 'static) {
    let executions = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&executions);
    let mut model = loom::model::Builder::new();
    model.preemption_bound = preemptions;
    model.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        f();
    });
    println!("loom {name}: {} executions", executions.load(Ordering::Relaxed));
}

/// Counts calls of its waiters, and, by its own count, whether their closures were destroyed.
#[derive(Clone, Default)]
struct Calls(Arc<AtomicUsize>);

impl Calls {
    fn waiter(&self) -> impl FnOnce(&Status) + Send + 'static {
        let calls = self.clone();
        move |_| _ = calls.0.fetch_add(1, Ordering::Relaxed)
    }

    fn assert_all_ran(&self, expected: usize) {
        assert_eq!(self.0.load(Ordering::Relaxed), expected);
        assert_eq!(Arc::strong_count(&self.0), 1, "every closure is destroyed");
    }
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
        let failer = thread::spawn(move || other.set_error(Status::aborted("lost or won")));
        let ready = promise.set_ready();
        let failed = failer.join().unwrap();
        assert!(ready ^ failed);
        assert_eq!(event.state(), if ready { EventState::Ready } else { EventState::Error });
        assert_eq!(event.error().ok(), ready);
    });
}

#[test]
fn an_error_is_readable_by_whoever_sees_the_state() {
    explore("set error against read", None, || {
        let promise = EventPromise::new(c"e");
        let event = promise.event();
        let failer = thread::spawn(move || assert!(promise.set_error(Status::data_loss("x"))));
        if event.is_ready() {
            assert_eq!(event.error().message(), "x");
        }
        failer.join().unwrap();
        assert_eq!(event.error().message(), "x");
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
        assert!(promise.set_error(Status::internal("freed with the event")));
        drop(promise);
        first.join().unwrap();
        second.join().unwrap();
        calls.assert_all_ran(1);
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
        let second = thread::spawn(move || b.set_error(Status::aborted("b")));
        let all = when_all(&events);
        drop(events);
        all.on_ready(waiter);
        first.join().unwrap();
        second.join().unwrap();
        assert_eq!(all.error().message(), "b");
        calls.assert_all_ran(1);
    });
}
