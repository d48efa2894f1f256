//! Handles: one word in C++, the pointer of an `Arc` here. One reference count, one allocation.
//!
//! C++ copies a handle by retaining and destroys it by releasing; reading goes through a plain reference, which C++ keeps
//! valid for the call by holding the handle.

use std::sync::Arc;

use purlin::Status;

use crate::status::ffi::StatusRep;

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

/// One reference less; the last drops the value.
///
/// # Safety
/// `handle` came from [`share`], and the caller owns the reference that it gives up.
pub(crate) unsafe fn release<T>(handle: *const T) {
    // SAFETY: the caller's promise.
    drop(unsafe { Arc::from_raw(handle) });
}

/// Hands an error to C++, which owns it; null for OK.
pub(crate) fn give(result: Result<(), Status>) -> *const StatusRep {
    result.err().unwrap_or_default().into_raw().cast()
}

/// Hands a new object to C++: its handle, or null and the reason in `error`.
pub(crate) fn give_handle<T>(result: Result<T, Status>, error: &mut *const StatusRep) -> *const T {
    match result {
        Ok(value) => share(value),
        Err(status) => {
            *error = status.into_raw().cast();
            std::ptr::null()
        }
    }
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
