//! What C++ and Rust say to each other in several places: bytes, source locations, events.

use std::ffi::{OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use purlin_async::Event;
use purlin_async::event::abi::EventHeader;
use purlin_base::{Error, SourceLocation, StatusOr};

use crate::handle::elements;
use crate::panic::guard;

/// The error with which C or C++ makes `function` fail something. Without one it was given OK, which is an error in the
/// words of C++'s `internal::OkAsError`.
#[must_use]
pub fn not_ok(error: Option<Error>, function: &str) -> Error {
    error.unwrap_or_else(|| Error::internal(format!("{function} was given an OK status")))
}

/// Bytes that belong to a record or to C++; borrowed.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Bytes {
    /// First byte; null if there are none.
    pub data: *const c_char,
    /// Number of bytes.
    pub size_bytes: usize,
}

impl Bytes {
    /// Lent for as long as `bytes` stay.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self { data: bytes.as_ptr().cast(), size_bytes: bytes.len() }
    }
}

/// The path of these bytes.
#[must_use]
pub fn path_of(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// # Errors
/// `InvalidArgument`: not UTF-8.
pub fn text_of(bytes: &[u8]) -> StatusOr<&str> {
    std::str::from_utf8(bytes)
        .map_err(|_| Error::invalid_argument(format!("{:?} is not UTF-8", String::from_utf8_lossy(bytes))))
}

/// A `purlin::SourceLocation`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Location {
    /// Static, ends with a NUL, not null.
    pub file: *const c_char,
    /// Line from 1; 0 when unknown.
    pub line: u32,
}

impl Location {
    /// # Safety
    /// `file` is what the struct says.
    pub unsafe fn get(&self) -> SourceLocation {
        // SAFETY: the caller's promise.
        unsafe { SourceLocation::from_ptr(self.file, self.line) }
    }
}

/// The events that a C++ `Span<const Event>` points to.
///
/// # Safety
/// `count == 0`, or `events` points to `count` words, each null or an alive event, unchanged for `'a`.
pub unsafe fn borrowed<'a>(events: *const *mut EventHeader, count: usize) -> &'a [Event] {
    // SAFETY: the caller's promise; an Event is its pointer (repr(transparent)), and a shared slice drops none.
    unsafe { elements(events.cast::<Event>(), count) }
}

/// Hands an event to C++, with one reference. A panic becomes an event that has failed.
pub fn give_event(make: impl FnOnce() -> Result<Event, Error>) -> *mut EventHeader {
    guard(make).unwrap_or_else(Event::from_error).into_raw()
}
