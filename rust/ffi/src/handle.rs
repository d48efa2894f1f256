//! Handles: one word in C++, the pointer to a counted value here. One reference count, one block of the slab.
//!
//! C++ copies a handle by retaining and destroys it by releasing; reading uses a plain reference, which C++ keeps valid
//! for the call by holding the handle.

use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};

use purlin_base::Error;
use purlin_base::slab::SlabBox;
use purlin_base::status::{self, StatusRep};
use purlin_base::sync::PinnedArc;

/// A new handle with one reference, the caller's to release.
pub fn share<T>(value: T) -> *const T {
    PinnedArc::into_value(PinnedArc::new(value)).as_ptr()
}

/// One more reference.
///
/// # Safety
/// `handle` came from [`share`] and has a reference that outlives this call.
pub unsafe fn retain<T>(handle: *const T) {
    // SAFETY: the caller's promise.
    let _ = PinnedArc::into_value(unsafe { kept(handle) });
}

/// A reference of Rust's own, beside C++'s, which a call may give up.
///
/// # Safety
/// `handle` came from [`share`] and is alive now.
pub unsafe fn kept<T>(handle: *const T) -> PinnedArc<T> {
    // SAFETY: the caller's promise; the caller's reference stays.
    PinnedArc::clone(&ManuallyDrop::new(unsafe { taken(handle) }))
}

/// The caller's reference.
///
/// # Safety
/// `handle` came from [`share`], and the caller owns the reference that it gives up.
pub unsafe fn taken<T>(handle: *const T) -> PinnedArc<T> {
    // SAFETY: the caller's promise; it is not null.
    unsafe { PinnedArc::from_value(NonNull::new_unchecked(handle.cast_mut())) }
}

/// One reference less; the last drops the value.
///
/// # Safety
/// `handle` came from [`share`], and the caller owns the reference that it gives up.
pub unsafe fn release<T>(handle: *const T) {
    // SAFETY: the caller's promise.
    drop(unsafe { taken(handle) });
}

/// The record of an error, by whatever name a caller's declarations know it.
///
/// # Safety
/// A pointer to it is a pointer to a [`StatusRep`].
pub unsafe trait Record {}

// SAFETY: it is one.
unsafe impl Record for StatusRep {}

/// What was made of the caller's argument, where it is: large values are not moved out of a result.
///
/// # Errors
/// Why it could not be made.
#[inline]
pub fn valid<T>(made: &Result<T, Error>) -> Result<&T, Error> {
    made.as_ref().map_err(Error::clone)
}

/// Hands an error to C++, which owns it; null for none.
pub fn give<R: Record>(result: Result<(), Error>) -> *const R {
    status::into_raw(result).cast()
}

/// Hands a value to C++, or `nothing` and the reason in `error`.
pub fn give_or<T, R: Record>(result: Result<T, Error>, nothing: T, error: &mut *const R) -> T {
    result.unwrap_or_else(|why| {
        *error = why.into_raw().cast();
        nothing
    })
}

/// Hands a new object to C++: its handle, or null and the reason in `error`.
pub fn give_handle<T, R: Record>(result: Result<T, Error>, error: &mut *const R) -> *const T {
    give_or(result.map(share), ptr::null(), error)
}

/// Hands a new object to C++ that has one owner, or null and the reason in `error`.
pub fn give_owned<T, R: Record>(result: Result<T, Error>, error: &mut *const R) -> *mut T {
    give_or(result.map(own), ptr::null_mut(), error)
}

/// A new object that C++ owns, until [`owned`].
pub fn own<T>(value: T) -> *mut T {
    SlabBox::into_raw(SlabBox::new(value)).as_ptr()
}

/// Takes an object over from C++.
///
/// # Safety
/// `object` is of [`own`], and C++ gives it up.
pub unsafe fn owned<T>(object: *mut T) -> SlabBox<T> {
    // SAFETY: the caller's promise; own() answers no null.
    unsafe { SlabBox::from_raw(NonNull::new_unchecked(object)) }
}

/// The elements that C++ points to; its empty spans may be null.
///
/// # Safety
/// `count == 0`, or `data` points to `count` elements that stay readable and unchanged for `'a`.
pub unsafe fn elements<'a, T>(data: *const T, count: usize) -> &'a [T] {
    if count == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(data, count) }
}
