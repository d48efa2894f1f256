//! Memory that stands for an argument or a result that is not aligned: imported by its owner at a multiple of 16, or
//! a slice. Kernels take 64 for granted, so such bytes are copied, before and after.

#![allow(unsafe_code, reason = "bytes are copied by address")]

use std::ptr;

use crate::allocation::ALIGNMENT_BYTES;
use crate::constant::Line;

/// Whether a kernel can take that address.
pub(crate) fn is_aligned(address: *mut u8) -> bool {
    address.addr().is_multiple_of(ALIGNMENT_BYTES)
}

/// Aligned memory, and the bytes that it stands for.
pub(crate) struct Bounce {
    lines: Vec<Line>,
    stands_for: *mut u8,
    size_bytes: usize,
}

impl Bounce {
    /// Memory in place of the `size_bytes` bytes at `stands_for`, zero.
    pub(crate) fn new(stands_for: *mut u8, size_bytes: usize) -> Self {
        let lines = vec![Line::default(); size_bytes.div_ceil(ALIGNMENT_BYTES)];
        Self { lines, stands_for, size_bytes }
    }

    /// The memory.
    pub(crate) fn address(&mut self) -> *mut u8 {
        self.lines.as_mut_ptr().cast()
    }

    /// The bytes at `from` are those of the memory now.
    ///
    /// # Safety
    /// As many as the memory has can be read there.
    pub(crate) unsafe fn fill_from(&mut self, from: *const u8) {
        let size_bytes = self.size_bytes;
        // SAFETY: the caller's promise; the memory is ours, and has room.
        unsafe { ptr::copy_nonoverlapping(from, self.address(), size_bytes) }
    }

    /// The bytes that this stands for are those of the memory now.
    ///
    /// # Safety
    /// They can be written.
    pub(crate) unsafe fn give_back(&mut self) {
        // SAFETY: as above, the other way.
        unsafe { ptr::copy_nonoverlapping(self.address().cast_const(), self.stands_for, self.size_bytes) }
    }
}
