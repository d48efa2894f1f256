//! The pool from the outside. What only interleavings show is in `loom_model.rs`.

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use super::blocking_tests::pool_of_at_most;
use super::*;
use crate::event::Event;
use crate::event::EventPromise;
use crate::task::{AsyncWorkRunner, Executor, Priority, Task, TaskOptions};
use purlin_base::status::Error;
use purlin_base::status::StatusCode;
use std::ops::Range;

fn pool(thread_count: usize) -> ThreadPool {
    ThreadPool::new(&ThreadPoolOptions { thread_count, name: "test".to_owned() }).unwrap()
}

#[test]
fn tasks_of_one_thread_run_in_order() {
    let (pool, order) = (pool(1), Arc::new(Mutex::new(Vec::new())));
    for index in 0..100 {
        let order = Arc::clone(&order);
        pool.schedule(c"t", move || order.lock().unwrap().push(index)).unwrap();
    }
    pool.shutdown().unwrap();
    assert_eq!(*order.lock().unwrap(), (0..100).collect::<Vec<_>>());
}

#[test]
fn threads_carry_the_pools_name() {
    let (pool, (send, receive)) = (pool(1), mpsc::channel());
    pool.schedule(c"t", move || send.send(thread::current().name().map(str::to_owned)).unwrap()).unwrap();
    assert_eq!(receive.recv().unwrap().as_deref(), Some("test/0"));
}

#[test]
fn a_thread_knows_its_number_in_its_own_pool_only() {
    let (mine, other) = (pool(2), pool(1));
    assert_eq!(mine.current_thread(), None);
    let (send, receive) = mpsc::channel();
    let both = Arc::new(Barrier::new(2));
    for _ in 0..2 {
        let (pool, other, send, both) = (mine.clone(), other.clone(), send.clone(), Arc::clone(&both));
        mine.schedule(c"t", move || {
            // Both tasks run at a time, so on two threads.
            both.wait();
            send.send((pool.current_thread(), other.current_thread(), thread::current().name().map(str::to_owned)))
                .unwrap();
        })
        .unwrap();
    }
    let mut seen = [receive.recv().unwrap(), receive.recv().unwrap()];
    seen.sort();
    let name = |number| Some(format!("test/{number}"));
    assert_eq!(seen, [(Some(0), None, name(0)), (Some(1), None, name(1))]);
}

#[test]
fn bad_options_are_named() {
    let error = |thread_count, name: &str| {
        ThreadPool::new(&ThreadPoolOptions { thread_count, name: name.to_owned() }).unwrap_err()
    };
    assert_eq!(error(4097, "x").message(), "thread_count is 4097; a pool has at most 4096 threads");
    for name in ["", "a\0b"] {
        assert_eq!(error(1, name).code(), StatusCode::InvalidArgument);
    }
}

#[test]
fn describe_says_why() {
    assert_eq!(pool(3).describe(), "pool 'test': 3 threads: chosen by the caller");
    let detected = pool(0);
    assert!(detected.describe().contains(&detected.num_threads().to_string()));
}

#[test]
fn everything_scheduled_runs_before_shutdown_returns() {
    let (pool, runs) = (pool(4), Arc::new(AtomicUsize::new(0)));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..500 {
                    let runs = Arc::clone(&runs);
                    pool.schedule(c"t", move || _ = runs.fetch_add(1, Ordering::Relaxed)).unwrap();
                }
            });
        }
    });
    pool.shutdown().unwrap();
    assert_eq!(runs.load(Ordering::Relaxed), 2000);
}

#[test]
fn a_late_task_is_refused_and_its_promise_is_told() {
    let pool = pool(1);
    pool.shutdown().unwrap();
    let promise = EventPromise::new(c"owed");
    let event = promise.event();
    let error = pool.schedule(c"late", move || _ = promise.set_ready()).unwrap_err();
    assert_eq!(error.code(), StatusCode::Cancelled);
    assert_eq!(error.message(), "pool 'test' has shut down and refused task 'late'");
    assert!(event.error().unwrap().message().starts_with("event 'owed' was abandoned"));
    pool.shutdown().unwrap();
}

#[test]
fn tasks_scheduled_by_tasks_during_shutdown_are_refused() {
    let (pool, gate) = (pool(1), Arc::new(Barrier::new(2)));
    let (send, receive) = mpsc::channel();
    let (inner, inside) = (pool.clone(), Arc::clone(&gate));
    pool.schedule(c"outer", move || {
        inside.wait();
        while inner.schedule(c"probe", || ()).is_ok() {
            thread::yield_now();
        }
        send.send(inner.shutdown().unwrap_err().code()).unwrap();
    })
    .unwrap();
    gate.wait();
    pool.shutdown().unwrap();
    assert_eq!(receive.recv().unwrap(), StatusCode::FailedPrecondition);
}

#[test]
fn concurrent_shutdowns_all_return() {
    let pool = pool(2);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| pool.shutdown().unwrap());
        }
    });
}

#[test]
fn the_last_handle_may_go_on_a_worker() {
    let (pool, (send, receive)) = (pool(2), mpsc::channel());
    let gate = Arc::new(Barrier::new(2));
    let (held, inside) = (pool.clone(), Arc::clone(&gate));
    pool.schedule(c"holder", move || {
        inside.wait();
        drop(held);
        send.send(()).unwrap();
    })
    .unwrap();
    drop(pool);
    gate.wait();
    receive.recv().unwrap();
}

/// Shuts a pool down when it is dropped, and sends the result.
struct ShutsDown(ThreadPool, mpsc::Sender<Result<(), Error>>);

impl Drop for ShutsDown {
    fn drop(&mut self) {
        self.1.send(self.0.shutdown()).unwrap();
    }
}

#[test]
fn a_variable_of_a_worker_cannot_shut_its_pool_down_when_the_thread_ends() {
    thread_local!(static AT_END: RefCell<Option<ShutsDown>> = const { RefCell::new(None) });
    for count in [1, 3] {
        let (pool, (send, answers)) = (pool(count), mpsc::channel());
        let each = Arc::new(Barrier::new(count));
        for _ in 0..count {
            let (at_end, each) = (ShutsDown(pool.clone(), send.clone()), Arc::clone(&each));
            let task = move || {
                AT_END.set(Some(at_end));
                each.wait();
            };
            pool.schedule(c"leaves a variable", task).unwrap();
        }
        thread::spawn(move || send.send(pool.shutdown()).unwrap());
        let next = || answers.recv_timeout(Duration::from_secs(60)).expect("a pool's end waits for itself");
        let refused = (0..=count).filter_map(|_| next().err()).map(|error| error.code());
        assert_eq!(refused.collect::<Vec<_>>(), vec![StatusCode::FailedPrecondition; count]);
    }
}

#[test]
fn a_panicking_task_leaves_the_pool_alive() {
    let (pool, (send, receive)) = (pool(1), mpsc::channel());
    pool.schedule(c"bad", || panic!("expected by a test")).unwrap();
    pool.schedule(c"good", move || send.send(7).unwrap()).unwrap();
    assert_eq!(receive.recv().unwrap(), 7);
}

#[test]
fn a_task_waits_for_its_events() {
    let (pool, promises) = (pool(2), [c"a", c"b"].map(EventPromise::new));
    let events = promises.each_ref().map(EventPromise::event);
    let (send, receive) = mpsc::channel();
    pool.schedule_when_ready(&events, Task::new(c"t", move || send.send(()).unwrap())).unwrap();
    promises[0].set_ready();
    assert!(receive.try_recv().is_err());
    promises[1].set_error(Error::aborted("tasks run after failures too"));
    receive.recv().unwrap();
}

#[test]
fn a_task_whose_event_comes_after_shutdown_is_dropped() {
    let (pool, gate) = (pool(1), EventPromise::new(c"gate"));
    let owed = EventPromise::new(c"owed");
    let event = owed.event();
    pool.schedule_when_ready(&[gate.event()], Task::new(c"t", move || _ = owed.set_ready())).unwrap();
    pool.shutdown().unwrap();
    assert!(!event.is_ready());
    gate.set_ready();
    assert_eq!(event.error().unwrap().code(), StatusCode::Internal);
}

#[test]
fn parallel_for_covers_the_range_once() {
    let pool = pool(3);
    for (count, grain) in [(0, 0), (1, 0), (7, 3), (1000, 0), (1000, 1), (5, usize::MAX), (64, 64)] {
        let hits: Vec<_> = (0..count).map(|_| AtomicUsize::new(0)).collect();
        pool.parallel_for(count, grain, &|range| {
            assert!(!range.is_empty() && (grain == 0 || range.len() <= grain));
            range.for_each(|index| _ = hits[index].fetch_add(1, Ordering::Relaxed));
            Ok(())
        })
        .unwrap();
        assert!(hits.iter().all(|hit| hit.load(Ordering::Relaxed) == 1), "{count} {grain}");
    }
    let top = AtomicUsize::new(0);
    pool.parallel_for(usize::MAX, usize::MAX / 2, &|range| {
        top.fetch_max(range.end, Ordering::Relaxed);
        Ok(())
    })
    .unwrap();
    assert_eq!(top.into_inner(), usize::MAX);
}

#[test]
fn parallel_for_reports_the_lowest_failure_and_finishes_the_rest() {
    let (pool, runs) = (pool(2), AtomicUsize::new(0));
    let error = pool
        .parallel_for(10, 1, &|range| {
            runs.fetch_add(1, Ordering::Relaxed);
            match range.start {
                3 => panic!("expected by a test"),
                7 => Err(Error::data_loss("seven")),
                _ => Ok(()),
            }
        })
        .unwrap_err();
    assert_eq!(error.message(), "a call of ParallelFor panicked: expected by a test");
    assert_eq!(runs.into_inner(), 10);
}

#[test]
fn loops_inside_loops_inside_a_full_pool_end() {
    let (pool, runs) = (pool(2), Arc::new(AtomicUsize::new(0)));
    let done: Vec<_> = (0..8)
        .map(|_| {
            let (inner, runs, done) = (pool.clone(), Arc::clone(&runs), EventPromise::new(c"done"));
            let event = done.event();
            pool.schedule(c"outer", move || {
                let body = |_: Range<usize>| {
                    inner.parallel_for(4, 1, &|_| {
                        runs.fetch_add(1, Ordering::Relaxed);
                        Ok(())
                    })
                };
                done.set(inner.parallel_for(4, 1, &body));
            })
            .unwrap();
            event
        })
        .collect();
    crate::event::when_all(&done).wait().unwrap();
    assert_eq!(runs.load(Ordering::Relaxed), 8 * 16);
}

#[test]
fn parallel_for_after_shutdown_runs_on_its_caller() {
    let pool = pool(2);
    pool.shutdown().unwrap();
    let me = thread::current().id();
    pool.parallel_for(5, 1, &|_| {
        assert_eq!(thread::current().id(), me);
        Ok(())
    })
    .unwrap();
}

/// Waits until so many workers of the pool are idle.
fn until_idle(pool: &ThreadPool, workers: usize) {
    while pool.idle_count() != workers {
        thread::yield_now();
    }
}

/// Keeps a worker of the pool busy until the answer is dropped.
fn busy_worker(pool: &ThreadPool) -> mpsc::Sender<()> {
    let ((begun, has_begun), (end, ends)) = (mpsc::channel(), mpsc::channel::<()>());
    let task = move || {
        begun.send(()).unwrap();
        let _ = ends.recv();
    };
    pool.schedule(c"busy", task).unwrap();
    has_begun.recv().unwrap();
    end
}

#[test]
fn a_loop_for_idle_workers_is_one_call_where_none_is_idle() {
    let pool = pool(2);
    let busy = [busy_worker(&pool), busy_worker(&pool)];
    let calls = Mutex::new(Vec::new());
    let note = |range| {
        calls.lock().unwrap().push((thread::current().id(), range));
        Ok(())
    };
    pool.submitter().parallel_for_idle(c"loop", 10, 1, &note).unwrap();
    assert_eq!(*calls.lock().unwrap(), [(thread::current().id(), 0..10)]);
    drop(busy);
    pool.shutdown().unwrap();
    pool.submitter().parallel_for_idle(c"loop", 10, 1, &note).unwrap();
    assert_eq!(calls.lock().unwrap()[1..], [(thread::current().id(), 0..10)]);
}

#[test]
fn a_loop_for_idle_workers_is_shared_with_them() {
    let pool = pool(2);
    until_idle(&pool, 2);
    let (me, helped) = (thread::current().id(), EventPromise::new(c"helped"));
    let event = helped.event();
    let hits = [const { AtomicUsize::new(0) }; 10];
    let body = |range: Range<usize>| {
        assert_eq!(range.len(), 1);
        hits[range.start].fetch_add(1, Ordering::Relaxed);
        if thread::current().id() == me {
            event.wait().unwrap();
        } else {
            helped.set_ready();
        }
        Ok(())
    };
    pool.submitter().parallel_for_idle(c"loop", 10, 1, &body).unwrap();
    assert!(hits.iter().all(|hit| hit.load(Ordering::Relaxed) == 1));

    let covered = AtomicUsize::new(0);
    for (count, grain) in [(0, 0), (0, 1), (1000, 0), (1000, usize::MAX)] {
        covered.store(0, Ordering::Relaxed);
        let body = |range: Range<usize>| {
            covered.fetch_add(range.len(), Ordering::Relaxed);
            Ok(())
        };
        pool.submitter().parallel_for_idle(c"loop", count, grain, &body).unwrap();
        assert_eq!(covered.load(Ordering::Relaxed), count, "grain {grain}");
    }
}

#[test]
fn a_worker_that_helps_leaves_when_a_task_waits() {
    let pool = pool(2);
    let _busy = busy_worker(&pool);
    until_idle(&pool, 1);
    let (me, ran, helped) = (thread::current().id(), EventPromise::new(c"ran"), AtomicUsize::new(0));
    let (event, ran) = (ran.event(), Mutex::new(Some(ran)));
    let body = |_: Range<usize>| {
        if thread::current().id() == me {
            event.wait().unwrap();
        } else if helped.fetch_add(1, Ordering::Relaxed) == 0 {
            let ran = ran.lock().unwrap().take().unwrap();
            pool.schedule(c"waits", move || _ = ran.set_ready()).unwrap();
        }
        Ok(())
    };
    pool.submitter().parallel_for_idle(c"loop", 100, 1, &body).unwrap();
    assert_eq!(helped.into_inner(), 1, "pieces that the worker did before the task that waited");
}

#[test]
fn tasks_that_wait_for_tasks_of_their_own_pool_end() {
    const THREADS: usize = 3;
    let pool = pool(THREADS);
    for round in 0..1000 {
        let outer: Vec<_> = (0..THREADS)
            .map(|_| {
                let (inner, done) = (pool.clone(), EventPromise::new(c"outer"));
                let event = done.event();
                let task = move || {
                    let spawned: Vec<_> = (0..THREADS)
                        .map(|_| {
                            let promise = EventPromise::new(c"inner");
                            let event = promise.event();
                            inner.schedule(c"inner", move || _ = promise.set_ready()).unwrap();
                            event
                        })
                        .collect();
                    // Half of the rounds may not help, only hand over their place.
                    let all = crate::event::when_all(&spawned);
                    let waited =
                        if round % 2 == 0 { all.wait() } else { all.wait_for(std::time::Duration::from_secs(3600)) };
                    done.set(waited);
                };
                pool.schedule(c"outer", task).unwrap();
                event
            })
            .collect();
        crate::event::when_all(&outer).wait().unwrap();
    }
    pool.shutdown().unwrap();
}

#[test]
fn a_refused_thread_is_an_error_that_names_it() {
    for threads in 0..3 {
        let error = pool_of_at_most(threads, 3).unwrap_err();
        assert_eq!(error.code(), StatusCode::ResourceExhausted);
        let start = format!("could not start thread {threads} of the 3 of pool 'few': ");
        assert!(error.message().starts_with(&start), "{error}");
    }
}

#[test]
fn without_spares_a_waiting_worker_runs_other_tasks() {
    let pool = pool_of_at_most(1, 1).unwrap();
    let promise = EventPromise::new(c"second");
    let (first, event) = (promise.event(), EventPromise::new(c"first"));
    let done = event.event();
    pool.schedule(c"first", move || _ = event.set(first.wait())).unwrap();
    pool.schedule(c"second", move || _ = promise.set_ready()).unwrap();
    done.wait().unwrap();
}

#[test]
fn what_a_refused_task_owed_says_why() {
    let pool = pool(1);
    pool.shutdown().unwrap();
    let promise = EventPromise::new(c"result");
    let event = promise.event();
    pool.schedule(c"late", move || _ = promise.set_ready()).unwrap_err();
    let why = "event 'result' was abandoned: its promise was dropped before it was set, because pool 'test' has shut down \
               and refused task 'late'";
    assert_eq!(event.wait().unwrap_err().message(), why);
    let later = EventPromise::new(c"later").event();
    assert!(!later.wait().unwrap_err().message().contains("because"), "the reason goes with the refusal");
}

/// Each task that waits runs the next one on top of itself, and that waits too: once, the one thread was counted as
/// blocked for each of them, so the pool took itself for manned and slept for ever.
#[test]
fn without_spares_tasks_that_wait_nest_and_their_thread_is_blocked_once() {
    let pool = pool_of_at_most(1, 1).unwrap();
    let promise = EventPromise::new(c"opened by the last");
    let waits: Vec<Event> = (0..5)
        .map(|_| {
            let (opened, done) = (promise.event(), EventPromise::new(c"waited"));
            let event = done.event();
            pool.schedule(c"waits", move || _ = done.set(opened.wait())).unwrap();
            event
        })
        .collect();
    pool.schedule(c"opens", move || _ = promise.set_ready()).unwrap();
    waits.iter().for_each(|event| assert_eq!(event.wait(), Ok(())));
    pool.schedule(c"after", || ()).unwrap();
    pool.shutdown().unwrap();
}

#[test]
fn urgent_tasks_go_first_and_others_last() {
    let (pool, order) = (pool(1), Arc::new(Mutex::new(Vec::new())));
    let (begun, gate) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let inside = (Arc::clone(&begun), Arc::clone(&gate));
    pool.schedule(c"gate", move || {
        inside.0.wait();
        inside.1.wait();
    })
    .unwrap();
    begun.wait();
    for priority in [Priority::Low, Priority::Normal, Priority::High, Priority::Normal] {
        let order = Arc::clone(&order);
        let options = TaskOptions { priority, ..Default::default() };
        pool.execute_with(Task::new(c"t", move || order.lock().unwrap().push(priority)), &options).unwrap();
    }
    gate.wait();
    pool.shutdown().unwrap();
    assert_eq!(*order.lock().unwrap(), [Priority::High, Priority::Normal, Priority::Normal, Priority::Low]);
}

fn fib(pool: &ThreadPool, n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = pool.join(|| fib(pool, n - 1), || fib(pool, n - 2));
    a + b
}

#[test]
fn join_calls_both_here_on_a_worker_and_after_shutdown() {
    let pool = pool(2);
    assert_eq!(fib(&pool, 15), 610, "from outside");
    let (inner, (send, receive)) = (pool.clone(), mpsc::channel());
    pool.schedule(c"t", move || send.send(fib(&inner, 20)).unwrap()).unwrap();
    assert_eq!(receive.recv().unwrap(), 6765, "on a worker");
    pool.shutdown().unwrap();
    assert_eq!(fib(&pool, 10), 55, "after shutdown");
}

#[test]
fn join_lends_its_second_half_to_an_idle_worker() {
    let (pool, meeting) = (pool(2), Barrier::new(2));
    // Returns only if the two calls are on two threads.
    pool.join(|| meeting.wait(), || meeting.wait());
}

#[test]
fn join_panics_as_its_closures_do() {
    let pool = pool(2);
    let text = |a: fn(), b: fn()| purlin_base::panics::caught(|| pool.join(a, b)).unwrap_err();
    assert_eq!(text(|| panic!("a, expected by a test"), || ()), "a, expected by a test");
    assert_eq!(text(|| (), || panic!("b, expected by a test")), "b, expected by a test");
    assert_eq!(fib(&pool, 5), 5, "the pool lives");
}

#[test]
fn a_cancelling_shutdown_drops_what_has_not_begun() {
    // Without spares: a thread that did not go on for long enough would see one run what is to be cancelled.
    let (pool, begun, gate) = (pool_of_at_most(1, 1).unwrap(), Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let inside = (Arc::clone(&begun), Arc::clone(&gate));
    pool.schedule(c"running", move || {
        inside.0.wait();
        inside.1.wait();
    })
    .unwrap();
    begun.wait();
    let promise = EventPromise::new(c"owed");
    let event = promise.event();
    pool.schedule(c"pending", move || _ = promise.set_ready()).unwrap();
    let pool = &pool;
    thread::scope(|scope| {
        let options = ShutdownOptions { mode: ShutdownMode::CancelPending, timeout: None };
        let shutdown = scope.spawn(move || pool.shutdown_with(options));
        assert!(event.wait().unwrap_err().message().starts_with("event 'owed' was abandoned"), "before the other ends");
        gate.wait();
        shutdown.join().unwrap().unwrap();
    });
}

#[test]
fn a_shutdown_that_passes_its_deadline_names_what_runs() {
    // Without spares, as above.
    let (pool, begun, gate) = (pool_of_at_most(2, 2).unwrap(), Arc::new(Barrier::new(3)), Arc::new(Barrier::new(3)));
    for label in [c"slow", c"slower"] {
        let inside = (Arc::clone(&begun), Arc::clone(&gate));
        let task = move || {
            inside.0.wait();
            inside.1.wait();
        };
        pool.schedule(label, task).unwrap();
    }
    begun.wait();
    let promise = EventPromise::new(c"owed");
    let event = promise.event();
    pool.schedule(c"pending", move || _ = promise.set_ready()).unwrap();
    let timeout = Some(std::time::Duration::from_millis(1));
    let error = pool.shutdown_with(ShutdownOptions { mode: ShutdownMode::Drain, timeout }).unwrap_err();
    assert_eq!(error.code(), StatusCode::DeadlineExceeded);
    assert!(error.message().contains("'slow'") && error.message().contains("'slower'"), "{error}");
    assert!(event.error().unwrap().message().starts_with("event 'owed' was abandoned"));
    gate.wait();
    pool.shutdown().unwrap();
}
