//! `cvt`: from every number's type to every other.

use super::float::{flush, output_64};
use super::format::{BF16, F16, F32, Format, Rounding, whole_to_odd};
use crate::types::{Class, Type, mask, signed};

/// A conversion, with its modifiers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conversion {
    pub(crate) to: Type,
    pub(crate) from: Type,
    /// Of what has more bits than the result.
    pub(crate) rounding: Rounding,
    /// To a whole number.
    pub(crate) to_whole: Option<Rounding>,
    pub(crate) flushes: bool,
    pub(crate) saturates: bool,
    /// The width of the register that takes the result.
    pub(crate) register_bits: u32,
}

/// A number in between.
#[derive(Clone, Copy)]
enum Number {
    Whole(i128),
    Float(f64),
}

impl Conversion {
    /// The bits of the result.
    pub(crate) fn convert(self, bits: u64) -> u64 {
        let bits = bits & mask(self.from.bits);
        match (self.number(bits), self.to.is_integer()) {
            (Number::Whole(value), true) => self.whole(value),
            (Number::Whole(value), false) if self.to.bits == 64 => (value as f64).to_bits(),
            (Number::Whole(value), false) => self.float(whole_to_odd(value)),
            (Number::Float(value), true) => self.truncated(value),
            (Number::Float(value), false) => self.float(value),
        }
    }

    fn number(self, bits: u64) -> Number {
        match self.from.class {
            Class::Float if self.from.bits == 64 => Number::Float(f64::from_bits(bits)),
            Class::Float if self.from.bits == 32 => {
                let value = f32::from_bits(bits as u32);
                Number::Float(f64::from(if self.flushes { flush(value) } else { value }))
            }
            Class::Float => Number::Float(F16.value(bits)),
            Class::Brain => Number::Float(BF16.value(bits)),
            Class::Signed => Number::Whole(signed(bits, self.from.bits).into()),
            _ => Number::Whole(bits.into()),
        }
    }

    /// The least and the largest number of the result's type.
    fn range(self) -> (i128, i128) {
        let bits = self.to.bits;
        if self.to.is_signed() { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
    }

    fn whole(self, value: i128) -> u64 {
        let (least, most) = self.range();
        let value = if self.saturates { value.clamp(least, most) } else { value } as u64 & mask(self.to.bits);
        let value = if self.to.is_signed() { signed(value, self.to.bits) as u64 } else { value };
        value & mask(self.register_bits)
    }

    /// What is beyond the range becomes its end.
    fn truncated(self, value: f64) -> u64 {
        if value.is_nan() {
            let is_narrow = self.from.bits < 64 && self.to.bits < 64;
            return if is_narrow { 0 } else { 1 << (self.to.bits - 1) };
        }
        let (least, most) = self.range();
        let whole = round_whole(value, self.to_whole.unwrap_or(Rounding::TowardsZero));
        self.whole((whole as i128).clamp(least, most))
    }

    fn float(self, value: f64) -> u64 {
        let value = self.to_whole.map_or(value, |rounding| round_whole(value, rounding));
        let value = match self.saturates {
            true if value > 0.0 => value.min(1.0),
            true => 0.0,
            false => value,
        };
        match (self.to.class, self.to.bits) {
            (Class::Float, 64) => output_64(value),
            (Class::Float, 32) => {
                let bits = F32.round(value, self.rounding);
                if self.flushes { u64::from(flush(f32::from_bits(bits as u32)).to_bits()) } else { bits }
            }
            (class, _) => small(class).round(value, self.rounding),
        }
    }
}

/// The format of 16 bits.
pub(crate) fn small(class: Class) -> Format {
    if matches!(class, Class::Brain | Class::Brains) { BF16 } else { F16 }
}

fn round_whole(value: f64, rounding: Rounding) -> f64 {
    match rounding {
        Rounding::Nearest => value.round_ties_even(),
        Rounding::NearestAway => value.round(),
        Rounding::TowardsZero => value.trunc(),
        Rounding::Down => value.floor(),
        Rounding::Up => value.ceil(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(to: &str, from: &str) -> Conversion {
        let (to, from) = (Type::named(to).unwrap(), Type::named(from).unwrap());
        let rounding = Rounding::Nearest;
        let register_bits = to.bits.max(16);
        Conversion { to, from, rounding, to_whole: None, flushes: false, saturates: false, register_bits }
    }

    fn f(value: f32) -> u64 {
        u64::from(value.to_bits())
    }

    #[test]
    fn whole_numbers_are_cut_extended_and_clamped() {
        assert_eq!(named("s64", "s32").convert(0xffff_fffe), 0xffff_ffff_ffff_fffe);
        assert_eq!(named("u64", "u32").convert(0xffff_fffe), 0xffff_fffe);
        assert_eq!(named("s8", "s32").convert(0x1234_5680), 0xff80);
        assert_eq!(named("u8", "u32").convert(0x1234_5680), 0x80);
        assert_eq!(Conversion { saturates: true, ..named("u8", "s32") }.convert(0xffff_ffff), 0);
        assert_eq!(Conversion { saturates: true, ..named("s8", "s32") }.convert(1000), 127);
    }

    #[test]
    fn floats_become_whole_numbers_within_the_range() {
        let with = |conversion, rounding| Conversion { to_whole: Some(rounding), ..conversion };
        assert_eq!(with(named("s32", "f32"), Rounding::Nearest).convert(f(2.5)), 2);
        assert_eq!(with(named("s32", "f32"), Rounding::Up).convert(f(2.1)), 3);
        assert_eq!(with(named("s32", "f32"), Rounding::Down).convert(f(-2.1)), 0xffff_fffd);
        assert_eq!(with(named("s32", "f32"), Rounding::TowardsZero).convert(f(1e20)), 0x7fff_ffff);
        assert_eq!(with(named("u32", "f32"), Rounding::TowardsZero).convert(f(-5.0)), 0);
        assert_eq!(with(named("u64", "f32"), Rounding::TowardsZero).convert(f(f32::INFINITY)), u64::MAX);
        assert_eq!(with(named("s32", "f32"), Rounding::TowardsZero).convert(f(f32::NAN)), 0);
        assert_eq!(with(named("s64", "f32"), Rounding::TowardsZero).convert(f(f32::NAN)), 1 << 63);
        assert_eq!(with(named("s32", "f64"), Rounding::TowardsZero).convert(f64::NAN.to_bits()), 1 << 31);
        assert_eq!(with(named("f32", "f32"), Rounding::Nearest).convert(f(-0.5)), f(-0.0));
    }

    #[test]
    fn floats_are_narrowed_and_widened() {
        assert_eq!(named("f16", "f32").convert(f(65519.0)), 0x7bff);
        assert_eq!(named("f16", "f32").convert(f(65520.0)), 0x7c00);
        assert_eq!(named("f16", "f32").convert(f(f32::NAN)), 0x7fff);
        assert_eq!(named("f32", "f16").convert(0x0001), f(2.0_f32.powi(-24)));
        assert_eq!(named("bf16", "f32").convert(0x3f80_8000), 0x3f80);
        assert_eq!(named("bf16", "f32").convert(0x3f81_8000), 0x3f82);
        assert_eq!(named("f32", "f64").convert(1e-300_f64.to_bits()), 0);
        assert_eq!(Conversion { rounding: Rounding::Up, ..named("f32", "f64") }.convert(1e-300_f64.to_bits()), 1);
        assert_eq!(named("f32", "s64").convert((1 << 62) + (1 << 38) + 1), f(4_611_686_568_183_201_792.0));
        assert_eq!(Conversion { saturates: true, ..named("f32", "f32") }.convert(f(7.0)), f(1.0));
        assert_eq!(Conversion { flushes: true, ..named("f32", "f32") }.convert(0x8000_0001), 0x8000_0000);
    }
}
