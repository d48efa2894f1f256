//! Comparisons, and choices by them.

use std::cmp::Ordering;

use crate::Refusal;
use crate::instruction::{Combine, Op, Predicate, SINK, Set, Test};
use crate::number::float::flush;
use crate::number::format::{BF16, F16};
use crate::parse::{Body, Opcode};
use crate::types::{Class, PREDICATE, Type, mask, signed};

/// For which order of the two a comparison holds; `unordered`: one of them is no number.
#[derive(Clone, Copy)]
struct Comparison {
    less: bool,
    equal: bool,
    greater: bool,
    unordered: bool,
    /// Of floats only.
    floats: bool,
    /// Of numbers without a sign.
    unsigned: bool,
}

const fn comparison(less: bool, equal: bool, greater: bool) -> Comparison {
    Comparison { less, equal, greater, unordered: false, floats: false, unsigned: false }
}

const fn or_unordered(less: bool, equal: bool, greater: bool) -> Comparison {
    Comparison { unordered: true, floats: true, ..comparison(less, equal, greater) }
}

const fn without_sign(less: bool, equal: bool, greater: bool) -> Comparison {
    Comparison { unsigned: true, ..comparison(less, equal, greater) }
}

const COMPARISONS: [(&str, Comparison); 18] = [
    ("eq", comparison(false, true, false)),
    ("ne", comparison(true, false, true)),
    ("lt", comparison(true, false, false)),
    ("le", comparison(true, true, false)),
    ("gt", comparison(false, false, true)),
    ("ge", comparison(false, true, true)),
    ("lo", without_sign(true, false, false)),
    ("ls", without_sign(true, true, false)),
    ("hi", without_sign(false, false, true)),
    ("hs", without_sign(false, true, true)),
    ("equ", or_unordered(false, true, false)),
    ("neu", or_unordered(true, false, true)),
    ("ltu", or_unordered(true, false, false)),
    ("leu", or_unordered(true, true, false)),
    ("gtu", or_unordered(false, false, true)),
    ("geu", or_unordered(false, true, true)),
    ("num", Comparison { floats: true, ..comparison(true, true, true) }),
    ("nan", or_unordered(false, false, false)),
];

pub(super) fn decode<'a>(body: &mut Body<'a, '_>, mut opcode: Opcode<'a>) -> Result<Op, Refusal> {
    match opcode.root() {
        "setp" | "set" => set(body, opcode),
        "testp" => test(body, opcode),
        "selp" => {
            let ty = opcode.ty()?;
            opcode.finish()?;
            if ty.is_predicate() || ty.bits < 16 || matches!(ty.class, Class::Halves | Class::Brains | Class::Brain) {
                return Err(opcode.wrong_type());
            }
            let (d, a, b) = (body.destination(ty.bits)?, body.next_source(ty)?, body.next_source(ty)?);
            let p = Predicate { value: body.next_source(PREDICATE)?, negated: false };
            Ok(Op::Select { d, a, b, p })
        }
        _ => {
            // slct.type.s32: a where c is not negative.
            let (ty, by) = (opcode.ty()?, opcode.ty()?);
            opcode.finish()?;
            if by != (Type { class: Class::Signed, bits: 32 }) || ty.bits < 16 || ty.is_predicate() {
                return Err(opcode.wrong_type());
            }
            body.ternary_of(ty.bits, [ty, ty, by], Box::new(|a, b, c| if signed(c, 32) >= 0 { a } else { b }))
        }
    }
}

fn set<'a>(body: &mut Body<'a, '_>, mut opcode: Opcode<'a>) -> Result<Op, Refusal> {
    let is_setp = opcode.root() == "setp";
    let comparison = opcode.expect(&COMPARISONS)?;
    let combine = opcode.one_of(&[("and", Combine::And), ("or", Combine::Or), ("xor", Combine::Xor)]);
    let flushes = opcode.take("ftz");
    // What `set` gives where it holds: all ones, or 1.0.
    let (bits, yes) = match is_setp {
        true => (1, 1),
        false => match opcode.ty()? {
            Type { class: Class::Float, bits: 32 } => (32, u64::from(1.0_f32.to_bits())),
            Type { class: Class::Unsigned | Class::Signed, bits: 32 } => (32, mask(32)),
            _ => return Err(opcode.wrong_type()),
        },
    };
    let ty = opcode.ty()?;
    opcode.finish()?;
    let f = test_of(&opcode, comparison, ty, flushes)?;
    let d = body.destination(bits)?;
    let q = if is_setp && body.text.take('|')? { body.destination(1)? } else { SINK };
    let (a, b) = (body.next_source(ty)?, body.next_source(ty)?);
    let combine = match combine {
        None => None,
        Some(combine) => {
            body.text.expect(',')?;
            Some((combine, body.predicate()?))
        }
    };
    Ok(Op::Set(Box::new(Set { d, q, a, b, combine, yes, f })))
}

fn test_of(opcode: &Opcode<'_>, comparison: Comparison, ty: Type, flushes: bool) -> Result<Test, Refusal> {
    let Comparison { less, equal, greater, unordered, floats, unsigned } = comparison;
    let holds = move |order: Option<Ordering>| match order {
        Some(Ordering::Less) => less,
        Some(Ordering::Equal) => equal,
        Some(Ordering::Greater) => greater,
        None => unordered,
    };
    let is_float = matches!(ty.class, Class::Float | Class::Brain);
    let compares_bits = ty.class == Class::Bits && less == greater;
    if flushes && (ty.class, ty.bits) != (Class::Float, 32) {
        return Err(opcode.refuse("it has no .ftz"));
    }
    if (floats && !is_float) || (unsigned && ty.class != Class::Unsigned) || ty.bits < 16 {
        return Err(opcode.wrong_type());
    }
    Ok(match (ty.class, ty.bits) {
        (Class::Float, 32) => {
            let value = move |bits: u64| {
                let value = f32::from_bits(bits as u32);
                if flushes { flush(value) } else { value }
            };
            Box::new(move |a, b| holds(value(a).partial_cmp(&value(b))))
        }
        (Class::Float, 64) => Box::new(move |a, b| holds(f64::from_bits(a).partial_cmp(&f64::from_bits(b)))),
        (Class::Float, _) => Box::new(move |a, b| holds(F16.value(a).partial_cmp(&F16.value(b)))),
        (Class::Brain, _) => Box::new(move |a, b| holds(BF16.value(a).partial_cmp(&BF16.value(b)))),
        (Class::Signed, bits) => Box::new(move |a, b| holds(Some(signed(a, bits).cmp(&signed(b, bits))))),
        (Class::Unsigned, _) => Box::new(move |a, b| holds(Some(a.cmp(&b)))),
        (Class::Bits, _) if compares_bits => Box::new(move |a, b| holds(Some(a.cmp(&b)))),
        _ => return Err(opcode.wrong_type()),
    })
}

/// Whether a number, which may be a subnormal one, is of a kind.
type Kind = fn(f64, bool) -> bool;

/// `testp`: what kind of number it is.
fn test<'a>(body: &mut Body<'a, '_>, mut opcode: Opcode<'a>) -> Result<Op, Refusal> {
    let kinds: [(&str, Kind); 6] = [
        ("finite", |value, _| value.is_finite()),
        ("infinite", |value, _| value.is_infinite()),
        ("number", |value, _| !value.is_nan()),
        ("notanumber", |value, _| value.is_nan()),
        ("normal", |value, subnormal| value.is_finite() && value != 0.0 && !subnormal),
        ("subnormal", |_, subnormal| subnormal),
    ];
    let kind = opcode.expect(&kinds)?;
    let ty = opcode.ty()?;
    opcode.finish()?;
    if !ty.is_plain_float() {
        return Err(opcode.wrong_type());
    }
    body.unary_to(
        1,
        ty,
        Box::new(move |a| {
            let (value, subnormal) = if ty.bits == 32 {
                let value = f32::from_bits(a as u32);
                (f64::from(value), value.is_subnormal())
            } else {
                (f64::from_bits(a), f64::from_bits(a).is_subnormal())
            };
            u64::from(kind(value, subnormal))
        }),
    )
}
