use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::executors::inline::InlineExecutor;
use crate::pool::{ThreadPool, ThreadPoolOptions};
use purlin_base::status::StatusCode;

fn pool(thread_count: usize) -> ThreadPool {
    ThreadPool::new(&ThreadPoolOptions { thread_count, ..Default::default() }).unwrap()
}

/// Keeps what it is given, until a test takes it.
#[derive(Default)]
struct Keeper(Mutex<Vec<Task>>);

impl Executor for Keeper {
    fn execute(&self, task: Task) -> Result<(), Error> {
        self.0.lock().push(task);
        Ok(())
    }
}

#[test]
fn draining_an_empty_queue_returns_at_once() {
    let queue = SerialQueue::new(c"q", Arc::new(pool(1)));
    assert!(queue.drained().is_ready() && !queue.has_backlog());
    queue.drain().unwrap();
    queue.drain().unwrap();
}

#[test]
fn tasks_run_one_at_a_time_in_order_on_many_threads() {
    let queue = SerialQueue::new(c"q", Arc::new(pool(4)));
    let order = Arc::new(Mutex::new(Vec::new()));
    let inside = Arc::new(AtomicUsize::new(0));
    for index in 0..1000 {
        let (order, inside) = (Arc::clone(&order), Arc::clone(&inside));
        let task = move || {
            assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0);
            order.lock().push(index);
            assert_eq!(inside.fetch_sub(1, Ordering::Relaxed), 1);
        };
        queue.schedule(c"t", task).unwrap();
    }
    queue.drain().unwrap();
    assert_eq!(*order.lock(), (0..1000).collect::<Vec<_>>());
}

#[test]
fn drains_are_independent() {
    let queue = SerialQueue::new(c"q", Arc::new(pool(2)));
    let ran = Arc::new(AtomicUsize::new(0));
    for round in 1..=5 {
        for _ in 0..40 {
            let ran = Arc::clone(&ran);
            queue.schedule(c"t", move || _ = ran.fetch_add(1, Ordering::Relaxed)).unwrap();
        }
        queue.drain().unwrap();
        assert_eq!(ran.load(Ordering::Relaxed), 40 * round);
    }
}

#[test]
fn drained_waits_for_what_came_before_it_only() {
    let keeper = Arc::new(Keeper::default());
    let queue = SerialQueue::new(c"q", Arc::<Keeper>::clone(&keeper));
    let (seen, drained) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(None::<Event>)));
    queue.schedule(c"before", || ()).unwrap();
    *drained.lock() = Some(queue.drained());
    let (at_its_turn, noted) = (Arc::clone(&drained), Arc::clone(&seen));
    let after = move || {
        let ready = at_its_turn.lock().as_ref().is_some_and(Event::is_ready);
        noted.store(1 + usize::from(ready), Ordering::Relaxed);
    };
    queue.schedule(c"after", after).unwrap();
    assert!(queue.has_backlog());
    assert!(!drained.lock().as_ref().is_some_and(Event::is_ready));
    let pump = keeper.0.lock().pop().unwrap();
    pump.run();
    assert_eq!(seen.load(Ordering::Relaxed), 2, "the event happened before the later task");
    assert!(!queue.has_backlog());
}

#[test]
fn who_hears_of_the_drain_sees_no_backlog() {
    let keeper = Arc::new(Keeper::default());
    let queue = SerialQueue::new(c"q", Arc::<Keeper>::clone(&keeper));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let look = |queue: &SerialQueue| {
        let (queue, seen) = (queue.clone(), Arc::clone(&seen));
        move || seen.lock().push(queue.has_backlog())
    };
    for _ in 0..BATCH {
        queue.schedule(c"before", look(&queue)).unwrap();
    }
    let looked = look(&queue);
    queue.drained().on_ready(move |_| looked());
    while let Some(pump) = { keeper.0.lock().pop() } {
        seen.lock().push(queue.has_backlog());
        pump.run();
    }
    let mut expected = vec![true; 1 + BATCH];
    expected.extend([false, false]);
    assert_eq!(
        *seen.lock(),
        expected,
        "before it ran, in each task, after the batch of tasks, and when it had drained"
    );
}

#[test]
fn r7_a_task_that_waits_for_its_own_queue_is_told() {
    let queue = SerialQueue::new(c"self", Arc::new(pool(1)));
    let (inner, answer) = (queue.clone(), Arc::new(Mutex::new(Ok(()))));
    let out = Arc::clone(&answer);
    let task = move || {
        // Through another queue on the same thread, too.
        let other = SerialQueue::new(c"other", Arc::new(InlineExecutor));
        other.schedule(c"nested", move || *out.lock() = inner.drain()).unwrap();
        other.drain().unwrap();
    };
    queue.schedule(c"t", task).unwrap();
    queue.drain().unwrap();
    let error = answer.lock().clone().unwrap_err();
    assert_eq!(error.code(), StatusCode::FailedPrecondition);
    assert!(error.message().contains("'self'"), "{error}");
}

#[test]
fn a_panic_does_not_stop_it() {
    let queue = SerialQueue::new(c"q", Arc::new(pool(1)));
    let ran = Arc::new(AtomicUsize::new(0));
    queue.schedule(c"bad", || panic!("expected by a test")).unwrap();
    let inside = Arc::clone(&ran);
    queue.schedule(c"good", move || _ = inside.fetch_add(1, Ordering::Relaxed)).unwrap();
    queue.drain().unwrap();
    assert_eq!(ran.load(Ordering::Relaxed), 1);
}

#[test]
fn r8_a_closed_queue_refuses_and_still_runs_what_it_has() {
    let keeper = Arc::new(Keeper::default());
    let queue = SerialQueue::new(c"q", Arc::<Keeper>::clone(&keeper));
    let ran = Arc::new(AtomicUsize::new(0));
    let inside = Arc::clone(&ran);
    queue.schedule(c"t", move || _ = inside.fetch_add(1, Ordering::Relaxed)).unwrap();
    queue.close();
    let error = queue.schedule(c"late", || ()).unwrap_err();
    assert_eq!(error.code(), StatusCode::Cancelled);
    assert!(error.message().contains("'late'") && error.message().contains("'q'"), "{error}");
    let drained = queue.drained();
    drop(queue);
    let pump = keeper.0.lock().pop().unwrap();
    pump.run();
    assert_eq!(ran.load(Ordering::Relaxed), 1);
    drained.wait().unwrap();
}

#[test]
fn r2_dropping_the_last_handle_loses_no_task() {
    let executor: Arc<dyn Executor> = Arc::new(pool(1));
    let promise = EventPromise::new(c"done");
    let done = promise.event();
    let queue = SerialQueue::new(c"q", executor);
    for _ in 0..200 {
        queue.schedule(c"t", || ()).unwrap();
    }
    queue.schedule(c"last", move || _ = promise.set_ready()).unwrap();
    drop(queue);
    done.wait().unwrap();
}

#[test]
fn r2_an_executor_that_drops_the_queue_fails_what_it_owed() {
    let keeper = Arc::new(Keeper::default());
    let queue = SerialQueue::new(c"orphan", Arc::<Keeper>::clone(&keeper));
    let promise = EventPromise::new(c"owed");
    let owed = promise.event();
    queue.schedule(c"t", move || _ = promise.set_ready()).unwrap();
    let drained = queue.drained();
    let tasks = std::mem::take(&mut *keeper.0.lock());
    drop(tasks);
    assert_eq!(owed.wait().unwrap_err().code(), StatusCode::Internal);
    let error = drained.wait().unwrap_err();
    assert_eq!(error.code(), StatusCode::Cancelled);
    assert!(error.message().contains("'orphan'"), "{error}");
    assert!(!queue.has_backlog());
    queue.schedule(c"again", || ()).unwrap();
    assert_eq!(keeper.0.lock().len(), 1, "it asks anew");
}

#[test]
fn r2_an_executor_that_has_shut_down_refuses_at_once() {
    let executor = pool(1);
    executor.shutdown().unwrap();
    let queue = SerialQueue::new(c"q", Arc::new(executor));
    for _ in 0..2 {
        let promise = EventPromise::new(c"owed");
        let owed = promise.event();
        let error = queue.schedule(c"t", move || _ = promise.set_ready()).unwrap_err();
        assert_eq!(error.code(), StatusCode::Cancelled);
        assert!(owed.is_ready());
    }
    queue.drain().unwrap();
}

#[test]
fn pending_tasks_can_be_dropped_and_the_queue_goes_on() {
    let keeper = Arc::new(Keeper::default());
    let queue = SerialQueue::new(c"q", Arc::<Keeper>::clone(&keeper));
    let ran = Arc::new(AtomicUsize::new(0));
    let count = || {
        let ran = Arc::clone(&ran);
        move || _ = ran.fetch_add(1, Ordering::Relaxed)
    };
    queue.schedule(c"a", count()).unwrap();
    let drained = queue.drained();
    queue.schedule(c"b", count()).unwrap();
    assert_eq!(queue.cancel_pending(), 2);
    queue.schedule(c"c", count()).unwrap();
    let pump = keeper.0.lock().pop().unwrap();
    pump.run();
    drained.wait().unwrap();
    assert_eq!(ran.load(Ordering::Relaxed), 1);
}

#[test]
fn a_long_queue_on_an_inline_executor_needs_no_stack() {
    fn link(queue: SerialQueue, left: usize, ran: Arc<AtomicUsize>) {
        ran.fetch_add(1, Ordering::Relaxed);
        if left > 1 {
            let inner = queue.clone();
            queue.schedule(c"link", move || link(inner, left - 1, ran)).unwrap();
        }
    }
    /// Inline as users write it: no bound on nesting.
    struct Direct;
    impl Executor for Direct {
        fn execute(&self, task: Task) -> Result<(), Error> {
            task.run();
            Ok(())
        }
    }
    let run = || {
        for executor in [Arc::new(Direct) as Arc<dyn Executor>, Arc::new(InlineExecutor)] {
            let (queue, ran) = (SerialQueue::new(c"q", executor), Arc::new(AtomicUsize::new(0)));
            let (inner, counted) = (queue.clone(), Arc::clone(&ran));
            queue.schedule(c"first", move || link(inner, 300_000, counted)).unwrap();
            assert_eq!(ran.load(Ordering::Relaxed), 300_000);
            assert!(!queue.has_backlog());
        }
    };
    std::thread::Builder::new().stack_size(256 * 1024).spawn(run).unwrap().join().unwrap();
}

#[test]
fn a_long_queue_lets_others_have_the_thread_between_batches() {
    let keeper = Arc::new(Keeper::default());
    let queue = SerialQueue::new(c"q", Arc::<Keeper>::clone(&keeper));
    let ran = Arc::new(AtomicUsize::new(0));
    for _ in 0..2 * BATCH + 1 {
        let ran = Arc::clone(&ran);
        queue.schedule(c"t", move || _ = ran.fetch_add(1, Ordering::Relaxed)).unwrap();
    }
    for expected in [BATCH, 2 * BATCH, 2 * BATCH + 1] {
        let pump = keeper.0.lock().pop().unwrap();
        assert!(keeper.0.lock().is_empty(), "one pump at a time");
        pump.run();
        assert_eq!(ran.load(Ordering::Relaxed), expected);
    }
    assert!(keeper.0.lock().is_empty() && !queue.has_backlog());
}

/// An executor that refused it would have nothing to lose, and nothing to report to.
#[test]
fn a_queue_that_is_empty_after_a_batch_asks_for_no_further_turn() {
    let keeper = Arc::new(Keeper::default());
    let queue = SerialQueue::new(c"q", Arc::<Keeper>::clone(&keeper));
    for _ in 0..BATCH {
        queue.schedule(c"t", || ()).unwrap();
    }
    let pump = keeper.0.lock().pop().unwrap();
    pump.run();
    assert!(!queue.has_backlog());
    assert_eq!(keeper.0.lock().len(), 0, "turns that were asked for");
    // The next task has one.
    queue.schedule(c"t", || ()).unwrap();
    assert_eq!(keeper.0.lock().len(), 1, "turns that were asked for");
    keeper.0.lock().pop().unwrap().run();
    assert!(!queue.has_backlog());
}

/// Panics each time that it is asked: before it takes the task, after it has taken it, or after it has run it.
struct Panics {
    when: &'static str,
    pool: ThreadPool,
}

impl Executor for Panics {
    fn execute(&self, task: Task) -> Result<(), Error> {
        match self.when {
            "before" => drop(task),
            "after" => self.pool.execute(task).unwrap(),
            _ => task.run(),
        }
        panic!("expected by a test");
    }
}

#[test]
fn an_executor_that_panics_loses_nothing_and_stops_nothing() {
    // More than one pump runs, so that it asks the executor again from inside.
    const TASKS: usize = 3 * BATCH;
    for when in ["before", "after", "inside"] {
        let queue = SerialQueue::new(c"q", Arc::new(Panics { when, pool: pool(1) }));
        let (ran, owed) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
        let (inner, inside, owing) = (queue.clone(), Arc::clone(&ran), Arc::clone(&owed));
        let all = EventPromise::new(c"all are scheduled");
        let scheduled = all.event();
        let first = queue.schedule(c"first", move || {
            for _ in 0..TASKS {
                let (ran, promise) = (Arc::clone(&inside), EventPromise::new(c"ran"));
                owing.lock().push(promise.event());
                let task = move || {
                    ran.fetch_add(1, Ordering::Relaxed);
                    promise.set_ready();
                };
                inner.schedule(c"t", task).unwrap();
            }
            all.set_ready();
        });
        if when == "before" {
            let error = first.unwrap_err();
            assert_eq!(error.message(), "the executor of queue 'q' panicked: expected by a test");
        } else {
            assert_eq!(first, Ok(()), "{when}");
            let limit = std::time::Duration::from_secs(60);
            scheduled.wait_for(limit).expect("a queue whose executor panics begins");
            queue.drained().wait_for(limit).expect("a queue whose executor panics goes on");
            assert_eq!(ran.load(Ordering::Relaxed), TASKS, "{when}");
            assert!(owed.lock().iter().all(|event| event.is_ready() && event.error().is_none()), "{when}");
        }
        assert!(!queue.has_backlog());
    }
}

#[test]
fn r8_a_shutdown_runs_what_is_queued_or_drops_it_and_refuses_what_comes_later() {
    for (mode, expected) in [(ShutdownMode::Drain, 4), (ShutdownMode::CancelPending, 1)] {
        let (pool, ran) = (pool(1), Arc::new(AtomicUsize::new(0)));
        let queue = SerialQueue::new(c"q", Arc::new(pool));
        let (begin, gate) = (EventPromise::new(c"begin"), EventPromise::new(c"gate"));
        let (begun, open) = (begin.event(), gate.event());
        let inside = Arc::clone(&ran);
        queue
            .schedule(c"first", move || {
                begin.set_ready();
                open.wait().unwrap();
                inside.fetch_add(1, Ordering::Relaxed);
            })
            .unwrap();
        let debts: Vec<_> = std::iter::repeat_with(|| EventPromise::new(c"owed")).take(3).collect();
        let owed: Vec<_> = debts.iter().map(EventPromise::event).collect();
        for promise in debts {
            let ran = Arc::clone(&ran);
            let task = move || {
                ran.fetch_add(1, Ordering::Relaxed);
                promise.set_ready();
            };
            queue.schedule(c"t", task).unwrap();
        }
        begun.wait().unwrap();
        std::thread::scope(|scope| {
            let ends = scope.spawn(|| queue.shutdown_with(ShutdownOptions { mode, timeout: None }));
            // Either they are dropped, or the gate lets them run.
            if mode == ShutdownMode::CancelPending {
                owed.iter().for_each(|event| _ = event.wait());
            }
            gate.set_ready();
            assert_eq!(ends.join().unwrap(), Ok(()), "{mode:?}");
        });
        assert_eq!(ran.load(Ordering::Relaxed), expected, "{mode:?}");
        assert!(owed.iter().all(|event| event.is_ready() && event.error().is_none() == (expected == 4)), "{mode:?}");
        let late = queue.schedule(c"late", || ()).unwrap_err();
        assert_eq!(late, Error::cancelled("queue 'q' has shut down and refused task 'late'"));
        assert_eq!(queue.shutdown(), Ok(()), "again");
    }
}

#[test]
fn r8_a_shutdown_that_takes_longer_than_its_timeout_drops_the_rest_and_says_so() {
    let keeper = Arc::new(Keeper::default());
    let queue = SerialQueue::new(c"q", Arc::clone(&keeper) as _);
    queue.schedule(c"never", || panic!("it was dropped")).unwrap();
    let options = ShutdownOptions { mode: ShutdownMode::Drain, timeout: Some(std::time::Duration::ZERO) };
    let error = queue.shutdown_with(options).unwrap_err();
    assert_eq!(error.code(), StatusCode::DeadlineExceeded);
    assert!(error.message().starts_with("queue 'q' did not end within 0ns of its shutdown: 1 tasks"), "{error}");
    assert_eq!(queue.shutdown(), Ok(()), "nothing is left to wait for");
    drop(mem::take(&mut *keeper.0.lock()));
}

#[test]
fn a_task_cannot_shut_its_queue_down() {
    let queue = SerialQueue::new(c"q", Arc::new(InlineExecutor));
    let (inside, answer) = (queue.clone(), Arc::new(Mutex::new(None)));
    let given = Arc::clone(&answer);
    queue.schedule(c"t", move || *given.lock() = Some(inside.shutdown())).unwrap();
    let error = Error::failed_precondition("queue 'q' cannot be shut down by a task of its own");
    assert_eq!(*answer.lock(), Some(Err(error)));
    assert_eq!(queue.schedule(c"t", || ()), Ok(()), "nothing has happened");
}
