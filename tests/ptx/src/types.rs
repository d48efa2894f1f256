//! The types of PTX: how wide, and how the bits are to be understood.

/// How the bits of a value are understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Untyped.
    Bits,
    Unsigned,
    Signed,
    Float,
    /// bfloat16.
    Brain,
    /// Two of f16 or, `Brain`, of bf16.
    Halves,
    Brains,
    Predicate,
}

/// A type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Type {
    pub(crate) class: Class,
    /// 1 for predicates, else 8 to 64.
    pub(crate) bits: u32,
}

/// A predicate.
pub(crate) const PREDICATE: Type = Type { class: Class::Predicate, bits: 1 };
/// 32 bits, without a sign.
pub(crate) const U32: Type = Type { class: Class::Unsigned, bits: 32 };
/// 64 bits, without a sign.
pub(crate) const U64: Type = Type { class: Class::Unsigned, bits: 64 };

impl Type {
    /// By its name, without the dot.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let (class, bits) = match name {
            "pred" => (Class::Predicate, 1),
            "b8" => (Class::Bits, 8),
            "b16" => (Class::Bits, 16),
            "b32" => (Class::Bits, 32),
            "b64" => (Class::Bits, 64),
            "u8" => (Class::Unsigned, 8),
            "u16" => (Class::Unsigned, 16),
            "u32" => (Class::Unsigned, 32),
            "u64" => (Class::Unsigned, 64),
            "s8" => (Class::Signed, 8),
            "s16" => (Class::Signed, 16),
            "s32" => (Class::Signed, 32),
            "s64" => (Class::Signed, 64),
            "f16" => (Class::Float, 16),
            "f32" => (Class::Float, 32),
            "f64" => (Class::Float, 64),
            "bf16" => (Class::Brain, 16),
            "f16x2" => (Class::Halves, 32),
            "bf16x2" => (Class::Brains, 32),
            _ => return None,
        };
        Some(Self { class, bits })
    }

    pub(crate) fn is_integer(self) -> bool {
        matches!(self.class, Class::Bits | Class::Unsigned | Class::Signed)
    }

    pub(crate) fn is_signed(self) -> bool {
        self.class == Class::Signed
    }

    pub(crate) fn is_predicate(self) -> bool {
        self.class == Class::Predicate
    }

    /// f32 or f64.
    pub(crate) fn is_plain_float(self) -> bool {
        self.class == Class::Float && self.bits >= 32
    }

    /// The same, so many bits wide.
    pub(crate) fn widened(self, bits: u32) -> Self {
        Self { bits, ..self }
    }

    /// How many bytes it takes in memory; predicates take none.
    pub(crate) fn size_bytes(self) -> usize {
        self.bits as usize / 8
    }
}

/// The bits that a value of `bits` bits may have.
pub(crate) fn mask(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// The value of the lowest `bits` bits, at least one, with a sign.
pub(crate) fn signed(value: u64, bits: u32) -> i64 {
    let unused = 64 - bits.clamp(1, 64);
    ((value << unused) as i64) >> unused
}
