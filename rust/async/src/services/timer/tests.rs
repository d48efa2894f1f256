use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use super::*;
use crate::LIMIT;
use purlin_base::status::StatusCode;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

fn manual() -> (ManualClock, Timers) {
    let clock = ManualClock::new();
    (clock.clone(), Timers::with_clock(clock))
}

#[test]
fn timers_happen_in_order_of_time_when_the_clock_gets_there() {
    let (clock, timers) = manual();
    let order = Arc::new(Mutex::new(Vec::new()));
    let note = |seconds: u32, name: &'static str| {
        let order = Arc::clone(&order);
        let action = move |outcome: Result<(), Error>| order.lock().push((name, outcome.is_ok()));
        timers.call_at(timers.after(seconds * SECOND), c"t", action)
    };
    let _all = [note(3, "c"), note(1, "a"), note(2, "b1"), note(2, "b2")];
    assert_eq!((timers.run_due(), timers.waiting()), (0, 4));
    clock.advance(2 * SECOND);
    assert_eq!(timers.run_due(), 3);
    assert_eq!(*order.lock(), [("a", true), ("b1", true), ("b2", true)]);
    clock.advance(SECOND);
    assert_eq!((timers.run_due(), timers.waiting()), (1, 0));
}

#[test]
fn an_event_of_a_timer_happens_at_its_time() {
    let (clock, timers) = manual();
    let timer = timers.event_after(SECOND, c"tick");
    assert_eq!(timer.event().label().as_str(), "tick");
    clock.advance(SECOND - Duration::from_nanos(1));
    assert_eq!(timers.run_due(), 0);
    assert!(!timer.event().is_ready());
    clock.advance(Duration::from_nanos(1));
    timers.run_due();
    timer.event().wait().unwrap();
    assert!(!timer.cancel(), "too late");
}

#[test]
fn r2_a_cancelled_or_dropped_timer_tells_and_leaves_nothing() {
    let (_clock, timers) = manual();
    let (cancelled, dropped) = (timers.event_after(SECOND, c"cancelled"), timers.event_after(SECOND, c"dropped"));
    let (first, second) = (cancelled.event().clone(), dropped.event().clone());
    assert!(cancelled.cancel());
    drop(dropped);
    for (event, name) in [(first, "'cancelled'"), (second, "'dropped'")] {
        let error = event.wait().unwrap_err();
        assert_eq!(error.code(), StatusCode::Cancelled);
        assert!(error.message().contains(name), "{error}");
    }
    assert_eq!(timers.waiting(), 0);
}

#[test]
fn a_detached_timer_happens_without_an_owner() {
    let (clock, timers) = manual();
    let timer = timers.event_after(SECOND, c"t");
    let event = timer.event().clone();
    timer.detach();
    clock.advance(SECOND);
    assert_eq!(timers.run_due(), 1);
    event.wait().unwrap();
}

#[test]
fn r8_timers_that_go_away_tell_those_who_wait() {
    let (_clock, timers) = manual();
    let timer = timers.event_after(SECOND, c"orphan");
    drop(timers);
    let error = timer.event().wait().unwrap_err();
    assert_eq!(error.code(), StatusCode::Cancelled);
    assert!(error.message().contains("'orphan'"), "{error}");
    assert!(!timer.cancel());
}

#[test]
fn r7_an_event_with_a_deadline_fails_at_it_and_names_the_event() {
    let (clock, timers) = manual();
    let promise = EventPromise::new(c"copy");
    let event = timers.with_deadline(&promise.event(), timers.after(SECOND));
    clock.advance(SECOND);
    assert_eq!(timers.run_due(), 1);
    let error = event.wait().unwrap_err();
    assert_eq!(error.code(), StatusCode::DeadlineExceeded);
    assert!(error.message().contains("'copy'") && error.message().contains("1s"), "{error}");
    assert!(!promise.event().is_ready(), "the event itself stays pending");
    assert!(promise.set_ready());
    assert_eq!(event.wait().unwrap_err().code(), StatusCode::DeadlineExceeded, "set once");
}

#[test]
fn an_event_that_completes_in_time_takes_its_timer_away() {
    let (clock, timers) = manual();
    let (good, bad) = (EventPromise::new(c"good"), EventPromise::new(c"bad"));
    let events = [&good, &bad].map(|promise| timers.with_deadline(&promise.event(), timers.after(SECOND)));
    assert_eq!(timers.waiting(), 2);
    good.set_ready();
    bad.set_error(Error::aborted("x"));
    assert_eq!(timers.waiting(), 0);
    clock.advance(2 * SECOND);
    assert_eq!(timers.run_due(), 0);
    assert_eq!(events.map(|event| event.error()), [None, Some(Error::aborted("x"))]);
    let ready = Event::ready();
    assert!(timers.with_deadline(&ready, timers.now()) == ready);
}

#[test]
fn a_time_that_is_over_and_one_that_never_comes_are_both_fine() {
    let (clock, timers) = manual();
    let past = timers.event_at(timers.now(), c"past");
    let never = timers.event_after(Duration::MAX, c"never");
    assert_eq!(timers.run_due(), 1);
    assert!(past.event().is_ready());
    clock.advance(1_000_000 * SECOND);
    assert_eq!(timers.run_due(), 0);
    assert!(!never.event().is_ready());
}

#[test]
fn r3_actions_may_use_the_timers_and_a_panic_stops_nobody() {
    let (_clock, timers) = manual();
    let (inner, calls) = (timers.clone(), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&calls);
    timers.call_at(timers.now(), c"bad", |_| panic!("expected by a test")).detach();
    let again = move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        let counted = Arc::clone(&counted);
        inner.call_at(inner.now(), c"inner", move |_| _ = counted.fetch_add(1, Ordering::Relaxed)).detach();
    };
    timers.call_at(timers.now(), c"outer", again).detach();
    assert_eq!((timers.run_due(), calls.load(Ordering::Relaxed)), (3, 2));
}

#[test]
fn the_thread_starts_with_the_first_timer_and_goes_when_there_is_none() {
    let timers = Timers::with_thread(Duration::ZERO);
    for _ in 0..20 {
        let far = timers.event_after(1000 * SECOND, c"far");
        assert!(timers.has_thread());
        let near = timers.event_after(Duration::from_micros(50), c"near");
        near.event().wait_for(LIMIT).expect("the thread sleeps past a timer that was set after it had begun");
        assert!(!far.event().is_ready());
        drop(far);
        // Nothing wakes the thread for a timer that was removed; the next one does.
        let last = timers.event_at(timers.now(), c"last");
        last.event().wait_for(LIMIT).expect("the thread sleeps past a timer that is due");
        let begun = Instant::now();
        while timers.has_thread() {
            assert!(begun.elapsed() < LIMIT, "the thread stays although no timer waits: {timers:?}");
            thread::yield_now();
        }
    }
}

/// Time that stands still, and says when the thread of the timers has looked at it.
struct Watched {
    now: Instant,
    looks: AtomicUsize,
}

impl Clock for Arc<Watched> {
    fn now(&self) -> Instant {
        if thread::current().name() == Some("purlin-timers") {
            self.looks.fetch_add(1, Ordering::Release);
        }
        self.now
    }
}

#[test]
fn the_thread_is_woken_for_a_timer_that_is_earlier_than_the_one_it_sleeps_for() {
    let clock = Arc::new(Watched { now: Instant::now(), looks: AtomicUsize::new(0) });
    let timers = Timers::new(Box::new(Arc::clone(&clock)), Some(HOUR), Box::new(spawn));
    let far = timers.event_after(HOUR, c"far");
    let begun = Instant::now();
    while clock.looks.load(Ordering::Acquire) == 0 {
        assert!(begun.elapsed() < LIMIT, "the thread has not looked at the clock: {timers:?}");
        thread::yield_now();
    }
    // The thread looks at the clock under the lock of the timers, and gives that back when it sleeps.
    assert_eq!(timers.waiting(), 1);
    let near = timers.event_at(timers.now(), c"near");
    assert_eq!(near.event().wait_for(LIMIT), Ok(()), "the thread was not woken: {timers:?}");
    assert!(!far.event().is_ready(), "time stands still");
}

#[test]
fn the_timers_of_the_process_keep_deadlines_for_many_threads() {
    let wait = |_| {
        thread::spawn(|| {
            let pending = EventPromise::new(c"pending");
            for _ in 0..50 {
                let timers = Timers::shared();
                let event = timers.with_deadline(&pending.event(), timers.after(Duration::from_micros(20)));
                // Its own deadline, not that of the wait.
                let error = event.wait_for(LIMIT).unwrap_err();
                assert!(event.is_ready() && error.code() == StatusCode::DeadlineExceeded, "{error}");
            }
        })
    };
    (0..4).map(wait).collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().unwrap());
}

/// A callback that waits for another timer, after it has made one that does, `depth` times.
fn wait_inside(timers: &'static Timers, depth: u64, send: mpsc::Sender<Result<(), Error>>) {
    let inside = move |_| {
        if depth > 0 {
            wait_inside(timers, depth - 1, send.clone());
        }
        let timer = timers.event_after(Duration::from_micros(100), c"awaited on the thread of the timers");
        send.send(timer.event().wait()).unwrap();
    };
    timers.call_at(timers.now(), c"waits", inside).detach();
}

#[test]
fn r7_a_wait_for_a_timer_on_the_thread_of_the_timers_ends_and_stops_nobody() {
    let (send, waits) = mpsc::channel();
    for _ in 0..20 {
        wait_inside(Timers::shared(), 5, send.clone());
    }
    for _ in 0..20 * 6 {
        assert_eq!(waits.recv_timeout(LIMIT).expect("a wait for a timer, on their thread, hangs"), Ok(()));
    }
    // A wait for what no timer does passes the timers on, too; those of others continue meanwhile.
    let (begun, opened) = (EventPromise::new(c"begun"), EventPromise::new(c"opened"));
    let (has_begun, gate, timers) = (begun.event(), opened.event(), Timers::shared());
    let inside = move |_| {
        begun.set_ready();
        send.send(gate.wait()).unwrap();
    };
    timers.call_at(timers.now(), c"waits", inside).detach();
    has_begun.wait_for(LIMIT).unwrap();
    let other = timers.event_after(Duration::from_micros(100), c"other");
    assert_eq!(other.event().wait_for(LIMIT), Ok(()));
    opened.set_ready();
    assert_eq!(waits.recv_timeout(LIMIT).expect("a wait on the thread of the timers hangs"), Ok(()));
}

#[test]
fn r7_without_a_further_thread_a_wait_on_the_thread_of_the_timers_serves_them_itself_or_is_given_up() {
    let threads = AtomicUsize::new(0);
    let one = move |work| match threads.fetch_add(1, Ordering::Relaxed) {
        0 => spawn(work),
        _ => Err(io::ErrorKind::WouldBlock.into()),
    };
    let timers: &'static Timers = Box::leak(Box::new(Timers::new(Box::new(SystemClock), Some(HOUR), Box::new(one))));
    let (send, waits) = mpsc::channel();
    for depth in [10, 100] {
        wait_inside(timers, depth, send.clone());
        let mut answers =
            (0..=depth).map(|_| waits.recv_timeout(LIMIT).expect("a wait for a timer, on their thread, hangs"));
        let error = answers.by_ref().find_map(Result::err);
        assert_eq!(error.as_ref().map(Error::code), (depth > 16).then_some(StatusCode::ResourceExhausted), "{error:?}");
        answers.for_each(drop);
    }
}
