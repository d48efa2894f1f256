//! Locks that a `fork` never copies while they are taken (`fork.rs`). The lock itself is ours (`futex_lock`), std's or
//! parking_lot's.

#![allow(unsafe_code, reason = "what is made once is read through a pointer")]

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr;
use std::time::Duration;

use super::atomic::Ordering::{Acquire, Relaxed, Release};
use super::atomic::{AtomicPtr, AtomicU32};
use super::bare;
use super::fork::Inside;
use super::futex;

/// A lock without poisoning.
#[derive(Default)]
pub struct Mutex<T>(bare::Mutex<T>);

/// A [`Mutex`] that is taken.
pub struct MutexGuard<'a, T> {
    // In this order: the lock is given back first.
    held: bare::MutexGuard<'a, T>,
    _inside: Inside,
    mutex: &'a Mutex<T>,
}

impl<T> Mutex<T> {
    /// A lock that is free.
    pub const fn new(value: T) -> Self {
        Self(bare::Mutex::new(value))
    }

    /// Blocks until the lock is the caller's.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        let inside = Inside::enter();
        MutexGuard { held: self.0.lock(), _inside: inside, mutex: self }
    }

    /// The value, without the lock: no other thread has a reference to it.
    #[inline]
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.held
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.held
    }
}

impl<T: fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.held.fmt(f)
    }
}

/// A condition of what a [`Mutex`] guards. A waiting thread is outside, and takes the lock as any does when it wakes:
/// std's own would take it behind the gate's back.
#[derive(Debug, Default)]
pub struct Condvar {
    /// Changes with every notification. Relaxed: what is waited for is behind the lock.
    turn: AtomicU32,
}

impl Condvar {
    /// Without a thread that waits.
    pub const fn new() -> Self {
        Self { turn: AtomicU32::new(0) }
    }

    /// Gives the lock back, waits for a notification, and takes it again. May return early.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.wait_at_most(guard, None)
    }

    /// As [`wait`](Self::wait), for at most `timeout`; the caller looks at its clock again.
    pub fn wait_for<'a, T>(&self, guard: MutexGuard<'a, T>, timeout: Duration) -> MutexGuard<'a, T> {
        self.wait_at_most(guard, Some(timeout))
    }

    fn wait_at_most<'a, T>(&self, guard: MutexGuard<'a, T>, timeout: Option<Duration>) -> MutexGuard<'a, T> {
        // Under the lock: a thread that changes what is waited for later changes the turn later, and then the sleep
        // does not begin.
        let (turn, mutex) = (self.turn.load(Relaxed), guard.mutex);
        drop(guard);
        futex::wait(&self.turn, turn, timeout);
        mutex.lock()
    }

    /// Wakes one of the threads that wait.
    pub fn notify_one(&self) {
        self.turn.fetch_add(1, Relaxed);
        futex::wake(&self.turn, 1);
    }

    /// Wakes all threads that wait.
    pub fn notify_all(&self) {
        self.turn.fetch_add(1, Relaxed);
        futex::wake(&self.turn, i32::MAX);
    }
}

/// What is made once, by the first thread that asks.
pub struct OnceLock<T> {
    making: Mutex<()>,
    /// Null, or a box of ours.
    made: AtomicPtr<T>,
    /// Sent and shared as std's is.
    _like: PhantomData<std::sync::OnceLock<T>>,
}

impl<T> fmt::Debug for OnceLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnceLock").finish_non_exhaustive()
    }
}

impl<T> Default for OnceLock<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> OnceLock<T> {
    /// Nothing is made yet.
    pub const fn new() -> Self {
        Self { making: Mutex::new(()), made: AtomicPtr::new(ptr::null_mut()), _like: PhantomData }
    }

    /// What was made, if it was.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        // SAFETY: null, or a box that make_it() published, which stays as long as this.
        unsafe { self.made.load(Acquire).as_ref() }
    }

    /// What was made, by this call if no other has. Other threads wait meanwhile, so `make` is no user code.
    #[inline]
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        self.get().unwrap_or_else(|| self.make_it(make))
    }

    #[cold]
    fn make_it(&self, make: impl FnOnce() -> T) -> &T {
        let _one_at_a_time = self.making.lock();
        self.get().unwrap_or_else(|| {
            let made = Box::into_raw(Box::new(make()));
            self.made.store(made, Release);
            // SAFETY: as in get().
            unsafe { &*made }
        })
    }
}

impl<T> Drop for OnceLock<T> {
    fn drop(&mut self) {
        let made = *self.made.get_mut();
        if !made.is_null() {
            // SAFETY: a box that make_it() gave up; no reference to it remains.
            drop(unsafe { Box::from_raw(made) });
        }
    }
}
