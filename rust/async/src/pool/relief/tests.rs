//! Pools whose threads block unseen. Where the world decides, it is a value: a clock that the test moves, and a system
//! that says what the test wants it to.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use super::*;
use crate::LIMIT;
use crate::pool::{ThreadPool, ThreadPoolOptions, threads};
use crate::services::timer::ManualClock;

/// What the system says of all threads.
#[derive(Default)]
struct World {
    is_awake: AtomicBool,
    is_silent: AtomicBool,
    switches: AtomicU64,
    started: AtomicUsize,
}

/// A pool of one thread in that world, and what makes `count` rounds happen.
fn pool(world: &Arc<World>) -> (ThreadPool, impl Fn(u32)) {
    let clock = ManualClock::new();
    let timers = Timers::with_clock(clock.clone());
    let (seen, counted) = (Arc::clone(world), Arc::clone(world));
    let doing = move |_| match (seen.is_awake.load(Ordering::Relaxed), seen.is_silent.load(Ordering::Relaxed)) {
        (true, _) => Doing::Awake,
        (false, true) => Doing::Unknown,
        (false, false) => Doing::Asleep(seen.switches.load(Ordering::Relaxed)),
    };
    let system = threads::of_the_system();
    let starter: threads::Starter = Box::new(move |name, work| {
        counted.started.fetch_add(1, Ordering::Relaxed);
        system(name, work)
    });
    let options = ThreadPoolOptions { thread_count: 1, name: "relieved".to_owned() };
    let pool = ThreadPool::with_parts(&options, starter, Relief::new(timers.clone(), Box::new(doing))).unwrap();
    let rounds = move |count| {
        for _ in 0..count {
            clock.advance(ROUND);
            timers.run_due();
        }
    };
    (pool, rounds)
}

/// A task that blocks unseen until the one behind it has run; returns a receiver that reports that both are over.
fn block(pool: &ThreadPool) -> mpsc::Receiver<()> {
    let ((begins, begun), (opens, opened), (ends, ended)) = (mpsc::channel(), mpsc::channel(), mpsc::channel());
    pool.schedule(c"blocks unseen", move || {
        begins.send(()).unwrap();
        opened.recv().unwrap();
        ends.send(()).unwrap();
    })
    .unwrap();
    begun.recv_timeout(LIMIT).unwrap();
    pool.schedule(c"is queued behind it", move || opens.send(()).unwrap()).unwrap();
    ended
}

#[test]
fn a_pool_at_a_standstill_gets_one_thread_and_gives_it_back_when_it_is_calm() {
    let world = Arc::new(World::default());
    let (pool, rounds) = pool(&world);
    for _ in 0..3 {
        let ended = block(&pool);
        rounds(1);
        assert!(ended.try_recv().is_err(), "one look is none");
        rounds(1);
        ended.recv_timeout(LIMIT).expect("a pool at a standstill stays there");
        assert_eq!(world.started.load(Ordering::Relaxed), 2, "a spare that rests is called");
        while pool.describe_roles() != "1 present of which 0 are blocked, 1 spares rest" {
            rounds(1);
            std::thread::yield_now();
        }
    }
}

#[test]
fn each_standstill_gets_one_thread() {
    let world = Arc::new(World::default());
    let (pool, rounds) = pool(&world);
    let (begins, begun) = mpsc::channel();
    let opens: Vec<_> = (0..5)
        .map(|_| {
            let ((opens, opened), begins) = (mpsc::channel::<()>(), begins.clone());
            let task = move || {
                begins.send(()).unwrap();
                opened.recv().unwrap();
            };
            pool.schedule(c"blocks unseen", task).unwrap();
            opens
        })
        .collect();
    for started in 1..=5 {
        begun.recv_timeout(LIMIT).expect("a pool at a standstill stays there");
        assert_eq!(world.started.load(Ordering::Relaxed), started);
        // A thread that has begun is awake for a moment.
        world.switches.fetch_add(1, Ordering::Relaxed);
        rounds(if started < 5 { 2 } else { 100 });
    }
    assert_eq!(world.started.load(Ordering::Relaxed), 5, "nothing is queued any more");
    opens.into_iter().for_each(|opens| opens.send(()).unwrap());
}

#[test]
fn a_pool_that_computes_does_not_grow() {
    let world = Arc::new(World { is_awake: true.into(), ..Default::default() });
    let (pool, rounds) = pool(&world);
    let ended = block(&pool);
    rounds(10 * BLIND_ROUNDS);
    assert!(ended.try_recv().is_err());
    // A thread that sleeps and wakes up between two looks computes, too.
    world.is_awake.store(false, Ordering::Relaxed);
    for _ in 0..1000 {
        world.switches.fetch_add(1, Ordering::Relaxed);
        rounds(1);
    }
    assert_eq!((ended.try_recv().is_err(), world.started.load(Ordering::Relaxed)), (true, 1));
    rounds(1);
    ended.recv_timeout(LIMIT).expect("a pool at a standstill stays there");
}

#[test]
fn where_the_system_does_not_say_what_threads_do_it_takes_longer() {
    let world = Arc::new(World { is_silent: true.into(), ..Default::default() });
    let (pool, rounds) = pool(&world);
    let ended = block(&pool);
    rounds(BLIND_ROUNDS);
    assert!(ended.try_recv().is_err());
    rounds(1);
    ended.recv_timeout(LIMIT).expect("a pool at a standstill stays there");
}

#[test]
fn rounds_end_when_there_is_nothing_to_do() {
    let world = Arc::new(World::default());
    let clock = ManualClock::new();
    let timers = Timers::with_clock(clock.clone());
    let relief = Relief::new(timers.clone(), Box::new(|_| Doing::Awake));
    let options = ThreadPoolOptions { thread_count: 1, name: "relieved".to_owned() };
    let pool = ThreadPool::with_parts(&options, threads::of_the_system(), relief).unwrap();
    for _ in 0..3 {
        let ended = block_for_a_task(&pool);
        assert_eq!(timers.waiting(), 1, "the second task found everybody busy");
        ended();
        pool.schedule(c"last", || ()).unwrap();
        while timers.waiting() > 0 {
            clock.advance(ROUND);
            timers.run_due();
        }
    }
    drop(world);
}

/// A task that runs, and one behind it; what lets both end.
fn block_for_a_task(pool: &ThreadPool) -> impl FnOnce() {
    let ((begins, begun), (opens, opened)) = (mpsc::channel(), mpsc::channel::<()>());
    pool.schedule(c"runs", move || {
        begins.send(()).unwrap();
        opened.recv().unwrap();
    })
    .unwrap();
    begun.recv_timeout(LIMIT).unwrap();
    pool.schedule(c"is queued behind it", || ()).unwrap();
    move || opens.send(()).unwrap()
}

/// With the clock and the threads of the system.
#[test]
fn tasks_that_block_unseen_until_one_behind_them_has_run_end() {
    for (threads, count) in [(1, 1), (2, 6)] {
        let options = ThreadPoolOptions { thread_count: threads, name: "unseen".to_owned() };
        let pool = ThreadPool::new(&options).unwrap();
        let (ends, ended) = mpsc::channel();
        let lock = Arc::new(std::sync::Mutex::new(()));
        let held = lock.lock().unwrap();
        let mut opens = Vec::new();
        for index in 0..count {
            let ((open, opened), ends, lock) = (mpsc::channel::<()>(), ends.clone(), Arc::clone(&lock));
            opens.push(open);
            let task = move || {
                if index % 2 == 0 {
                    opened.recv().unwrap();
                } else {
                    drop(lock.lock().unwrap());
                }
                ends.send(()).unwrap();
            };
            pool.schedule(c"blocks unseen", task).unwrap();
        }
        let (ran, has_run) = mpsc::channel();
        pool.schedule(c"is queued behind them", move || {
            opens.into_iter().for_each(|open| _ = open.send(()));
            ran.send(()).unwrap();
        })
        .unwrap();
        has_run.recv_timeout(LIMIT).expect("a pool whose threads block unseen stops for ever");
        drop(held);
        for _ in 0..count {
            ended.recv_timeout(LIMIT).expect("a pool whose threads block unseen stops for ever");
        }
    }
}

#[test]
fn linux_says_what_a_thread_does() {
    let status = |state: &str| {
        format!("Name:\tx\nState:\t{state}\nvoluntary_ctxt_switches:\t17\nnonvoluntary_ctxt_switches:\t3\n")
    };
    assert_eq!(read_status(&status("S (sleeping)")), Doing::Asleep(17));
    assert_eq!(read_status(&status("D (disk sleep)")), Doing::Asleep(17));
    assert_eq!(read_status(&status("R (running)")), Doing::Awake);
    assert_eq!(read_status(&status("T (stopped)")), Doing::Awake);
    assert_eq!(read_status("State:\tS (sleeping)\n"), Doing::Unknown);
    assert_eq!(read_status(""), Doing::Unknown);
    assert_eq!(doing(this_thread()), Doing::Awake);
    assert_eq!(doing(0), Doing::Unknown);
}
