//! `PJRT_Error`: a code, a message and payloads. Since 0.112 an error begins with the table of its functions, so a
//! receiver can read one without knowing which library made it.
//!
//! Ours is an [`Error`] behind such a table. Theirs becomes an `Error` with everything that its table gives, and is
//! destroyed.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use purlin_base::{Error, StatusCode};
use purlin_ffi::handle::elements;
use purlin_ffi::panic::contain;

use super::abi::{ErrorPayloadVisitor, ErrorTable, PjrtError, slot};

/// The table of every error that is given.
pub static TABLE: ErrorTable = ErrorTable {
    struct_size: size_of::<ErrorTable>(),
    instance_size: size_of::<PjrtError>(),
    extension_start: ptr::null_mut(),
    destroy: Some(destroy),
    message: Some(message),
    get_code: Some(get_code),
    for_each_payload: Some(for_each_payload),
};

/// An error of ours; never changes.
#[repr(C)]
struct Ours {
    visible: PjrtError,
    error: Error,
}

/// An error for C, which owns it.
pub fn give(error: Error) -> *mut PjrtError {
    Box::into_raw(Box::new(Ours { visible: PjrtError { table: &TABLE }, error })).cast()
}

/// What C gives; `None` for null, which is no error.
///
/// # Safety
/// `error` is null or the caller's, which gives it up.
pub unsafe fn take(error: *mut PjrtError) -> Option<Error> {
    if error.is_null() {
        return None;
    }
    // SAFETY: an error begins with the pointer to its table.
    let table = unsafe { (*error).table };
    if ptr::eq(table, &TABLE) {
        // SAFETY: the table says that give() made it.
        return Some(unsafe { Box::from_raw(error.cast::<Ours>()) }.error);
    }
    if table.is_null() {
        return Some(Error::internal("a PJRT_Error without a table, which nobody can read or destroy"));
    }
    // SAFETY: the error is alive, and its table says what it has.
    unsafe {
        let (mut text, mut size) = (ptr::null(), 0);
        if let Some(message) = slot!(table, ErrorTable, message) {
            message(error, &raw mut text, &raw mut size);
        }
        let code = slot!(table, ErrorTable, get_code).map_or(StatusCode::Unknown as c_int, |code| code(error));
        let mut taken = from_parts("PJRT_Error", code, text, size);
        if let Some(for_each_payload) = slot!(table, ErrorTable, for_each_payload) {
            for_each_payload(error, Some(add_payload), (&raw mut taken).cast());
        }
        if let Some(destroy) = slot!(table, ErrorTable, destroy) {
            destroy(error);
        }
        Some(taken)
    }
}

/// An error that was reported in parts; `Internal` if its code is OK.
///
/// # Safety
/// `message` is null or points to `size` bytes.
pub unsafe fn from_parts(what: &str, code: c_int, message: *const c_char, size: usize) -> Error {
    let size = if message.is_null() { 0 } else { size };
    // SAFETY: the caller's promise.
    let text = String::from_utf8_lossy(unsafe { elements(message.cast::<u8>(), size) });
    match StatusCode::from_raw(code) {
        StatusCode::Ok => Error::internal(format!("a {what} whose code is OK: {text}")),
        code => Error::new(code, text),
    }
}

/// A visitor that adds what it is shown to the error that `user_arg` points to.
///
/// # Safety
/// The pointers are null or point to as many bytes as is said; `user_arg` is the error.
pub unsafe extern "C" fn add_payload(
    key: *const c_char,
    key_size: usize,
    value: *const c_char,
    value_size: usize,
    user_arg: *mut c_void,
) {
    contain("PJRT add_payload", (), || {
        // SAFETY: the caller's promises.
        unsafe {
            let key = elements(key.cast::<u8>(), if key.is_null() { 0 } else { key_size });
            let value = elements(value.cast::<u8>(), if value.is_null() { 0 } else { value_size });
            (*user_arg.cast::<Error>()).set_payload(&String::from_utf8_lossy(key), value);
        }
    })
}

/// # Safety
/// `error` is null or one of ours, alive.
unsafe fn ours<'a>(error: *const PjrtError) -> Option<&'a Error> {
    // SAFETY: the caller's promise.
    unsafe { error.cast::<Ours>().as_ref() }.map(|ours| &ours.error)
}

unsafe extern "C" fn destroy(error: *mut PjrtError) {
    contain("PJRT destroy", (), || {
        if !error.is_null() {
            // SAFETY: the caller's own error, which give() made.
            drop(unsafe { Box::from_raw(error.cast::<Ours>()) });
        }
    })
}

unsafe extern "C" fn message(error: *const PjrtError, message: *mut *const c_char, size: *mut usize) {
    // SAFETY: alive; the text lives as long as the error; the outputs are null or the caller's.
    unsafe {
        let text = ours(error).map_or("", Error::message);
        if !message.is_null() {
            message.write(text.as_ptr().cast());
        }
        if !size.is_null() {
            size.write(text.len());
        }
    }
}

unsafe extern "C" fn get_code(error: *const PjrtError) -> c_int {
    // SAFETY: alive.
    unsafe { ours(error) }.map_or(StatusCode::Ok, Error::code) as c_int
}

unsafe extern "C" fn for_each_payload(error: *const PjrtError, visitor: ErrorPayloadVisitor, user_arg: *mut c_void) {
    contain("PJRT for_each_payload", (), || {
        // SAFETY: alive; the visitor takes what the caller gave it.
        unsafe {
            let (Some(error), Some(visitor)) = (ours(error), visitor) else { return };
            for (key, value) in error.payloads() {
                visitor(key.as_ptr().cast(), key.len(), value.as_ptr().cast(), value.len(), user_arg);
            }
        }
    })
}
