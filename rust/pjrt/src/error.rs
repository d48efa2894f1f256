//! `PJRT_Error`: a code, a message and payloads. Since 0.112 an error begins with the table of its functions, so a
//! receiver can read one without knowing which library made it.
//!
//! Ours is a [`Status`] behind such a table. Theirs becomes a `Status` with everything that its table gives, and is
//! destroyed.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use purlin_base::{Status, StatusCode};
use purlin_ffi::handle::elements;
use purlin_ffi::panic::contain;

use super::abi::{Error, ErrorTable, PayloadVisitor, slot};

pub(super) static TABLE: ErrorTable = ErrorTable {
    struct_size: size_of::<ErrorTable>(),
    instance_size: size_of::<Error>(),
    extension_start: ptr::null_mut(),
    destroy: Some(destroy),
    message: Some(message),
    get_code: Some(get_code),
    for_each_payload: Some(for_each_payload),
};

/// An error of ours; never changes.
#[repr(C)]
struct Ours {
    visible: Error,
    status: Status,
}

/// Null for OK.
pub(super) fn give(status: Status) -> *mut Error {
    if status.ok() {
        return ptr::null_mut();
    }
    Box::into_raw(Box::new(Ours { visible: Error { table: &TABLE }, status })).cast()
}

/// OK for null.
///
/// # Safety
/// `error` is null or the caller's, which gives it up.
pub(super) unsafe fn take(error: *mut Error) -> Status {
    if error.is_null() {
        return Status::OK;
    }
    // SAFETY: an error begins with the pointer to its table.
    let table = unsafe { (*error).table };
    if ptr::eq(table, &TABLE) {
        // SAFETY: the table says that give() made it.
        return unsafe { Box::from_raw(error.cast::<Ours>()) }.status;
    }
    if table.is_null() {
        return Status::internal("a PJRT_Error without a table, which nobody can read or destroy");
    }
    // SAFETY: the error is alive, and its table says what it has.
    unsafe {
        let (mut text, mut size) = (ptr::null(), 0);
        if let Some(message) = slot!(table, ErrorTable, message) {
            message(error, &raw mut text, &raw mut size);
        }
        let code = slot!(table, ErrorTable, get_code).map_or(StatusCode::Unknown as c_int, |code| code(error));
        let mut status = from_parts("PJRT_Error", code, text, size);
        if let Some(for_each_payload) = slot!(table, ErrorTable, for_each_payload) {
            for_each_payload(error, Some(add_payload), (&raw mut status).cast());
        }
        if let Some(destroy) = slot!(table, ErrorTable, destroy) {
            destroy(error);
        }
        status
    }
}

/// The status of an error that was reported in parts; never OK.
///
/// # Safety
/// `message` is null or points to `size` bytes.
pub(super) unsafe fn from_parts(what: &str, code: c_int, message: *const c_char, size: usize) -> Status {
    let size = if message.is_null() { 0 } else { size };
    // SAFETY: the caller's promise.
    let text = String::from_utf8_lossy(unsafe { elements(message.cast::<u8>(), size) });
    match StatusCode::from_raw(code) {
        StatusCode::Ok => Status::internal(format!("a {what} whose code is OK: {text}")),
        code => Status::new(code, text),
    }
}

/// A visitor that adds what it is shown to the status that `user_arg` points to.
///
/// # Safety
/// The pointers are null or point to as many bytes as is said; `user_arg` is the status.
pub(super) unsafe extern "C" fn add_payload(
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
            (*user_arg.cast::<Status>()).set_payload(&String::from_utf8_lossy(key), value);
        }
    })
}

/// # Safety
/// `error` is null or one of ours, alive.
unsafe fn status<'a>(error: *const Error) -> Option<&'a Status> {
    // SAFETY: the caller's promise.
    unsafe { error.cast::<Ours>().as_ref() }.map(|error| &error.status)
}

unsafe extern "C" fn destroy(error: *mut Error) {
    contain("PJRT destroy", (), || {
        if !error.is_null() {
            // SAFETY: the caller's own error, which give() made.
            drop(unsafe { Box::from_raw(error.cast::<Ours>()) });
        }
    })
}

unsafe extern "C" fn message(error: *const Error, message: *mut *const c_char, size: *mut usize) {
    // SAFETY: alive; the text lives as long as the error; the outputs are null or the caller's.
    unsafe {
        let text = status(error).map_or("", Status::message);
        if !message.is_null() {
            message.write(text.as_ptr().cast());
        }
        if !size.is_null() {
            size.write(text.len());
        }
    }
}

unsafe extern "C" fn get_code(error: *const Error) -> c_int {
    // SAFETY: alive.
    unsafe { status(error) }.map_or(StatusCode::Ok, Status::code) as c_int
}

unsafe extern "C" fn for_each_payload(error: *const Error, visitor: PayloadVisitor, user_arg: *mut c_void) {
    contain("PJRT for_each_payload", (), || {
        // SAFETY: alive; the visitor takes what the caller gave it.
        unsafe {
            let (Some(status), Some(visitor)) = (status(error), visitor) else { return };
            for (key, value) in status.payloads() {
                visitor(key.as_ptr().cast(), key.len(), value.as_ptr().cast(), value.len(), user_arg);
            }
        }
    })
}
