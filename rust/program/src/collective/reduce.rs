//! Reductions of elements.

#![allow(unsafe_code, reason = "elements are read and written by address")]

use half::{bf16, f16};

use super::Reduction;
use purlin_array::DType;

/// Elements that are reduced at a time, so that they stay in the cache.
const BLOCK: usize = 512;

/// Whether elements of that type can be reduced so.
pub(super) fn is_known(reduction: Reduction, dtype: DType) -> bool {
    use DType::{BF16, C64, C128, F16, F32, F64, Pred, S8, S16, S32, S64, U8, U16, U32, U64};
    match dtype {
        Pred | S8 | S16 | S32 | S64 | U8 | U16 | U32 | U64 => true,
        F16 | BF16 | F32 | F64 => !matches!(reduction, Reduction::And | Reduction::Or),
        C64 | C128 => matches!(reduction, Reduction::Sum | Reduction::Product),
        _ => false,
    }
}

/// Reduces `count` elements of each of `from`, in their order, into each of `to`.
///
/// # Safety
/// [`is_known`]. Each address is valid for `count` elements, for reads or for writes. An address of `to` may be one of
/// `from`; else they share no bytes.
pub(super) unsafe fn reduce(reduction: Reduction, dtype: DType, from: &[*const u8], to: &[*mut u8], count: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match dtype {
            DType::Pred => of::<Pred>(reduction, from, to, count),
            DType::S8 => of::<i8>(reduction, from, to, count),
            DType::S16 => of::<i16>(reduction, from, to, count),
            DType::S32 => of::<i32>(reduction, from, to, count),
            DType::S64 => of::<i64>(reduction, from, to, count),
            DType::U8 => of::<u8>(reduction, from, to, count),
            DType::U16 => of::<u16>(reduction, from, to, count),
            DType::U32 => of::<u32>(reduction, from, to, count),
            DType::U64 => of::<u64>(reduction, from, to, count),
            DType::F16 => of::<f16>(reduction, from, to, count),
            DType::BF16 => of::<bf16>(reduction, from, to, count),
            DType::F32 => of::<f32>(reduction, from, to, count),
            DType::F64 => of::<f64>(reduction, from, to, count),
            DType::C64 => of::<Complex<f32>>(reduction, from, to, count),
            DType::C128 => of::<Complex<f64>>(reduction, from, to, count),
            other => unreachable!("validation refuses reductions of {}", other.name()),
        }
    }
}

/// # Safety
/// As [`reduce`], for elements of `T`.
unsafe fn of<T: Element>(reduction: Reduction, from: &[*const u8], to: &[*mut u8], count: usize) {
    let neutral = T::neutral(reduction);
    for start in (0..count).step_by(BLOCK) {
        let length = BLOCK.min(count - start);
        let mut sums = [neutral; BLOCK];
        for from in from {
            let from = from.cast::<T>().wrapping_add(start);
            for (at, sum) in sums[..length].iter_mut().enumerate() {
                // SAFETY: the caller's promise.
                *sum = sum.combined(unsafe { from.add(at).read_unaligned() }, reduction);
            }
        }
        for to in to {
            // SAFETY: as above. All elements of this block have been read, so an address may be in both lists.
            unsafe {
                let to = to.cast::<T>().wrapping_add(start);
                std::ptr::copy_nonoverlapping(sums.as_ptr().cast::<u8>(), to.cast::<u8>(), length * size_of::<T>());
            }
        }
    }
}

/// An element that can be reduced.
trait Element: Copy {
    /// The element that changes no other one.
    fn neutral(reduction: Reduction) -> Self;

    fn combined(self, other: Self, reduction: Reduction) -> Self;
}

/// One byte, 0 or not.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Pred(u8);

impl Element for Pred {
    fn neutral(reduction: Reduction) -> Self {
        Self(u8::from(matches!(reduction, Reduction::Product | Reduction::Min | Reduction::And)))
    }

    fn combined(self, other: Self, reduction: Reduction) -> Self {
        let (a, b) = (self.0 != 0, other.0 != 0);
        Self(u8::from(match reduction {
            Reduction::Sum | Reduction::Max | Reduction::Or => a | b,
            Reduction::Product | Reduction::Min | Reduction::And => a & b,
        }))
    }
}

macro_rules! integers {
    ($($name:ty)*) => { $(
        impl Element for $name {
            fn neutral(reduction: Reduction) -> Self {
                match reduction {
                    Reduction::Sum | Reduction::Or => 0,
                    Reduction::Product => 1,
                    Reduction::Min => Self::MAX,
                    Reduction::Max => Self::MIN,
                    Reduction::And => !0,
                }
            }

            fn combined(self, other: Self, reduction: Reduction) -> Self {
                match reduction {
                    Reduction::Sum => self.wrapping_add(other),
                    Reduction::Product => self.wrapping_mul(other),
                    Reduction::Min => self.min(other),
                    Reduction::Max => self.max(other),
                    Reduction::And => self & other,
                    Reduction::Or => self | other,
                }
            }
        }
    )* };
}

integers! { i8 i16 i32 i64 u8 u16 u32 u64 }

macro_rules! floats {
    ($($name:ty: $zero:expr, $one:expr;)*) => { $(
        impl Element for $name {
            fn neutral(reduction: Reduction) -> Self {
                match reduction {
                    Reduction::Sum => $zero,
                    Reduction::Product => $one,
                    Reduction::Min => Self::INFINITY,
                    Reduction::Max => Self::NEG_INFINITY,
                    Reduction::And | Reduction::Or => unreachable!("validation refuses them"),
                }
            }

            fn combined(self, other: Self, reduction: Reduction) -> Self {
                match reduction {
                    Reduction::Sum => self + other,
                    Reduction::Product => self * other,
                    // As std::min and std::max of C++, which XLA calls.
                    Reduction::Min => if other < self { other } else { self },
                    Reduction::Max => if self < other { other } else { self },
                    Reduction::And | Reduction::Or => unreachable!("validation refuses them"),
                }
            }
        }
    )* };
}

floats! {
    f16: Self::ZERO, Self::ONE;
    bf16: Self::ZERO, Self::ONE;
    f32: 0.0, 1.0;
    f64: 0.0, 1.0;
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Complex<T> {
    real: T,
    imaginary: T,
}

macro_rules! complexes {
    ($($name:ty)*) => { $(
        impl Element for Complex<$name> {
            fn neutral(reduction: Reduction) -> Self {
                Self { real: if reduction == Reduction::Product { 1.0 } else { 0.0 }, imaginary: 0.0 }
            }

            fn combined(self, other: Self, reduction: Reduction) -> Self {
                let (Self { real: a, imaginary: b }, Self { real: c, imaginary: d }) = (self, other);
                match reduction {
                    Reduction::Sum => Self { real: a + c, imaginary: b + d },
                    Reduction::Product => Self { real: a * c - b * d, imaginary: a * d + b * c },
                    _ => unreachable!("validation refuses them"),
                }
            }
        }
    )* };
}

complexes! { f32 f64 }

#[cfg(test)]
mod tests {
    use super::*;

    /// The reduction of the elements, each of a member of its own.
    fn reduced<T: Copy + Default>(reduction: Reduction, dtype: DType, elements: &[T]) -> T {
        assert!(is_known(reduction, dtype));
        let mut to = T::default();
        let from: Vec<*const u8> = elements.iter().map(|element| std::ptr::from_ref(element).cast()).collect();
        // SAFETY: each address is that of one element.
        unsafe { reduce(reduction, dtype, &from, &[(&raw mut to).cast()], 1) };
        to
    }

    #[test]
    fn integers_are_combined() {
        use Reduction::{And, Max, Min, Or, Product, Sum};
        for (reduction, expected) in [(Sum, 9), (Product, 24), (Min, 2), (Max, 4), (And, 0), (Or, 7)] {
            assert_eq!(reduced(reduction, DType::S32, &[2, 3, 4]), expected, "{reduction:?}");
            assert_eq!(reduced(reduction, DType::U8, &[2_u8, 3, 4]), expected as u8, "{reduction:?}");
        }
        assert_eq!(reduced(Sum, DType::S8, &[127_i8, 1]), -128, "it wraps around");
        assert_eq!((reduced(Min, DType::S64, &[-5_i64, 3]), reduced(Max, DType::U16, &[5_u16, 3])), (-5, 5));
    }

    #[test]
    fn truth_is_combined() {
        use Reduction::{And, Max, Min, Or, Product, Sum};
        for (reduction, expected) in [(Sum, 1), (Product, 0), (Min, 0), (Max, 1), (And, 0), (Or, 1)] {
            assert_eq!(reduced(reduction, DType::Pred, &[1_u8, 0, 1]), expected, "{reduction:?}");
        }
        assert_eq!((reduced(And, DType::Pred, &[1_u8]), reduced(Or, DType::Pred, &[0_u8])), (1, 0));
    }

    #[test]
    fn floating_point_numbers_are_combined() {
        use Reduction::{Max, Min, Product, Sum};
        for (reduction, expected) in [(Sum, 4.5), (Product, -12.0), (Min, -1.5), (Max, 4.0)] {
            let numbers = [2.0_f32, -1.5, 4.0];
            assert_eq!(reduced(reduction, DType::F32, &numbers), expected, "{reduction:?}");
            assert_eq!(reduced(reduction, DType::F16, &numbers.map(f16::from_f32)).to_f32(), expected, "{reduction:?}");
            assert_eq!(reduced(reduction, DType::F64, &numbers.map(f64::from)), expected.into(), "{reduction:?}");
        }
        assert_eq!(reduced(Min, DType::F32, &[f32::NAN, 1.0]), 1.0, "NaN is passed over");
        assert_eq!(reduced(Sum, DType::F32, &[-0.0_f32]).to_bits(), 0, "the sum begins with zero");
        // 256 has no successor in bf16 before 258.
        let numbers = [256.0, 1.0, 1.0].map(bf16::from_f32);
        assert_eq!(reduced(Sum, DType::BF16, &numbers).to_f32(), 256.0, "each step is rounded");
    }

    #[test]
    fn complex_numbers_are_combined() {
        let numbers = [[1.0_f32, 2.0], [3.0, -1.0]];
        assert_eq!(reduced(Reduction::Sum, DType::C64, &numbers), [4.0, 1.0]);
        assert_eq!(reduced(Reduction::Product, DType::C64, &numbers), [5.0, 5.0]);
        let numbers = [[1.0_f64, 2.0], [3.0, -1.0]];
        assert_eq!(reduced(Reduction::Product, DType::C128, &numbers), [5.0, 5.0]);
    }

    #[test]
    fn long_arrays_are_reduced_in_place() {
        let mut first: Vec<u32> = (0..3 * BLOCK as u32 + 7).collect();
        let mut second = first.clone();
        let addresses = [first.as_mut_ptr().cast::<u8>(), second.as_mut_ptr().cast()];
        let from = addresses.map(<*mut u8>::cast_const);
        // SAFETY: both have as many elements, and an address of the one list is that of the other.
        unsafe { reduce(Reduction::Sum, DType::U32, &from, &addresses, first.len()) };
        assert!(first.iter().enumerate().all(|(at, &sum)| sum == 2 * at as u32) && first == second);
    }
}
