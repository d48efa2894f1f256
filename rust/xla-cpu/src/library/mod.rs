//! The library calls of XLA's executables: sorts, matrix products, convolutions, transforms.
//!
//! Each is a [`LibraryCall`](purlin_program::LibraryCall). Its constructor checks the shapes, and returns the reason if
//! they are not supported, so that a run needs no checks. An operand has the size of its shape, and its offset is a
//! multiple of its elements' width: `module/steps.rs` checks both. Inputs and outputs share no byte: their operands are
//! invariant, which the program's validation enforces. A call runs on the thread of its run; the large ones also use
//! the client's threads.

mod convolution;
mod dot;
mod elements;
mod fft;
mod gemm;
mod integers;
mod rng;
mod sort;
#[cfg(test)]
mod tests;
mod top_k;
mod transpose;

pub(crate) use self::convolution::Convolution;
pub(crate) use self::dot::Dot;
pub(crate) use self::fft::Fft;
pub(crate) use self::rng::RngState;
pub(crate) use self::sort::{Comparator, Sort, SortArrays};
pub(crate) use self::top_k::TopK;
pub(crate) use self::transpose::Transpose;
