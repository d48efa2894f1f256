//! A value that is put in place once, and then read by anybody.
//!
//! States: *empty*; *being set*, by the one thread that changed it to that; *there*. What was put there is written before the
//! release store that says so, and read after the acquire load that saw it. Unlike std's cell it makes nobody wait: a second
//! value is refused, and who looks too early finds nothing.

#![allow(unsafe_code, reason = "the value is reached through a cell")]

#[cfg(all(test, loom))]
mod loom_model;

use std::mem::MaybeUninit;

use super::atomic::{AtomicU8, Ordering};
use super::{UnsafeCell, mutation};

const EMPTY: u8 = 0;
const BEING_SET: u8 = 1;
const THERE: u8 = 2;

/// See the module.
pub(crate) struct SetOnce<T> {
    state: AtomicU8,
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: the value is moved in by one thread, lent to any by shared reference, and dropped by one; `state` orders these.
unsafe impl<T: Send + Sync> Sync for SetOnce<T> {}

impl<T> SetOnce<T> {
    pub(crate) fn new() -> Self {
        Self { state: AtomicU8::new(EMPTY), value: UnsafeCell::new(MaybeUninit::uninit()) }
    }

    /// Puts `value` there.
    ///
    /// # Errors
    /// The value comes back: there is one already, or another thread is about to put one there.
    pub(crate) fn set(&self, value: T) -> Result<(), T> {
        // Relaxed: the order comes with the release below; this only chooses who may write.
        if self.state.compare_exchange(EMPTY, BEING_SET, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return Err(value);
        }
        // SAFETY: one thread changes the state away from EMPTY, which is this one; nobody reads before the store below.
        self.value.with_mut(|place| unsafe { (*place).write(value) });
        let order = if mutation("set-once-relaxed") { Ordering::Relaxed } else { Ordering::Release };
        self.state.store(THERE, order);
        Ok(())
    }

    /// The value, if it is there.
    pub(crate) fn get(&self) -> Option<&T> {
        // SAFETY: the value was written before the store that this has seen, and stays until the cell is dropped.
        self.is_there().then(|| self.value.with(|value| unsafe { (*value).assume_init_ref() }))
    }

    /// Takes the value out, if it is there.
    pub(crate) fn take(&mut self) -> Option<T> {
        if !self.is_there() {
            return None;
        }
        // Relaxed: nobody else has a reference.
        self.state.store(EMPTY, Ordering::Relaxed);
        // SAFETY: it was there, and nobody else has a reference; it is not read from here again.
        Some(self.value.with(|value| unsafe { (*value).assume_init_read() }))
    }

    fn is_there(&self) -> bool {
        self.state.load(Ordering::Acquire) == THERE
    }
}

impl<T> Drop for SetOnce<T> {
    fn drop(&mut self) {
        drop(self.take());
    }
}
