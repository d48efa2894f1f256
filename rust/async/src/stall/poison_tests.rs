//! What a watchdog poisons, and what it does not.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use super::*;
use crate::event::{AsyncValue, CountDown, Event, EventPromise, JoinOptions, StreamEventMap, after_all, when_all};
use crate::executors::serial_queue::SerialQueue;
use crate::future::{Future, Promise, future_on, join_futures};
use crate::pool::{ShutdownMode, ShutdownOptions, ThreadPool, ThreadPoolOptions};
use crate::services::semaphore::Semaphore;
use crate::task::AsyncWorkRunner;
use purlin_base::status::{Error, StatusCode};

/// Poisons what is older than 10 ms.
fn poisoner() -> Watchdog {
    let options = WatchdogOptions {
        older_than: Duration::from_millis(10),
        action: WatchdogAction::Poison,
        sink: Some(Box::new(|_| ())),
    };
    Watchdog::start(options).unwrap()
}

fn pool(name: &str) -> ThreadPool {
    ThreadPool::new(&ThreadPoolOptions { thread_count: 2, name: name.to_owned() }).unwrap()
}

/// Returns once a watchdog has looked at everything that is asleep now: it has poisoned what was made later.
fn after_a_look() {
    for _ in 0..2 {
        let canary = EventPromise::new(c"canary");
        assert_eq!(canary.event().wait().unwrap_err().code(), StatusCode::DeadlineExceeded);
    }
}

/// Waits until a thread sleeps on an event of that label.
fn until_asleep_on(label: &str) {
    let sleeps = |report: &StallReport| report.threads.iter().any(|thread| thread.waits_for.contains(label));
    while !sleeps(&stalls(Duration::ZERO)) {
        thread::yield_now();
    }
}

fn verdict(label: &str) -> StalledEvent {
    let report = stalls(Duration::ZERO);
    let found = report.events.iter().find(|event| event.label.as_str() == label);
    found.unwrap_or_else(|| panic!("no event '{label}' in:\n{report}")).clone()
}

/// What `wait`, on a thread of its own, does while a watchdog poisons and `going_on` has not ended: nothing. `label` is
/// what it sleeps on.
fn survives(label: &str, going_on: EventPromise, wait: impl FnOnce() + Send + 'static) {
    let (tell, told) = mpsc::channel();
    let waiter = thread::spawn(move || {
        wait();
        tell.send(()).unwrap();
    });
    until_asleep_on(label);
    let _watchdog = poisoner();
    after_a_look();
    assert!(told.try_recv().is_err(), "'{label}' was completed while others went on");
    let seen = verdict(label);
    assert!(!seen.can_be_poisoned && seen.poison.starts_with("cannot be poisoned: "), "{}", seen.poison);
    going_on.set_ready();
    waiter.join().unwrap();
}

/// A promise that guards a test, and a call that blocks until it is kept.
fn gate() -> (EventPromise, Event) {
    let gate = EventPromise::guarding(c"gate of a test");
    let open = gate.event();
    (gate, open)
}

fn block(gate: &Event) {
    // Not by a sleep that a watchdog sees.
    while !gate.is_ready() {
        thread::yield_now();
    }
}

#[test]
fn a_loop_on_somebodys_stack_is_not_poisoned() {
    let (going_on, open) = gate();
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    survives("ParallelFor", going_on, move || {
        let pool = pool("loop");
        let (caller, others) = (thread::current().id(), AtomicUsize::new(0));
        let result = pool.parallel_for(8, 1, &|range| {
            if thread::current().id() != caller {
                others.fetch_add(1, Ordering::Relaxed);
                block(&open);
            }
            while others.load(Ordering::Relaxed) == 0 {
                thread::yield_now();
            }
            counted.fetch_add(range.len(), Ordering::Relaxed);
            Ok(())
        });
        assert_eq!((result, counted.load(Ordering::Relaxed)), (Ok(()), 8));
    });
    assert_eq!(calls.load(Ordering::Relaxed), 8);
}

#[test]
fn a_join_on_somebodys_stack_is_not_poisoned() {
    let (going_on, open) = gate();
    survives("Join", going_on, move || {
        let pool = pool("join");
        let (mut a, mut b) = (0, 0);
        pool.join(|| block(&open), || (a, b) = (1, 2));
        assert_eq!((a, b), (1, 2));
    });
}

#[test]
fn the_end_of_a_pool_is_not_poisoned() {
    let (going_on, open) = gate();
    survives("pool ended", going_on, move || {
        let pool = pool("ended");
        let (ran, seen) = (Arc::new(AtomicUsize::new(0)), open.clone());
        let runs = Arc::clone(&ran);
        pool.schedule(c"goes on", move || {
            block(&seen);
            runs.fetch_add(1, Ordering::Relaxed);
        })
        .unwrap();
        let drain = ShutdownOptions { mode: ShutdownMode::Drain, timeout: None };
        assert_eq!(pool.shutdown_with(drain), Ok(()));
        assert_eq!(ran.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn draining_a_queue_is_not_poisoned() {
    let (going_on, open) = gate();
    survives("SerialQueue drained", going_on, move || {
        let queue = SerialQueue::new(c"poison: queue", Arc::new(pool("drained")));
        let seen = open.clone();
        queue.schedule(c"goes on", move || block(&seen)).unwrap();
        queue.drain().unwrap();
        assert!(open.is_ready());
    });
}

#[test]
fn a_unit_of_a_semaphore_is_not_poisoned() {
    let (going_on, open) = gate();
    let semaphore = Semaphore::new(c"poison: units", 1);
    let unit = semaphore.acquire(1).unwrap();
    open.on_ready(move |_| drop(unit));
    survives("poison: units", going_on, move || drop(semaphore.acquire(1).unwrap()));
}

#[test]
fn what_a_count_down_guards_is_not_poisoned() {
    let (going_on, open) = gate();
    let steps = CountDown::new(c"poison: steps", 1);
    let done = steps.event();
    open.on_ready(move |_| _ = steps.count_down());
    survives("poison: steps", going_on, move || done.wait().unwrap());
}

#[test]
fn what_a_task_computes_is_not_poisoned_while_it_goes_on() {
    let (going_on, open) = gate();
    survives("poison: computed", going_on, move || {
        let pool = pool("computed");
        let value = future_on(&pool, c"poison: computed", move || {
            block(&open);
            Ok(7)
        });
        assert_eq!(value.wait(), Ok(&7));
    });
}

/// Poisons the root of what `derive` makes of a user's event, on which a thread sleeps; its error.
fn error_through(derive: impl FnOnce(&Event) -> Event) -> Error {
    let promise = EventPromise::new(c"poison: root");
    let derived = derive(&promise.event());
    let sleeper = thread::spawn(move || derived.wait().unwrap_err());
    let _watchdog = poisoner();
    let error = sleeper.join().unwrap();
    assert!(!promise.set_ready(), "the root has failed: {error}");
    error
}

type Derive = Box<dyn FnOnce(&Event) -> Event>;

#[test]
fn a_sleeper_is_woken_through_the_promise_that_its_event_waits_for() {
    let future = |event: &Event| Future::from(event.clone());
    let derived: [(&str, Derive); 8] = [
        ("join", Box::new(|event| when_all(&[event.clone(), event.clone()]))),
        ("join of one that is pending", Box::new(|event| when_all(&[Event::ready(), event.clone()]))),
        (
            "forward",
            Box::new(|event| {
                let promise = EventPromise::new(c"forwarded");
                let follower = promise.event();
                promise.forward(event);
                follower
            }),
        ),
        ("future", Box::new(move |event| future(event).ready_event())),
        ("map", Box::new(move |event| future(event).map(|()| 1).ready_event())),
        (
            "detached map",
            Box::new(move |event| {
                let pool = Arc::new(pool("detached"));
                future(event).map_on(&pool, |()| 1).detach(&pool).ready_event()
            }),
        ),
        (
            "joined futures",
            Box::new(move |event| join_futures(&[future(event), future(event)], JoinOptions::default()).ready_event()),
        ),
        (
            "streams",
            Box::new(|event| {
                let map = StreamEventMap::new();
                map.record(1, event.clone());
                map.record(2, Event::ready());
                map.all()
            }),
        ),
    ];
    for (what, derive) in derived {
        let error = error_through(derive);
        assert_eq!(error.code(), StatusCode::DeadlineExceeded, "{what}");
        assert!(error.message().contains("event 'poison: root' was poisoned"), "{what}: {error}");
    }
}

#[test]
fn values_that_a_user_owes_are_poisoned() {
    for value in
        [AsyncValue::<i32>::new_unconstructed(c"v"), AsyncValue::new_constructed(c"v", 1), AsyncValue::indirect(c"v")]
    {
        let mapped = value.map(|value| value + 1);
        let sleeper = thread::spawn(move || mapped.wait().copied());
        let watchdog = poisoner();
        assert_eq!(sleeper.join().unwrap().unwrap_err().code(), StatusCode::DeadlineExceeded);
        drop(watchdog);
        assert!(value.emplace(1).is_err(), "too late");
    }
}

#[test]
fn a_promise_that_was_poisoned_may_still_be_forwarded_and_set() {
    let (promise, other) = (EventPromise::new(c"poisoned"), EventPromise::guarding(c"pending"));
    let event = promise.event();
    assert!(event.poison(Error::deadline_exceeded("by a test")));
    promise.forward(&other.event());
    // What it would follow is not noted over the error.
    assert_eq!(event.error().unwrap().code(), StatusCode::DeadlineExceeded);
    let linked = Promise::<i32>::linked(c"poisoned, too");
    let (future, source) = (linked.future(), Promise::<i32>::new(c"source"));
    assert!(future.ready_event().poison(Error::deadline_exceeded("by a test")));
    linked.forward(&source.future());
    assert_eq!(future.error().unwrap().code(), StatusCode::DeadlineExceeded);
}

#[test]
fn what_an_error_says_is_not_lost_when_its_promise_is_forwarded() {
    let (promise, other) = (EventPromise::new(c"failed"), EventPromise::new(c"pending"));
    let event = promise.event();
    promise.set_error(Error::aborted("first"));
    promise.forward(&other.event());
    assert_eq!(event.error(), Some(Error::aborted("first")));
}

#[test]
fn the_library_does_not_wait_for_what_may_be_poisoned() {
    let planted = EventPromise::new(c"planted");
    let event = planted.event();
    if cfg!(debug_assertions) {
        let waits = purlin_base::panics::caught(|| event.wait_uninterruptible());
        assert!(waits.is_err(), "a planted event that may be poisoned is found");
    }
    let all = after_all(&[event.clone(), event]);
    planted.set_ready();
    assert_eq!(all.wait_uninterruptible(), Ok(()));
}

#[test]
fn promises_that_go_while_they_are_poisoned_are_freed_once() {
    let _watchdog = poisoner();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..20 {
                    let promise = EventPromise::new(c"comes and goes");
                    let value = AsyncValue::<u64>::new_unconstructed(c"comes and goes, too");
                    let mapped = value.map(|_| ());
                    let all = when_all(&[promise.event(), mapped.into_event()]);
                    let owner = scope.spawn(move || {
                        // One of the two is poisoned first; the other completes at the same time.
                        while !promise.event().is_ready() && !value.is_ready() {
                            thread::yield_now();
                        }
                        drop((promise, value));
                    });
                    assert!(all.wait().is_err());
                    owner.join().unwrap();
                }
            });
        }
    });
}
