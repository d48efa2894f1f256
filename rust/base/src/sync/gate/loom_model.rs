//! A thread that takes a lock against one that forks.

use std::sync::Arc;

use loom::sync::atomic::Ordering::{Relaxed, SeqCst};
use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, fence};
use loom::thread;

use super::{Gate, Presence};
use crate::sync::explore;

struct World {
    gate: Gate,
    threads: [Presence; 2],
    /// A lock of each thread, as far as a fork sees it: taken or not. Relaxed: nothing but the gate orders it.
    taken: [AtomicBool; 2],
}

fn world() -> Arc<World> {
    let presence = || Presence(AtomicUsize::new(0));
    let taken = [AtomicBool::new(false), AtomicBool::new(false)];
    Arc::new(World { gate: Gate(AtomicU32::new(Gate::OPEN)), threads: [presence(), presence()], taken })
}

/// What a thread does around a lock that no other thread wants.
fn take_lock(world: &World, thread: usize) {
    let presence = &world.threads[thread];
    let before = presence.enter();
    assert_eq!(before, 0);
    if !world.gate.is_closed() {
        world.taken[thread].store(true, Relaxed);
        world.taken[thread].store(false, Relaxed);
    }
    presence.leave();
}

/// What a fork copies, if it finds no thread inside. It does not wait for them here, where every interleaving is tried.
fn fork(world: &World) {
    world.gate.close(|| fence(SeqCst));
    if !world.threads.iter().any(Presence::is_inside) {
        for taken in &world.taken {
            assert!(!taken.load(Relaxed), "a lock is copied that is taken");
        }
    }
    world.gate.open();
}

#[test]
fn a_fork_copies_no_lock_that_is_taken() {
    explore("lock against fork", None, || {
        let world = world();
        let other = Arc::clone(&world);
        let thread = thread::spawn(move || take_lock(&other, 0));
        fork(&world);
        thread.join().unwrap();
    });
}

#[test]
fn a_fork_copies_no_lock_of_two_threads() {
    explore("two locks against fork", 3, || {
        let world = world();
        let threads = [0, 1].map(|thread| {
            let world = Arc::clone(&world);
            thread::spawn(move || take_lock(&world, thread))
        });
        fork(&world);
        for thread in threads {
            thread.join().unwrap();
        }
    });
}
