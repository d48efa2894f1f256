//! Element types of typed buffers: PJRT's numbers, XLA's names.
//!
//! An element has two widths. On a device, arrays are packed: an `s4` takes 4 bits ([`DType::bits`]). In the memory of
//! the host, every element has bytes of its own: an `s4` is the low half of one byte ([`DType::host_byte_width`]). For
//! types of whole bytes the two are one, [`DType::byte_width`]. A `token` has no width at all: it orders, and carries
//! nothing.
//!
//! The numbers cross the boundary (`include/purlin/dtype.h`), so they never change.

use std::fmt;

/// What the elements of a buffer are.
///
/// ```
/// use purlin::DType;
///
/// assert_eq!((DType::BF16.name(), DType::BF16.bits(), DType::BF16.byte_width()), ("bf16", 16, 2));
/// assert!(DType::S4.is_sub_byte());
/// assert_eq!((DType::S4.bits(), DType::S4.host_byte_width()), (4, 1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
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
    /// 8 bits: 5 of exponent, 2 of mantissa, as in IEEE 754.
    F8E5M2 = 16,
    /// 8 bits: 4 of exponent, 3 of mantissa; finite values and NaN only.
    F8E4M3FN = 17,
    /// As `F8E4M3FN`, with bias 11 and without a negative zero.
    F8E4M3B11FNUZ = 18,
    /// As `F8E5M2`, finite values and NaN only, without a negative zero.
    F8E5M2FNUZ = 19,
    /// As `F8E4M3FN`, without a negative zero.
    F8E4M3FNUZ = 20,
    /// Signed, 4 bits.
    S4 = 21,
    /// Unsigned, 4 bits.
    U4 = 22,
    /// No value: what is passed on to say that something happened before.
    Token = 23,
    /// Signed, 2 bits.
    S2 = 24,
    /// Unsigned, 2 bits.
    U2 = 25,
    /// 8 bits: 4 of exponent, 3 of mantissa, as in IEEE 754.
    F8E4M3 = 26,
    /// 8 bits: 3 of exponent, 4 of mantissa, as in IEEE 754.
    F8E3M4 = 27,
    /// 8 bits of exponent: a power of two, or NaN.
    F8E8M0FNU = 28,
    /// 4 bits: 2 of exponent, 1 of mantissa; finite values only.
    F4E2M1FN = 29,
}

/// Type, bits per element, name; the type with number `n` stands at index `n - 1`.
const TYPES: [(DType, u8, &str); 29] = [
    (DType::Pred, 8, "pred"),
    (DType::S8, 8, "s8"),
    (DType::S16, 16, "s16"),
    (DType::S32, 32, "s32"),
    (DType::S64, 64, "s64"),
    (DType::U8, 8, "u8"),
    (DType::U16, 16, "u16"),
    (DType::U32, 32, "u32"),
    (DType::U64, 64, "u64"),
    (DType::F16, 16, "f16"),
    (DType::F32, 32, "f32"),
    (DType::F64, 64, "f64"),
    (DType::BF16, 16, "bf16"),
    (DType::C64, 64, "c64"),
    (DType::C128, 128, "c128"),
    (DType::F8E5M2, 8, "f8e5m2"),
    (DType::F8E4M3FN, 8, "f8e4m3fn"),
    (DType::F8E4M3B11FNUZ, 8, "f8e4m3b11fnuz"),
    (DType::F8E5M2FNUZ, 8, "f8e5m2fnuz"),
    (DType::F8E4M3FNUZ, 8, "f8e4m3fnuz"),
    (DType::S4, 4, "s4"),
    (DType::U4, 4, "u4"),
    (DType::Token, 0, "token"),
    (DType::S2, 2, "s2"),
    (DType::U2, 2, "u2"),
    (DType::F8E4M3, 8, "f8e4m3"),
    (DType::F8E3M4, 8, "f8e3m4"),
    (DType::F8E8M0FNU, 8, "f8e8m0fnu"),
    (DType::F4E2M1FN, 4, "f4e2m1fn"),
];

impl DType {
    /// The type of that number; `None` for 0 (PJRT's "invalid") and for numbers that are no type.
    #[must_use]
    pub const fn from_raw(raw: u8) -> Option<Self> {
        if raw >= 1 && (raw as usize) <= TYPES.len() { Some(TYPES[raw as usize - 1].0) } else { None }
    }

    /// Every type, by its number.
    #[must_use]
    pub fn all() -> impl ExactSizeIterator<Item = Self> {
        TYPES.iter().map(|row| row.0)
    }

    /// Bits per element of a packed array on a device: 0 (token), 2, 4, 8 (`pred` too), 16, 32, 64 or 128.
    #[must_use]
    pub const fn bits(self) -> usize {
        TYPES[self as usize - 1].1 as usize
    }

    /// Bytes per element where elements are whole bytes, 1..=16. 0 for `token` and for types narrower than a byte: no
    /// number of bytes is right for one of their elements on a device.
    #[must_use]
    pub const fn byte_width(self) -> usize {
        self.bits() / 8
    }

    /// Bytes per element in the memory of the host, 0..=16. An element narrower than a byte is the low bits of one
    /// byte; what is read from a device has signed ones sign-extended and zeros above others.
    #[must_use]
    pub const fn host_byte_width(self) -> usize {
        self.bits().div_ceil(8)
    }

    /// Whether several elements share a byte on a device.
    #[must_use]
    pub const fn is_sub_byte(self) -> bool {
        matches!(self.bits(), 1..8)
    }

    /// Whether elements are two's complement integers.
    #[must_use]
    pub const fn is_signed_integer(self) -> bool {
        matches!(self, Self::S2 | Self::S4 | Self::S8 | Self::S16 | Self::S32 | Self::S64)
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
///
/// ```
/// use purlin::{DType, Element};
///
/// fn bytes_of<T: Element>(values: &[T]) -> usize {
///     values.len() * T::DTYPE.byte_width()
/// }
///
/// assert_eq!((i16::DTYPE, bytes_of(&[1_i16, 2])), (DType::S16, 4));
/// ```
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
        // The order of PJRT_Buffer_Type in pjrt_c_api.h, which begins with INVALID = 0.
        let pjrt = "invalid pred s8 s16 s32 s64 u8 u16 u32 u64 f16 f32 f64 bf16 c64 c128 f8e5m2 f8e4m3fn f8e4m3b11fnuz \
                    f8e5m2fnuz f8e4m3fnuz s4 u4 token s2 u2 f8e4m3 f8e3m4 f8e8m0fnu f4e2m1fn";
        let names: Vec<_> = pjrt.split_whitespace().collect();
        assert_eq!(names.len(), DType::all().len() + 1);
        for dtype in DType::all() {
            assert_eq!(names[dtype as usize], dtype.name());
            assert_eq!(DType::from_raw(dtype as u8), Some(dtype));
        }
    }

    #[test]
    fn other_numbers_are_no_type() {
        assert_eq!(DType::from_raw(0), None);
        assert_eq!(DType::from_raw(30), None);
        assert_eq!(DType::from_raw(u8::MAX), None);
    }

    #[test]
    fn a_name_tells_the_width() {
        for dtype in DType::all() {
            let digits = dtype.name().trim_start_matches(|c: char| c.is_ascii_alphabetic());
            let digits = digits.split(|c: char| !c.is_ascii_digit()).next().unwrap();
            let bits = match dtype {
                DType::Pred => 8,
                DType::Token => 0,
                _ => digits.parse::<usize>().unwrap(),
            };
            assert_eq!(dtype.bits(), bits, "{dtype}");
        }
    }

    #[test]
    fn an_element_narrower_than_a_byte_is_a_byte_on_the_host() {
        for dtype in DType::all() {
            let narrow = [DType::S2, DType::U2, DType::S4, DType::U4, DType::F4E2M1FN].contains(&dtype);
            assert_eq!(dtype.is_sub_byte(), narrow, "{dtype}");
            assert_eq!(dtype.byte_width(), if narrow { 0 } else { dtype.bits() / 8 }, "{dtype}");
            assert_eq!(dtype.host_byte_width(), if narrow { 1 } else { dtype.bits() / 8 }, "{dtype}");
        }
    }

    #[test]
    fn signed_integers_are_those_whose_name_says_so() {
        for dtype in DType::all() {
            assert_eq!(dtype.is_signed_integer(), dtype.name().starts_with('s'), "{dtype}");
        }
    }
}
