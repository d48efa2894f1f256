//! Events from the outside. What only interleavings show is in `loom_model.rs`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use super::*;
use purlin_base::status::StatusCode;

/// A list that waiters append to.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn waiter(&self, name: &str) -> impl FnOnce(&Result<(), Error>) + Send + 'static {
        let (log, name) = (self.clone(), name.to_owned());
        move |outcome| {
            let code = outcome.as_ref().err().map_or(StatusCode::Ok, Error::code);
            log.0.lock().unwrap().push(format!("{name}:{}", code.name()));
        }
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

#[test]
fn waiters_run_first_in_first_out_once() {
    let (promise, log) = (EventPromise::new(c"e"), Log::default());
    let event = promise.event();
    for name in ["a", "b", "c"] {
        event.on_ready(log.waiter(name));
    }
    assert_eq!(event.state(), EventState::Unavailable);
    assert!(promise.set_ready());
    assert_eq!(log.take(), ["a:OK", "b:OK", "c:OK"]);
    event.on_ready(log.waiter("late"));
    assert_eq!(log.take(), ["late:OK"]);
    drop((promise, event));
    assert!(log.take().is_empty());
}

#[test]
fn the_first_set_wins_and_the_second_is_told() {
    let promise = EventPromise::new(c"e");
    assert!(promise.set_error(Error::data_loss("first")));
    assert!(!promise.set_ready());
    assert!(!promise.set_error(Error::internal("third")));
    assert_eq!(promise.event().state(), EventState::Error);
    assert_eq!(promise.event().error().unwrap().message(), "first");
    let promise = EventPromise::new(c"e");
    assert!(promise.set_ready());
    assert!(!promise.set_error(Error::internal("late")));
    assert_eq!(promise.event().error(), None);
}

#[test]
fn one_of_many_racing_sets_wins() {
    for _ in 0..200 {
        let (promise, winners, runs) = (EventPromise::new(c"race"), AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
        let counted = Arc::clone(&runs);
        promise.event().on_ready(move |_| _ = counted.fetch_add(1, Ordering::Relaxed));
        thread::scope(|scope| {
            for index in 0..4 {
                let (promise, winners) = (&promise, &winners);
                scope.spawn(move || {
                    let won = if index % 2 == 0 { promise.set_ready() } else { promise.set_error(Error::aborted("x")) };
                    winners.fetch_add(usize::from(won), Ordering::Relaxed);
                });
            }
        });
        assert_eq!((winners.into_inner(), runs.load(Ordering::Relaxed)), (1, 1));
    }
}

#[test]
fn a_dropped_promise_names_its_event_and_place() {
    let (promise, log) = (EventPromise::new(c"weights copied"), Log::default());
    let event = promise.event();
    event.on_ready(log.waiter("a"));
    drop(promise);
    assert_eq!(log.take(), ["a:INTERNAL"]);
    let error = event.error().unwrap();
    assert_eq!(error.message(), "event 'weights copied' was abandoned: its promise was dropped before it was set");
    assert!(error.location().file().ends_with("event/tests.rs"));
}

#[test]
fn constant_events_are_terminal() {
    assert!(Event::ready().is_ready() && Event::ready().wait().is_ok());
    assert!(Event::ready().as_raw().is_null());
    let failed = Event::from_error(Error::not_found("x"));
    assert_eq!(failed.state(), EventState::Error);
    assert_eq!(failed.wait().unwrap_err().code(), StatusCode::NotFound);
}

#[test]
fn a_timed_wait_names_the_event_and_leaves_it_pending() {
    let promise = EventPromise::new(c"slow");
    let event = promise.event();
    for timeout in [Duration::ZERO, Duration::from_millis(2)] {
        let error = event.wait_for(timeout).unwrap_err();
        assert_eq!(error.code(), StatusCode::DeadlineExceeded);
        assert!(error.message().contains("event 'slow' (made at "), "{error}");
    }
    promise.set_ready();
    assert!(event.wait_for(Duration::ZERO).is_ok());
    assert!(EventPromise::new(c"").event().wait_for(Duration::ZERO).unwrap_err().message().starts_with("an event"));
}

#[test]
fn a_blocked_thread_wakes() {
    for _ in 0..100 {
        let promise = EventPromise::new(c"e");
        let event = promise.event();
        let blocked = thread::spawn(move || event.wait());
        promise.set_error(Error::unavailable("later"));
        assert_eq!(blocked.join().unwrap().unwrap_err().code(), StatusCode::Unavailable);
    }
}

#[test]
fn a_waiter_may_attach_again_and_drop_the_last_reference() {
    let (promise, log) = (EventPromise::new(c"e"), Log::default());
    let event = promise.event();
    let again = log.waiter("inner");
    let held = event.clone();
    event.on_ready(move |_| {
        held.on_ready(again);
        drop(held);
    });
    drop(event);
    promise.set_ready();
    assert_eq!(log.take(), ["inner:OK"]);
}

#[test]
fn a_panic_in_a_waiter_stops_nobody_else() {
    let (promise, log) = (EventPromise::new(c"e"), Log::default());
    promise.event().on_ready(log.waiter("before"));
    promise.event().on_ready(|_| panic!("expected by a test"));
    promise.event().on_ready(log.waiter("after"));
    assert!(promise.set_ready());
    assert_eq!(log.take(), ["before:OK", "after:OK"]);
}

/// Runs `f` on a stack of 256 KiB.
fn on_a_small_stack(f: impl FnOnce() + Send + 'static) {
    thread::Builder::new().stack_size(256 * 1024).spawn(f).unwrap().join().unwrap();
}

const LINKS: usize = if cfg!(miri) { 1_000 } else { 1_000_000 };

#[test]
fn a_chain_of_a_million_links_needs_no_stack() {
    on_a_small_stack(|| {
        let first = EventPromise::new(c"link");
        let mut last = first.event();
        for _ in 0..LINKS {
            let next = EventPromise::new(c"link");
            let following = next.event();
            last.on_ready(move |outcome| _ = next.set(outcome.clone()));
            last = following;
        }
        assert!(first.set_error(Error::cancelled("from the start")));
        assert_eq!(last.error().unwrap().message(), "from the start");
    });
}

#[test]
fn a_chain_of_a_million_dropped_promises_needs_no_stack() {
    on_a_small_stack(|| {
        let first = EventPromise::new(c"link");
        let mut last = first.event();
        for _ in 0..LINKS {
            let next = EventPromise::new(c"link");
            let following = next.event();
            last.on_ready(move |_| drop(next));
            last = following;
        }
        drop(first);
        assert_eq!(last.error().unwrap().code(), StatusCode::Internal);
    });
}

#[test]
fn a_loop_over_ready_events_needs_no_stack() {
    fn step(left: usize, done: mpsc::Sender<()>) {
        if left == 0 {
            return done.send(()).unwrap();
        }
        Event::ready().on_ready(move |_| step(left - 1, done));
    }
    on_a_small_stack(|| {
        let (done, ended) = mpsc::channel();
        step(LINKS, done);
        ended.try_recv().expect("the outermost waiter runs what was queued before it returns");
    });
}

#[test]
fn something_is_lent_until_what_waits_for_several_also_when_they_are_terminal() {
    let (user, other, guards) =
        (EventPromise::new(c"user"), EventPromise::new(c"other"), EventPromise::guarding(c"guards"));
    let awaited = guards.waits_for_all(&[Event::ready(), user.event(), other.event()]);
    let (of_guards, of_user) = (guards.event(), user.event());
    let is_lent = || super::lent::is_lent_until(of_guards.header().unwrap());
    assert!(is_lent(), "the user's promise lends nothing");
    assert!(!super::lent::is_lent_until(of_user.header().unwrap()));
    user.forward(&of_guards);
    assert_eq!(of_user.error().unwrap().code(), StatusCode::Internal, "{:?}", of_user.error());
    drop(other);
    assert!(is_lent());
    drop(awaited);
    assert!(is_lent() && guards.waits_for_all(&[Event::ready()]).is_none());
    assert!(guards.set_ready());
}

#[test]
fn when_all_waits_for_all_and_takes_the_error_of_the_lowest_index() {
    let promises = [c"0", c"1", c"2"].map(EventPromise::new);
    let events = promises.each_ref().map(EventPromise::event);
    let all = when_all(&events);
    promises[2].set_error(Error::aborted("two"));
    promises[0].set_ready();
    assert!(!all.is_ready());
    promises[1].set_error(Error::data_loss("one"));
    assert_eq!(all.error().unwrap().message(), "one");
}

#[test]
fn when_all_of_nothing_or_ready_events_is_ready_at_once() {
    assert_eq!(when_all(&[]), Event::ready());
    assert_eq!(when_all(&[Event::ready(), Event::ready()]), Event::ready());
    let one = EventPromise::new(c"only").event();
    assert_eq!(when_all(std::slice::from_ref(&one)), one);
    let failed = [Event::ready(), Event::from_error(Error::aborted("a")), Event::from_error(Error::internal("b"))];
    assert_eq!(when_all(&failed).error().unwrap().message(), "a");
}

#[test]
fn when_all_completes_once_when_its_events_race() {
    for _ in 0..100 {
        let promises: Vec<_> = (0..8).map(|_| EventPromise::new(c"part")).collect();
        let events: Vec<_> = promises.iter().map(EventPromise::event).collect();
        let all = when_all(&events);
        drop(events);
        thread::scope(|scope| {
            for promise in promises {
                scope.spawn(move || promise.set_ready());
            }
            assert!(all.wait().is_ok());
        });
    }
}

#[test]
fn waiters_attached_while_the_event_completes_all_run() {
    for _ in 0..100 {
        let (promise, runs) = (EventPromise::new(c"e"), Arc::new(AtomicUsize::new(0)));
        thread::scope(|scope| {
            for _ in 0..2 {
                let (event, runs) = (promise.event(), &runs);
                scope.spawn(move || {
                    for _ in 0..50 {
                        let runs = Arc::clone(runs);
                        event.on_ready(move |_| _ = runs.fetch_add(1, Ordering::Relaxed));
                    }
                });
            }
            promise.set_ready();
        });
        assert_eq!(runs.load(Ordering::Relaxed), 100);
    }
}

#[test]
fn an_event_of_a_stream_says_which_and_others_say_none() {
    let definition = DefinitionStream { stream: 0x1234, sequence_number: 7 };
    let promise = EventPromise::with_definition_stream(c"on a stream", definition);
    let event = promise.event();
    let numbers = |event: &Event| event.definition_stream().map(|found| (found.stream, found.sequence_number));
    assert_eq!(numbers(&event), Some((0x1234, 7)));
    drop(promise);
    assert!(event.error().unwrap().message().contains("'on a stream'"));
    assert_eq!(numbers(&event), Some((0x1234, 7)));
    for plain in [Event::ready(), EventPromise::new(c"plain").event(), Event::from_error(Error::aborted("x"))] {
        assert_eq!(numbers(&plain), None);
    }
}

#[test]
fn an_event_knows_its_waiters_and_references() {
    let promise = EventPromise::new(c"counted");
    let event = promise.event();
    assert_eq!((event.ref_count(), event.has_waiters()), (2, false));
    event.on_ready(|_| ());
    let other = event.clone();
    assert_eq!((event.ref_count(), event.has_waiters()), (3, true));
    drop(other);
    promise.set_ready();
    assert_eq!((event.ref_count(), event.has_waiters()), (2, false));
    assert_eq!((Event::ready().ref_count(), Event::ready().has_waiters()), (0, false));
}
