//! Rust futures on executors of ours.

use std::future::{pending, poll_fn};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::*;
use crate::event::EventPromise;
use crate::executors::inline::InlineExecutor;
use crate::future::tests::{BAD, Keeper, on_a_small_stack};
use crate::pool::{ThreadPool, ThreadPoolOptions};

fn pool() -> Arc<ThreadPool> {
    Arc::new(ThreadPool::new(&ThreadPoolOptions { thread_count: 2, ..Default::default() }).unwrap())
}

/// Pending once, and woken at once.
async fn yield_once() {
    let mut yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[test]
fn a_spawned_future_awaits_events_and_values() {
    let (promise, event) = (Promise::new(c"p"), EventPromise::new(c"e"));
    let (future, happened) = (promise.future(), event.event());
    let sum = try_spawn(pool(), c"sum", async move {
        happened.await?;
        yield_once().await;
        let value: &i32 = (&future).await?;
        Ok(value + 1)
    });
    assert!(!sum.is_ready());
    event.set_ready();
    promise.set(Ok(41)).unwrap();
    assert_eq!(sum.wait(), Ok(&42));
    assert_eq!(spawn(pool(), c"now", async { 1 }).wait(), Ok(&1));
}

#[test]
fn r2_an_error_a_panic_and_a_dropped_waker_are_errors_of_the_result() {
    let failed = try_spawn(Arc::new(InlineExecutor), c"fails", async { Err::<(), _>(Error::aborted("x")) });
    assert_eq!(failed.error().unwrap().message(), "x");
    let panics = spawn(Arc::new(InlineExecutor), c"panics", async {
        yield_once().await;
        panic!("expected by a test")
    });
    let panics: Future<()> = panics;
    assert_eq!(panics.error().unwrap().message(), "the closure of spawn panicked: expected by a test");
    let forgotten = spawn(Arc::new(InlineExecutor), c"forgotten", pending::<()>());
    assert!(forgotten.error().unwrap().message().contains("'forgotten' was abandoned"), "nobody is left to wake it");
}

#[test]
fn r2_an_executor_that_does_not_run_a_task_fails_the_result() {
    let witness = Arc::new(());
    for (bad, code, says) in BAD {
        let held = Arc::clone(&witness);
        let refused = spawn(Arc::new(bad), c"refused", async move { drop(held) });
        let error = refused.error().unwrap();
        assert_eq!(error.code(), code, "{error}");
        assert!(error.message().contains(says), "{error}");
    }
    // One of them keeps its task, and all that was in it but the future.
    assert_eq!(Arc::strong_count(&witness), 1, "futures that never ran are dropped");
    let keeper = Arc::new(Keeper::default());
    let event = EventPromise::new(c"e");
    let awaits = event.event().into_future();
    let dropped = spawn(Arc::clone(&keeper) as Arc<dyn Executor>, c"dropped", awaits);
    keeper.tasks().into_iter().for_each(Task::run);
    event.set_ready();
    assert!(!dropped.is_ready(), "woken, but not polled yet");
    drop(keeper.tasks());
    assert_eq!(dropped.error().unwrap().message(), "the task 'dropped' was dropped uncalled by its executor");
}

#[test]
fn a_future_that_is_woken_often_is_polled_by_one_thread_at_a_time() {
    let pool = pool();
    for _ in 0..50 {
        let (inside, polls) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let wakers = Arc::new(Mutex::new(Vec::<Waker>::new()));
        let (shared, counted) = (Arc::clone(&wakers), Arc::clone(&polls));
        let done = spawn(
            Arc::clone(&pool) as Arc<dyn Executor>,
            c"busy",
            poll_fn(move |context| {
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "polled by one thread");
                shared.lock().push(context.waker().clone());
                let polls = counted.fetch_add(1, Ordering::SeqCst) + 1;
                inside.fetch_sub(1, Ordering::SeqCst);
                if polls < 20 { Poll::Pending } else { Poll::Ready(()) }
            }),
        );
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !done.is_ready() {
                        let waker = wakers.lock().last().cloned();
                        waker.inspect(Waker::wake_by_ref);
                        thread::yield_now();
                    }
                });
            }
        });
        assert_eq!((done.wait(), polls.load(Ordering::SeqCst)), (Ok(&()), 20));
        for waker in wakers.lock().drain(..) {
            waker.wake();
        }
        assert_eq!(polls.load(Ordering::SeqCst), 20, "it is over");
    }
}

#[test]
fn a_future_that_wakes_itself_on_an_inline_executor_needs_no_stack() {
    on_a_small_stack(|| {
        let count = spawn(Arc::new(InlineExecutor), c"yields", async {
            for _ in 0..100_000 {
                yield_once().await;
            }
        });
        assert!(count.wait().is_ok());
    });
}

#[test]
fn it_is_polled_in_the_user_context_where_it_was_spawned() {
    let event = EventPromise::new(c"e");
    let awaited = event.event();
    let context = UserContext::new("a test");
    let id = context.id();
    let spawned = {
        let _scope = UserContextScope::new(context);
        spawn(Arc::new(InlineExecutor), c"contexts", async move {
            let before = UserContext::current().map(|context| context.id());
            let _ = awaited.await;
            (before, UserContext::current().map(|context| context.id()))
        })
    };
    event.set_ready();
    assert_eq!(spawned.wait(), Ok(&(Some(id), Some(id))));
}
