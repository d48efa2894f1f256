//! Transposes a square of elements whose rows are contiguous on both sides.
//!
//! Vectors of 16 bytes are transposed in registers and put together on the stack, so that each cache line is read in
//! one go, and written in one go, however far apart the rows are.

#![allow(unsafe_code, reason = "elements are moved by address")]

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{self as arch, __m128i as Vector};
use std::mem::MaybeUninit;

/// Bytes of a row of a tile: two cache lines, which processors like to fetch together.
pub(super) const SIDE_BYTES: usize = 128;
const VECTOR_BYTES: usize = 16;
const SIDE_VECTORS: usize = SIDE_BYTES / VECTOR_BYTES;

/// Elements along each side of a tile.
pub(super) const fn elements<W>() -> usize {
    SIDE_BYTES / size_of::<W>()
}

/// Where row 0 of a tile begins, and the bytes from each row to the next.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    pub(super) address: *mut u8,
    pub(super) stride: isize,
}

impl Rows {
    fn row(self, index: usize) -> *mut u8 {
        self.address.wrapping_offset(index as isize * self.stride)
    }
}

/// Element `j` of row `i` of `source` becomes element `i` of row `j` of `destination`, for all
/// `i, j < elements::<W>()`.
///
/// # Safety
/// `W` is 1, 2, 4, 8 or 16 bytes wide and any bytes are a value. As many rows of `SIDE_BYTES` bytes of `source` are
/// readable, and nothing writes them meanwhile; of `destination` writable, and nothing else touches them; they are
/// disjoint.
pub(super) unsafe fn transpose<W>(source: Rows, destination: Rows) {
    // SAFETY: the caller's promise; the second argument is the elements of a vector.
    unsafe {
        match size_of::<W>() {
            1 => transpose_by::<W, 16>(source, destination),
            2 => transpose_by::<W, 8>(source, destination),
            4 => transpose_by::<W, 4>(source, destination),
            8 => transpose_by::<W, 2>(source, destination),
            16 => transpose_by::<W, 1>(source, destination),
            _ => unreachable!("element types and runs are 1, 2, 4, 8 or 16 bytes wide"),
        }
    }
}

/// # Safety
/// As [`transpose`]; `N` elements are a vector.
unsafe fn transpose_by<W, const N: usize>(source: Rows, destination: Rows) {
    // As many rows as the tile of the narrowest elements has; the others use the first of them.
    let mut turned = [const { MaybeUninit::<[Vector; SIDE_VECTORS]>::uninit() }; SIDE_BYTES];
    let side = elements::<W>();
    for vertical in 0..SIDE_VECTORS {
        for horizontal in 0..SIDE_VECTORS {
            let block: [Vector; N] = std::array::from_fn(|row| {
                let row = source.row(vertical * N + row).wrapping_add(horizontal * VECTOR_BYTES);
                // SAFETY: the caller's promise.
                unsafe { row.cast::<Vector>().read_unaligned() }
            });
            for (row, vector) in transposed::<W, N>(block).into_iter().enumerate() {
                let to = turned[horizontal * N + row].as_mut_ptr().cast::<Vector>();
                // SAFETY: a vector of our row.
                unsafe { to.add(vertical).write(vector) };
            }
        }
    }
    for (index, row) in turned[..side].iter().enumerate() {
        // SAFETY: all of its vectors were written above; the caller's promise.
        unsafe { destination.row(index).cast::<[Vector; SIDE_VECTORS]>().write_unaligned(row.assume_init()) };
    }
}

/// `N` rows of `N` elements. Each stage interleaves the upper half of the rows with the lower half.
#[inline(always)]
fn transposed<W, const N: usize>(mut rows: [Vector; N]) -> [Vector; N] {
    for _ in 0..N.ilog2() {
        let last = rows;
        for pair in 0..N / 2 {
            (rows[2 * pair], rows[2 * pair + 1]) = interleave::<W>(last[pair], last[pair + N / 2]);
        }
    }
    rows
}

/// The elements of `a` and `b` in turn: of their first halves, of their second halves.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn interleave<W>(a: Vector, b: Vector) -> (Vector, Vector) {
    // SAFETY: every processor of this architecture has SSE2.
    unsafe {
        match size_of::<W>() {
            1 => (arch::_mm_unpacklo_epi8(a, b), arch::_mm_unpackhi_epi8(a, b)),
            2 => (arch::_mm_unpacklo_epi16(a, b), arch::_mm_unpackhi_epi16(a, b)),
            4 => (arch::_mm_unpacklo_epi32(a, b), arch::_mm_unpackhi_epi32(a, b)),
            8 => (arch::_mm_unpacklo_epi64(a, b), arch::_mm_unpackhi_epi64(a, b)),
            _ => unreachable!("a vector of one element has no stages"),
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
type Vector = [u8; VECTOR_BYTES];

/// The elements of `a` and `b` in turn: of their first halves, of their second halves.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn interleave<W>(a: Vector, b: Vector) -> (Vector, Vector) {
    let width = size_of::<W>();
    let byte = |index: usize| {
        let (element, part) = (index / width, index % width);
        (if element % 2 == 0 { a } else { b })[element / 2 * width + part]
    };
    (std::array::from_fn(byte), std::array::from_fn(|index| byte(VECTOR_BYTES + index)))
}
