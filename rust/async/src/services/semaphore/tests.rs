use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::*;
use crate::task::cancel::CancelSource;
use purlin_base::status::StatusCode;

fn never() -> CancelToken {
    CancelToken::default()
}

#[test]
fn units_are_taken_and_given_back() {
    let semaphore = Semaphore::new(c"s", 3);
    let two = semaphore.try_acquire(2).unwrap();
    assert_eq!((two.amount(), semaphore.available(), semaphore.capacity()), (2, 1, 3));
    let busy = semaphore.try_acquire(2).unwrap_err();
    assert_eq!(busy.code(), StatusCode::Unavailable);
    assert!(busy.message().contains("1 of 3"), "{busy}");
    let one = semaphore.acquire(1).unwrap();
    drop(two);
    assert_eq!(semaphore.available(), 2);
    drop(one);
    assert_eq!(semaphore.available(), 3);
    assert_eq!(semaphore.acquire(0).unwrap().amount(), 0);
}

#[test]
fn assigning_a_permit_gives_the_old_units_back() {
    let semaphore = Semaphore::new(c"s", 3);
    let mut permit = semaphore.try_acquire(1).unwrap();
    assert_eq!(permit.amount(), 1);
    permit = semaphore.try_acquire(2).unwrap();
    assert_eq!((permit.amount(), semaphore.available()), (2, 1));
}

#[test]
fn more_than_the_capacity_is_refused_whoever_asks() {
    let semaphore = Semaphore::new(c"s", 3);
    for answer in [
        semaphore.try_acquire(4),
        semaphore.acquire(4),
        semaphore.acquire_for(usize::MAX, Duration::ZERO),
        semaphore.acquire_async(4, &never()).take(),
    ] {
        assert_eq!(answer.unwrap_err().code(), StatusCode::InvalidArgument);
    }
}

#[test]
fn a_small_acquisition_does_not_overtake_a_larger_one() {
    let semaphore = Semaphore::new(c"s", 3);
    let held = semaphore.try_acquire(2).unwrap();
    let mut large = semaphore.acquire_async(2, &never());
    let mut small = semaphore.acquire_async(1, &never());
    assert_eq!(semaphore.try_acquire(1).unwrap_err().code(), StatusCode::Unavailable, "though one is free");
    assert!(!large.event().is_ready() && !small.event().is_ready());
    assert_eq!(small.take().unwrap_err().code(), StatusCode::Unavailable);
    drop(held);
    let large = large.take().unwrap();
    assert_eq!((large.amount(), small.take().unwrap().amount()), (2, 1));
    assert_eq!(small.take().unwrap_err().code(), StatusCode::FailedPrecondition);
}

#[test]
fn whoever_gives_up_in_front_lets_the_others_pass() {
    let semaphore = Semaphore::new(c"s", 3);
    let _held = semaphore.try_acquire(2).unwrap();
    let source = CancelSource::new(c"c");
    let given_up = semaphore.acquire_async(3, &never());
    let cancelled = semaphore.acquire_async(3, &source.token());
    let mut small = semaphore.acquire_async(1, &never());
    drop(given_up);
    assert!(!small.event().is_ready());
    source.cancel(Error::aborted("enough"));
    let error = cancelled.event().wait().unwrap_err();
    assert_eq!(error.code(), StatusCode::Cancelled);
    assert!(error.message().contains("enough"), "{error}");
    assert_eq!(small.take().unwrap().amount(), 1);
    assert_eq!(semaphore.acquire_async(1, &source.token()).take().unwrap_err().code(), StatusCode::Cancelled);
}

#[test]
fn r2_a_pending_permit_that_is_dropped_after_the_grant_gives_its_units_back() {
    let semaphore = Semaphore::new(c"s", 1);
    let held = semaphore.try_acquire(1).unwrap();
    let pending = semaphore.acquire_async(1, &never());
    drop(held);
    assert!(pending.event().is_ready());
    assert_eq!(semaphore.available(), 0);
    drop(pending);
    assert_eq!(semaphore.available(), 1);
    drop(semaphore.acquire_async(1, &never()));
    assert_eq!(semaphore.available(), 1);
}

#[test]
fn r7_a_wait_ends_at_its_time() {
    let semaphore = Semaphore::new(c"launches", 1);
    let held = semaphore.try_acquire(1).unwrap();
    let error = semaphore.acquire_for(1, Duration::from_millis(1)).unwrap_err();
    assert_eq!(error.code(), StatusCode::DeadlineExceeded);
    assert!(error.message().contains("'launches'"), "{error}");
    assert_eq!(semaphore.waiting(), 0);
    drop(held);
    assert_eq!(semaphore.acquire_for(1, Duration::ZERO).unwrap().amount(), 1);
}

#[test]
fn r8_closing_fails_what_waits_and_what_comes() {
    let semaphore = Semaphore::new(c"s", 1);
    let held = semaphore.try_acquire(1).unwrap();
    let pending = semaphore.acquire_async(1, &never());
    let blocked = {
        let semaphore = semaphore.clone();
        thread::spawn(move || semaphore.acquire(1).map(drop))
    };
    while semaphore.waiting() < 2 {
        thread::yield_now();
    }
    semaphore.close();
    semaphore.close();
    assert_eq!(pending.event().wait().unwrap_err().code(), StatusCode::Cancelled);
    assert_eq!(blocked.join().unwrap().unwrap_err().code(), StatusCode::Cancelled);
    assert_eq!(semaphore.try_acquire(0).unwrap_err().code(), StatusCode::Cancelled);
    drop(held);
    assert_eq!(semaphore.available(), 1);
}

#[test]
fn r3_callbacks_may_use_the_semaphore_and_a_long_queue_of_them_needs_no_stack() {
    const WAITING: usize = 100_000;
    let run = || {
        let (semaphore, calls) = (Semaphore::new(c"s", 1), Arc::new(AtomicUsize::new(0)));
        let held = semaphore.try_acquire(1).unwrap();
        for expected in 0..WAITING {
            let (inner, calls) = (semaphore.clone(), Arc::clone(&calls));
            semaphore.acquire_then(1, &never(), move |permit| {
                // A panic would be swallowed, so what is wrong is not counted.
                let right = permit.as_ref().is_ok_and(|permit| permit.amount() == 1) && inner.available() == 0;
                let first_come = calls.load(Ordering::Relaxed) == expected;
                calls.fetch_add(usize::from(right && first_come), Ordering::Relaxed);
                // Giving it back grants the next, on this thread.
                drop(permit);
            });
        }
        drop(held);
        assert_eq!((calls.load(Ordering::Relaxed), semaphore.available()), (WAITING, 1));
    };
    thread::Builder::new().stack_size(256 * 1024).spawn(run).unwrap().join().unwrap();
}

#[test]
fn a_callback_that_panics_gives_its_units_back() {
    let semaphore = Semaphore::new(c"s", 1);
    semaphore.acquire_then(1, &never(), |_permit| panic!("expected by a test"));
    assert_eq!(semaphore.available(), 1);
}

#[test]
fn threads_never_hold_more_than_the_capacity() {
    const CAPACITY: usize = 3;
    let (semaphore, held) = (Semaphore::new(c"s", CAPACITY), Arc::new(AtomicUsize::new(0)));
    let work = |index: usize| {
        let (semaphore, held) = (semaphore.clone(), Arc::clone(&held));
        thread::spawn(move || {
            for round in 0..500 {
                let amount = 1 + (index + round) % CAPACITY;
                let permit = match round % 3 {
                    0 => semaphore.acquire(amount),
                    1 => semaphore.acquire_for(amount, Duration::from_nanos(100)),
                    _ => semaphore.try_acquire(amount),
                };
                let Ok(permit) = permit else { continue };
                assert!(held.fetch_add(amount, Ordering::Relaxed) + amount <= CAPACITY);
                held.fetch_sub(amount, Ordering::Relaxed);
                drop(permit);
            }
        })
    };
    (0..4).map(work).collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!((semaphore.available(), semaphore.waiting()), (CAPACITY, 0));
}
