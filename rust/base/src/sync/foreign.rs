//! For locks of C++: a thread that holds one says so, as with the locks of this house, so that no fork copies it taken.

#![allow(unsafe_code, reason = "C++ holds what a guard would")]

use std::ffi::c_void;

use super::Inside;

/// From here until [`leave`], on this thread, a fork by another thread waits. Waits while a thread forks.
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
