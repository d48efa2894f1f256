//! A thread that takes a lock against one that gives it back.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::sync::atomic::AtomicU32;
use loom::sync::atomic::Ordering::Relaxed;
use loom::sync::{Condvar, Mutex};
use loom::thread;

use super::{FREE, Word};
use crate::sync::explore;

struct World {
    word: Word,
    guarded: UnsafeCell<u32>,
    /// The system's: it looks at the word and goes to sleep in one step.
    system: Mutex<()>,
    woken: Condvar,
}

// SAFETY: what is guarded is reached under the lock; loom reports if not.
unsafe impl Sync for World {}
// SAFETY: as above.
unsafe impl Send for World {}

fn world() -> Arc<World> {
    Arc::new(World {
        word: Word(AtomicU32::new(FREE)),
        guarded: UnsafeCell::new(0),
        system: Mutex::new(()),
        woken: Condvar::new(),
    })
}

impl World {
    fn count_one(&self) {
        self.word.take(|word, seen| {
            let system = self.system.lock().unwrap();
            if word.load(Relaxed) == seen {
                drop(self.woken.wait(system).unwrap());
            }
        });
        // SAFETY: under the lock.
        self.guarded.with_mut(|guarded| unsafe { *guarded += 1 });
        self.word.give_back(|_| {
            let _system = self.system.lock().unwrap();
            self.woken.notify_one();
        });
    }
}

/// `others` threads and this one.
fn count(others: u32) {
    let world = world();
    let threads: Vec<_> = (0..others)
        .map(|_| {
            let world = Arc::clone(&world);
            thread::spawn(move || world.count_one())
        })
        .collect();
    world.count_one();
    for thread in threads {
        thread.join().unwrap();
    }
    // SAFETY: no other thread is there.
    assert_eq!(world.guarded.with(|guarded| unsafe { *guarded }), others + 1);
}

#[test]
fn a_lock_has_one_owner_and_nobody_sleeps_for_ever() {
    explore("a lock, 2 threads", None, || count(1));
}

#[test]
fn a_sleeper_of_two_that_wakes_does_not_forget_the_other() {
    explore("a lock, 3 threads", 3, || count(2));
}
