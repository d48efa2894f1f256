//! Bytes that are the same in all runs of a program.

#![allow(unsafe_code, reason = "an array of lines is read as bytes")]

use std::fmt;
use std::sync::Arc;

use crate::allocation::ALIGNMENT_BYTES;

/// Bytes of one cache line, at the alignment of allocations.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Line([u8; ALIGNMENT_BYTES]);

impl Default for Line {
    fn default() -> Self {
        Self([0; ALIGNMENT_BYTES])
    }
}

/// Immutable bytes at a multiple of [`ALIGNMENT_BYTES`]. Clones share them.
///
/// ```
/// use purlin::program::Constant;
///
/// let one = Constant::new(&1.0_f32.to_ne_bytes());
/// assert_eq!(one.bytes(), 1.0_f32.to_ne_bytes());
/// assert_eq!(one.bytes().as_ptr().addr() % 64, 0);
/// ```
#[derive(Clone)]
pub struct Constant {
    lines: Arc<[Line]>,
    size_bytes: usize,
}

impl Constant {
    /// A copy of `bytes`.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        let line = |chunk: &[u8]| {
            let mut line = Line::default();
            line.0[..chunk.len()].copy_from_slice(chunk);
            line
        };
        Self { lines: bytes.chunks(ALIGNMENT_BYTES).map(line).collect(), size_bytes: bytes.len() }
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the lines are initialised arrays of bytes without padding, contiguous in memory. new() made as many
        // as `size_bytes` need, and nothing writes them.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.size_bytes) }
    }

    /// The number of bytes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }
}

impl fmt::Debug for Constant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Constant({} bytes)", self.size_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_kept_aligned_whatever_their_number() {
        for size_bytes in [0, 1, 63, 64, 65, 1000] {
            let bytes: Vec<u8> = (0..size_bytes).map(|index| index as u8).collect();
            let constant = Constant::new(&bytes);
            assert_eq!((constant.bytes(), constant.size_bytes()), (&bytes[..], size_bytes));
            assert!(constant.bytes().as_ptr().addr().is_multiple_of(ALIGNMENT_BYTES));
            assert_eq!(constant.clone().bytes().as_ptr(), constant.bytes().as_ptr(), "clones share the bytes");
        }
    }
}
