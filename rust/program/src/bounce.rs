//! Bounce buffers: aligned memory in place of an argument or a result that is not aligned. Such memory was imported by
//! its owner at a multiple of 16, or is a slice of a buffer. Kernels assume an alignment of 64 bytes. So arguments are
//! copied before the commands, and results after them.

#![allow(unsafe_code, reason = "bytes are copied by address")]

use std::ptr;

use crate::allocation::ALIGNMENT_BYTES;
use crate::constant::Line;

/// Whether the address has the alignment that kernels assume.
pub(crate) fn is_aligned(address: *mut u8) -> bool {
    address.addr().is_multiple_of(ALIGNMENT_BYTES)
}

/// Aligned memory, and the address of the bytes that it replaces.
pub(crate) struct Bounce {
    lines: Vec<Line>,
    stands_for: *mut u8,
    size_bytes: usize,
}

impl Bounce {
    /// Zeroed memory in place of the `size_bytes` bytes at `stands_for`.
    pub(crate) fn new(stands_for: *mut u8, size_bytes: usize) -> Self {
        let lines = vec![Line::default(); size_bytes.div_ceil(ALIGNMENT_BYTES)];
        Self { lines, stands_for, size_bytes }
    }

    /// The address of the aligned memory.
    pub(crate) fn address(&mut self) -> *mut u8 {
        self.lines.as_mut_ptr().cast()
    }

    /// Copies the bytes at `from` to the aligned memory.
    ///
    /// # Safety
    /// `from` is valid for reads of as many bytes as this has.
    pub(crate) unsafe fn fill_from(&mut self, from: *const u8) {
        let size_bytes = self.size_bytes;
        // SAFETY: the caller's promise; the aligned memory belongs to this value, and has that size.
        unsafe { ptr::copy_nonoverlapping(from, self.address(), size_bytes) }
    }

    /// Copies the aligned memory to the bytes that it replaces.
    ///
    /// # Safety
    /// The replaced bytes are valid for writes.
    pub(crate) unsafe fn give_back(&mut self) {
        // SAFETY: as above, in the other direction.
        unsafe { ptr::copy_nonoverlapping(self.address().cast_const(), self.stands_for, self.size_bytes) }
    }
}
