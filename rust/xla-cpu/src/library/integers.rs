//! Products of matrices of 8-bit and 16-bit integers, with sums of 32 bits that wrap.
//!
//! Processors multiply pairs of neighbouring 16-bit numbers and add up each pair, in one instruction. So columns of the
//! second matrix are packed in panels whose rows are pairs, widened to 16 bits, and each row of the first matrix is
//! packed, too. A tile of the result is kept in registers while a panel is read once.

#![allow(unsafe_code, reason = "matrices are addresses and strides; instructions of some processors")]

use std::arch::x86_64::*;

use super::elements::Plain;
use super::gemm::{Matrix, Sizes};

/// The rows of a tile.
const ROWS: usize = 4;
/// The columns of a tile: two registers of AVX-512, or four of AVX2.
const COLUMNS: usize = 32;

/// One row of a panel: pairs of 16-bit numbers for each column.
type Pairs = [[i16; 2]; COLUMNS];
type Tile = [[i32; COLUMNS]; ROWS];

/// An integer whose 16 bits hold all that its products depend on.
pub(super) trait Narrow: Plain {
    /// The same number, as 16 bits.
    fn widen(self) -> i16;
}

impl Narrow for i8 {
    fn widen(self) -> i16 {
        self.into()
    }
}

impl Narrow for u8 {
    fn widen(self) -> i16 {
        self.into()
    }
}

impl Narrow for i16 {
    fn widen(self) -> i16 {
        self
    }
}

// Of products of such numbers only the lower 16 bits are kept, which do not depend on the sign.
impl Narrow for u16 {
    fn widen(self) -> i16 {
        self.cast_signed()
    }
}

/// Writes the product of `lhs` and `rhs` to `out`.
///
/// # Safety
/// All elements of `lhs` and `rhs` are valid for reads, and those of `out` for writes. `out` shares no element with the
/// others.
pub(super) unsafe fn multiply<T: Narrow>(
    sizes: Sizes,
    lhs: &Matrix<*const T>,
    rhs: &Matrix<*const T>,
    out: &Matrix<*mut i32>,
) {
    // SAFETY: the caller's promise; best() has chosen a function that this processor can execute.
    unsafe { multiply_by(best(), sizes, lhs, rhs, out) }
}

/// # Safety
/// As [`multiply`]; also, this processor can execute `accumulate`.
unsafe fn multiply_by<T: Narrow>(
    accumulate: Accumulate,
    sizes: Sizes,
    lhs: &Matrix<*const T>,
    rhs: &Matrix<*const T>,
    out: &Matrix<*mut i32>,
) {
    let Sizes { rows, columns, inner } = sizes;
    let pairs = inner.div_ceil(2);
    // The rows of the first matrix, ROWS of them side by side, with zeros where there are none.
    let mut packed = vec![[[0_i16; 2]; ROWS]; pairs * rows.div_ceil(ROWS)];
    for row in 0..rows {
        let tile = &mut packed[row / ROWS * pairs..][..pairs];
        for at in 0..inner {
            // SAFETY: the caller's promise.
            tile[at / 2][row % ROWS][at % 2] = unsafe { *lhs.first.add(row * lhs.row + at * lhs.column) }.widen();
        }
    }
    let mut panel: Vec<Pairs> = vec![[[0; 2]; COLUMNS]; pairs];
    for first in (0..columns).step_by(COLUMNS) {
        let width = COLUMNS.min(columns - first);
        for at in 0..inner {
            let to = &mut panel[at / 2];
            for (column, to) in to[..width].iter_mut().enumerate() {
                // SAFETY: the caller's promise.
                to[at % 2] = unsafe { *rhs.first.add(at * rhs.row + (first + column) * rhs.column) }.widen();
            }
        }
        for (number, tile) in packed.chunks_exact(pairs.max(1)).enumerate() {
            let mut sums: Tile = [[0; COLUMNS]; ROWS];
            // SAFETY: the caller's promise.
            unsafe { accumulate(tile, &panel, &mut sums) };
            for (row, sums) in (number * ROWS..rows).zip(&sums) {
                for (column, sum) in sums[..width].iter().enumerate() {
                    // SAFETY: the caller's promise.
                    unsafe { *out.first.add(row * out.row + (first + column) * out.column) = *sum };
                }
            }
        }
    }
}

/// Computes a tile: the sums over all pairs of a row of each of the first matrix and the panel's columns.
type Accumulate = unsafe fn(&[[[i16; 2]; ROWS]], &[Pairs], &mut Tile);

/// The fastest function that this processor can execute.
fn best() -> Accumulate {
    if is_x86_feature_detected!("avx512bw") {
        accumulate_avx512
    } else if is_x86_feature_detected!("avx2") {
        accumulate_avx2
    } else {
        accumulate
    }
}

/// By loops, for any processor.
fn accumulate(lhs: &[[[i16; 2]; ROWS]], panel: &[Pairs], sums: &mut Tile) {
    for (lhs, panel) in lhs.iter().zip(panel) {
        for (&[a, b], sums) in lhs.iter().zip(&mut *sums) {
            for (&[c, d], sum) in panel.iter().zip(sums) {
                let (first, second) = (i32::from(a) * i32::from(c), i32::from(b) * i32::from(d));
                *sum = sum.wrapping_add(first).wrapping_add(second);
            }
        }
    }
}

macro_rules! accumulate {
    ($name:ident, $feature:literal, $registers:literal of $register:ty, $zero:ident, $load:ident, $all:ident, $multiply:ident, $add:ident, $store:ident) => {
        /// The same, in registers.
        #[target_feature(enable = $feature)]
        fn $name(lhs: &[[[i16; 2]; ROWS]], panel: &[Pairs], sums: &mut Tile) {
            let mut tile = [[$zero(); $registers]; ROWS];
            for (lhs, panel) in lhs.iter().zip(panel) {
                let mut columns = [$zero(); $registers];
                for (at, column) in columns.iter_mut().enumerate() {
                    // SAFETY: a row of the panel has as many bytes as these registers. Loads need no alignment.
                    *column = unsafe { $load(panel.as_ptr().cast::<$register>().add(at)) };
                }
                for (&[a, b], row) in lhs.iter().zip(&mut tile) {
                    let pair = $all(i32::from(b) << 16 | i32::from(a.cast_unsigned()));
                    for (sum, column) in row.iter_mut().zip(columns) {
                        *sum = $add(*sum, $multiply(pair, column));
                    }
                }
            }
            for (row, sums) in tile.into_iter().zip(sums) {
                for (at, sum) in row.into_iter().enumerate() {
                    // SAFETY: a row of the tile has as many bytes as these registers.
                    unsafe { $store(sums.as_mut_ptr().cast::<$register>().add(at), sum) };
                }
            }
        }
    };
}

accumulate!(
    accumulate_avx512, "avx512f,avx512bw", 2 of __m512i, _mm512_setzero_si512, _mm512_loadu_si512, _mm512_set1_epi32, _mm512_madd_epi16,
    _mm512_add_epi32, _mm512_storeu_si512
);
accumulate!(
    accumulate_avx2, "avx2", 4 of __m256i, _mm256_setzero_si256, _mm256_loadu_si256, _mm256_set1_epi32, _mm256_madd_epi16,
    _mm256_add_epi32, _mm256_storeu_si256
);

#[cfg(test)]
mod tests {
    use super::*;

    /// Every function that this processor can execute, on matrices whose sizes fill no tile, and on those that do.
    fn agrees<T: Narrow + Into<i64>>(numbers: &[T]) {
        let mut functions: Vec<Accumulate> = vec![accumulate, best()];
        if is_x86_feature_detected!("avx2") {
            functions.push(accumulate_avx2);
        }
        for (rows, columns, inner) in [(1, 1, 1), (4, 32, 2), (5, 33, 7), (9, 70, 64), (3, 2, 0)] {
            let at = |count: usize, step: usize| (0..count).map(|at| numbers[at * step % numbers.len()]).collect();
            let (a, b): (Vec<T>, Vec<T>) = (at(rows * inner, 7), at(inner * columns, 5));
            for (function, by_rows) in functions.iter().flat_map(|function| [(function, true), (function, false)]) {
                let strides = |rows: usize, columns: usize| if by_rows { (columns, 1) } else { (1, rows) };
                let (l, r, o) = (strides(rows, inner), strides(inner, columns), strides(rows, columns));
                let mut sums = vec![0; rows * columns];
                let lhs = Matrix { first: a.as_ptr(), row: l.0, column: l.1 };
                let rhs = Matrix { first: b.as_ptr(), row: r.0, column: r.1 };
                let out = Matrix { first: sums.as_mut_ptr(), row: o.0, column: o.1 };
                // SAFETY: the matrices have these sizes, and the processor has the instructions.
                unsafe { multiply_by(*function, Sizes { rows, columns, inner }, &lhs, &rhs, &out) };
                for (row, column) in (0..rows * columns).map(|at| (at / columns, at % columns)) {
                    let product = |k: usize| a[row * l.0 + k * l.1].into() * b[k * r.0 + column * r.1].into();
                    let sum: i64 = (0..inner).map(product).sum();
                    // Sums of 16-bit numbers are right in their lower 16 bits.
                    let mask = if size_of::<T>() == 1 { i64::from(u32::MAX) } else { i64::from(u16::MAX) };
                    let ours = i64::from(sums[row * o.0 + column * o.1]);
                    assert_eq!(ours & mask, sum & mask, "{rows} {columns} {inner}, ({row}, {column})");
                }
            }
        }
    }

    #[test]
    fn products_are_exact_modulo_their_width() {
        agrees(&[i8::MIN, -1, i8::MAX, 77, i8::MIN, 3, -100]);
        agrees(&[u8::MAX, 0, 200, u8::MAX, 13]);
        agrees(&[i16::MIN, i16::MIN, i16::MAX, -3, 1000]);
        agrees(&[u16::MAX, u16::MAX, 1, 40_000]);
    }
}
