//! Every interleaving of scheduling, sleeping, stealing and shutdown, as far as loom is asked to look.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::thread;

use super::Task;
use super::worker::Shared;

/// Explores `f` with at most `preemptions` interruptions. Prints how much was seen.
fn explore(name: &str, preemptions: usize, f: impl Fn() + Send + Sync + 'static) {
    let executions = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&executions);
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        f();
    });
    println!("loom {name}: {} executions", executions.load(Ordering::Relaxed));
}

/// Workers of `shared`, as threads of the model.
fn start(shared: &Arc<Shared>) -> Vec<thread::JoinHandle<()>> {
    let work = |index| {
        let shared = Arc::clone(shared);
        thread::spawn(move || shared.work(index))
    };
    (0..shared.thread_count()).map(work).collect()
}

fn counting(runs: &Arc<AtomicUsize>) -> Task {
    let runs = Arc::clone(runs);
    Task::new(c"t", move || _ = runs.fetch_add(1, Ordering::Relaxed))
}

#[test]
fn a_task_wakes_a_sleeping_worker() {
    explore("submit against sleep", 3, || {
        let (shared, runs) = (Arc::new(Shared::new(1)), Arc::new(AtomicUsize::new(0)));
        let workers = start(&shared);
        let done = crate::event::EventPromise::new(c"done");
        let event = done.event();
        let task = Task::new(c"t", move || assert!(done.set_ready()));
        assert!(shared.submit(task).is_ok());
        // Not the shutdown but the submission must wake the worker: this would wait for ever.
        event.wait().unwrap();
        assert!(shared.submit(counting(&runs)).is_ok());
        shared.close();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        assert_eq!(runs.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn a_task_that_is_accepted_runs_although_the_pool_closes() {
    explore("submit against close", 3, || {
        let (shared, runs) = (Arc::new(Shared::new(1)), Arc::new(AtomicUsize::new(0)));
        let workers = start(&shared);
        let (other, task) = (Arc::clone(&shared), counting(&runs));
        let submitter = thread::spawn(move || other.submit(task).is_ok());
        shared.close();
        let accepted = submitter.join().unwrap();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        assert_eq!(runs.load(Ordering::Relaxed), usize::from(accepted));
        assert_eq!(Arc::strong_count(&runs), 1, "a refused closure is destroyed");
        assert!(shared.is_drained());
    });
}

#[test]
fn two_workers_share_two_tasks() {
    explore("two workers", 2, || {
        let (shared, runs) = (Arc::new(Shared::new(2)), Arc::new(AtomicUsize::new(0)));
        let workers = start(&shared);
        for _ in 0..2 {
            assert!(shared.submit(counting(&runs)).is_ok());
        }
        shared.close();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        assert_eq!(runs.load(Ordering::Relaxed), 2);
    });
}
