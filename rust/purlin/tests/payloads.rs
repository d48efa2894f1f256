//! Panics thrown with a value whose destructor panics with another such value, in all code that Purlin calls: each is
//! an error or reported, and is then swallowed. Only core's `caught` looks at payloads.

#![expect(clippy::disallowed_methods, reason = "a user's program, which is none of the library's files")]

use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;
use std::time::Duration;

use purlin::future::spawn;
use purlin::user_context::Origin;
use purlin::{
    AsyncValue, AsyncWorkRunner, EventPromise, StatusCode, ThreadPool, ThreadPoolOptions, UserContext, Watchdog,
    WatchdogOptions,
};

struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic_any(Self);
    }
}

fn pool() -> ThreadPool {
    ThreadPool::new(&ThreadPoolOptions { thread_count: 2, ..Default::default() }).unwrap()
}

#[test]
fn of_a_waiter() {
    let (promise, ran) = (EventPromise::new(c"p"), Arc::new(AtomicUsize::new(0)));
    for index in 0..3 {
        let ran = Arc::clone(&ran);
        promise.event().on_ready(move |_| {
            ran.fetch_add(1, SeqCst);
            if index == 1 {
                panic_any(Bomb);
            }
        });
    }
    assert!(promise.set_ready());
    promise.event().on_ready(|_| panic_any(Bomb));
    assert_eq!(ran.load(SeqCst), 3);
}

#[test]
fn of_a_task_and_a_loop() {
    let pool = pool();
    pool.schedule(c"t", || panic_any(Bomb)).unwrap();
    let failed = pool.parallel_for(8, 1, &|_| panic_any(Bomb)).unwrap_err();
    assert_eq!(failed.code(), StatusCode::Internal);
    pool.shutdown().unwrap();
}

#[test]
fn of_both_halves_of_a_join() {
    let pool = pool();
    // Often, so that the second half is stolen at times.
    for _ in 0..200 {
        let joined = catch_unwind(AssertUnwindSafe(|| pool.join(|| panic_any(Bomb), || panic_any(Bomb))));
        std::mem::forget(joined.unwrap_err());
        let (promise, inside) = (EventPromise::new(c"inside"), pool.clone());
        let done = promise.event();
        pool.schedule(c"t", move || {
            let joined = catch_unwind(AssertUnwindSafe(|| inside.join(|| panic_any(Bomb), || panic_any(Bomb))));
            std::mem::forget(joined.unwrap_err());
            promise.set_ready();
        })
        .unwrap();
        done.wait().unwrap();
    }
}

#[test]
fn of_a_function_that_makes_a_value_and_of_the_values_destructor() {
    struct Value;
    impl Drop for Value {
        fn drop(&mut self) {
            panic_any(Bomb);
        }
    }
    let value = AsyncValue::new_available(1);
    let failed = value.map(|_| -> i32 { panic_any(Bomb) });
    assert_eq!(failed.as_event().error().unwrap().code(), StatusCode::Internal);
    drop(AsyncValue::new_available(Value));
}

#[test]
fn of_a_spawned_future_and_of_what_it_holds() {
    struct Held;
    impl Drop for Held {
        fn drop(&mut self) {
            panic_any(Bomb);
        }
    }
    let pool = Arc::new(pool());
    let failed = spawn(Arc::clone(&pool) as _, c"s", async { panic_any(Bomb) });
    assert_eq!(failed.wait().unwrap_err().code(), StatusCode::Internal);
    let held = Held;
    let fine = spawn(pool, c"s", async move {
        std::hint::black_box(&held);
        let _ = std::future::ready(1).await;
    });
    // Its frame, and what it holds, is dropped before its waiters are notified of its end.
    let _ = fine.wait();
}

#[test]
fn of_who_renders_a_context() {
    let context = UserContext::new(Origin::lazy(|| panic_any(Bomb)));
    assert!(context.debug_string().contains("panicked"), "{}", context.debug_string());
}

#[test]
fn of_a_watchdogs_sink() {
    let (tell, told) = mpsc::sync_channel(8);
    let owed = EventPromise::new(c"owed for long");
    let watchdog = Watchdog::start(WatchdogOptions {
        older_than: Duration::from_millis(10),
        sink: Some(Box::new(move |_| {
            let _ = tell.try_send(());
            panic_any(Bomb);
        })),
        ..Default::default()
    })
    .unwrap();
    told.recv().unwrap();
    drop(watchdog);
    owed.set_ready();
}
