use std::sync::mpsc;
use std::sync::{Arc, Barrier};
use std::thread;

use super::*;
use crate::pool::{ThreadPool, ThreadPoolOptions};

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
            place.enter();
            assert_eq!(place.core(), Some(first));
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
        place.part([first].into_iter(), None, false, 1);
        assert_eq!(Some(own_affinity()), own.without([first].into_iter()));
        assert_ne!(this_core(), Some(first));
        restore(place.leave(Some(7)).0);
        assert_eq!(&own_affinity(), own);
        assert_eq!(place.core(), Some(7));
        assert!(place.leave(None).0.is_none(), "once");
    });
}

#[test]
fn a_sleeper_whose_core_is_free_or_that_has_no_other_stays() {
    after_sleep(|place, own, first| {
        let others: Vec<_> = cores_of(own).into_iter().filter(|&core| core != first).collect();
        place.part(others.iter().copied(), None, false, 1);
        place.part(std::iter::empty(), None, false, 1);
        place.part(cores_of(own).into_iter(), None, true, 1);
        place.part([first].into_iter(), None, true, own.count() + 1);
        assert_eq!((place.core(), &own_affinity()), (Some(first), own));
        assert!(place.leave(None).0.is_none());
    });
}

#[test]
fn a_sleeper_whose_affinity_has_changed_meanwhile_keeps_it() {
    after_sleep(|place, own, first| {
        let changed = own.without([first].into_iter()).unwrap();
        assert!(changed.restrict(0));
        place.part([first].into_iter(), None, false, 1);
        restore(place.leave(None).0);
        assert_eq!(own_affinity(), changed);
    });
}

#[test]
fn a_place_that_works_no_more_has_no_core() {
    let mut place = Place::default();
    place.stay(Some(0));
    assert_eq!(place.core(), Some(0));
    place.forget();
    assert_eq!(place.core(), None);
    place.part([0].into_iter(), None, false, 1);
    assert!(place.leave(None).0.is_none());
}

/// Where the tasks of two rounds ran: a waker, and what it has woken a worker for.
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
    assert!(parted > 50, "{} of 100 workers began on the core of their wakers", 100 - parted);
}
