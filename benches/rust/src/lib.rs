//! Purlin's events from Rust, linked into `benches/driver.cc`: the rows of `benches/event_rows.h`, so that neither
//! language pays for the other.

#[path = "../../peers/src/op.rs"]
mod op;

use std::hint::black_box;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use op::{ONE_THREAD, Op, THREADS};
use purlin::{Event, EventPromise, when_all};

const PEER: &std::ffi::CStr = c"purlin (Rust)";

/// Waiters must be `Send + 'static`, so what they add up is atomic; relaxed loads and stores cost what plain ones do.
static SUM: AtomicU64 = AtomicU64::new(0);

fn add_up(value: u64) {
    SUM.store(SUM.load(Ordering::Relaxed) + value, Ordering::Relaxed);
}

fn ready() -> Event {
    let promise = EventPromise::new(c"bench");
    promise.set_ready();
    promise.event()
}

extern "C" fn make_set_drop(count: u64) -> u64 {
    for _ in 0..count {
        let promise = black_box(EventPromise::new(c"bench"));
        promise.set_ready();
    }
    0
}

extern "C" fn fan_out<const WAITERS: u64>(count: u64) -> u64 {
    let before = SUM.load(Ordering::Relaxed);
    for i in 0..count {
        let promise = EventPromise::new(c"bench");
        let event = promise.event();
        for w in 0..WAITERS {
            event.on_ready(move |_| add_up(black_box((w | 1, i)).0));
        }
        promise.set_ready();
    }
    assert!(SUM.load(Ordering::Relaxed) >= before + count * WAITERS);
    0
}

/// A new event that happens after `event`.
fn map(event: &Event) -> Event {
    let next = EventPromise::new(c"bench");
    let mapped = next.event();
    event.on_ready(move |_| _ = next.set_ready());
    mapped
}

extern "C" fn chain(count: u64) -> u64 {
    for _ in 0..count / 100 {
        let promise = EventPromise::new(c"bench");
        let mut last = promise.event();
        for _ in 0..100 {
            last = map(&last);
        }
        promise.set_ready();
        assert!(last.is_ready());
    }
    0
}

extern "C" fn map_and_set(count: u64) -> u64 {
    for _ in 0..count {
        let promise = EventPromise::new(c"bench");
        let mapped = map(&promise.event());
        promise.set_ready();
        assert!(mapped.is_ready());
    }
    0
}

extern "C" fn is_ready(count: u64) -> u64 {
    let event = ready();
    let mut sum = 0;
    for _ in 0..count {
        sum += u64::from(black_box(&event).is_ready());
    }
    assert_eq!(sum, count);
    0
}

extern "C" fn wait_on_ready(count: u64) -> u64 {
    let event = ready();
    for _ in 0..count {
        assert!(black_box(&event).wait().is_ok());
    }
    0
}

extern "C" fn then_on_ready(count: u64) -> u64 {
    let event = ready();
    for i in 0..count {
        black_box(&event).on_ready(move |_| add_up(i | 1));
    }
    0
}

extern "C" fn copy_reference(count: u64) -> u64 {
    let promise = EventPromise::new(c"bench");
    let event = promise.event();
    for _ in 0..count {
        drop(black_box(black_box(&event).clone()));
    }
    promise.set_ready();
    0
}

extern "C" fn all<const EVENTS: usize>(count: u64) -> u64 {
    let mut promises = Vec::with_capacity(EVENTS);
    let mut events = Vec::with_capacity(EVENTS);
    for _ in 0..count {
        for _ in 0..EVENTS {
            let promise = EventPromise::new(c"bench");
            events.push(promise.event());
            promises.push(promise);
        }
        when_all(&events).on_ready(|_| add_up(1));
        for promise in &promises {
            promise.set_ready();
        }
        promises.clear();
        events.clear();
    }
    0
}

extern "C" fn all_of_ready(count: u64) -> u64 {
    let events = [ready(), ready(), ready(), ready()];
    for _ in 0..count {
        when_all(black_box(&events)).on_ready(|_| add_up(1));
    }
    0
}

extern "C" fn blocked_wait(count: u64) -> u64 {
    let (hand, handed) = std::sync::mpsc::channel::<Event>();
    let (report, reported) = std::sync::mpsc::channel::<Instant>();
    let waiter = std::thread::spawn(move || {
        for event in handed {
            _ = event.wait();
            _ = report.send(Instant::now());
        }
    });
    let mut total = Duration::ZERO;
    for _ in 0..count {
        let promise = EventPromise::new(c"bench");
        hand.send(promise.event()).expect("the waiter lives until `hand` is dropped");
        std::thread::sleep(Duration::from_micros(200));
        let start = Instant::now();
        promise.set_ready();
        total += reported.recv().expect("the waiter reports every wait") - start;
    }
    drop(hand);
    waiter.join().expect("the waiter does not panic");
    u64::try_from(total.as_nanos()).expect("milliseconds fit")
}

fn table() -> Vec<Op> {
    vec![
        Op::new(c"make, set, drop", PEER, 10000, make_set_drop, ONE_THREAD),
        Op::new(c"make, 1 waiter, set, drop", PEER, 10000, fan_out::<1>, ONE_THREAD),
        Op::new(c"make, 10 waiters, set, drop", PEER, 1500, fan_out::<10>, ONE_THREAD),
        Op::new(c"make, 1000 waiters, set, drop", PEER, 20, fan_out::<1000>, ONE_THREAD),
        Op::new(c"map, per link of 100", PEER, 5000, chain, ONE_THREAD),
        Op::new(c"map a pending one, set", PEER, 5000, map_and_set, ONE_THREAD),
        Op::new(c"is ready", PEER, 200_000, is_ready, ONE_THREAD),
        Op::new(c"wait on ready", PEER, 200_000, wait_on_ready, ONE_THREAD),
        Op::new(c"attach to ready", PEER, 200_000, then_on_ready, ONE_THREAD),
        Op::new(c"copy and drop a reference", PEER, 200_000, copy_reference, ONE_THREAD),
        Op::new(c"run when 4 ready", PEER, 2000, all::<4>, ONE_THREAD),
        Op::new(c"run when 100 ready", PEER, 80, all::<100>, ONE_THREAD),
        Op::new(c"run when ready, 4 of 4 are", PEER, 20000, all_of_ready, ONE_THREAD),
        Op::new(c"blocked wait to wake", PEER, 4, blocked_wait, THREADS),
    ]
}

/// See `benches/op.h`.
///
/// # Safety
/// `count` must be valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bench_ops_from_rust(count: *mut usize) -> *const Op {
    static OPS: OnceLock<Vec<Op>> = OnceLock::new();
    let ops = OPS.get_or_init(table);
    // SAFETY: the caller's promise.
    unsafe { *count = ops.len() };
    ops.as_ptr()
}
