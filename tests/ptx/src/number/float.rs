//! f32 and f64, as bits. Results that are not numbers are always the same one; approximations are as good as the format
//! allows, where a GPU's may be one or two steps off.

use super::format::{F32, Rounding, to_odd};

/// The not-a-number of f32.
const NAN_32: u64 = 0x7fff_ffff;
/// The not-a-number of f64.
const NAN_64: u64 = 0x7ff8_0000_0000_0000;

/// What the modifiers say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mode {
    pub(crate) rounding: Rounding,
    /// Subnormal numbers are zero, before and after.
    pub(crate) flushes: bool,
    /// The result is between 0 and 1; what is no number becomes 0.
    pub(crate) saturates: bool,
}

/// An operation whose exact result is rounded once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exact {
    Add,
    Sub,
    Mul,
    Div,
    /// a * b + c.
    Fma,
    /// Of a.
    Sqrt,
    /// 1 / a.
    Reciprocal,
}

/// A subnormal number as zero.
pub(crate) fn flush(value: f32) -> f32 {
    if value.is_subnormal() { 0.0_f32.copysign(value) } else { value }
}

impl Mode {
    pub(crate) fn input(self, bits: u64) -> f32 {
        let value = f32::from_bits(bits as u32);
        if self.flushes { flush(value) } else { value }
    }

    /// The bits of a result.
    pub(crate) fn output(self, value: f32) -> u64 {
        let value = if self.flushes { flush(value) } else { value };
        if self.saturates {
            // A comparison that what is no number does not pass; and -0 becomes 0.
            return u64::from(if value > 0.0 { value.min(1.0) } else { 0.0 }.to_bits());
        }
        if value.is_nan() { NAN_32 } else { u64::from(value.to_bits()) }
    }

    /// An operation on f32.
    pub(crate) fn exact_32(self, operation: Exact, a: u64, b: u64, c: u64) -> u64 {
        let [a, b, c] = [a, b, c].map(|bits| self.input(bits));
        if self.rounding == Rounding::Nearest {
            return self.output(match operation {
                Exact::Add => a + b,
                Exact::Sub => a - b,
                Exact::Mul => a * b,
                Exact::Div => a / b,
                Exact::Fma => a.mul_add(b, c),
                Exact::Sqrt => a.sqrt(),
                Exact::Reciprocal => 1.0 / a,
            });
        }
        let value = odd(operation, f64::from(a), f64::from(b), f64::from(c));
        let rounded = f32::from_bits(F32.round(value, self.rounding) as u32);
        // Exactly zero by a difference is -0 only where it is rounded down.
        let is_difference = matches!(operation, Exact::Add | Exact::Sub | Exact::Fma);
        if value == 0.0 && is_difference && self.rounding == Rounding::Down && !value.is_sign_negative() {
            let terms = match operation {
                Exact::Add => [a, b],
                Exact::Sub => [a, -b],
                _ => [a * b, c],
            };
            if terms.iter().any(|term| term.is_sign_negative()) {
                return self.output(-0.0);
            }
        }
        self.output(rounded)
    }
}

/// The result of an operation on numbers of at most 24 bits, rounded to odd.
pub(crate) fn odd(operation: Exact, a: f64, b: f64, c: f64) -> f64 {
    match operation {
        Exact::Add => sum_to_odd(a, b),
        Exact::Sub => sum_to_odd(a, -b),
        Exact::Mul => a * b,
        // a * b is exact.
        Exact::Fma => sum_to_odd(a * b, c),
        Exact::Div => quotient_to_odd(a, b),
        Exact::Reciprocal => quotient_to_odd(1.0, a),
        Exact::Sqrt => {
            let root = a.sqrt();
            to_odd(root, (-root).mul_add(root, a))
        }
    }
}

fn sum_to_odd(a: f64, b: f64) -> f64 {
    let sum = a + b;
    // Knuth's two-sum: the error, exactly.
    let of_b = sum - a;
    to_odd(sum, (a - (sum - of_b)) + (b - of_b))
}

fn quotient_to_odd(a: f64, b: f64) -> f64 {
    let quotient = a / b;
    if !b.is_finite() {
        return quotient;
    }
    to_odd(quotient, (-quotient).mul_add(b, a) * b.signum())
}

/// An operation on f64, rounded to the nearest.
pub(crate) fn exact_64(operation: Exact, a: u64, b: u64, c: u64) -> u64 {
    let [a, b, c] = [a, b, c].map(f64::from_bits);
    output_64(match operation {
        Exact::Add => a + b,
        Exact::Sub => a - b,
        Exact::Mul => a * b,
        Exact::Div => a / b,
        Exact::Fma => a.mul_add(b, c),
        Exact::Sqrt => a.sqrt(),
        Exact::Reciprocal => 1.0 / a,
    })
}

/// The bits of a result.
pub(crate) fn output_64(value: f64) -> u64 {
    if value.is_nan() { NAN_64 } else { value.to_bits() }
}

/// A function that is computed approximately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Reciprocal,
    Sqrt,
    ReciprocalSqrt,
    Exp2,
    Log2,
    Sin,
    Cos,
    Tanh,
}

impl Function {
    pub(crate) fn of(self, a: f64) -> f64 {
        match self {
            Self::Reciprocal => 1.0 / a,
            Self::Sqrt => a.sqrt(),
            Self::ReciprocalSqrt => 1.0 / a.sqrt(),
            Self::Exp2 => a.exp2(),
            Self::Log2 => a.log2(),
            Self::Sin => a.sin(),
            Self::Cos => a.cos(),
            Self::Tanh => a.tanh(),
        }
    }

    /// `rcp.approx.ftz.f64` and `rsqrt.approx.ftz.f64`: of the upper half of the bits, the upper half of the bits.
    pub(crate) fn of_upper_half(self, bits: u64) -> u64 {
        let flushed = |value: f64| if value.is_subnormal() { 0.0_f64.copysign(value) } else { value };
        let a = flushed(f64::from_bits(bits & !0xffff_ffff));
        output_64(flushed(self.of(a))) & !0xffff_ffff
    }
}

/// The smaller of two, or the larger: of one that is no number, the other, or, `keeps_nan`, that one; -0 is below 0.
pub(crate) fn extreme<T: Extreme>(a: T, b: T, largest: bool, keeps_nan: bool) -> T {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => a,
        (true, false) => {
            if keeps_nan {
                a
            } else {
                b
            }
        }
        (false, true) => {
            if keeps_nan {
                b
            } else {
                a
            }
        }
        (false, false) => {
            if a.is_below(b) == largest {
                b
            } else {
                a
            }
        }
    }
}

/// What [`extreme`] compares.
pub(crate) trait Extreme: Copy {
    fn is_nan(self) -> bool;
    fn is_below(self, other: Self) -> bool;
}

impl Extreme for f32 {
    fn is_nan(self) -> bool {
        self.is_nan()
    }

    fn is_below(self, other: Self) -> bool {
        self < other || self == other && self.is_sign_negative() && !other.is_sign_negative()
    }
}

impl Extreme for f64 {
    fn is_nan(self) -> bool {
        self.is_nan()
    }

    fn is_below(self, other: Self) -> bool {
        self < other || self == other && self.is_sign_negative() && !other.is_sign_negative()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounded(rounding: Rounding, operation: Exact, a: f32, b: f32, c: f32) -> f32 {
        let mode = Mode { rounding, flushes: false, saturates: false };
        let [a, b, c] = [a, b, c].map(|value| u64::from(value.to_bits()));
        f32::from_bits(mode.exact_32(operation, a, b, c) as u32)
    }

    #[test]
    fn directed_roundings_go_where_they_should() {
        let tiny = f32::from_bits(1);
        assert_eq!(rounded(Rounding::Up, Exact::Add, 1.0, tiny, 0.0), 1.0 + f32::EPSILON);
        assert_eq!(rounded(Rounding::TowardsZero, Exact::Add, 1.0, -tiny, 0.0), 1.0 - f32::EPSILON / 2.0);
        assert_eq!(rounded(Rounding::Down, Exact::Mul, tiny, -0.5, 0.0), -tiny);
        assert_eq!(rounded(Rounding::Up, Exact::Mul, tiny, -0.5, 0.0).to_bits(), (-0.0_f32).to_bits());
        assert_eq!(rounded(Rounding::Up, Exact::Div, 1.0, 3.0, 0.0), 0.333_333_34);
        assert_eq!(rounded(Rounding::Down, Exact::Div, 1.0, 3.0, 0.0), 0.333_333_3);
        assert_eq!(rounded(Rounding::Up, Exact::Div, -1.0, 3.0, 0.0), -0.333_333_3);
        assert!(
            rounded(Rounding::Up, Exact::Sqrt, 2.0, 0.0, 0.0) > rounded(Rounding::Down, Exact::Sqrt, 2.0, 0.0, 0.0)
        );
        assert_eq!(rounded(Rounding::Up, Exact::Fma, 1.0 + f32::EPSILON, 1.0, tiny), 1.0 + 2.0 * f32::EPSILON);
        assert_eq!(rounded(Rounding::TowardsZero, Exact::Mul, f32::MAX, 2.0, 0.0), f32::MAX);
        assert_eq!(rounded(Rounding::Down, Exact::Sub, 1.0, 1.0, 0.0).to_bits(), (-0.0_f32).to_bits());
        assert_eq!(rounded(Rounding::Up, Exact::Sub, 1.0, 1.0, 0.0).to_bits(), 0);
    }

    #[test]
    fn results_that_are_no_numbers_are_one() {
        let mode = Mode { rounding: Rounding::Nearest, flushes: false, saturates: false };
        let infinity = u64::from(f32::INFINITY.to_bits());
        assert_eq!(mode.exact_32(Exact::Sub, infinity, infinity, 0), NAN_32);
        assert_eq!(mode.exact_32(Exact::Add, 0xffc0_1234, 0, 0), NAN_32);
        assert_eq!(Mode { saturates: true, ..mode }.exact_32(Exact::Sub, infinity, infinity, 0), 0);
    }

    #[test]
    fn subnormal_numbers_are_flushed_with_their_sign() {
        let mode = Mode { rounding: Rounding::Nearest, flushes: true, saturates: false };
        assert_eq!(mode.exact_32(Exact::Add, 0x8000_0001, 0x8000_0001, 0), 0x8000_0000);
        let smallest = u64::from(f32::MIN_POSITIVE.to_bits());
        assert_eq!(mode.exact_32(Exact::Mul, smallest, u64::from(0.5_f32.to_bits()), 0), 0);
    }

    #[test]
    fn extremes_prefer_numbers() {
        assert_eq!(extreme(f32::NAN, 1.0, true, false), 1.0);
        assert!(extreme(f32::NAN, 1.0, true, true).is_nan());
        assert!(extreme(-0.0_f32, 0.0, false, false).is_sign_negative());
        assert!(extreme(-0.0_f64, 0.0, true, false).is_sign_positive());
        assert_eq!(extreme(2.0_f64, 3.0, true, false), 3.0);
        assert_eq!(extreme(3.0_f64, 2.0, false, false), 2.0);
    }
}
