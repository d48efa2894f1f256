//! Operations on blocks of elements: one loop for each operation and type, which the compiler vectorises for the
//! processor's best instruction set.
//!
//! Elements are computed in three classes. f16 and bf16 are computed as f32 and rounded after each operation; s8 and u8
//! are computed as i32 and wrapped. NaN propagates through maximum and minimum, as in XLA.

#![allow(clippy::needless_range_loop, reason = "methods of iterators may not be compiled for the instruction set")]

use half::slice::HalfFloatSliceExt as _;
use half::{bf16, f16};
use purlin_array::DType;

use super::math;

/// The type in which elements are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    F32,
    F64,
    I32,
}

impl Class {
    /// The class of an element type. `None`: it is not supported.
    pub(super) fn of(dtype: DType) -> Option<Self> {
        match dtype {
            DType::F32 | DType::F16 | DType::BF16 => Some(Self::F32),
            DType::F64 => Some(Self::F64),
            DType::S32 | DType::S8 | DType::U8 => Some(Self::I32),
            _ => None,
        }
    }

    /// The element type that is stored as it is computed.
    pub(super) fn native(self) -> DType {
        match self {
            Self::F32 => DType::F32,
            Self::F64 => DType::F64,
            Self::I32 => DType::S32,
        }
    }
}

/// A function of one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unary {
    Abs,
    Cbrt,
    Ceil,
    Cos,
    Erf,
    Exp,
    ExpM1,
    Floor,
    Log,
    Log1P,
    Logistic,
    Negate,
    Round,
    RoundEven,
    Rsqrt,
    Sign,
    Sin,
    Sqrt,
    Tan,
    Tanh,
}

impl Unary {
    pub(super) const ALL: [(&'static str, Self); 20] = [
        ("abs", Self::Abs),
        ("cbrt", Self::Cbrt),
        ("ceil", Self::Ceil),
        ("cosine", Self::Cos),
        ("erf", Self::Erf),
        ("exponential", Self::Exp),
        ("exponential-minus-one", Self::ExpM1),
        ("floor", Self::Floor),
        ("log", Self::Log),
        ("log-plus-one", Self::Log1P),
        ("logistic", Self::Logistic),
        ("negate", Self::Negate),
        ("round-nearest-afz", Self::Round),
        ("round-nearest-even", Self::RoundEven),
        ("rsqrt", Self::Rsqrt),
        ("sign", Self::Sign),
        ("sine", Self::Sin),
        ("sqrt", Self::Sqrt),
        ("tan", Self::Tan),
        ("tanh", Self::Tanh),
    ];

    pub(super) fn is_supported(self, class: Class) -> bool {
        class != Class::I32 || matches!(self, Self::Abs | Self::Negate | Self::Sign)
    }

    /// The cost of one element, in additions.
    pub(super) fn cost(self) -> usize {
        match self {
            Self::Abs | Self::Negate | Self::Floor | Self::Ceil | Self::Round | Self::RoundEven | Self::Sign => 1,
            Self::Sqrt | Self::Rsqrt => 4,
            Self::Exp | Self::Log | Self::Tanh | Self::Logistic => 8,
            _ => 40,
        }
    }
}

/// A function of two elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binary {
    Add,
    Divide,
    Maximum,
    Minimum,
    Multiply,
    Power,
    Subtract,
}

impl Binary {
    pub(super) const ALL: [(&'static str, Self); 7] = [
        ("add", Self::Add),
        ("divide", Self::Divide),
        ("maximum", Self::Maximum),
        ("minimum", Self::Minimum),
        ("multiply", Self::Multiply),
        ("power", Self::Power),
        ("subtract", Self::Subtract),
    ];

    /// Division of integers, whose corner cases differ between processors, is not supported, nor is their power.
    pub(super) fn is_supported(self, class: Class) -> bool {
        class != Class::I32 || !matches!(self, Self::Divide | Self::Power)
    }

    /// The cost of one element, in additions.
    pub(super) fn cost(self) -> usize {
        match self {
            Self::Divide => 4,
            Self::Power => 60,
            _ => 1,
        }
    }
}

/// A function that combines many elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fold {
    Add,
    Maximum,
    Minimum,
    Multiply,
}

/// An element type that is computed.
pub(super) trait Lane: Copy + PartialOrd + Send + Sync + 'static {
    const CLASS: Class;
    /// The type of sums over many blocks.
    type Wide: Copy + PartialOrd + Send + Sync + 'static;

    fn widen(self) -> Self::Wide;
    fn narrow(wide: Self::Wide) -> Self;
    /// The element that changes no other one.
    fn identity(fold: Fold) -> Self;
    fn unary(op: Unary, out: &mut [Self], a: &[Self]);
    fn binary(op: Binary, out: &mut [Self], a: &[Self], b: &[Self]);
    /// Combines the elements, in many interleaved chains.
    fn fold(fold: Fold, elements: &[Self]) -> Self::Wide;
    /// Combines each element of `into` with the one of `row`.
    fn accumulate(fold: Fold, into: &mut [Self], row: &[Self]);
    fn combine(fold: Fold, a: Self::Wide, b: Self::Wide) -> Self::Wide;
}

/// Runs a loop, compiled for the processor's best instruction set.
#[inline(always)]
fn vectorised<R>(body: impl FnOnce() -> R) -> R {
    pulp::Arch::new().dispatch(body)
}

// Loops over numbers: the methods of iterators are functions of their own, which may not be compiled for that set.
#[inline(always)]
fn map<A: Copy, B>(out: &mut [B], a: &[A], f: impl Fn(A) -> B) {
    vectorised(
        #[inline(always)]
        || {
            let count = out.len().min(a.len());
            let (out, a) = (&mut out[..count], &a[..count]);
            for at in 0..count {
                out[at] = f(a[at]);
            }
        },
    );
}

#[inline(always)]
fn map2<T: Copy>(out: &mut [T], a: &[T], b: &[T], f: impl Fn(T, T) -> T) {
    vectorised(
        #[inline(always)]
        || {
            let count = out.len().min(a.len()).min(b.len());
            let (out, a, b) = (&mut out[..count], &a[..count], &b[..count]);
            for at in 0..count {
                out[at] = f(a[at], b[at]);
            }
        },
    );
}

#[inline(always)]
fn map_into<T: Copy>(into: &mut [T], row: &[T], f: impl Fn(T, T) -> T) {
    vectorised(
        #[inline(always)]
        || {
            let count = into.len().min(row.len());
            let (into, row) = (&mut into[..count], &row[..count]);
            for at in 0..count {
                into[at] = f(into[at], row[at]);
            }
        },
    );
}

/// The number of chains of a fold.
const CHAINS: usize = 64;

#[inline(always)]
fn fold_chains<T: Copy>(elements: &[T], identity: T, f: impl Fn(T, T) -> T) -> T {
    vectorised(
        #[inline(always)]
        || {
            let mut chains = [identity; CHAINS];
            // Four elements of each chain at once: the chains are in memory, whose latency is longer than an
            // addition's.
            let (whole, rest) = elements.as_chunks::<{ 4 * CHAINS }>();
            for chunk in whole {
                for at in 0..CHAINS {
                    let first = f(chunk[at], chunk[at + CHAINS]);
                    let second = f(chunk[at + 2 * CHAINS], chunk[at + 3 * CHAINS]);
                    chains[at] = f(chains[at], f(first, second));
                }
            }
            let (whole, rest) = rest.as_chunks::<CHAINS>();
            for chunk in whole {
                for at in 0..CHAINS {
                    chains[at] = f(chains[at], chunk[at]);
                }
            }
            for at in 0..rest.len().min(CHAINS) {
                chains[at] = f(chains[at], rest[at]);
            }
            let mut width = CHAINS / 2;
            while width > 0 {
                for at in 0..width {
                    chains[at] = f(chains[at], chains[at + width]);
                }
                width /= 2;
            }
            chains[0]
        },
    )
}

#[inline(always)]
#[allow(clippy::eq_op, reason = "only NaN differs from itself")]
fn greater<T: PartialOrd + Copy>(a: T, b: T) -> T {
    let larger = if a > b { a } else { b };
    if a != a { a } else { larger }
}

#[inline(always)]
#[allow(clippy::eq_op, reason = "only NaN differs from itself")]
fn lesser<T: PartialOrd + Copy>(a: T, b: T) -> T {
    let smaller = if a < b { a } else { b };
    if a != a { a } else { smaller }
}

/// The function of a fold, for a macro that is given the operation.
macro_rules! with_fold {
    ($fold:expr, $add:expr, $multiply:expr, |$f:ident| $body:expr) => {
        match $fold {
            Fold::Add => {
                let $f = $add;
                $body
            }
            Fold::Maximum => {
                let $f = greater;
                $body
            }
            Fold::Minimum => {
                let $f = lesser;
                $body
            }
            Fold::Multiply => {
                let $f = $multiply;
                $body
            }
        }
    };
}

macro_rules! floats {
    ($($name:ident: $class:ident, $math:ident;)*) => { $(
        impl Lane for $name {
            const CLASS: Class = Class::$class;
            type Wide = f64;

            fn widen(self) -> f64 {
                self.into()
            }

            fn narrow(wide: f64) -> Self {
                wide as $name
            }

            fn identity(fold: Fold) -> Self {
                match fold {
                    Fold::Add => -0.0,
                    Fold::Maximum => $name::NEG_INFINITY,
                    Fold::Minimum => $name::INFINITY,
                    Fold::Multiply => 1.0,
                }
            }

            fn unary(op: Unary, out: &mut [Self], a: &[Self]) {
                match op {
                    Unary::Abs => map(out, a, |x: $name| x.abs()),
                    Unary::Cbrt => map(out, a, |x: $name| x.cbrt()),
                    Unary::Ceil => map(out, a, |x: $name| x.ceil()),
                    Unary::Cos => map(out, a, |x: $name| x.cos()),
                    Unary::Erf => map(out, a, math::$math::erf),
                    Unary::Exp => map(out, a, math::$math::exp),
                    Unary::ExpM1 => map(out, a, |x: $name| x.exp_m1()),
                    Unary::Floor => map(out, a, |x: $name| x.floor()),
                    Unary::Log => map(out, a, math::$math::log),
                    Unary::Log1P => map(out, a, |x: $name| x.ln_1p()),
                    Unary::Logistic => map(out, a, |x: $name| 1.0 / (1.0 + math::$math::exp(-x))),
                    Unary::Negate => map(out, a, |x: $name| -x),
                    Unary::Round => map(out, a, |x: $name| x.round()),
                    Unary::RoundEven => map(out, a, |x: $name| x.round_ties_even()),
                    Unary::Rsqrt => map(out, a, |x: $name| 1.0 / x.sqrt()),
                    Unary::Sign => map(out, a, |x: $name| if x > 0.0 { 1.0 } else if x < 0.0 { -1.0 } else { x }),
                    Unary::Sin => map(out, a, |x: $name| x.sin()),
                    Unary::Sqrt => map(out, a, |x: $name| x.sqrt()),
                    Unary::Tan => map(out, a, |x: $name| x.tan()),
                    Unary::Tanh => map(out, a, math::$math::tanh),
                }
            }

            fn binary(op: Binary, out: &mut [Self], a: &[Self], b: &[Self]) {
                match op {
                    Binary::Add => map2(out, a, b, |a, b| a + b),
                    Binary::Divide => map2(out, a, b, |a, b| a / b),
                    Binary::Maximum => map2(out, a, b, greater),
                    Binary::Minimum => map2(out, a, b, lesser),
                    Binary::Multiply => map2(out, a, b, |a, b| a * b),
                    Binary::Power => map2(out, a, b, $name::powf),
                    Binary::Subtract => map2(out, a, b, |a, b| a - b),
                }
            }

            fn fold(fold: Fold, elements: &[Self]) -> f64 {
                let identity = Self::identity(fold);
                with_fold!(fold, |a: $name, b: $name| a + b, |a: $name, b: $name| a * b, |f| fold_chains(elements, identity, f)).into()
            }

            fn accumulate(fold: Fold, into: &mut [Self], row: &[Self]) {
                with_fold!(fold, |a: $name, b: $name| a + b, |a: $name, b: $name| a * b, |f| map_into(into, row, f));
            }

            fn combine(fold: Fold, a: f64, b: f64) -> f64 {
                with_fold!(fold, |a: f64, b: f64| a + b, |a: f64, b: f64| a * b, |f| f(a, b))
            }
        }
    )* };
}

floats! {
    f32: F32, single;
    f64: F64, double;
}

impl Lane for i32 {
    const CLASS: Class = Class::I32;
    type Wide = i32;

    fn widen(self) -> i32 {
        self
    }

    fn narrow(wide: i32) -> Self {
        wide
    }

    fn identity(fold: Fold) -> Self {
        match fold {
            Fold::Add => 0,
            Fold::Maximum => i32::MIN,
            Fold::Minimum => i32::MAX,
            Fold::Multiply => 1,
        }
    }

    fn unary(op: Unary, out: &mut [Self], a: &[Self]) {
        match op {
            Unary::Abs => map(out, a, i32::wrapping_abs),
            Unary::Negate => map(out, a, i32::wrapping_neg),
            Unary::Sign => map(out, a, i32::signum),
            _ => unreachable!("is_supported()"),
        }
    }

    fn binary(op: Binary, out: &mut [Self], a: &[Self], b: &[Self]) {
        match op {
            Binary::Add => map2(out, a, b, i32::wrapping_add),
            Binary::Maximum => map2(out, a, b, i32::max),
            Binary::Minimum => map2(out, a, b, i32::min),
            Binary::Multiply => map2(out, a, b, i32::wrapping_mul),
            Binary::Subtract => map2(out, a, b, i32::wrapping_sub),
            Binary::Divide | Binary::Power => unreachable!("is_supported()"),
        }
    }

    fn fold(fold: Fold, elements: &[Self]) -> i32 {
        let identity = Self::identity(fold);
        with_fold!(fold, i32::wrapping_add, i32::wrapping_mul, |f| fold_chains(elements, identity, f))
    }

    fn accumulate(fold: Fold, into: &mut [Self], row: &[Self]) {
        with_fold!(fold, i32::wrapping_add, i32::wrapping_mul, |f| map_into(into, row, f));
    }

    fn combine(fold: Fold, a: i32, b: i32) -> i32 {
        with_fold!(fold, i32::wrapping_add, i32::wrapping_mul, |f| f(a, b))
    }
}

pub(super) fn bf16_to_f32(out: &mut [f32], a: &[bf16]) {
    map(out, a, |x: bf16| f32::from_bits(u32::from(x.to_bits()) << 16));
}

/// Rounds to nearest, ties to even.
pub(super) fn f32_to_bf16(out: &mut [bf16], a: &[f32]) {
    map(out, a, |x: f32| {
        let bits = x.to_bits();
        let rounded = (bits.wrapping_add(0x7fff + (bits >> 16 & 1))) >> 16;
        let quiet = bits >> 16 | 0x40;
        bf16::from_bits(if x.is_nan() { quiet } else { rounded } as u16)
    });
}

pub(super) fn f16_to_f32(out: &mut [f32], a: &[f16]) {
    a.convert_to_f32_slice(out);
}

pub(super) fn f32_to_f16(out: &mut [f16], a: &[f32]) {
    out.convert_from_f32_slice(a);
}

pub(super) fn cast<A: Copy, B>(out: &mut [B], a: &[A], f: impl Fn(A) -> B) {
    map(out, a, f);
}
