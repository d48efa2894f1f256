use std::sync::mpsc;
use std::sync::{Arc, Barrier};
use std::thread;

use super::*;
use crate::pool::{ThreadPool, ThreadPoolOptions, relief};

fn own_affinity() -> Cores {
    Cores::allowed(0).expect("Linux tells the affinity of up to 1024 cores")
}

fn cores_of(cores: &Cores) -> Vec<usize> {
    (0..MOST_CORES).filter(|core| cores.0[core / 64] >> (core % 64) & 1 == 1).collect()
}

/// `body` by a thread that has slept on the first of its cores, with its place; none if it has no other core.
fn after_sleep<R: Send>(body: impl FnOnce(&mut Place, &Cores, usize) -> R + Send) -> Option<R> {
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let own = own_affinity();
            let &[first, _, ..] = cores_of(&own).as_slice() else { return None };
            stay_on(first, &own);
            let mut place = Place::default();
            place.enter(relief::this_thread());
            assert_eq!(place.core, Some(first));
            Some(body(&mut place, &own, first))
        });
        thread.join().unwrap()
    })
}

/// Moves this thread to a core, and lets it go from there as before.
fn stay_on(core: usize, own: &Cores) {
    let others = cores_of(own).into_iter().filter(|&other| other != core);
    assert!(own.without(others).unwrap().restrict(0));
    assert_eq!(this_core(), Some(core));
    assert!(own.restrict(0));
}

#[test]
fn sets_of_cores() {
    let own = own_affinity();
    let all = cores_of(&own);
    assert_eq!(own.without(all.iter().copied()), None, "nothing is left");
    assert_eq!(own.without([1024, usize::MAX].into_iter()), Some(own.clone()), "no such cores");
    if let &[first, second, ..] = all.as_slice() {
        let left = own.without([first].into_iter()).unwrap();
        let left = cores_of(&left);
        assert!(!left.contains(&first) && left.contains(&second));
    }
}

#[test]
fn a_sleeper_on_a_taken_core_is_kept_from_all_taken_cores_until_it_leaves() {
    after_sleep(|place, own, first| {
        assert!(place.part([first].into_iter()));
        assert_eq!(Some(own_affinity()), own.without([first].into_iter()));
        assert_ne!(this_core(), Some(first));
        restore(place.leave(Some(7)).0);
        assert_eq!(&own_affinity(), own);
        assert_eq!(place.core, Some(7));
        assert!(place.leave(None).0.is_none(), "once");
    });
}

#[test]
fn a_sleeper_that_has_no_other_core_stays() {
    after_sleep(|place, own, first| {
        assert!(place.part(cores_of(own).into_iter()), "the system was not asked");
        assert_eq!((place.core, &own_affinity()), (Some(first), own));
        assert!(place.leave(None).0.is_none());
    });
}

#[test]
fn a_thread_that_is_not_there_is_a_refusal() {
    let mut place = Place::default();
    // Linux has at most 2^22 threads.
    place.enter(1 << 30);
    assert!(!place.part(std::iter::empty()) && place.leave(None).0.is_none());
}

#[test]
fn cores_suffice_for_as_many_workers() {
    let count = cores_of(&own_affinity()).len();
    assert!(suffice(count) && !suffice(count + 1));
}

#[test]
fn a_place_is_among_cores_only_if_it_is_known() {
    let mut place = Place::default();
    assert!(!place.is_among(0..MOST_CORES));
    place.core = Some(3);
    assert!(place.is_among([1, 3].into_iter()) && !place.is_among([1].into_iter()));
}

#[test]
fn a_sleeper_whose_affinity_has_changed_meanwhile_keeps_it() {
    after_sleep(|place, own, first| {
        let changed = own.without([first].into_iter()).unwrap();
        assert!(changed.restrict(0));
        assert!(place.part([first].into_iter()));
        restore(place.leave(None).0);
        assert_eq!(own_affinity(), changed);
    });
}

/// Where two tasks ran: a waker, and what it has woken a worker for.
#[test]
fn a_worker_that_slept_on_its_wakers_core_begins_on_another() {
    let own = own_affinity();
    let &[first, _, ..] = cores_of(&own).as_slice() else { return };
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
            let woken = move || begin.send((this_core(), own_affinity())).unwrap();
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
