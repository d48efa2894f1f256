//! Pages of code: written, then executable, never both.
//!
//! One mapping with a page before and a page behind it that nothing may touch. It is writable while [`Pages::write`] is
//! called, and after [`Pages::protect`] code is executable, what is only read is that, and data stays writable. Nothing
//! here runs anything. Dropping unmaps.

#![allow(unsafe_code, reason = "memory is mapped, written and protected by address")]

use std::io;
use std::ops::Range;
use std::ptr::{self, NonNull};

use purlin_base::{Error, StatusCode, StatusOr};

use super::layout::{Layout, Region};

/// Of x86-64.
pub(crate) const PAGE_BYTES: usize = 4096;
/// What stands between functions: a trap.
const TRAP: u8 = 0xcc;

/// A mapping of `size_bytes`, of which all but the first and the last page can be used.
#[derive(Debug)]
pub(crate) struct Pages {
    mapping: NonNull<u8>,
    /// Of the mapping, with both guards.
    size_bytes: usize,
    is_writable: bool,
}

// SAFETY: the mapping belongs to this value alone; it is written through `&mut self` only, and from protect() on never.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    /// Maps as much as the layout needs, filled with zeros, and traps where code will be.
    pub(crate) fn reserve(layout: &Layout) -> StatusOr<Self> {
        let size_bytes = layout.size_bytes() + 2 * PAGE_BYTES;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping, at an address of the system's choice.
        let mapping = unsafe { libc::mmap(ptr::null_mut(), size_bytes, libc::PROT_NONE, flags, -1, 0) };
        if mapping == libc::MAP_FAILED {
            return Err(last_error("mapped", size_bytes));
        }
        let mapping = NonNull::new(mapping.cast()).expect("the system maps nothing at null");
        let mut pages = Self { mapping, size_bytes, is_writable: true };
        pages.set(0..layout.size_bytes(), libc::PROT_READ | libc::PROT_WRITE)?;
        let code = layout.range(Region::Code);
        // SAFETY: the code's pages lie inside the mapping, and are writable since the line above.
        unsafe { ptr::write_bytes(pages.begin().add(code.start), TRAP, code.len()) };
        Ok(pages)
    }

    /// The first byte that is no guard's.
    pub(crate) fn address(&self) -> usize {
        self.begin().expose_provenance()
    }

    /// Bytes that are no guard's.
    pub(crate) fn len(&self) -> usize {
        self.size_bytes - 2 * PAGE_BYTES
    }

    /// Copies `bytes` to `offset`. Panics outside of the mapping, and after `protect`.
    pub(crate) fn write(&mut self, offset: usize, bytes: &[u8]) {
        let is_inside = offset.checked_add(bytes.len()).is_some_and(|end| end <= self.len());
        assert!(self.is_writable && is_inside, "the layout has room for all sections, before they are protected");
        // SAFETY: inside the mapping and writable, as was just seen; `bytes` are no part of it, because nothing lends
        // them.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.begin().add(offset), bytes.len()) };
    }

    /// Ends writing.
    pub(crate) fn protect(&mut self, layout: &Layout) -> StatusOr<()> {
        self.is_writable = false;
        self.set(layout.range(Region::Code), libc::PROT_READ | libc::PROT_EXEC)?;
        self.set(layout.range(Region::ReadOnly), libc::PROT_READ)
    }

    fn begin(&self) -> *mut u8 {
        // SAFETY: the mapping has more than its first page.
        unsafe { self.mapping.as_ptr().add(PAGE_BYTES) }
    }

    /// Protects a range of whole pages.
    fn set(&mut self, range: Range<usize>, protection: libc::c_int) -> StatusOr<()> {
        if range.is_empty() {
            return Ok(());
        }
        // SAFETY: the layout's parts are whole pages inside the mapping; no reference leads there.
        let answer = unsafe { libc::mprotect(self.begin().add(range.start).cast(), range.len(), protection) };
        if answer == 0 { Ok(()) } else { Err(last_error("protected", range.len())) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's, and whoever calls what is in it keeps this value (`Code`).
        unsafe { libc::munmap(self.mapping.as_ptr().cast(), self.size_bytes) };
    }
}

/// What the system answered.
fn last_error(what: &str, size_bytes: usize) -> Error {
    let error = io::Error::last_os_error();
    let code = match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => StatusCode::PermissionDenied,
        _ => StatusCode::ResourceExhausted,
    };
    Error::new(code, format!("{size_bytes} bytes for code cannot be {what}: {error}"))
}
