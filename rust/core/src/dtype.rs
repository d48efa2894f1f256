//! Element types of typed buffers: PJRT's numbers, XLA's names.
//!
//! Types narrower than a byte and the f8 family are not here yet. The numbers cross the boundary
//! (`include/purlin/dtype.h`), so they never change.

use std::fmt;

/// What the elements of a buffer are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum DType {
    /// One byte, 0 or 1.
    Pred = 1,
    /// Signed, 1 byte.
    S8 = 2,
    /// Signed, 2 bytes.
    S16 = 3,
    /// Signed, 4 bytes.
    S32 = 4,
    /// Signed, 8 bytes.
    S64 = 5,
    /// Unsigned, 1 byte.
    U8 = 6,
    /// Unsigned, 2 bytes.
    U16 = 7,
    /// Unsigned, 4 bytes.
    U32 = 8,
    /// Unsigned, 8 bytes.
    U64 = 9,
    /// IEEE 754 binary16.
    F16 = 10,
    /// IEEE 754 binary32.
    F32 = 11,
    /// IEEE 754 binary64.
    F64 = 12,
    /// The upper half of a binary32.
    BF16 = 13,
    /// Two f32, real part first.
    C64 = 14,
    /// Two f64, real part first.
    C128 = 15,
}

/// Type, bytes per element, name; the type with number `n` stands at index `n - 1`.
const TYPES: [(DType, usize, &str); 15] = [
    (DType::Pred, 1, "pred"),
    (DType::S8, 1, "s8"),
    (DType::S16, 2, "s16"),
    (DType::S32, 4, "s32"),
    (DType::S64, 8, "s64"),
    (DType::U8, 1, "u8"),
    (DType::U16, 2, "u16"),
    (DType::U32, 4, "u32"),
    (DType::U64, 8, "u64"),
    (DType::F16, 2, "f16"),
    (DType::F32, 4, "f32"),
    (DType::F64, 8, "f64"),
    (DType::BF16, 2, "bf16"),
    (DType::C64, 8, "c64"),
    (DType::C128, 16, "c128"),
];

impl DType {
    /// The type of that number; `None` for 0 (PJRT's "invalid") and for numbers that are no type.
    #[must_use]
    pub const fn from_raw(raw: u8) -> Option<Self> {
        if raw >= 1 && (raw as usize) <= TYPES.len() { Some(TYPES[raw as usize - 1].0) } else { None }
    }

    /// Bytes per element, 1..=16.
    #[must_use]
    pub const fn byte_width(self) -> usize {
        TYPES[self as usize - 1].1
    }

    /// XLA's lower-case name, such as `"f32"`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        TYPES[self as usize - 1].2
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A Rust type whose values are the elements of a [`DType`]: every bit pattern is a value, and there is no padding.
///
/// `bool` is not one of them, because the bytes of a `pred` buffer may be others than 0 and 1.
pub trait Element: Copy + Default + Send + Sync + 'static + sealed::Sealed {
    /// The type of the elements.
    const DTYPE: DType;
}

mod sealed {
    /// Keeps [`Element`](super::Element) to the types of this file, on which unsafe code relies.
    pub trait Sealed {}
}

macro_rules! elements {
    ($($rust:ty => $dtype:ident),* $(,)?) => {
        $(
            impl sealed::Sealed for $rust {}
            impl Element for $rust {
                const DTYPE: DType = DType::$dtype;
            }
            const _: () = assert!(size_of::<$rust>() == DType::$dtype.byte_width(), "an element is as wide as its type");
        )*
    };
}

elements! {
    i8 => S8, i16 => S16, i32 => S32, i64 => S64,
    u8 => U8, u16 => U16, u32 => U32, u64 => U64,
    f32 => F32, f64 => F64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_pjrt() {
        for (index, (dtype, _, _)) in TYPES.iter().enumerate() {
            assert_eq!(*dtype as usize, index + 1);
            assert_eq!(DType::from_raw(*dtype as u8), Some(*dtype));
        }
        assert_eq!((DType::F32 as u8, DType::BF16 as u8, DType::C128 as u8), (11, 13, 15));
    }

    #[test]
    fn other_numbers_are_no_type() {
        assert_eq!(DType::from_raw(0), None);
        assert_eq!(DType::from_raw(16), None);
        assert_eq!(DType::from_raw(u8::MAX), None);
    }

    #[test]
    fn a_name_tells_the_width() {
        for (dtype, width, name) in TYPES {
            let digits = name.trim_start_matches(|c: char| c.is_ascii_alphabetic());
            let bits = if digits.is_empty() { 8 } else { digits.parse::<usize>().unwrap() };
            assert_eq!(dtype.byte_width(), width);
            assert_eq!(width * 8, bits, "{dtype}");
        }
    }
}
