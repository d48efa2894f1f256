//! Which threads are inside a lock, as the one that is about to fork sees it.
//!
//! `fork` copies one thread and all memory, so a lock that another thread holds at that moment is held for ever in the
//! child. Therefore each thread says that it is *inside* before it takes a lock, and that it is outside after it has
//! given the last one back; the forking thread closes the [`Gate`] and waits until all threads are outside.
//!
//! Why no thread slips in. A thread that enters says so, then looks at the gate, then takes the lock; a fork closes the
//! gate and then looks which threads are inside. Between the two steps of each lies a barrier, so at least one sees the
//! other: either the fork waits, or the thread finds the gate closed, is outside again, and waits. A thread that is
//! inside already does not look: the fork waits for it, also while it takes further locks.
//!
//! Locks are many and forks are few, so the barriers are unequal: a thread that enters only keeps the compiler from
//! changing the order ([`light_barrier`]), and a fork makes all processors that run this process pass a barrier
//! (`fork.rs`).
//!
//! No loop over threads and no `fork` is in this file, so that loom sees all of it (`loom_model.rs`).

use crate::sync::atomic::AtomicU32;
use crate::sync::atomic::AtomicUsize;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};

const OPEN: u32 = 0;
const CLOSED: u32 = 1;
/// The bits of a presence that count locks; what stands above them is its thread's.
pub(super) const COUNT: usize = 0xFFFF;

/// Whether threads may go inside. One per process.
pub(super) struct Gate(pub(super) AtomicU32);

/// Whether one thread is inside: in how many locks. Written by that thread alone.
pub(super) struct Presence(pub(super) AtomicUsize);

impl Presence {
    /// One lock more is about to be taken. What was there before.
    #[inline(always)]
    pub(super) fn enter(&self) -> usize {
        // Relaxed: no other thread writes it.
        let before = self.0.load(Relaxed);
        self.0.store(before.wrapping_add(1), Relaxed);
        light_barrier();
        before
    }

    /// A lock less: it has been given back, or was not taken.
    #[inline(always)]
    pub(super) fn leave(&self) {
        // Release: a fork that sees it sees the lock free.
        self.0.store(self.0.load(Relaxed).wrapping_sub(1), Release);
    }

    /// As seen by the forking thread, after the gate was closed.
    pub(super) fn is_inside(&self) -> bool {
        self.0.load(Acquire) & COUNT != 0
    }
}

/// The barrier of a thread that enters. Full only where there is no way to make others pass one.
#[inline(always)]
fn light_barrier() {
    #[cfg(loom)]
    crate::sync::atomic::fence(crate::sync::atomic::Ordering::SeqCst);
    #[cfg(all(not(loom), target_os = "linux"))]
    std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
    #[cfg(all(not(loom), not(target_os = "linux")))]
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
}

impl Gate {
    pub(super) const OPEN: u32 = OPEN;

    /// After [`Presence::enter`].
    #[inline(always)]
    pub(super) fn is_closed(&self) -> bool {
        self.state() != OPEN
    }

    /// 0: open.
    #[inline(always)]
    pub(super) fn state(&self) -> u32 {
        // Acquire: a thread that finds it open again finds everything as the fork left it.
        self.0.load(Acquire)
    }

    /// From now on, after a barrier for all, no thread that is outside goes inside.
    pub(super) fn close(&self, barrier_for_all: impl FnOnce()) {
        self.0.store(CLOSED, Relaxed);
        barrier_for_all();
    }

    pub(super) fn open(&self) {
        self.0.store(OPEN, Release);
    }
}

#[cfg(all(test, loom))]
mod loom_model;
