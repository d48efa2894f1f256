//! The bytes of operands, viewed as elements.

#![allow(unsafe_code, reason = "operands are memory by address")]

use half::{bf16, f16};
use num_complex::Complex;
use purlin_program::OperandBytes;

/// A type without padding, of which every bit pattern is a valid value.
pub(super) trait Plain: Copy + Send + Sync + 'static {}

macro_rules! plain {
    ($($name:ty)*) => { $(impl Plain for $name {})* };
}

plain! { u8 i8 u16 i16 u32 i32 u64 i64 u128 f16 bf16 f32 f64 Complex<f32> Complex<f64> }

/// The elements of an operand that the command reads.
///
/// # Safety
/// The operand is of a [`LibraryCall`](purlin_program::LibraryCall) that is running and reads it. It begins at a
/// multiple of `T`'s alignment.
pub(super) unsafe fn read<T: Plain>(operand: &OperandBytes) -> &[T] {
    // SAFETY: the program keeps the bytes valid for the length of the call, and nothing writes them. The caller vouches
    // for the alignment. Plain types have no invalid bit patterns.
    unsafe { std::slice::from_raw_parts(operand.address.cast(), operand.size_bytes / size_of::<T>()) }
}

/// The elements of an operand that the command writes.
///
/// # Safety
/// As [`read`], but the call writes the operand, and no other reference to these elements exists.
#[allow(clippy::mut_from_ref, reason = "an operand is an address; that it is taken once is the caller's promise")]
pub(super) unsafe fn write<T: Plain>(operand: &OperandBytes) -> &mut [T] {
    // SAFETY: as above. Validation refuses commands whose written operands overlap.
    unsafe { std::slice::from_raw_parts_mut(operand.address.cast(), operand.size_bytes / size_of::<T>()) }
}
