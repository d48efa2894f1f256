//! Numbers of attributes: from MLIR's text to bytes, by type.

use half::{bf16, f16};

/// The type of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Type {
    /// XLA's number of it.
    pub(super) dtype: i32,
    kind: Kind,
    bits: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Bool,
    /// A number of either sign, as its user takes it.
    Signless,
    Signed,
    Unsigned,
    Float,
}

impl Type {
    pub(super) const BOOL: Self = Self { dtype: 1, kind: Kind::Bool, bits: 8 };
    pub(super) const I64: Self = Self { dtype: 5, kind: Kind::Signless, bits: 64 };
    pub(super) const F64: Self = Self { dtype: 12, kind: Kind::Float, bits: 64 };

    pub(super) fn named(name: &[u8]) -> Option<Self> {
        let (dtype, kind, bits) = match name {
            b"i1" => return Some(Self::BOOL),
            b"i8" => (2, Kind::Signless, 8),
            b"i16" => (3, Kind::Signless, 16),
            b"i32" => (4, Kind::Signless, 32),
            b"i64" => return Some(Self::I64),
            b"si8" => (2, Kind::Signed, 8),
            b"si16" => (3, Kind::Signed, 16),
            b"si32" => (4, Kind::Signed, 32),
            b"si64" => (5, Kind::Signed, 64),
            b"ui8" => (6, Kind::Unsigned, 8),
            b"ui16" => (7, Kind::Unsigned, 16),
            b"ui32" => (8, Kind::Unsigned, 32),
            b"ui64" => (9, Kind::Unsigned, 64),
            b"f16" => (10, Kind::Float, 16),
            b"bf16" => (16, Kind::Float, 16),
            b"f32" => (11, Kind::Float, 32),
            b"f64" => return Some(Self::F64),
            _ => return None,
        };
        Some(Self { dtype, kind, bits })
    }

    pub(super) const fn size_bytes(self) -> usize {
        self.bits as usize / 8
    }

    /// The bytes of a number of this type, or what was expected in place of `token`.
    pub(super) fn encode(self, token: &[u8]) -> Result<Vec<u8>, &'static str> {
        let bits = match self.kind {
            Kind::Bool => match token {
                b"true" => 1,
                b"false" => 0,
                _ => return Err("true or false"),
            },
            Kind::Float => self.float(token).ok_or("a floating-point number of that type, or its bits")?,
            _ => self.integer(token).ok_or("an integer of that type")?,
        };
        Ok(bits.to_le_bytes()[..self.size_bytes()].to_vec())
    }

    fn integer(self, token: &[u8]) -> Option<u64> {
        let text = std::str::from_utf8(token).ok()?;
        let number = match hexadecimal(token) {
            Some(bits) => i128::from(bits?),
            None => text.parse::<i128>().ok().filter(|_| !text.starts_with('+'))?,
        };
        let half = 1_i128 << (self.bits - 1);
        let (least, most) = match self.kind {
            Kind::Unsigned => (0, 2 * half - 1),
            Kind::Signed => (-half, half - 1),
            _ => (-half, 2 * half - 1),
        };
        (least..=most).contains(&number).then_some(number as u64)
    }

    fn float(self, token: &[u8]) -> Option<u64> {
        if let Some(bits) = hexadecimal(token) {
            return bits.filter(|bits| self.bits == 64 || bits >> self.bits == 0);
        }
        // Rust also reads "inf", "nan" and "+1".
        let digits = token.strip_prefix(b"-").unwrap_or(token);
        let is_number = digits.first().is_some_and(u8::is_ascii_digit)
            && digits.iter().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(byte));
        let number: f64 = std::str::from_utf8(token).ok().filter(|_| is_number)?.parse().ok()?;
        Some(match (self.dtype, self.bits) {
            (_, 64) => number.to_bits(),
            (_, 32) => u64::from((number as f32).to_bits()),
            (16, _) => u64::from(bf16::from_f64(number).to_bits()),
            _ => u64::from(f16::from_f64(number).to_bits()),
        })
    }
}

/// The number behind `0x`; `None` without that, and `Some(None)` if it is no number of 64 bits.
pub(super) fn hexadecimal(token: &[u8]) -> Option<Option<u64>> {
    let digits = token.strip_prefix(b"0x")?;
    let is_number = (1..=16).contains(&digits.len()) && digits.iter().all(u8::is_ascii_hexdigit);
    Some(is_number.then(|| digits.iter().fold(0, |number, &digit| number << 4 | u64::from(nibble(digit).unwrap_or(0)))))
}

pub(super) fn nibble(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}
