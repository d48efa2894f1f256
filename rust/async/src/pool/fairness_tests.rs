//! How long a task waits behind others that never end: it is counted, not timed. The numbers are those of `worker.rs`.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Instant;

use super::*;
use crate::LIMIT;
use crate::event::EventPromise;
use crate::task::{Executor, Priority, Task, TaskOptions};

#[test]
fn nobody_starves() {
    // A task that schedules itself for ever would keep a worker that only runs its newest.
    fn again(pool: &ThreadPool, stop: &Arc<AtomicUsize>) {
        let (inner, stop) = (pool.clone(), Arc::clone(stop));
        if stop.load(Ordering::Relaxed) > 0 {
            let _ = pool.schedule(c"again", move || again(&inner, &stop));
        }
    }
    let (pool, left) = (ThreadPool::that_helps(), Arc::new(AtomicUsize::new(4)));
    let (inner, running) = (pool.clone(), Arc::clone(&left));
    pool.schedule(c"outer", move || {
        let last = Arc::clone(&running);
        inner.schedule(c"older", move || _ = last.fetch_sub(1, Ordering::Relaxed)).unwrap();
        again(&inner, &running);
    })
    .unwrap();
    let done: Vec<_> = [Priority::Low, Priority::Normal, Priority::High]
        .map(|priority| {
            let (left, promise) = (Arc::clone(&left), EventPromise::new(c"done"));
            let event = promise.event();
            let task = Task::new(c"t", move || {
                left.fetch_sub(1, Ordering::Relaxed);
                promise.set_ready();
            });
            pool.execute_with(task, &TaskOptions { priority, ..Default::default() }).unwrap();
            event
        })
        .into();
    crate::event::when_all(&done).wait_for(LIMIT).expect("a task starves");
    let begun = Instant::now();
    while left.load(Ordering::Relaxed) > 0 {
        assert!(begun.elapsed() < LIMIT, "the oldest task of the worker starves");
        thread::yield_now();
    }
}

/// A task that schedules itself until another one has stopped it, and how often it has run; far more than it should.
struct Selfish {
    ran: AtomicUsize,
    is_stopped: AtomicBool,
}

fn be_selfish(pool: &ThreadPool, selfish: &Arc<Selfish>) {
    if selfish.is_stopped.load(Ordering::Relaxed) || selfish.ran.fetch_add(1, Ordering::Relaxed) == 10_000 {
        return;
    }
    let (inner, again) = (pool.clone(), Arc::clone(selfish));
    pool.schedule(c"selfish", move || be_selfish(&inner, &again)).unwrap();
}

/// How often the selfish task of a pool's only thread runs before another one, which `schedule` schedules before it:
/// while the thread is in its first task, from outside or, as the last argument says, in that task.
fn turns_before(schedule: impl FnOnce(&ThreadPool, Task) + Send + 'static, in_the_task: bool) -> usize {
    // No spare stands in for the thread, however slow the machine is.
    let pool = ThreadPool::that_helps();
    let selfish = Arc::new(Selfish { ran: AtomicUsize::new(0), is_stopped: AtomicBool::new(false) });
    let ((opens, opened), (tells, told)) = (mpsc::channel::<()>(), mpsc::channel());
    let stops = Arc::clone(&selfish);
    let other = Task::new(c"other", move || {
        stops.is_stopped.store(true, Ordering::Relaxed);
        tells.send(stops.ran.load(Ordering::Relaxed)).unwrap();
    });
    let (inner, begins) = (pool.clone(), Arc::clone(&selfish));
    if in_the_task {
        let first = move || {
            schedule(&inner, other);
            be_selfish(&inner, &begins);
        };
        pool.schedule(c"first", first).unwrap();
    } else {
        pool.schedule(c"holds the thread", move || opened.recv().unwrap()).unwrap();
        pool.schedule(c"first", move || be_selfish(&inner, &begins)).unwrap();
        schedule(&pool, other);
        opens.send(()).unwrap();
    }
    told.recv_timeout(LIMIT).expect("a task starves behind one that schedules itself")
}

#[test]
fn a_task_waits_for_a_bounded_number_of_turns_of_one_that_schedules_itself() {
    let with = |priority| {
        let options = TaskOptions { priority, ..Default::default() };
        move |pool: &ThreadPool, task| pool.execute_with(task, &options).unwrap()
    };
    // The worker takes the first half of the tasks that are left, which is this one, together with the task before it.
    let in_a_batch = |pool: &ThreadPool, task| {
        pool.execute(task).unwrap();
        pool.schedule(c"behind it", || ()).unwrap();
    };
    let from_outside = |pool: &ThreadPool, task| {
        let pool = pool.clone();
        thread::spawn(move || pool.execute(task)).join().unwrap().unwrap();
    };
    let at_most = |most, turns, what| assert!(turns <= most, "{what}: after {turns} turns");
    at_most(62, turns_before(in_a_batch, false), "one of the worker's batch");
    at_most(62, turns_before(from_outside, true), "one from outside");
    at_most(62, turns_before(|pool: &ThreadPool, task| pool.execute(task).unwrap(), true), "the worker's oldest");
    at_most(1, turns_before(with(Priority::High), false), "an urgent one");
    at_most(8 * 61 + 1, turns_before(with(Priority::Low), false), "one of low priority");
}
