//! Handles: one word in C++, the pointer of an `Arc` here. One reference count, one allocation.
//!
//! C++ copies a handle by retaining and destroys it by releasing; reading goes through a plain reference, which C++ keeps
//! valid for the call by holding the handle.

use std::ptr;
use std::sync::Arc;

use purlin_base::Status;
use purlin_base::status::StatusRep;

use crate::status::ffi;

/// A new handle with one reference, the caller's to release.
pub(crate) fn share<T>(value: T) -> *const T {
    Arc::into_raw(Arc::new(value))
}

/// One more reference.
///
/// # Safety
/// `handle` came from [`share`] and has a reference that outlives this call.
pub(crate) unsafe fn retain<T>(handle: *const T) {
    // SAFETY: the caller's promise.
    unsafe { Arc::increment_strong_count(handle) };
}

/// A reference of Rust's own, beside C++'s, which a call may give up.
///
/// # Safety
/// `handle` came from [`share`] and is alive now.
pub(crate) unsafe fn kept<T>(handle: *const T) -> Arc<T> {
    // SAFETY: the caller's promise; the new reference is the one that is taken.
    unsafe {
        Arc::increment_strong_count(handle);
        Arc::from_raw(handle)
    }
}

/// One reference less; the last drops the value.
///
/// # Safety
/// `handle` came from [`share`], and the caller owns the reference that it gives up.
pub(crate) unsafe fn release<T>(handle: *const T) {
    // SAFETY: the caller's promise.
    drop(unsafe { Arc::from_raw(handle) });
}

/// An error as C++ takes it over: a pointer to its record, which the two roads of the bridge know by types of their own; null
/// for OK.
pub(crate) trait RawStatus {
    /// The pointer of `status`, with the reference that it had.
    fn of(status: Status) -> Self;
}

impl RawStatus for *const StatusRep {
    fn of(status: Status) -> Self {
        status.into_raw()
    }
}

impl RawStatus for *const ffi::StatusRep {
    fn of(status: Status) -> Self {
        status.into_raw().cast()
    }
}

/// Hands an error to C++, which owns it; null for OK.
pub(crate) fn give<E: RawStatus>(result: Result<(), Status>) -> E {
    E::of(result.err().unwrap_or_default())
}

/// Hands a value to C++, or `nothing` and the reason in `error`.
pub(crate) fn give_or<T, E: RawStatus>(result: Result<T, Status>, nothing: T, error: &mut E) -> T {
    result.unwrap_or_else(|status| {
        *error = E::of(status);
        nothing
    })
}

/// Hands a new object to C++: its handle, or null and the reason in `error`.
pub(crate) fn give_handle<T, E: RawStatus>(result: Result<T, Status>, error: &mut E) -> *const T {
    give_or(result.map(share), ptr::null(), error)
}

/// Hands a new object to C++ that has one owner: a box, or null and the reason in `error`.
pub(crate) fn give_box<T, E: RawStatus>(result: Result<T, Status>, error: &mut E) -> *mut T {
    give_or(result.map(|value| Box::into_raw(Box::new(value))), ptr::null_mut(), error)
}

/// The elements that C++ points to; its empty spans may be null.
///
/// # Safety
/// `count == 0`, or `data` points to `count` elements that stay readable and unchanged for `'a`.
pub(crate) unsafe fn elements<'a, T>(data: *const T, count: usize) -> &'a [T] {
    if count == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(data, count) }
}
