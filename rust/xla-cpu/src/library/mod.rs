//! What XLA's executables leave to a library: sorts, matrix products, convolutions, transforms.
//!
//! Each is a [`LibraryCall`](purlin_program::LibraryCall) that was checked against the shapes when it was made, so that
//! a run indexes without asking. An operand's bytes are as many as its shape has, at a multiple of its elements' width:
//! `module/steps.rs` sees to both. Inputs and outputs have no byte in common: the program's validation holds commands
//! to their invariant operands.

mod convolution;
mod dot;
mod elements;
mod fft;
mod gemm;
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
