//! Floating-point formats of at most 32 bits, and rounding to them.
//!
//! What is rounded is an f64 that has every bit of the exact value, or, where that needs more of them, is rounded to
//! odd: the last bit is set if anything was lost. A second rounding to a format that is narrower by two bits or more
//! then gives what one rounding of the exact value gives.

/// How a value between two others is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounding {
    /// To the nearest, of two the even one.
    Nearest,
    /// To the nearest, of two the one away from zero.
    NearestAway,
    TowardsZero,
    Down,
    Up,
}

/// A sign, an exponent and a fraction, from the top down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    exponent_bits: u32,
    fraction_bits: u32,
    /// Without it, the largest exponent has numbers, too, and only all ones is none.
    has_infinity: bool,
}

pub(crate) const F16: Format = Format::new(5, 10);
pub(crate) const BF16: Format = Format::new(8, 7);
pub(crate) const TF32: Format = Format::new(8, 10);
pub(crate) const F32: Format = Format::new(8, 23);
pub(crate) const E5M2: Format = Format::new(5, 2);
pub(crate) const E4M3: Format = Format { has_infinity: false, ..Format::new(4, 3) };

impl Format {
    const fn new(exponent_bits: u32, fraction_bits: u32) -> Self {
        Self { exponent_bits, fraction_bits, has_infinity: true }
    }

    fn sign_at(self) -> u32 {
        self.exponent_bits + self.fraction_bits
    }

    /// The bits of infinity, or of what is there instead: the first that are no finite number.
    fn infinity(self) -> u64 {
        if !self.has_infinity {
            return self.not_a_number();
        }
        ((1 << self.exponent_bits) - 1) << self.fraction_bits
    }

    /// The one not-a-number that is ever computed.
    pub(crate) fn not_a_number(self) -> u64 {
        (1 << self.sign_at()) - 1
    }

    /// The largest exponent's half.
    fn bias(self) -> i32 {
        (1 << (self.exponent_bits - 1)) - 1
    }

    /// The value of its bits, exactly.
    pub(crate) fn value(self, bits: u64) -> f64 {
        let sign = if bits >> self.sign_at() & 1 == 1 { -1.0 } else { 1.0 };
        let exponent = (bits >> self.fraction_bits) as i32 & ((1 << self.exponent_bits) - 1);
        let fraction = bits & ((1 << self.fraction_bits) - 1);
        if bits & self.not_a_number() >= self.infinity() {
            return if self.has_infinity && fraction == 0 { sign * f64::INFINITY } else { f64::NAN };
        }
        let (whole, exponent) =
            if exponent == 0 { (fraction, 1) } else { (fraction | 1 << self.fraction_bits, exponent) };
        sign * whole as f64 * power_of_two(exponent - self.bias() - self.fraction_bits as i32)
    }

    /// The bits of a value, rounded to the nearest; what is too large becomes the largest.
    pub(crate) fn round_to_finite(self, value: f64) -> u64 {
        let bits = self.round(value, Rounding::Nearest);
        let is_large = !value.is_nan() && bits & self.not_a_number() >= self.infinity();
        if is_large { bits & !self.not_a_number() | (self.infinity() - 1) } else { bits }
    }

    /// The bits of a value, rounded.
    pub(crate) fn round(self, value: f64, rounding: Rounding) -> u64 {
        let negative = value.is_sign_negative();
        let sign = u64::from(negative) << self.sign_at();
        if value.is_nan() {
            return self.not_a_number();
        }
        if value.is_infinite() {
            return sign | self.infinity();
        }
        let bits = value.to_bits();
        let (exponent, fraction) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
        // The value is whole * 2^(exponent - 52).
        let (whole, exponent) = if exponent == 0 { (fraction, -1022) } else { (fraction | 1 << 52, exponent - 1023) };
        let least = 1 - self.bias();
        // How many of the lowest bits are lost.
        let lost = (52 - self.fraction_bits).saturating_add((least - exponent).max(0) as u32);
        let (kept, rest, half) =
            if lost >= 64 { (0, whole, u64::MAX) } else { (whole >> lost, whole & ((1 << lost) - 1), 1 << (lost - 1)) };
        let away = match rounding {
            Rounding::Nearest => rest > half || rest == half && kept & 1 == 1,
            Rounding::NearestAway => rest >= half,
            Rounding::TowardsZero => false,
            Rounding::Down => negative && rest != 0,
            Rounding::Up => !negative && rest != 0,
        };
        // A fraction that overflows becomes the next exponent's first.
        let kept = kept + u64::from(away);
        let magnitude = match exponent < least {
            true => kept,
            false => (((exponent - least) as u64) << self.fraction_bits) + kept,
        };
        if magnitude < self.infinity() {
            return sign | magnitude;
        }
        let to_infinity = match rounding {
            Rounding::Nearest | Rounding::NearestAway => true,
            Rounding::TowardsZero => false,
            Rounding::Down => negative,
            Rounding::Up => !negative,
        };
        sign | if to_infinity { self.infinity() } else { self.infinity() - 1 }
    }
}

/// 2^exponent, for exponents of normal f64.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// `value`, which lost `error` (what is right is value + error, of which only the sign counts), rounded to odd.
pub(crate) fn to_odd(value: f64, error: f64) -> f64 {
    if error == 0.0 || error.is_nan() || !value.is_finite() || value.to_bits() & 1 == 1 {
        return value;
    }
    if value == 0.0 {
        return f64::MIN_POSITIVE.copysign(error);
    }
    let bits = value.to_bits();
    f64::from_bits(if (error > 0.0) == (value > 0.0) { bits + 1 } else { bits - 1 })
}

/// A whole number as an f64, rounded to odd.
pub(crate) fn whole_to_odd(value: i128) -> f64 {
    let rounded = value as f64;
    to_odd(rounded, (value - rounded as i128) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Splitmix64.
    fn random(state: &mut u64) -> u64 {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    #[test]
    fn every_f16_and_bf16_comes_back() {
        for bits in 0..=0xffff {
            for format in [F16, BF16] {
                let value = format.value(bits);
                for rounding in [Rounding::Nearest, Rounding::TowardsZero, Rounding::Down, Rounding::Up] {
                    let expected = if value.is_nan() { format.not_a_number() } else { bits };
                    assert_eq!(format.round(value, rounding), expected, "{format:?} {bits:#x} {rounding:?}");
                }
            }
        }
    }

    #[test]
    fn every_float_of_eight_bits_comes_back() {
        for bits in 0..=0xff {
            for format in [E4M3, E5M2] {
                let value = format.value(bits);
                let expected = if value.is_nan() { 0x7f } else { bits };
                assert_eq!(format.round(value, Rounding::Nearest), expected, "{format:?} {bits:#x}");
            }
        }
        assert_eq!((E4M3.value(0x7e), E4M3.value(0x01), E4M3.value(0x38)), (448.0, 2.0_f64.powi(-9), 1.0));
        assert_eq!((E5M2.value(0x7b), E5M2.value(0x7c), E5M2.value(0x3c)), (57344.0, f64::INFINITY, 1.0));
        assert_eq!((E4M3.round_to_finite(-1e9), E5M2.round_to_finite(f64::INFINITY)), (0xfe, 0x7b));
        assert_eq!((E4M3.round_to_finite(464.0), E4M3.round_to_finite(463.9)), (0x7e, 0x7e));
    }

    #[test]
    fn the_nearest_f32_is_the_cast() {
        let mut state = 1;
        for _ in 0..200_000 {
            // Exponents around those of f32, and any.
            let any = random(&mut state);
            let near = any & !(0x7ff << 52) | (850 + random(&mut state) % 320) << 52;
            for value in [f64::from_bits(any), f64::from_bits(near), near as i64 as f64] {
                let expected = if value.is_nan() { 0x7fff_ffff } else { (value as f32).to_bits() };
                assert_eq!(F32.round(value, Rounding::Nearest), u64::from(expected), "{value:e}");
            }
        }
    }

    #[test]
    fn directed_roundings_enclose_the_value() {
        let mut state = 2;
        for _ in 0..100_000 {
            let value = f64::from_bits(random(&mut state) & !(0x7ff << 52) | (850 + random(&mut state) % 320) << 52);
            let rounded = |rounding| f64::from(f32::from_bits(F32.round(value, rounding) as u32));
            let (down, up) = (rounded(Rounding::Down), rounded(Rounding::Up));
            assert!(down <= value && value <= up, "{value:e}");
            assert_eq!(rounded(Rounding::TowardsZero), if value < 0.0 { up } else { down });
            let nearest = rounded(Rounding::Nearest);
            assert!(nearest == down || nearest == up, "{value:e}");
        }
    }

    #[test]
    fn whole_numbers_are_rounded_once() {
        // Lies just above the middle of two f32; rounded to f64 first, it would be the middle.
        let value = (1_i128 << 62) + (1 << 38) + 1;
        assert_eq!(whole_to_odd(value) as f32, (1_u64 << 62) as f32 + (1_u64 << 39) as f32);
        let mut state = 3;
        for _ in 0..100_000 {
            let value = random(&mut state) >> (random(&mut state) % 64);
            assert_eq!(whole_to_odd(value.into()) as f32, value as f32, "{value}");
        }
    }
}
