//! The whole pool under random schedules, where it is too large for loom to look at all of them. shuttle takes every
//! atomic for sequentially consistent; what weaker orderings allow is loom's part.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use shuttle::thread;

use super::relief::Relief;
use super::threads::Starter;
use super::worker::{PoolShared, Spares, Worker};
use super::{fork_join, parallel_for};
use crate::event::{Event, EventPromise, when_all};
use crate::task::{Priority, Task};
use purlin_base::label::Label;
use purlin_base::sync::explore;

/// Schedules per model and way of choosing them.
const SCHEDULES: usize = 2000;
/// How many times priorities change in a schedule of PCT: bugs of that depth are found with known odds.
const DEPTH: usize = 3;

/// Threads of the model.
fn starter() -> Starter {
    Box::new(|_name, work| {
        drop(thread::spawn(work));
        Ok(None)
    })
}

/// Runs `f` beside two workers and up to four spares, then closes the pool and waits for its end.
fn with_workers(f: impl FnOnce(&Arc<PoolShared>)) {
    let shared = PoolShared::new("model", 2, Spares { most: 4, at_rest: 1 }, starter(), Relief::of_the_system());
    for seat in 0..2 {
        shared.start(seat).unwrap();
    }
    shared.left();
    f(&shared);
    shared.close();
    shared.ended().wait().unwrap();
    assert!(!shared.has_work());
}

fn submit(shared: &PoolShared, task: Task) {
    assert!(shared.submit(task, Priority::Normal).is_ok());
}

#[test]
fn tasks_that_wait_for_tasks_of_their_pool_end() {
    explore("tasks that wait for tasks of their pool end", SCHEDULES, DEPTH, || {
        with_workers(|shared| {
            let runs = Arc::new(AtomicUsize::new(0));
            let outer: Vec<Event> = (0..2)
                .map(|_| {
                    let (inner, runs, done) = (Arc::clone(shared), Arc::clone(&runs), EventPromise::new(c"done"));
                    let event = done.event();
                    let task = move || {
                        let spawned: Vec<Event> = (0..2)
                            .map(|_| {
                                let (runs, promise) = (Arc::clone(&runs), EventPromise::new(c"inner"));
                                let event = promise.event();
                                let task = move || {
                                    runs.fetch_add(1, Ordering::Relaxed);
                                    promise.set_ready();
                                };
                                submit(&inner, Task::new(c"inner", task));
                                event
                            })
                            .collect();
                        done.set(when_all(&spawned).wait());
                    };
                    submit(shared, Task::new(c"outer", task));
                    event
                })
                .collect();
            when_all(&outer).wait().unwrap();
            assert_eq!(runs.load(Ordering::Relaxed), 4);
        });
    });
}

/// The first two tasks wait for the third, which is not theirs: only a spare can run it.
#[test]
fn spares_run_what_everybody_waits_for() {
    explore("spares run what everybody waits for", SCHEDULES, DEPTH, || {
        with_workers(|shared| {
            let promise = EventPromise::new(c"third");
            let event = promise.event();
            for _ in 0..2 {
                let event = event.clone();
                submit(shared, Task::new(c"waits", move || event.wait().unwrap()));
            }
            submit(shared, Task::new(c"third", move || _ = promise.set_ready()));
            event.wait().unwrap();
        });
    });
}

#[test]
fn joins_inside_joins_end() {
    fn tree(shared: &PoolShared, depth: u32) -> u32 {
        if depth == 0 {
            return 1;
        }
        let (a, b) = fork_join::join(shared, || tree(shared, depth - 1), || tree(shared, depth - 1)).unwrap();
        a + b
    }
    explore("joins inside joins end", SCHEDULES, DEPTH, || with_workers(|shared| assert_eq!(tree(shared, 3), 8)));
}

#[test]
fn loops_inside_loops_inside_tasks_end() {
    explore("loops inside loops inside tasks end", SCHEDULES, DEPTH, || {
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
                        done.set(parallel_for::run(&inner, 2, 1, &body));
                    });
                    submit(shared, task);
                    event
                })
                .collect();
            when_all(&done).wait().unwrap();
            assert_eq!(runs.load(Ordering::Relaxed), 8);
        });
    });
}

#[test]
fn loops_for_idle_workers_end_beside_tasks() {
    const PIECES: usize = 3;
    explore("loops for idle workers end beside tasks", SCHEDULES, DEPTH, || {
        let (pieces, tasks) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
        with_workers(|shared| {
            // A worker that helps finds a task that waits after each piece.
            let piece = |range: Range<usize>| {
                pieces.fetch_add(range.len(), Ordering::Relaxed);
                let tasks = Arc::clone(&tasks);
                submit(shared, Task::new(c"t", move || _ = tasks.fetch_add(1, Ordering::Relaxed)));
                Ok(())
            };
            while shared.idle_count() == 0 {
                thread::yield_now();
            }
            parallel_for::on_idle(shared, Label::new(c"loop"), PIECES, 1, &piece).unwrap();
            assert_eq!(pieces.load(Ordering::Relaxed), PIECES);
        });
        assert!((1..=PIECES).contains(&tasks.load(Ordering::Relaxed)));
    });
}

#[test]
fn no_task_runs_inside_a_loop_for_idle_workers() {
    fn seat() -> Option<usize> {
        Worker::with_current(|_shared, worker| worker.seat)
    }
    explore("no task runs inside a loop for idle workers", SCHEDULES, DEPTH, || {
        let ran_inside = Arc::new(AtomicBool::new(false));
        with_workers(|shared| {
            let (inner, done, ran_inside) = (Arc::clone(shared), EventPromise::new(c"done"), Arc::clone(&ran_inside));
            let event = done.event();
            let outer = move || {
                let (here, inside) = (seat(), Arc::new(AtomicBool::new(true)));
                let piece = |_| {
                    // Its own task, while a worker that helps may be in the other piece.
                    if seat() == here {
                        let (inside, ran_inside) = (Arc::clone(&inside), Arc::clone(&ran_inside));
                        let spawned = move || {
                            if seat() == here && inside.load(Ordering::Relaxed) {
                                ran_inside.store(true, Ordering::Relaxed);
                            }
                        };
                        submit(&inner, Task::new(c"spawned", spawned));
                    }
                    Ok(())
                };
                let result = parallel_for::on_idle(&inner, Label::new(c"loop"), 2, 1, &piece);
                inside.store(false, Ordering::Relaxed);
                done.set(result);
            };
            submit(shared, Task::new(c"outer", outer));
            event.wait().unwrap();
        });
        assert!(!ran_inside.load(Ordering::Relaxed));
    });
}

#[test]
fn a_pool_ends_that_closes_while_its_last_task_is_taken() {
    explore("a pool ends that closes while its last task is taken", SCHEDULES, DEPTH, || {
        let runs = Arc::new(AtomicUsize::new(0));
        with_workers(|shared| {
            let runs = Arc::clone(&runs);
            submit(shared, Task::new(c"t", move || _ = runs.fetch_add(1, Ordering::Relaxed)));
        });
        assert_eq!(runs.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn every_task_runs_or_is_refused_while_the_pool_closes() {
    explore("every task runs or is refused while the pool closes", SCHEDULES, DEPTH, || {
        let (runs, accepted) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (submitter_runs, submitter_accepted) = (Arc::clone(&runs), Arc::clone(&accepted));
        with_workers(|shared| {
            let shared = Arc::clone(shared);
            thread::spawn(move || {
                for _ in 0..4 {
                    let runs = Arc::clone(&submitter_runs);
                    let task = Task::new(c"t", move || _ = runs.fetch_add(1, Ordering::Relaxed));
                    submitter_accepted
                        .fetch_add(usize::from(shared.submit(task, Priority::Normal).is_ok()), Ordering::Relaxed);
                }
            });
        });
        // The submitter may still be at it, but only refusals are left for it.
        assert!(runs.load(Ordering::Relaxed) >= accepted.load(Ordering::Relaxed));
    });
}
