//! Errors and futures: objects that a handler makes by the table of functions, and knows by their addresses alone.
//!
//! An error has one owner: the handler, until it returns the error or destroys it. A future has two references: one for
//! the code that completes it, and one for the call that waits for it.

#![allow(unsafe_code, reason = "objects cross the boundary as addresses")]

use std::ffi::{CString, c_char, c_void};
use std::ptr;
use std::sync::Arc;

use purlin_async::event::EventPromise;
use purlin_base::{Error, StatusCode};

/// What `XLA_FFI_Error` points to.
struct Failure {
    code: StatusCode,
    /// Up to the first NUL.
    message: CString,
}

/// Gives an error away as an address; null if there is none.
pub(crate) fn give(outcome: Result<(), Error>) -> *mut c_void {
    let Err(error) = outcome else { return ptr::null_mut() };
    let text: Vec<u8> = error.message().bytes().take_while(|&byte| byte != 0).collect();
    let message = CString::new(text).unwrap_or_default();
    Box::into_raw(Box::new(Failure { code: error.code(), message })).cast()
}

/// Takes an error back: that of the handler, or none for null.
///
/// # Safety
/// The address is null, or [`give`] has given it away. It is not used afterwards.
pub(crate) unsafe fn take(error: *mut c_void) -> Result<(), Error> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    let Failure { code, message } = *unsafe { Box::from_raw(error.cast::<Failure>()) };
    Err(Error::new(code, message.to_string_lossy()))
}

/// The message of an error.
///
/// # Safety
/// As [`take`], but the address is not null, and stays in use. The text is valid as long as the error.
pub(crate) unsafe fn message(error: *mut c_void) -> *const c_char {
    // SAFETY: the caller's promise.
    unsafe { &*error.cast::<Failure>() }.message.as_ptr()
}

/// A new future. The code that completes it owns a reference, and the call that waits for it owns another.
pub(crate) fn new_future() -> *mut c_void {
    // Nothing ends the wait for it early, because the handler uses memory of the call until it completes the future.
    let future = Arc::new(EventPromise::guarding(c"future of an XLA FFI handler"));
    let _completes = Arc::into_raw(Arc::clone(&future));
    Arc::into_raw(future).cast_mut().cast()
}

/// Completes a future.
///
/// # Safety
/// [`new_future`] has made it, and no other call completes it.
pub(crate) unsafe fn complete(future: *mut c_void, outcome: Result<(), Error>) {
    // SAFETY: the caller's promise; this takes the reference of the code that completes it.
    let future = unsafe { Arc::from_raw(future.cast::<EventPromise>()) };
    future.set(outcome);
}

/// Waits for a future. On a thread of a pool, the pool goes on with another thread.
///
/// # Errors
/// That of the handler.
///
/// # Safety
/// [`new_future`] has made it, and no other call waits for it.
pub(crate) unsafe fn await_future(future: *mut c_void) -> Result<(), Error> {
    // SAFETY: the caller's promise; this takes the reference of the call that waits for it.
    let event = unsafe { Arc::from_raw(future.cast::<EventPromise>()) }.event();
    event.wait_uninterruptible()
}
