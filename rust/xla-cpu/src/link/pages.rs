//! Pages for code: writable first, then executable, never both at once.
//!
//! The memory is one mapping whose first and last page are guard pages. Its states: after [`Pages::reserve`] all pages
//! between the guards are writable, and [`Pages::write`] fills them. After [`Pages::protect`] code is executable,
//! read-only data is readable, and data stays writable. Dropping unmaps it. This module runs none of the code.

#![allow(unsafe_code, reason = "memory is mapped, written and protected by address")]

use std::io;
use std::ops::Range;
use std::ptr::{self, NonNull};

use purlin_base::{Error, StatusCode, StatusOr};

use super::layout::{Layout, Region};

/// The page size of x86-64.
pub(crate) const PAGE_BYTES: usize = 4096;
/// The byte that fills gaps between functions: an instruction that traps.
const TRAP: u8 = 0xcc;

#[cfg(test)]
thread_local! {
    /// How often this thread has mapped memory for code.
    pub(crate) static RESERVED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// A mapping of `size_bytes`, whose first and last page are guards.
#[derive(Debug)]
pub(crate) struct Pages {
    mapping: NonNull<u8>,
    /// The size of the mapping, with both guards.
    size_bytes: usize,
    is_writable: bool,
}

// SAFETY: the mapping belongs to this value alone. This value writes it through `&mut self` only, and never after
// protect().
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    /// Maps the memory of a layout, filled with zeros, and with traps in the code's part.
    ///
    /// # Errors
    /// As [`protect`](Self::protect).
    pub(crate) fn reserve(layout: &Layout) -> StatusOr<Self> {
        let size_bytes = layout.size_bytes() + 2 * PAGE_BYTES;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping, at an address of the system's choice.
        let mapping = unsafe { libc::mmap(ptr::null_mut(), size_bytes, libc::PROT_NONE, flags, -1, 0) };
        if mapping == libc::MAP_FAILED {
            return Err(last_error("mapped", size_bytes));
        }
        let mapping = NonNull::new(mapping.cast()).expect("the system maps nothing at null");
        #[cfg(test)]
        RESERVED.with(|count| count.set(count.get() + 1));
        let mut pages = Self { mapping, size_bytes, is_writable: true };
        pages.set(0..layout.size_bytes(), libc::PROT_READ | libc::PROT_WRITE)?;
        let code = layout.range(Region::Code);
        // SAFETY: the code's pages lie inside the mapping, and are writable since the line above.
        unsafe { ptr::write_bytes(pages.begin().add(code.start), TRAP, code.len()) };
        Ok(pages)
    }

    /// The address of the first byte after the first guard.
    pub(crate) fn address(&self) -> usize {
        self.begin().expose_provenance()
    }

    /// The size without the guards.
    pub(crate) fn len(&self) -> usize {
        self.size_bytes - 2 * PAGE_BYTES
    }

    /// Copies `bytes` to `offset`. Panics if they do not fit between the guards, and after `protect`.
    pub(crate) fn write(&mut self, offset: usize, bytes: &[u8]) {
        let is_inside = offset.checked_add(bytes.len()).is_some_and(|end| end <= self.len());
        assert!(self.is_writable && is_inside, "the layout has room for all sections, before they are protected");
        // SAFETY: the destination is inside the mapping and writable, as was just checked. `bytes` are no part of it,
        // because this value lends out no references to it.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.begin().add(offset), bytes.len()) };
    }

    /// Ends writing: makes code executable, and read-only data readable only.
    ///
    /// # Errors
    /// `PermissionDenied`: the system forbids it. `ResourceExhausted`: the system refuses for any other cause, as a
    /// rule because memory is short.
    pub(crate) fn protect(&mut self, layout: &Layout) -> StatusOr<()> {
        self.is_writable = false;
        self.set(layout.range(Region::Code), libc::PROT_READ | libc::PROT_EXEC)?;
        self.set(layout.range(Region::ReadOnly), libc::PROT_READ)
    }

    fn begin(&self) -> *mut u8 {
        // SAFETY: the mapping has more than its first page.
        unsafe { self.mapping.as_ptr().add(PAGE_BYTES) }
    }

    /// Sets the protection of a range of whole pages.
    fn set(&mut self, range: Range<usize>, protection: libc::c_int) -> StatusOr<()> {
        if range.is_empty() {
            return Ok(());
        }
        // SAFETY: the layout's parts are whole pages inside the mapping, and no reference points there.
        let answer = unsafe { libc::mprotect(self.begin().add(range.start).cast(), range.len(), protection) };
        if answer == 0 { Ok(()) } else { Err(last_error("protected", range.len())) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to this value. Every caller of its code keeps this value alive, by `Code`.
        unsafe { libc::munmap(self.mapping.as_ptr().cast(), self.size_bytes) };
    }
}

/// The system's last error: `PermissionDenied` for EACCES and EPERM, else `ResourceExhausted`.
fn last_error(what: &str, size_bytes: usize) -> Error {
    let error = io::Error::last_os_error();
    let code = match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => StatusCode::PermissionDenied,
        _ => StatusCode::ResourceExhausted,
    };
    Error::new(code, format!("{size_bytes} bytes for code cannot be {what}: {error}"))
}
