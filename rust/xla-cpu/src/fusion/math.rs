//! Elementary functions without branches, so that loops of them vectorise. Polynomials and constants are those of
//! Cephes' single-precision functions, which are accurate to about one unit in the last place. Denormal results are
//! zero, as the mode of a run has it.

#![allow(clippy::excessive_precision, reason = "the constants as they are published")]
#![allow(clippy::needless_range_loop, reason = "methods of iterators may not be compiled for the instruction set")]

/// ln 2 in two parts, the first of which has few bits.
const LN2_HIGH: f32 = 0.693_359_375;
const LN2_LOW: f32 = -2.121_944_40e-4;

/// The value of the polynomial, whose highest coefficient comes first.
#[inline(always)]
fn polynomial<const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
    let mut sum = coefficients[0];
    for at in 1..N {
        sum = sum * x + coefficients[at];
    }
    sum
}

/// f32.
pub(super) mod single {
    use super::{LN2_HIGH, LN2_LOW, polynomial};

    /// The exponents of the largest finite result and of the least normal one.
    const MOST: f32 = 88.722_84;
    const LEAST: f32 = -87.336_55;

    #[inline(always)]
    pub(in super::super) fn exp(x: f32) -> f32 {
        // 1.5 * 2^23: adding it rounds to an integer, which is then in the low bits.
        const ROUND: f32 = 12_582_912.0;
        let bounded = if x > MOST { MOST } else { x };
        let bounded = if bounded < LEAST { LEAST } else { bounded };
        let shifted = bounded * std::f32::consts::LOG2_E + ROUND;
        let whole = shifted - ROUND;
        let exponent = shifted.to_bits().cast_signed().wrapping_sub(ROUND.to_bits().cast_signed());
        let rest = bounded - whole * LN2_HIGH - whole * LN2_LOW;
        let tail = polynomial(
            rest,
            [
                1.987_569_15e-4,
                1.398_199_950_7e-3,
                8.333_451_907_3e-3,
                4.166_579_589_4e-2,
                1.666_666_545_9e-1,
                5.000_000_120_1e-1,
            ],
        );
        let fraction = tail * rest * rest + rest + 1.0;
        // Two factors, because 2^128 is no f32.
        let half = exponent >> 1;
        let power = |exponent: i32| f32::from_bits((exponent.wrapping_add(127) << 23).cast_unsigned());
        let value = fraction * power(half) * power(exponent.wrapping_sub(half));
        let value = if x > MOST { f32::INFINITY } else { value };
        if x < LEAST { 0.0 } else { value }
    }

    #[inline(always)]
    pub(in super::super) fn log(x: f32) -> f32 {
        let bits = x.to_bits();
        let exponent = ((bits >> 23) & 0xff).cast_signed() - 126;
        let fraction = f32::from_bits((bits & 0x007f_ffff) | 0x3f00_0000);
        let is_low = fraction < std::f32::consts::FRAC_1_SQRT_2;
        let exponent = (exponent - i32::from(is_low)) as f32;
        let z = if is_low { fraction + fraction } else { fraction } - 1.0;
        let square = z * z;
        let tail = polynomial(
            z,
            [
                7.037_683_629_2e-2,
                -1.151_461_031e-1,
                1.167_699_874e-1,
                -1.242_014_084_6e-1,
                1.424_932_278_7e-1,
                -1.666_805_766_5e-1,
                2.000_071_476_5e-1,
                -2.499_999_399_3e-1,
                3.333_333_117_4e-1,
            ],
        ) * z
            * square;
        let value = z + (tail + exponent * LN2_LOW - 0.5 * square) + exponent * LN2_HIGH;
        let value = if x < f32::MIN_POSITIVE { f32::NEG_INFINITY } else { value };
        let value = if x == f32::INFINITY { x } else { value };
        // Also if x is NaN.
        if x >= 0.0 || x > -f32::MIN_POSITIVE { value } else { f32::NAN }
    }

    #[inline(always)]
    pub(in super::super) fn tanh(x: f32) -> f32 {
        let size = x.abs();
        let far = 1.0 - 2.0 / (exp(size + size) + 1.0);
        let square = x * x;
        let near = polynomial(
            square,
            [
                -5.704_988_727_45e-3,
                2.063_908_879_54e-2,
                -5.373_971_555_31e-2,
                1.333_144_220_36e-1,
                -3.333_328_194_22e-1,
            ],
        ) * square
            * x
            + x;
        if size > 0.625 { far.copysign(x) } else { near }
    }

    #[inline(always)]
    pub(in super::super) fn erf(x: f32) -> f32 {
        libm::erff(x)
    }
}

/// f64: the standard library's.
pub(super) mod double {
    #[inline(always)]
    pub(in super::super) fn exp(x: f64) -> f64 {
        x.exp()
    }

    #[inline(always)]
    pub(in super::super) fn log(x: f64) -> f64 {
        x.ln()
    }

    #[inline(always)]
    pub(in super::super) fn tanh(x: f64) -> f64 {
        x.tanh()
    }

    #[inline(always)]
    pub(in super::super) fn erf(x: f64) -> f64 {
        libm::erf(x)
    }
}

#[cfg(test)]
mod tests {
    use super::single;

    #[test]
    fn functions_agree_with_those_of_f64() {
        let near = |ours: f32, exact: f64| (f64::from(ours) - exact).abs() <= 3e-7 * exact.abs().max(1e-30);
        for step in 0..200_000 {
            let x = (step as f32 - 100_000.0) * 8.7e-4;
            assert!(near(single::exp(x), f64::from(x).exp()), "exp({x}) is {}", single::exp(x));
            assert!(near(single::tanh(x), f64::from(x).tanh()), "tanh({x}) is {}", single::tanh(x));
            let y = (x * 0.5).exp();
            let exact = f64::from(y).ln();
            let log = f64::from(single::log(y));
            assert!((log - exact).abs() <= 3e-7 * exact.abs().max(0.3), "log({y}) is {log}");
        }
    }

    #[test]
    fn functions_have_their_limits() {
        let (infinite, nan) = (f32::INFINITY, f32::NAN);
        assert_eq!([single::exp(infinite), single::exp(-infinite), single::exp(100.0)], [infinite, 0.0, infinite]);
        assert_eq!([single::exp(0.0), single::tanh(infinite), single::tanh(-infinite)], [1.0, 1.0, -1.0]);
        assert_eq!([single::log(0.0), single::log(infinite), single::log(1.0)], [-infinite, infinite, 0.0]);
        assert!(single::exp(88.72).is_finite() && single::exp(-87.3) > 0.0);
        assert!([single::exp(nan), single::log(nan), single::log(-1.0), single::tanh(nan)].iter().all(|x| x.is_nan()));
    }
}
