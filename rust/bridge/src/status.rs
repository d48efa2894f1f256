//! `purlin/status.h`. A status crosses as the pointer of its record, null for OK.
//!
//! In the safety sections, "alive" means that C++ holds a reference for the length of the call, and "owned" that it
//! gives its reference up.

use std::ffi::c_char;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::ptr;

use cxx::CxxString;
use purlin_base::{Error, SourceLocation, StatusCode, status};
use purlin_ffi::handle::{Record, elements};
use purlin_ffi::panic::contain;
use purlin_ffi::words::{Bytes, Location, not_ok};

#[cxx::bridge(namespace = "purlin::ffi")]
pub(crate) mod ffi {
    unsafe extern "C++" {
        include!("purlin/internal/abi.h");

        #[namespace = "purlin::v0::internal"]
        type StatusRep;
    }

    extern "Rust" {
        /// Appends the status as text.
        unsafe fn status_to_string(status: *const StatusRep, text: Pin<&mut CxxString>);
    }
}

// SAFETY: cxx's name for the same record.
unsafe impl Record for ffi::StatusRep {}

/// The error with which C++ makes `function` fail something. The headers let no null come here; it would be a bug.
///
/// # Safety
/// `rep` is null or owned by the caller, which gives it up.
pub(crate) unsafe fn given<R: Record>(rep: *const R, function: &str) -> Error {
    // SAFETY: the caller's promise.
    not_ok(unsafe { Error::from_raw(rep.cast()) }, function)
}

/// Reads a status that C++ keeps.
///
/// # Safety
/// `rep` is null or alive for as long as the result is used.
unsafe fn borrowed(rep: *const status::StatusRep) -> ManuallyDrop<Option<Error>> {
    // SAFETY: the reference stays C++'s: ManuallyDrop never gives it back.
    ManuallyDrop::new(unsafe { Error::from_raw(rep) })
}

/// A new status; null for the code OK.
///
/// # Safety
/// `message` points to `size_bytes` bytes; `location` is what its struct says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_status_new(
    code: i32,
    message: *const c_char,
    size_bytes: usize,
    location: Location,
) -> *const status::StatusRep {
    // SAFETY: the caller's promises.
    let (message, location) = unsafe { (elements::<u8>(message.cast(), size_bytes), location.get()) };
    match StatusCode::from_raw(code) {
        StatusCode::Ok => ptr::null(),
        code => Error::with_location(code, String::from_utf8_lossy(message), location).into_raw(),
    }
}

/// One more reference.
///
/// # Safety
/// `rep` is not null and alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_status_retain(rep: *const status::StatusRep) {
    // SAFETY: alive; the new reference becomes C++'s.
    let _ = unsafe { Error::from_borrowed_raw(rep) }.map(Error::into_raw);
}

/// One reference less.
///
/// # Safety
/// `rep` is not null and owned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_status_release(rep: *const status::StatusRep) {
    // SAFETY: owned.
    drop(unsafe { Error::from_raw(rep) });
}

/// The code's number.
///
/// # Safety
/// `rep` is null or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_status_code(rep: *const status::StatusRep) -> i32 {
    // SAFETY: alive.
    unsafe { borrowed(rep) }.as_ref().map_or(StatusCode::Ok, Error::code) as i32
}

/// The message; lives as long as the record.
///
/// # Safety
/// `rep` is null or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_status_message(rep: *const status::StatusRep) -> Bytes {
    // SAFETY: alive.
    Bytes::of(unsafe { borrowed(rep) }.as_ref().map_or("", Error::message).as_bytes())
}

/// Where the error was made.
///
/// # Safety
/// `rep` is null or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_status_location(rep: *const status::StatusRep) -> Location {
    // SAFETY: alive.
    let location = unsafe { borrowed(rep) }.as_ref().map_or(SourceLocation::UNKNOWN, Error::location);
    Location { file: location.file_as_c_str().as_ptr(), line: location.line() }
}

/// Payload `index` in the order of the first sets; false if there are fewer. The bytes live as long as the record.
///
/// # Safety
/// `rep` is null or alive; `type_url` and `payload` are writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_status_payload_at(
    rep: *const status::StatusRep,
    index: usize,
    type_url: *mut Bytes,
    payload: *mut Bytes,
) -> bool {
    // SAFETY: alive.
    let error = unsafe { borrowed(rep) };
    let Some((key, value)) = error.as_ref().and_then(|error| error.payloads().nth(index)) else { return false };
    // SAFETY: writable.
    unsafe {
        type_url.write(Bytes::of(key.as_bytes()));
        payload.write(Bytes::of(value));
    }
    true
}

/// The payload of that type; `data` is null if there is none. The bytes live as long as the record.
///
/// # Safety
/// `rep` is null or alive; `type_url` points to `type_url_size_bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_status_payload(
    rep: *const status::StatusRep,
    type_url: *const c_char,
    type_url_size_bytes: usize,
) -> Bytes {
    // SAFETY: alive, and the caller's promise.
    let (error, type_url) = unsafe { (borrowed(rep), elements::<u8>(type_url.cast(), type_url_size_bytes)) };
    let payload = error.as_ref().and_then(|error| error.payload(&String::from_utf8_lossy(type_url)));
    payload.map_or(Bytes { data: ptr::null(), size_bytes: 0 }, Bytes::of)
}

/// The status with that payload, owned by C++.
///
/// # Safety
/// `rep` is null or owned; the pointers point to as many bytes as is said.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_status_set_payload(
    rep: *const status::StatusRep,
    type_url: *const c_char,
    type_url_size_bytes: usize,
    payload: *const c_char,
    payload_size_bytes: usize,
) -> *const status::StatusRep {
    // SAFETY: owned.
    let Some(mut error) = (unsafe { Error::from_raw(rep) }) else { return ptr::null() };
    // SAFETY: the caller's promises.
    let (type_url, payload) = unsafe {
        (elements::<u8>(type_url.cast(), type_url_size_bytes), elements::<u8>(payload.cast(), payload_size_bytes))
    };
    error.set_payload(&String::from_utf8_lossy(type_url), payload);
    error.into_raw()
}

/// Removes a payload from `*rep`, which may become another record; false if there was none.
///
/// # Safety
/// `*rep` is null or owned, and what is written there is C++'s; `type_url` points to `type_url_size_bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_status_erase_payload(
    rep: *mut *const status::StatusRep,
    type_url: *const c_char,
    type_url_size_bytes: usize,
) -> bool {
    // SAFETY: the caller's promises.
    let (error, type_url) = unsafe { (Error::from_raw(*rep), elements::<u8>(type_url.cast(), type_url_size_bytes)) };
    let Some(mut error) = error else { return false };
    let erased = error.erase_payload(&String::from_utf8_lossy(type_url));
    // SAFETY: writable, and the reference that was read above has been taken over.
    unsafe { *rep = error.into_raw() };
    erased
}

/// Equal code, message and payloads.
///
/// # Safety
/// Both are null or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_status_equal(a: *const status::StatusRep, b: *const status::StatusRep) -> bool {
    // SAFETY: alive.
    unsafe { *borrowed(a) == *borrowed(b) }
}

/// # Safety
/// `rep` is null or alive.
unsafe fn status_to_string(rep: *const ffi::StatusRep, text: Pin<&mut CxxString>) {
    contain("status_to_string", (), || {
        // SAFETY: alive.
        let error = unsafe { borrowed(rep.cast()) };
        text.push_str(&error.as_ref().map_or_else(|| StatusCode::Ok.name().to_owned(), Error::to_string));
    })
}
