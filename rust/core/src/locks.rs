//! Locks for the other crates of this house: like all locks here, they keep clear of `fork` (`sync/fork.rs`), which a lock of std's
//! does not. No code of strangers may run while one is held: a fork waits for it.

#![allow(unsafe_code, reason = "C++ holds what a guard would")]

use std::ffi::c_void;

use crate::sync::Inside;
pub use crate::sync::{Condvar, Mutex, MutexGuard, OnceLock, Process, keep_record};

/// For locks of C++: from here until [`leave`], on this thread, a fork by another thread waits. Waits while somebody forks.
#[must_use]
pub fn enter() -> *const c_void {
    Inside::enter().into_raw().cast()
}

/// See [`enter`].
///
/// # Safety
/// `place` came from it, on this thread, once per call.
pub unsafe fn leave(place: *const c_void) {
    // SAFETY: the caller's promise.
    drop(unsafe { Inside::from_raw(place.cast()) });
}
