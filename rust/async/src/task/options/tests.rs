use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::*;
use crate::event::EventPromise;
use crate::executors::inline::InlineExecutor;
use crate::pool::{ThreadPool, ThreadPoolOptions};
use crate::task::Executor;
use crate::task::cancel::CancelSource;
use purlin_base::status::StatusCode;

fn counting(runs: &Arc<AtomicUsize>) -> Task {
    let runs = Arc::clone(runs);
    Task::new(c"counting", move || _ = runs.fetch_add(1, Ordering::Relaxed))
}

#[test]
fn a_task_without_conditions_runs_and_is_not_wrapped() {
    let runs = Arc::new(AtomicUsize::new(0));
    InlineExecutor.execute_with(counting(&runs), &TaskOptions::default()).unwrap();
    let task = TaskOptions::default().apply(counting(&runs)).unwrap();
    assert_eq!(task.label().as_str(), "counting");
    drop(task);
    assert_eq!(runs.load(Ordering::Relaxed), 1);
}

#[test]
fn the_label_is_replaced() {
    let options = TaskOptions { label: Some(Label::new(c"renamed")), ..Default::default() };
    let runs = Arc::new(AtomicUsize::new(0));
    let task = options.apply(counting(&runs)).unwrap();
    assert_eq!(task.label().as_str(), "renamed");
    task.run();
    assert_eq!(runs.load(Ordering::Relaxed), 1);
}

#[test]
fn r2_a_task_that_is_too_late_or_cancelled_already_is_dropped_before_the_answer() {
    let source = CancelSource::new(c"s");
    source.cancel(Error::aborted("enough"));
    let cancelled = TaskOptions { cancel: source.token(), ..Default::default() };
    let late = TaskOptions { deadline: Some(Instant::now()), ..Default::default() };
    for (options, code) in [(cancelled, StatusCode::Aborted), (late, StatusCode::DeadlineExceeded)] {
        let promise = EventPromise::new(c"owed");
        let owed = promise.event();
        let before = dropped_tasks();
        let task = Task::new(c"t", move || _ = promise.set_ready());
        assert_eq!(InlineExecutor.execute_with(task, &options).unwrap_err().code(), code);
        assert!(owed.error().unwrap().message().contains("'owed'"), "{owed:?}");
        assert!(dropped_tasks().cancelled + dropped_tasks().late > before.cancelled + before.late);
    }
}

#[test]
fn r2_a_task_that_is_cancelled_or_late_at_its_turn_is_dropped_uncalled() {
    let pool = ThreadPool::new(&ThreadPoolOptions { thread_count: 1, ..Default::default() }).unwrap();
    // Not an event: a worker that waits for one runs other tasks meanwhile.
    let (gate, open) = std::sync::mpsc::channel::<()>();
    let runs = Arc::new(AtomicUsize::new(0));
    pool.schedule(c"blocker", move || _ = open.recv()).unwrap();
    let (source, deadline) = (CancelSource::new(c"s"), Instant::now() + Duration::from_millis(50));
    let owe = |options: &TaskOptions| {
        let (promise, runs) = (EventPromise::new(c"owed"), Arc::clone(&runs));
        let owed = promise.event();
        let task = Task::new(c"t", move || {
            runs.fetch_add(1, Ordering::Relaxed);
            promise.set_ready();
        });
        let accepted = pool.execute_with(task, options);
        (owed, accepted)
    };
    let (cancelled, accepted) = owe(&TaskOptions { cancel: source.token(), ..Default::default() });
    accepted.unwrap();
    let (late, accepted) = owe(&TaskOptions { deadline: Some(deadline), ..Default::default() });
    if accepted.is_err() {
        // This thread did not run for so long that the time was over before the task was given.
        assert!(Instant::now() >= deadline);
    }
    let far = Instant::now() + Duration::from_secs(3600);
    let (good, accepted) =
        owe(&TaskOptions { cancel: source.token().clone(), deadline: Some(far), ..Default::default() });
    accepted.unwrap();
    let (free, accepted) = owe(&TaskOptions { deadline: Some(far), priority: Priority::High, ..Default::default() });
    accepted.unwrap();
    source.cancel(None);
    while Instant::now() < deadline {
        std::thread::yield_now();
    }
    drop(gate);
    for owed in [cancelled, late, good] {
        assert_eq!(owed.wait().unwrap_err().code(), StatusCode::Internal);
    }
    free.wait().unwrap();
    assert_eq!(runs.load(Ordering::Relaxed), 1);
}
