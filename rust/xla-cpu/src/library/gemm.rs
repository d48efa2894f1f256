//! Products of matrices that are given by addresses and strides.

#![allow(unsafe_code, reason = "matrices are addresses and strides")]

use ::gemm::Parallelism;
use num_complex::Complex;

use super::elements::Plain;
use super::integers;

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

macro_rules! by_gemm {
    ($($name:ty: $zero:expr, $one:expr;)*) => { $(
        impl Product for $name {
            type Sum = Self;
            const ZERO: Self = $zero;

            unsafe fn multiply(sizes: Sizes, lhs: Matrix<*const Self>, rhs: Matrix<*const Self>, out: Matrix<*mut Self>) {
                let Sizes { rows, columns, inner } = sizes;
                // SAFETY: the caller's promise. The strides fit an isize, because the elements are in memory.
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
