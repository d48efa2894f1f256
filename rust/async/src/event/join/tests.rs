//! Joins and counts from the outside; `crate::event::tests` has what they share with all events.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::*;
use crate::event::CountDown;
use purlin_base::status::StatusCode;

fn promises<const N: usize>() -> ([EventPromise; N], Vec<Event>) {
    let promises = std::array::from_fn(|_| EventPromise::new(c"part"));
    let events = promises.iter().map(EventPromise::event).collect();
    (promises, events)
}

const POLICIES: [ErrorPolicy; 4] =
    [ErrorPolicy::FirstByIndex, ErrorPolicy::FirstInTime, ErrorPolicy::LastInTime, ErrorPolicy::All];

#[test]
fn the_policy_chooses_the_error() {
    let all = "3 of 4 failed: [0] ABORTED: 0; [1] DATA_LOSS: 1; [3] INTERNAL: 3";
    for (policy, message) in POLICIES.into_iter().zip(["0", "3", "1", all]) {
        let (promises, events) = promises::<4>();
        let joined = when_all_with(&events, JoinOptions { policy, fail_fast: false });
        promises[3].set_error(Error::internal("3"));
        promises[2].set_ready();
        promises[0].set_error(Error::aborted("0"));
        assert!(!joined.is_ready());
        promises[1].set_error(Error::data_loss("1"));
        assert_eq!(joined.error().unwrap().message(), message, "{policy:?}");
    }
}

#[test]
fn errors_from_before_the_join_count_in_the_order_of_their_index() {
    for (policy, message) in POLICIES.into_iter().zip(["0", "0", "2", "2 of 3 failed: [0] ABORTED: 0; [2] ABORTED: 2"])
    {
        let (promises, events) = promises::<3>();
        promises[2].set_error(Error::aborted("2"));
        promises[0].set_error(Error::aborted("0"));
        let options = JoinOptions { policy, fail_fast: false };
        let pending = when_all_with(&events, options);
        promises[1].set_ready();
        assert_eq!(pending.error().unwrap().message(), message, "{policy:?}");
        assert_eq!(when_all_with(&events, options).error().unwrap().message(), message, "{policy:?}, all ready");
    }
}

#[test]
fn all_errors_of_one_failure_are_that_failure_with_its_payloads() {
    let options = JoinOptions { policy: ErrorPolicy::All, fail_fast: false };
    let mut error = Error::aborted("only");
    error.set_payload("type/a", b"1");
    let one = when_all_with(&[Event::ready(), Event::from_error(error.clone())], options);
    assert_eq!(one.error(), Some(error.clone()));
    let two = when_all_with(&[Event::from_error(error.clone()), Event::from_error(error)], options);
    assert_eq!(two.error().unwrap().payload("type/a"), Some(&b"1"[..]));
}

#[test]
fn fail_fast_does_not_wait_for_the_rest() {
    for policy in POLICIES {
        let options = JoinOptions { policy, fail_fast: true };
        let (promises, events) = promises::<3>();
        let joined = when_all_with(&events, options);
        promises[1].set_error(Error::aborted("1"));
        assert_eq!(joined.error().unwrap().message(), "1");
        drop(promises);
        assert_eq!(joined.error().unwrap().message(), "1");
        let (promises, mut events) = self::promises::<2>();
        events.push(Event::from_error(Error::internal("before")));
        assert_eq!(when_all_with(&events, options).error().unwrap().message(), "before");
        drop(promises);
    }
}

#[test]
fn after_all_does_not_mind_errors() {
    let (promises, events) = promises::<2>();
    let after = after_all(&events);
    promises[0].set_error(Error::aborted("x"));
    assert!(!after.is_ready());
    drop(promises);
    assert!(after.wait().is_ok());
    assert_eq!(after_all(&events), Event::ready());
    assert_eq!(after_all(&[]), Event::ready());
}

#[test]
fn run_when_ready_runs_once_now_or_after_the_last() {
    let runs = Arc::new(AtomicUsize::new(0));
    let count = |runs: &Arc<AtomicUsize>| {
        let runs = Arc::clone(runs);
        move || _ = runs.fetch_add(1, Ordering::Relaxed)
    };
    run_when_ready(&[], count(&runs));
    run_when_ready(&[Event::ready(), Event::from_error(Error::aborted("x"))], count(&runs));
    assert_eq!(runs.load(Ordering::Relaxed), 2);
    let (promises, mut events) = promises::<3>();
    run_when_ready(&events[..1], count(&runs));
    events.push(Event::ready());
    run_when_ready(&events, count(&runs));
    run_when_ready(&events, || panic!("expected by a test"));
    promises[0].set_ready();
    assert_eq!(runs.load(Ordering::Relaxed), 3);
    drop(promises);
    assert_eq!((runs.load(Ordering::Relaxed), Arc::strong_count(&runs)), (4, 1));
}

#[test]
fn r1_racing_arrivals_complete_a_join_once_with_the_first_error_by_index() {
    for _ in 0..200 {
        let (promises, events) = promises::<6>();
        let runs = Arc::new(AtomicUsize::new(0));
        let joined = when_all(&events);
        drop(events);
        let counted = Arc::clone(&runs);
        joined.on_ready(move |_| _ = counted.fetch_add(1, Ordering::Relaxed));
        thread::scope(|scope| {
            for (index, promise) in promises.into_iter().enumerate() {
                scope.spawn(move || {
                    promise.set(if index < 2 { Ok(()) } else { Err(Error::aborted(index.to_string())) })
                });
            }
        });
        assert_eq!((joined.error().unwrap().message(), runs.load(Ordering::Relaxed)), ("2", 1));
    }
}

#[test]
fn a_count_reaches_zero_once() {
    let count = CountDown::new(c"count", 3);
    let other = count.clone();
    assert!(!count.count_down() && !other.count_down_with(Err(Error::aborted("first"))));
    assert_eq!(count.left(), 1);
    assert!(!count.event().is_ready());
    assert!(other.count_down_with(Err(Error::internal("second"))));
    assert!(!count.count_down(), "a step too many does nothing");
    assert_eq!(count.event().error().unwrap().message(), "first");
    assert!(CountDown::new(c"none", 0).event().wait().is_ok());
}

#[test]
fn r2_a_count_that_is_given_up_fails_its_event() {
    let count = CountDown::new(c"epoch", 2);
    let event = count.event();
    count.count_down();
    drop(count);
    assert!(event.error().unwrap().message().contains("'epoch' was abandoned"));
}

#[test]
fn r1_one_of_many_racing_steps_is_the_last() {
    for _ in 0..100 {
        let count = CountDown::new(c"count", 8);
        let last = AtomicUsize::new(0);
        thread::scope(|scope| {
            for index in 0..4 {
                let (count, last) = (&count, &last);
                scope.spawn(move || {
                    for _ in 0..2 {
                        let outcome = if index == 0 { Err(Error::aborted("x")) } else { Ok(()) };
                        last.fetch_add(usize::from(count.count_down_with(outcome)), Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!((last.into_inner(), count.event().error().unwrap().message()), (1, "x"));
    }
}

#[test]
fn the_policy_of_a_count_chooses_the_error() {
    let fail = |policy| {
        let count = CountDown::with_options(c"count", 4, JoinOptions { policy, fail_fast: false });
        let steps = [(2, Err(Error::aborted("a"))), (1, Ok(())), (0, Err(Error::data_loss("b")))];
        assert!(!steps.into_iter().any(|(index, outcome)| count.count_down_at(index, outcome)));
        assert!(count.count_down_with(Err(Error::not_found("c"))));
        count.event().error().unwrap()
    };
    assert_eq!(fail(ErrorPolicy::FirstInTime), Error::aborted("a"));
    assert_eq!(fail(ErrorPolicy::LastInTime), Error::not_found("c"));
    assert_eq!(fail(ErrorPolicy::FirstByIndex), Error::data_loss("b"));
    let all = fail(ErrorPolicy::All);
    assert_eq!(all.message(), "3 of 4 failed: [0] DATA_LOSS: b; [2] ABORTED: a; NOT_FOUND: c");
    assert_eq!(all.code(), StatusCode::DataLoss);
}

#[test]
fn a_count_that_fails_fast_does_not_wait_and_counts_on() {
    let count = CountDown::with_options(c"count", 3, JoinOptions { fail_fast: true, ..JoinOptions::default() });
    assert!(!count.count_down());
    assert!(count.count_down_with(Err(Error::aborted("a"))));
    assert_eq!((count.left(), count.event().error()), (1, Some(Error::aborted("a"))));
    assert!(!count.count_down_with(Err(Error::data_loss("late"))));
    assert!(!count.count_down_with(Err(Error::data_loss("too many"))));
    assert_eq!((count.left(), count.event().error()), (0, Some(Error::aborted("a"))));
}

#[test]
fn a_count_that_fails_fast_loses_no_error_to_a_last_step_that_succeeds() {
    for _ in 0..300 {
        let count = CountDown::with_options(c"count", 2, JoinOptions { fail_fast: true, ..JoinOptions::default() });
        let event = count.event();
        let completed = AtomicUsize::new(0);
        thread::scope(|scope| {
            for outcome in [Ok(()), Err(Error::aborted("x"))] {
                let (count, completed) = (&count, &completed);
                scope
                    .spawn(move || completed.fetch_add(usize::from(count.count_down_with(outcome)), Ordering::Relaxed));
            }
        });
        assert_eq!((event.error().unwrap().message(), completed.into_inner()), ("x", 1));
    }
}
