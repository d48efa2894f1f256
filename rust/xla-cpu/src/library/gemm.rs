//! Products of matrices that are given by addresses and strides.

#![allow(unsafe_code, reason = "matrices are addresses and strides")]

use std::ops::{Add, Mul};
use std::slice;

use ::gemm::Parallelism;
use num_complex::Complex;

use super::elements::Plain;
use super::integers;

/// What crate `gemm` computes at once, at most: elements of the result along its contiguous dimension, and across it.
/// A part that is no multiple of it takes up to three times as long. These are those of f32 with AVX-512, 64 by 6;
/// other instructions have divisors of them.
pub(super) const TILE: (usize, usize) = (64, 12);

/// The rows and columns of the product, and the length of the sums.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) inner: usize,
}

/// A matrix: its first element, and the strides to the next row and to the next column, in elements.
#[derive(Debug)]
pub(super) struct Matrix<P> {
    pub(super) first: P,
    pub(super) row: usize,
    pub(super) column: usize,
}

/// Elements that can be multiplied and added up.
pub(super) trait Product: Plain {
    /// The type of sums.
    type Sum: Plain;
    /// The value that sums begin with.
    const ZERO: Self::Sum;

    /// Writes the product of `lhs` and `rhs` to `out`.
    ///
    /// # Safety
    /// All elements of `lhs` and `rhs` are valid for reads, and those of `out` for writes. `out` shares no element with
    /// the others.
    unsafe fn multiply(sizes: Sizes, lhs: Matrix<*const Self>, rhs: Matrix<*const Self>, out: Matrix<*mut Self::Sum>);
}

/// Products of at most so many scalar ones are computed by [`small`]: crate `gemm` takes 300 ns to begin.
const SMALL: usize = 1 << 10;

/// A product of row-major matrices.
///
/// # Safety
/// As [`Product::multiply`].
unsafe fn small<T>(sizes: Sizes, lhs: Matrix<*const T>, rhs: Matrix<*const T>, out: Matrix<*mut T>, zero: T)
where
    T: Copy + Add<Output = T> + Mul<Output = T>,
{
    /// Columns `[begin, begin + W)` of all rows.
    #[inline(always)]
    unsafe fn columns<T, const W: usize>(
        sizes: Sizes,
        [lhs, rhs]: [&Matrix<*const T>; 2],
        out: &Matrix<*mut T>,
        zero: T,
        begin: usize,
    ) where
        T: Copy + Add<Output = T> + Mul<Output = T>,
    {
        for row in 0..sizes.rows {
            let mut sums = [zero; W];
            for at in 0..sizes.inner {
                // SAFETY: the caller's promise.
                let (factor, factors) = unsafe {
                    let factors = rhs.first.add(at * rhs.row + begin).cast::<[T; W]>();
                    (*lhs.first.add(row * lhs.row + at * lhs.column), *factors)
                };
                sums.iter_mut().zip(factors).for_each(|(sum, other)| *sum = *sum + factor * other);
            }
            // SAFETY: as above.
            unsafe { *out.first.add(row * out.row + begin).cast::<[T; W]>() = sums };
        }
    }
    pulp::Arch::new().dispatch(|| {
        let mut begin = 0;
        // SAFETY: the caller's promise, for these columns.
        unsafe {
            while begin + 8 <= sizes.columns {
                columns::<T, 8>(sizes, [&lhs, &rhs], &out, zero, begin);
                begin += 8;
            }
            while begin < sizes.columns {
                columns::<T, 1>(sizes, [&lhs, &rhs], &out, zero, begin);
                begin += 1;
            }
        }
    });
}

/// Matrices with fewer rows or columns than these are multiplied as they are.
const FEW: usize = 24;

/// Copies a matrix of `height` rows of `width` elements each, that follow each other in memory, so that its columns
/// follow each other. Answers where the copy begins, in `turned`.
///
/// Crate `gemm` wants the elements of one side in the order of the result's contiguous dimension, and copies them if
/// they are not. Where its reads are `width` elements apart, that takes 0.4 ns an element, and 1.6 if `width` is a
/// power of two; this takes 0.15 and 0.26 (Zen 5, f32).
///
/// # Safety
/// `width * height` elements are valid for reads.
unsafe fn turn<T: Copy>(first: *const T, height: usize, width: usize, zero: T, turned: &mut Vec<T>) -> *const T {
    turned.resize(width * height, zero);
    // SAFETY: the caller's promise.
    transpose::transpose(unsafe { slice::from_raw_parts(first, width * height) }, turned, width, height);
    turned.as_ptr()
}

macro_rules! by_gemm {
    ($($name:ty: $zero:expr, $one:expr;)*) => { $(
        impl Product for $name {
            type Sum = Self;
            const ZERO: Self = $zero;

            unsafe fn multiply(sizes: Sizes, lhs: Matrix<*const Self>, rhs: Matrix<*const Self>, out: Matrix<*mut Self>) {
                let Sizes { rows, columns, inner } = sizes;
                let (mut lhs, mut rhs, mut turned) = (lhs, rhs, Vec::new());
                if rows.saturating_mul(columns).saturating_mul(inner) <= SMALL && (rhs.column, out.column) == (1, 1) {
                    // SAFETY: the caller's promise.
                    return unsafe { small(sizes, lhs, rhs, out, $zero) };
                }
                let is_worth_it = rows.min(columns) >= FEW;
                // SAFETY: the caller's promise: these are all elements of that matrix.
                unsafe {
                    if is_worth_it && out.column == 1 && (rhs.row, rhs.column) == (1, inner) {
                        let first = turn(rhs.first, columns, inner, $zero, &mut turned);
                        rhs = Matrix { first, row: columns, column: 1 };
                    } else if is_worth_it && out.row == 1 && (lhs.column, lhs.row) == (1, inner) {
                        let first = turn(lhs.first, rows, inner, $zero, &mut turned);
                        lhs = Matrix { first, row: 1, column: rows };
                    }
                }
                // SAFETY: as above. The strides fit an isize, because the elements are in memory.
                unsafe {
                    ::gemm::gemm(
                        rows, columns, inner,
                        out.first, out.column as isize, out.row as isize, false,
                        lhs.first, lhs.column as isize, lhs.row as isize,
                        rhs.first, rhs.column as isize, rhs.row as isize,
                        $zero, $one, false, false, false, Parallelism::None,
                    );
                }
            }
        }
    )* };
}

by_gemm! {
    f32: 0.0, 1.0;
    f64: 0.0, 1.0;
    Complex<f32>: Complex::new(0.0, 0.0), Complex::new(1.0, 0.0);
    Complex<f64>: Complex::new(0.0, 0.0), Complex::new(1.0, 0.0);
}

macro_rules! by_loops {
    ($($name:ty)*) => { $(
        impl Product for $name {
            type Sum = Self;
            const ZERO: Self = 0;

            unsafe fn multiply(sizes: Sizes, lhs: Matrix<*const Self>, rhs: Matrix<*const Self>, out: Matrix<*mut Self>) {
                for row in 0..sizes.rows {
                    for column in 0..sizes.columns {
                        let mut sum: Self = 0;
                        for at in 0..sizes.inner {
                            // SAFETY: the caller's promise.
                            let (a, b) = unsafe {
                                let left = lhs.first.add(row * lhs.row + at * lhs.column);
                                (*left, *rhs.first.add(at * rhs.row + column * rhs.column))
                            };
                            sum = sum.wrapping_add(a.wrapping_mul(b));
                        }
                        // SAFETY: as above.
                        unsafe { *out.first.add(row * out.row + column * out.column) = sum };
                    }
                }
            }
        }
    )* };
}

by_loops! { u32 i32 u64 i64 }

macro_rules! by_pairs {
    ($($name:ty)*) => { $(
        /// Sums have 32 bits. Those of 16-bit numbers are right in their lower 16 bits.
        impl Product for $name {
            type Sum = i32;
            const ZERO: i32 = 0;

            unsafe fn multiply(sizes: Sizes, lhs: Matrix<*const Self>, rhs: Matrix<*const Self>, out: Matrix<*mut i32>) {
                // SAFETY: the caller's promise.
                unsafe { integers::multiply(sizes, &lhs, &rhs, &out) }
            }
        }
    )* };
}

by_pairs! { u8 i8 u16 i16 }

/// An address that several threads share, each for elements of its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shared<P>(pub(super) P);

// SAFETY: it is only an address. Code that accesses memory through it vouches for each access.
unsafe impl<P> Send for Shared<P> {}
// SAFETY: as above.
unsafe impl<P> Sync for Shared<P> {}

impl<P: Copy> Shared<P> {
    /// The address. It is a method, so that closures capture the whole value, and not the field alone.
    pub(super) fn get(&self) -> P {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use super::*;

    /// Products of all orders of rows and columns, against sums of one product each.
    fn products_are_sums<T>(value: impl Fn(usize) -> T)
    where
        T: Product<Sum = T> + Copy + Debug + PartialEq + Add<Output = T> + Mul<Output = T>,
    {
        for (rows, columns, inner) in [(1, 1, 1), (3, 5, 2), (17, 4, 33), (1, 40, 7), (40, 1, 7), (64, 48, 100)] {
            let lhs: Vec<T> = (0..rows * inner).map(&value).collect();
            let rhs: Vec<T> = (0..inner * columns).map(|at| value(at + 5)).collect();
            for orders in 0..8 {
                // The strides of an array whose rows are next to each other, or its columns.
                let strides = |which: usize, rows: usize, columns: usize| {
                    if orders >> which & 1 == 0 { (columns, 1) } else { (1, rows) }
                };
                let (l, r, o) = (strides(0, rows, inner), strides(1, inner, columns), strides(2, rows, columns));
                let mut out = vec![value(1); rows * columns];
                let matrix = |first, (row, column)| Matrix { first, row, column };
                let sizes = Sizes { rows, columns, inner };
                // SAFETY: the arrays have as many elements as the sizes and strides say.
                unsafe {
                    let to = Matrix { first: out.as_mut_ptr(), row: o.0, column: o.1 };
                    T::multiply(sizes, matrix(lhs.as_ptr(), l), matrix(rhs.as_ptr(), r), to);
                }
                for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
                    let expected = (0..inner)
                        .fold(T::ZERO, |sum, at| sum + lhs[row * l.0 + at * l.1] * rhs[at * r.0 + column * r.1]);
                    let found = out[row * o.0 + column * o.1];
                    assert!(found == expected, "{sizes:?}, orders {orders}: {found:?}, not {expected:?}");
                }
            }
        }
    }

    /// Small whole numbers, so that all sums are exact.
    fn whole(at: usize) -> f32 {
        (at * 7 % 11) as f32 - 5.0
    }

    #[test]
    fn products_of_real_numbers_are_sums() {
        products_are_sums(whole);
        products_are_sums(|at| f64::from(whole(at)));
    }

    #[test]
    fn products_of_complex_numbers_are_sums() {
        products_are_sums(|at| Complex::new(whole(at), whole(at + 3)));
        let wide = |at| Complex::new(f64::from(whole(at)), f64::from(whole(at + 3)));
        products_are_sums(wide);
    }
}
