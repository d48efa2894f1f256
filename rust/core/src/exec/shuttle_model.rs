//! The whole pool under random schedules, where it is too large for loom to look at all of them. shuttle takes every
//! atomic for sequentially consistent; what weaker orderings allow is loom's part.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner, thread};

use super::worker::Shared;
use super::{Task, parallel_for};
use crate::event::EventPromise;

/// Schedules per model and way of choosing them.
const SCHEDULES: usize = 5000;
/// How many times priorities change in a schedule of PCT: bugs of that depth are found with known odds.
const DEPTH: usize = 3;

fn explore(f: impl Fn() + Send + Sync + Clone + 'static) {
    let mut config = Config::new();
    config.stack_size = 256 * 1024;
    Runner::new(RandomScheduler::new(SCHEDULES), config.clone()).run(f.clone());
    Runner::new(PctScheduler::new(DEPTH, SCHEDULES), config).run(f);
}

/// Runs `f` beside two workers, then closes the pool and joins them.
fn with_workers(f: impl FnOnce(&Arc<Shared>)) {
    let shared = Arc::new(Shared::new(2));
    let work = |index| {
        let shared = Arc::clone(&shared);
        thread::spawn(move || shared.work(index))
    };
    let workers: Vec<_> = (0..2).map(work).collect();
    f(&shared);
    shared.close();
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    assert!(shared.is_drained());
}

#[test]
fn loops_inside_loops_inside_tasks_end() {
    explore(|| {
        with_workers(|shared| {
            let runs = Arc::new(AtomicUsize::new(0));
            let done: Vec<_> = (0..2)
                .map(|_| {
                    let (inner, runs, done) = (Arc::clone(shared), Arc::clone(&runs), EventPromise::new(c"done"));
                    let event = done.event();
                    let task = Task::new(c"outer", move || {
                        let body = |_: Range<usize>| {
                            parallel_for::run(&inner, 2, 1, &|_| {
                                runs.fetch_add(1, Ordering::Relaxed);
                                Ok(())
                            })
                        };
                        done.set(parallel_for::run(&inner, 2, 1, &body).err().unwrap_or_default());
                    });
                    assert!(shared.submit(task).is_ok());
                    event
                })
                .collect();
            crate::event::when_all(&done).wait().unwrap();
            assert_eq!(runs.load(Ordering::Relaxed), 8);
        });
    });
}

#[test]
fn every_task_runs_or_is_refused_while_the_pool_closes() {
    explore(|| {
        let (runs, accepted) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (submitter_runs, submitter_accepted) = (Arc::clone(&runs), Arc::clone(&accepted));
        with_workers(|shared| {
            let shared = Arc::clone(shared);
            thread::spawn(move || {
                for _ in 0..4 {
                    let runs = Arc::clone(&submitter_runs);
                    let task = Task::new(c"t", move || _ = runs.fetch_add(1, Ordering::Relaxed));
                    submitter_accepted.fetch_add(usize::from(shared.submit(task).is_ok()), Ordering::Relaxed);
                }
            });
        });
        // The submitter may still be at it, but only refusals are left for it.
        assert!(runs.load(Ordering::Relaxed) >= accepted.load(Ordering::Relaxed));
    });
}
