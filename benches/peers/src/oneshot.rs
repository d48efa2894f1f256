//! tokio's oneshot channel. It has one consumer and no list of waiters: less than an event does.

use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::op::{ONE_THREAD, Op, THREADS};

const PEER: &std::ffi::CStr = c"tokio::oneshot";

extern "C" fn make_set_drop(count: u64) -> u64 {
    for _ in 0..count {
        let (sender, receiver) = black_box(oneshot::channel::<i32>());
        _ = sender.send(42);
        drop(receiver);
    }
    0
}

/// The waiter is a task that is polled, woken (by a waker that does nothing) and polled again.
extern "C" fn one_waiter(count: u64) -> u64 {
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..count {
        let (sender, receiver) = oneshot::channel::<i32>();
        let mut receiver = pin!(receiver);
        assert!(receiver.as_mut().poll(&mut context).is_pending());
        _ = sender.send(42);
        assert!(matches!(receiver.as_mut().poll(&mut context), Poll::Ready(Ok(42))));
    }
    0
}

extern "C" fn blocked_wait(count: u64) -> u64 {
    let (hand, handed) = std::sync::mpsc::channel::<oneshot::Receiver<i32>>();
    let (report, reported) = std::sync::mpsc::channel::<Instant>();
    let waiter = std::thread::spawn(move || {
        for receiver in handed {
            _ = receiver.blocking_recv();
            _ = report.send(Instant::now());
        }
    });
    let mut total = Duration::ZERO;
    for _ in 0..count {
        let (sender, receiver) = oneshot::channel::<i32>();
        hand.send(receiver).expect("the waiter lives until `hand` is dropped");
        std::thread::sleep(Duration::from_micros(200));
        let start = Instant::now();
        _ = sender.send(42);
        total += reported.recv().expect("the waiter reports every wait") - start;
    }
    drop(hand);
    waiter.join().expect("the waiter does not panic");
    u64::try_from(total.as_nanos()).expect("milliseconds fit")
}

/// Adds this peer's rows.
pub fn add(ops: &mut Vec<Op>) {
    ops.push(Op::new(c"make, set, drop", PEER, 10000, make_set_drop, ONE_THREAD));
    ops.push(Op::new(c"make, 1 waiter, set, drop", PEER, 10000, one_waiter, ONE_THREAD));
    ops.push(Op::new(c"blocked wait to wake", PEER, 4, blocked_wait, THREADS));
}
