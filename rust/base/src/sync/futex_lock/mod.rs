//! Locks on a futex. std's ask at both ends whether the thread panics, for the sake of poison that no code here wants
//! (`std_locks.rs`), and that costs as much as the gate of forks does.
//!
//! The word says whether the lock is free, taken, or taken while a thread perhaps sleeps for it. One that finds it
//! taken writes the last of these before it sleeps, and sleeps only while that stands; the thread that gives such a
//! lock back wakes one sleeper, which writes it again, because there may be others. So no thread sleeps for a lock that
//! is free.
//!
//! The system is a parameter, so that loom sees the rest (`loom_model.rs`).

#![allow(unsafe_code, reason = "a lock")]

#[cfg(not(loom))]
use std::cell::UnsafeCell;
#[cfg(not(loom))]
use std::fmt;
#[cfg(not(loom))]
use std::marker::PhantomData;
#[cfg(not(loom))]
use std::ops::{Deref, DerefMut};

#[cfg(not(loom))]
use super::futex;
use crate::sync::atomic::AtomicU32;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sync::hint;

const FREE: u32 = 0;
const TAKEN: u32 = 1;
/// Taken, and a thread sleeps, or did.
const AWAITED: u32 = 2;
/// How often a thread looks before it sleeps.
const LOOKS: usize = if cfg!(loom) { 0 } else { 100 };

/// The lock without what it guards.
pub(super) struct Word(AtomicU32);

impl Word {
    /// `sleep` returns at some time after the word is no longer what it is handed, perhaps earlier.
    #[inline(always)]
    fn take(&self, sleep: impl Fn(&AtomicU32, u32)) {
        // Acquire: what was done under the lock is seen.
        if self.0.compare_exchange(FREE, TAKEN, Acquire, Relaxed).is_err() {
            self.take_slowly(sleep);
        }
    }

    #[cold]
    #[inline(never)]
    fn take_slowly(&self, sleep: impl Fn(&AtomicU32, u32)) {
        for _ in 0..LOOKS {
            match self.0.load(Relaxed) {
                FREE if self.0.compare_exchange(FREE, TAKEN, Acquire, Relaxed).is_ok() => return,
                AWAITED => break,
                _ => hint::spin_loop(),
            }
        }
        while self.0.swap(AWAITED, Acquire) != FREE {
            sleep(&self.0, AWAITED);
        }
    }

    /// `wake` wakes one of the threads that sleep.
    #[inline(always)]
    fn give_back(&self, wake: impl Fn(&AtomicU32)) {
        if self.0.swap(FREE, Release) == AWAITED {
            wake(&self.0);
        }
    }
}

/// A lock without poisoning.
#[cfg(not(loom))]
pub(super) struct Mutex<T> {
    word: Word,
    value: UnsafeCell<T>,
}

/// A [`Mutex`] that is taken, by this thread: the pointer keeps it there.
#[cfg(not(loom))]
pub(super) struct MutexGuard<'a, T>(&'a Mutex<T>, PhantomData<*const T>);

// SAFETY: the lock hands the value to one thread at a time.
#[cfg(not(loom))]
unsafe impl<T: Send> Send for Mutex<T> {}
// SAFETY: as above.
#[cfg(not(loom))]
unsafe impl<T: Send> Sync for Mutex<T> {}

#[cfg(not(loom))]
impl<T> Mutex<T> {
    pub(super) const fn new(value: T) -> Self {
        Self { word: Word(AtomicU32::new(FREE)), value: UnsafeCell::new(value) }
    }

    #[inline]
    pub(super) fn lock(&self) -> MutexGuard<'_, T> {
        self.word.take(|word, seen| futex::wait(word, seen, None));
        MutexGuard(self, PhantomData)
    }

    pub(super) fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

#[cfg(not(loom))]
impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

#[cfg(not(loom))]
impl<T> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mutex").finish_non_exhaustive()
    }
}

#[cfg(not(loom))]
impl<T> Drop for MutexGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.0.word.give_back(|word| futex::wake(word, 1));
    }
}

#[cfg(not(loom))]
impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the lock is this guard's.
        unsafe { &*self.0.value.get() }
    }
}

#[cfg(not(loom))]
impl<T> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is this guard's, and this borrows the guard.
        unsafe { &mut *self.0.value.get() }
    }
}

#[cfg(not(loom))]
impl<T: fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(all(test, loom))]
mod loom_model;
