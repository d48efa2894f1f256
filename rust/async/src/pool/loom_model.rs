//! Every interleaving of pushing, stealing, sleeping, joining, waiting and shutdown, as far as loom is asked to look.
//! `rust/model/mutations.txt` says which planted defects each model must find.

use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::thread;

use super::deque::{Deque, Steal};
use super::fork_join;
use super::idle::{Idle, Waker};
use super::injector::Injector;
use super::relief::Relief;
use super::threads::Starter;
use super::worker::{PoolShared, Spares};
use crate::event::EventPromise;
use crate::task::node::TaskNode;
use crate::task::{Priority, Task};
use purlin_base::sync::{Condvar, Mutex, explore};

/// Threads of the model, which must be joined before it ends.
type Started = Arc<std::sync::Mutex<Vec<thread::JoinHandle<()>>>>;

fn starter(started: &Started) -> Starter {
    let started = Arc::clone(started);
    Box::new(move |_name, work| {
        started.lock().unwrap().push(thread::spawn(work));
        Ok(None)
    })
}

fn pool(threads: usize, spares: usize) -> Arc<PoolShared> {
    pool_with(threads, spares, &Started::default())
}

fn pool_with(threads: usize, spares: usize, started: &Started) -> Arc<PoolShared> {
    let shared = PoolShared::new(
        "model",
        threads,
        Spares { most: spares, at_rest: spares },
        starter(started),
        Relief::of_the_system(),
    );
    (0..threads).for_each(|seat| shared.enlist(seat));
    shared.left();
    shared
}

fn work(shared: &Arc<PoolShared>, seat: usize) -> thread::JoinHandle<()> {
    let shared = Arc::clone(shared);
    thread::spawn(move || shared.work(seat))
}

fn submit(shared: &PoolShared, task: Task) {
    assert!(shared.submit(task, Priority::Normal).is_ok());
}

fn counting(runs: &Arc<AtomicUsize>) -> Task {
    let runs = Arc::clone(runs);
    Task::new(c"t", move || _ = runs.fetch_add(1, Ordering::Relaxed))
}

/// Identifies a task.
fn number(node: *mut TaskNode) -> usize {
    node.addr() / 8
}

fn numbered(number: usize) -> *mut TaskNode {
    ptr::without_provenance_mut(number * 8)
}

#[test]
fn deque_gives_each_task_to_one() {
    explore("deque: two pops against two steals", None, || {
        let deque = Arc::new(Deque::new(2));
        // SAFETY: this thread is the owner.
        let pushed = unsafe { [deque.push(numbered(1)), deque.push(numbered(2)), deque.push(numbered(3))] };
        assert_eq!(pushed, [true, true, false], "the third does not fit");
        let stolen = Arc::clone(&deque);
        let thief = thread::spawn(move || {
            [stolen.steal(), stolen.steal()].map(|steal| if let Steal::Taken(task) = steal { number(task) } else { 0 })
        });
        // SAFETY: this thread is the owner.
        let popped = unsafe { [deque.pop(), deque.pop()] }.map(|task| task.map_or(0, number));
        let mut all: Vec<_> = thief.join().unwrap().into_iter().chain(popped).filter(|&task| task != 0).collect();
        all.extend(deque.steal_one().map(number));
        all.extend(deque.steal_one().map(number));
        all.sort_unstable();
        assert_eq!(all, [1, 2]);
    });
}

#[test]
fn deque_push_shows_the_task() {
    explore("deque: push against steal", None, || {
        let deque = Arc::new(Deque::new(2));
        let stolen = Arc::clone(&deque);
        let thief = thread::spawn(move || stolen.steal());
        // SAFETY: this thread is the owner.
        assert!(unsafe { deque.push(numbered(1)) });
        match thief.join().unwrap() {
            Steal::Taken(task) => assert_eq!(number(task), 1),
            _ => assert_eq!(deque.steal_one().map(number), Some(1)),
        }
        assert!(deque.is_empty());
    });
}

#[test]
fn injector_keeps_order_and_gives_back_when_closed() {
    explore("injector: two pushes, take, close", 3, || {
        let (injector, runs) = (Arc::new(Injector::new(1)), Arc::new(AtomicUsize::new(0)));
        let pushing = (Arc::clone(&injector), counting(&runs), counting(&runs));
        let addresses = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&addresses);
        let pusher = thread::spawn(move || {
            let mut accepted = 0;
            for task in [pushing.1, pushing.2] {
                let node = task.into_raw();
                noted.lock().push(node.addr());
                // SAFETY: given away in the line above.
                accepted += usize::from(pushing.0.push(unsafe { Task::from_raw(node) }, Priority::Normal).is_ok());
            }
            accepted
        });
        let mut taken: Vec<_> = injector.take_one(Priority::Normal).into_iter().collect();
        injector.close();
        while let Some(task) = injector.take_one(Priority::Normal) {
            taken.push(task);
        }
        assert_eq!(pusher.join().unwrap(), taken.len(), "nothing enters after it was closed and found empty");
        assert!(injector.is_empty());
        assert!(taken.iter().zip(addresses.lock().iter()).all(|(taken, pushed)| taken.addr() == *pushed), "in order");
        // SAFETY: taken, so ours.
        taken.into_iter().for_each(|task| unsafe { Task::from_raw(task) }.run());
        assert_eq!(Arc::strong_count(&runs), 1, "a refused closure is destroyed");
    });
}

#[test]
fn injector_shows_tasks_while_they_move() {
    explore("injector: batch against look", None, || {
        let (injector, ring) = (Arc::new(Injector::new(1)), Arc::new(Deque::new(2)));
        let runs = Arc::new(AtomicUsize::new(0));
        for _ in 0..3 {
            assert!(injector.push(counting(&runs), Priority::Normal).is_ok());
        }
        let looking = (Arc::clone(&injector), Arc::clone(&ring));
        // One task is taken, one in the ring, one stays: a thread that looks must see one of the last two.
        let looker = thread::spawn(move || assert!(!looking.0.is_empty() || !looking.1.is_empty()));
        // SAFETY: this thread is the ring's owner.
        let mut taken: Vec<_> = unsafe { injector.take_batch(&ring) }.into_iter().collect();
        looker.join().unwrap();
        taken.extend(ring.steal_one());
        taken.extend(injector.take_one(Priority::Normal));
        assert_eq!(taken.len(), 3);
        // SAFETY: taken, so ours.
        taken.into_iter().for_each(|task| unsafe { Task::from_raw(task) }.run());
    });
}

#[test]
fn a_task_wakes_a_sleeping_worker() {
    explore("submit against sleep", 3, || {
        let (shared, runs) = (pool(1, 0), Arc::new(AtomicUsize::new(0)));
        let worker = work(&shared, 0);
        let done = EventPromise::new(c"done");
        let event = done.event();
        submit(&shared, Task::new(c"t", move || assert!(done.set_ready())));
        // Not the shutdown but the submission must wake the worker: this would wait for ever.
        event.wait().unwrap();
        submit(&shared, counting(&runs));
        shared.close();
        worker.join().unwrap();
        assert_eq!(runs.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn a_watch_does_not_end_while_a_task_waits() {
    explore("push against the end of a watch", None, || {
        // All workers are busy, and a thread watches.
        let (idle, injector) = (Arc::new(Idle::new(1, 1, 1)), Arc::new(Injector::new(1)));
        let (watched, pushed) = (Arc::clone(&idle), Arc::clone(&injector));
        let task = counting(&Arc::new(AtomicUsize::new(0)));
        let pusher = thread::spawn(move || {
            assert!(pushed.push(task, Priority::Normal).is_ok());
            watched.must_wake() && watched.wake_one(Waker::Other) && watched.begin_watch()
        });
        let goes_on = !idle.end_watch(|| !injector.is_empty());
        assert_ne!(pusher.join().unwrap(), goes_on, "one watches, and only one");
    });
}

#[test]
fn a_spawned_task_wakes_another_worker() {
    explore("spawn against sleep", 2, || {
        let shared = pool(2, 0);
        let workers = [work(&shared, 0), work(&shared, 1)];
        let (met, inner) = (Arc::new((Mutex::new(false), Condvar::new())), Arc::clone(&shared));
        let done = EventPromise::new(c"done");
        let event = done.event();
        submit(
            &shared,
            Task::new(c"outer", move || {
                let other = Arc::clone(&met);
                let tell = move || {
                    *other.0.lock() = true;
                    other.1.notify_one();
                };
                submit(&inner, Task::new(c"inner", tell));
                // Not by an event, at which the pool would help.
                let mut told = met.0.lock();
                while !*told {
                    told = met.1.wait(told);
                }
                drop(told);
                done.set_ready();
            }),
        );
        event.wait().unwrap();
        shared.close();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
    });
}

#[test]
fn what_a_thief_moves_wakes_a_worker_that_has_not_seen_it() {
    explore("loot against sleep", None, || {
        let (shared, runs) = (pool(3, 0), Arc::new(AtomicUsize::new(0)));
        (0..2).for_each(|_| shared.put(0, counting(&runs)));
        let looking = Arc::clone(&shared);
        let other = thread::spawn(move || {
            looking.idle.begin_search();
            // One task at least is in a ring when all is over, so this ends.
            looking.idle.sleep(2, 0, || looking.has_work());
            let _ = looking.idle.end_search();
        });
        // SAFETY: no thread works on that seat.
        let stolen = unsafe { shared.rob(1) }.expect("no thread takes one but this");
        other.join().unwrap();
        // SAFETY: stolen, so ours.
        unsafe { Task::from_raw(stolen) }.run();
        shared.close();
        shared.cancel();
        assert_eq!((runs.load(Ordering::Relaxed), Arc::strong_count(&runs)), (1, 1), "the other was there, too");
    });
}

#[test]
fn two_tasks_that_need_each_other_meet() {
    explore("two submits against two sleepers", 2, || {
        let shared = pool(2, 0);
        let workers = [work(&shared, 0), work(&shared, 1)];
        let met = Arc::new((Mutex::new(0), Condvar::new()));
        for _ in 0..2 {
            let met = Arc::clone(&met);
            let meet = move || {
                let mut count = met.0.lock();
                *count += 1;
                met.1.notify_all();
                while *count < 2 {
                    count = met.1.wait(count);
                }
            };
            submit(&shared, Task::new(c"t", meet));
        }
        // Before the shutdown, which would wake all.
        let mut count = met.0.lock();
        while *count < 2 {
            count = met.1.wait(count);
        }
        drop(count);
        shared.close();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
    });
}

#[test]
fn a_task_that_is_accepted_runs_although_the_pool_closes() {
    explore("submit against close", 3, || {
        let (shared, runs) = (pool(1, 0), Arc::new(AtomicUsize::new(0)));
        let worker = work(&shared, 0);
        let (other, task) = (Arc::clone(&shared), counting(&runs));
        let submitter = thread::spawn(move || other.submit(task, Priority::Normal).is_ok());
        shared.close();
        let accepted = submitter.join().unwrap();
        worker.join().unwrap();
        assert_eq!(runs.load(Ordering::Relaxed), usize::from(accepted));
        assert_eq!(Arc::strong_count(&runs), 1, "a refused closure is destroyed");
        assert!(!shared.has_work());
    });
}

#[test]
fn a_cancelled_pool_drops_what_it_does_not_run() {
    explore("cancel against work", 3, || {
        let (shared, runs) = (pool(1, 0), Arc::new(AtomicUsize::new(0)));
        submit(&shared, counting(&runs));
        let promise = EventPromise::new(c"owed");
        let event = promise.event();
        submit(&shared, Task::new(c"t", move || _ = promise.set_ready()));
        let worker = work(&shared, 0);
        shared.close();
        shared.cancel();
        worker.join().unwrap();
        assert!(event.is_ready(), "by its task or by its end");
        assert_eq!(Arc::strong_count(&runs), 1);
        assert!(shared.ended().is_ready());
    });
}

#[test]
fn a_join_ends_whoever_calls_its_second_half() {
    explore("join against thief", 3, || {
        let shared = pool(2, 0);
        let inner = Arc::clone(&shared);
        let task = move || {
            let (a, b) = fork_join::join(&inner, || 1, || 2).unwrap();
            assert_eq!((a, b), (1, 2));
        };
        submit(&shared, Task::new(c"t", task));
        shared.close();
        let thief = work(&shared, 1);
        shared.work(0);
        thief.join().unwrap();
    });
}

#[test]
fn a_task_may_wait_for_what_it_spawned() {
    explore("help", 2, || {
        let shared = pool(1, 0);
        let (inner, done) = (Arc::clone(&shared), EventPromise::new(c"done"));
        let ended = done.event();
        let task = move || {
            let promise = EventPromise::new(c"inner");
            let event = promise.event();
            submit(&inner, Task::new(c"inner", move || _ = promise.set_ready()));
            event.wait().unwrap();
            done.set_ready();
        };
        let worker = work(&shared, 0);
        submit(&shared, Task::new(c"outer", task));
        ended.wait().unwrap();
        shared.close();
        worker.join().unwrap();
    });
}

#[test]
fn a_spare_takes_the_place_of_a_worker_that_waits() {
    explore("wait against spare", 2, || {
        let started = Started::default();
        let shared = pool_with(1, 1, &started);
        let promise = EventPromise::new(c"second");
        let event = promise.event();
        submit(&shared, Task::new(c"first", move || event.wait().unwrap()));
        submit(&shared, Task::new(c"second", move || _ = promise.set_ready()));
        let worker = work(&shared, 0);
        shared.close();
        worker.join().unwrap();
        let spares = std::mem::take(&mut *started.lock().unwrap());
        spares.into_iter().for_each(|spare| spare.join().unwrap());
        assert!(!shared.has_work());
    });
}
