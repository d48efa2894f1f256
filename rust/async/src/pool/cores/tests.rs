use std::sync::mpsc;
use std::sync::{Arc, Barrier};
use std::thread;

use super::*;
use crate::pool::parallelism::calls_are_filtered;
use crate::pool::{ThreadPool, ThreadPoolOptions, relief};

fn cores_of(cores: &Cores) -> Vec<Core> {
    let numbers = (0..MOST_CORES).filter(|core| cores.0[core / 64] >> (core % 64) & 1 == 1);
    numbers.filter_map(Core::of).collect()
}

/// `body` by a thread that has slept on the first of its cores, with its place; none if it has no other core.
fn after_sleep<R: Send>(body: impl FnOnce(&mut Place, &Cores, Core) -> R + Send) -> Option<R> {
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let own = affinity();
            let &[first, _, ..] = cores_of(&own).as_slice() else { return None };
            stay_on(first, &own);
            let mut place = Place::default();
            place.enter(relief::this_thread(), this_core());
            assert_eq!(place.core, Some(first));
            Some(body(&mut place, &own, first))
        });
        thread.join().unwrap()
    })
}

/// Moves this thread to a core, and lets it go from there as before.
fn stay_on(core: Core, own: &Cores) {
    let others = cores_of(own).into_iter().filter(|&other| other != core);
    assert!(own.without(others).unwrap().restrict(0));
    assert_eq!(this_core(), Some(core));
    assert!(own.restrict(0));
}

#[test]
fn sets_of_cores() {
    let own = affinity();
    let all = cores_of(&own);
    assert_eq!(own.without(all.iter().copied()), None, "nothing is left");
    assert_eq!(
        own.without([1024, usize::MAX - 1].into_iter().filter_map(Core::of)),
        Some(own.clone()),
        "no such cores"
    );
    if let &[first, second, ..] = all.as_slice() {
        let left = own.without([first].into_iter()).unwrap();
        let left = cores_of(&left);
        assert!(!left.contains(&first) && left.contains(&second));
    }
}

#[test]
fn a_sleeper_is_kept_from_its_wakers_core_and_the_taken_ones_until_it_leaves() {
    after_sleep(|place, own, first| {
        assert!(place.part(first, std::iter::empty(), 2));
        assert_eq!(Some(affinity()), own.without([first].into_iter()));
        assert_ne!(this_core(), Some(first));
        let (parted, is_on_wakers_core) = place.leave(Core::of(7));
        assert!(restore(parted) && !is_on_wakers_core);
        assert_eq!((affinity(), place.core), (own.clone(), Core::of(7)));
        assert!(place.leave(None).0.is_none(), "once");
        let &[_, second, third, ..] = cores_of(own).as_slice() else { return };
        assert!(place.part(first, [third].into_iter(), 2));
        assert!(!cores_of(&affinity()).contains(&third) && cores_of(&affinity()).contains(&second));
        assert!(restore(place.leave(None).0));
    });
}

#[test]
fn where_all_cores_are_taken_it_is_kept_from_its_wakers_alone() {
    after_sleep(|place, own, first| {
        assert!(place.part(first, cores_of(own).into_iter(), 2));
        assert_eq!(Some(affinity()), own.without([first].into_iter()));
        assert!(restore(place.leave(None).0));
    });
}

#[test]
fn a_sleeper_stays_that_has_no_other_core_or_less_than_one_for_each_worker() {
    after_sleep(|place, own, first| {
        assert!(place.part(first, std::iter::empty(), cores_of(own).len() + 1), "the system was not asked");
        let one = own.without(cores_of(own).into_iter().filter(|&core| core != first)).unwrap();
        assert!(one.restrict(0));
        assert!(place.part(first, std::iter::empty(), 1), "the system was not asked");
        assert_eq!(affinity(), one);
        assert!(!place.is_parted() && place.leave(None).0.is_none());
    });
}

#[test]
fn a_worker_wakes_on_its_wakers_core_or_on_another() {
    let third = Core::of(3);
    let mut place = Place { waker: third, ..Place::default() };
    assert!(place.leave(third).1 && !place.leave(third).1, "once");
    place.waker = third;
    assert!(!place.leave(None).1 && !Place::default().leave(None).1);
}

#[test]
fn an_affinity_that_is_asked_for_meanwhile_stays() {
    after_sleep(|place, own, first| {
        assert!(place.part(first, std::iter::empty(), 2));
        let asked = own.without(cores_of(own).into_iter().filter(|&core| core != first)).unwrap();
        assert!(asked.restrict(0));
        assert!(restore(place.leave(None).0));
        assert_eq!(affinity(), asked);
    });
}

#[test]
fn a_thread_that_may_run_everywhere_asks_for_all_cores_and_another_for_its_own() {
    after_sleep(|place, own, first| {
        let limited = || LIMITED.with_borrow(Clone::clone);
        assert!(Cores::ALL.restrict(0));
        let everywhere = affinity();
        for _ in 0..2 {
            assert!(place.part(first, std::iter::empty(), 2) && restore(place.leave(None).0));
            assert_eq!((affinity(), limited()), (everywhere.clone(), None));
        }
        let less = everywhere.without([first].into_iter()).unwrap();
        assert!(less.restrict(0));
        for _ in 0..2 {
            assert!(restore(Some(Parted { own: less.clone(), now: everywhere.clone() })));
            assert_eq!((affinity(), limited()), (less.clone(), Some(less.clone())));
        }
        assert!(own.restrict(0));
    });
}

#[test]
fn an_affinity_that_the_system_does_not_give_is_a_refusal() {
    let refused = || !restore(Some(Parted { own: Cores([0; MOST_CORES / 64]), now: Cores::ALL }));
    assert!(thread::spawn(refused).join().unwrap());
}

#[test]
fn a_thread_that_is_not_there_is_a_refusal() {
    let mut place = Place::default();
    // Linux has at most 2^22 threads.
    place.enter(1 << 30, None);
    assert!(!place.part(Core::of(0).unwrap(), std::iter::empty(), 1) && place.leave(None).0.is_none());
}

#[test]
fn cores_suffice_for_as_many_workers() {
    let count = cores_of(&affinity()).len();
    assert!(suffice(count) && !suffice(count + 1));
}

#[test]
fn a_sleeper_whose_affinity_has_changed_before_keeps_it() {
    after_sleep(|place, own, first| {
        let changed = own.without([first].into_iter()).unwrap();
        assert!(changed.restrict(0));
        let &[second, _, ..] = cores_of(&changed).as_slice() else { return };
        assert!(place.part(second, std::iter::empty(), 1) && restore(place.leave(None).0));
        assert_eq!(affinity(), changed);
    });
}

/// Where two tasks ran: a waker, and what it has woken a worker for.
#[test]
fn a_worker_that_slept_on_its_wakers_core_begins_on_another() {
    let own = affinity();
    let &[first, _, ..] = cores_of(&own).as_slice() else { return };
    if calls_are_filtered() {
        return;
    }
    let pool = ThreadPool::new(&ThreadPoolOptions { thread_count: 2, ..Default::default() }).unwrap();
    let mut parted = 0;
    for _ in 0..100 {
        // Both workers sleep on one core, unless the kernel moves one of them before.
        let both = Arc::new(Barrier::new(2));
        for _ in 0..2 {
            let (both, own) = (Arc::clone(&both), own.clone());
            pool.schedule(c"meet", move || {
                both.wait();
                stay_on(first, &own);
            })
            .unwrap();
        }
        while pool.asleep() != 2 {
            thread::yield_now();
        }
        let ((tell, told), inner) = (mpsc::channel(), pool.clone());
        pool.schedule(c"waker", move || {
            let (begin, begun) = mpsc::channel();
            let woken = move || begin.send((this_core(), affinity())).unwrap();
            let here = this_core();
            inner.schedule(c"woken", woken).unwrap();
            // It works on, as far as its core knows.
            let (there, affinity) = loop {
                match begun.try_recv() {
                    Ok(answer) => break answer,
                    Err(_) => thread::yield_now(),
                }
            };
            tell.send((here, there, affinity)).unwrap();
        })
        .unwrap();
        let (here, there, affinity) = told.recv().unwrap();
        assert_eq!(affinity, own, "a task finds the affinity that its worker had");
        parted += usize::from(here != there);
    }
    // The first may have been woken where the kernel wanted it.
    assert!(parted >= 90, "{} of 100 workers began on the core of their wakers", 100 - parted);
}

/// From now on the process is ended if this thread, or one that it starts, asks for an affinity. False if the kernel
/// has no filters of system calls.
#[cfg(target_arch = "x86_64")]
fn forbid_affinities() -> bool {
    #[repr(C)]
    struct Instruction(u16, u8, u8, u32);
    #[repr(C)]
    struct Program(u16, *const Instruction);
    unsafe extern "C" {
        fn prctl(option: i32, first: usize, second: usize, third: usize, fourth: usize) -> i32;
    }
    // The call's number; is it that of sched_setaffinity; if so the process ends; else the call is made.
    let filter = [(0x20, 0, 0, 0), (0x15, 0, 1, 203), (6, 0, 0, 0x8000_0000), (6, 0, 0, 0x7fff_0000)]
        .map(|(code, yes, no, value)| Instruction(code, yes, no, value));
    let program = Program(4, filter.as_ptr());
    // SAFETY: PR_SET_NO_NEW_PRIVS and PR_SET_SECCOMP with a filter, which the kernel copies.
    unsafe { prctl(38, 1, 0, 0, 0) == 0 && prctl(22, 2, (&raw const program).addr(), 0, 0) == 0 }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn where_system_calls_are_filtered_none_is_made() {
    let within = || {
        if !forbid_affinities() {
            return;
        }
        assert!(calls_are_filtered());
        let pool = ThreadPool::new(&ThreadPoolOptions { thread_count: 1, ..Default::default() }).unwrap();
        assert!(!pool.may_part());
    };
    thread::spawn(within).join().unwrap();
}
