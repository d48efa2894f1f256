//! A value that is put in place once, by the one thread that may, and then read by any thread.
//!
//! States: *empty*, then *there*. What was put there is written before the release store that says so, and read after
//! the acquire load that saw it. Unlike std's cell it makes no thread wait, and costs no locked instruction: a thread
//! that looks too early finds nothing, and the caller ensures that no other thread sets it.

#![allow(unsafe_code, reason = "the value is reached through a cell")]

#[cfg(all(test, loom))]
mod loom_model;

use std::fmt;
use std::mem::MaybeUninit;

use super::UnsafeCell;
use super::atomic::{AtomicBool, Ordering};

/// See the module.
pub struct SetOnce<T> {
    is_there: AtomicBool,
    value: UnsafeCell<MaybeUninit<T>>,
}

impl<T> fmt::Debug for SetOnce<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SetOnce").finish_non_exhaustive()
    }
}

// SAFETY: the value is moved in by one thread, lent to any by shared reference, and dropped by one; `is_there` orders
// these.
unsafe impl<T: Send + Sync> Sync for SetOnce<T> {}

impl<T> Default for SetOnce<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> SetOnce<T> {
    /// Not set.
    pub fn new() -> Self {
        Self { is_there: AtomicBool::new(false), value: UnsafeCell::new(MaybeUninit::uninit()) }
    }

    /// Puts `value` there.
    ///
    /// # Safety
    /// No other thread sets it, before or at the same time.
    pub unsafe fn set(&self, value: T) {
        // Relaxed: the thread that sets it looks at what no other thread has written.
        debug_assert!(!self.is_there.load(Ordering::Relaxed), "the value is set once");
        // SAFETY: the caller's promise; no thread reads before the store below.
        self.value.with_mut(|place| unsafe { (*place).write(value) });
        self.is_there.store(true, Ordering::Release);
    }

    /// The value, if it is there.
    pub fn get(&self) -> Option<&T> {
        // SAFETY: the value was written before the store that this has seen, and stays until the cell is dropped.
        self.is_there().then(|| self.value.with(|value| unsafe { (*value).assume_init_ref() }))
    }

    /// Takes the value out, if it is there.
    pub fn take(&mut self) -> Option<T> {
        if !self.is_there() {
            return None;
        }
        // Relaxed: there is no other reference.
        self.is_there.store(false, Ordering::Relaxed);
        // SAFETY: it was there, and there is no other reference; it is not read from here again.
        Some(self.value.with(|value| unsafe { (*value).assume_init_read() }))
    }

    fn is_there(&self) -> bool {
        self.is_there.load(Ordering::Acquire)
    }
}

impl<T> Drop for SetOnce<T> {
    fn drop(&mut self) {
        drop(self.take());
    }
}
