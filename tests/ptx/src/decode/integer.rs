//! Arithmetic of whole numbers.

use crate::Refusal;
use crate::instruction::{Carry, CarryKind, Op, Operand};
use crate::number::integer;
use crate::parse::{Body, Opcode};
use crate::types::{Class, Type, U32, mask, signed};

/// Which part of a product is kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Low,
    High,
    Wide,
}

const PARTS: [(&str, Part); 3] = [("lo", Part::Low), ("hi", Part::High), ("wide", Part::Wide)];

pub(super) fn decode<'a>(body: &mut Body<'a, '_>, mut opcode: Opcode<'a>, ty: Type) -> Result<Op, Refusal> {
    let is_number = matches!(ty.class, Class::Unsigned | Class::Signed) && ty.bits >= 16;
    let is_bits = ty.class == Class::Bits && ty.bits >= 32;
    match opcode.root() {
        "popc" | "clz" | "brev" | "bfi" if is_bits => {}
        "popc" | "clz" | "brev" | "bfi" => return Err(opcode.wrong_type()),
        _ if !is_number => return Err(opcode.wrong_type()),
        _ => {}
    }
    match opcode.root() {
        "add" | "addc" | "sub" | "subc" => sum(body, opcode),
        "mul" => product(body, opcode),
        "mad" | "madc" => product_and_sum(body, opcode),
        "bfind" => {
            let shifts = opcode.take("shiftamt");
            finish(&mut opcode)?;
            body.unary_to(32, ty, Box::new(move |a| integer::highest_bit(a, ty, shifts)))
        }
        "dp4a" => dot_product(body, opcode),
        root => {
            finish(&mut opcode)?;
            simple(body, root, ty).unwrap_or_else(|| Err(opcode.wrong_type()))
        }
    }
}

/// The type, and nothing else.
fn finish(opcode: &mut Opcode<'_>) -> Result<Type, Refusal> {
    let ty = opcode.ty()?;
    opcode.finish()?;
    Ok(ty)
}

/// Those that have no modifier but their type.
fn simple(body: &mut Body<'_, '_>, root: &str, ty: Type) -> Option<Result<Op, Refusal>> {
    let (bits, all) = (ty.bits, mask(ty.bits));
    let wide = move |a| signed(a, bits);
    Some(match root {
        "div" => body.binary(ty, Box::new(move |a, b| integer::divide(a, b, ty).0)),
        "rem" => body.binary(ty, Box::new(move |a, b| integer::divide(a, b, ty).1)),
        "abs" if ty.is_signed() => body.unary(ty, Box::new(move |a| wide(a).unsigned_abs() & all)),
        "neg" if ty.is_signed() => body.unary(ty, Box::new(move |a| a.wrapping_neg() & all)),
        "min" if ty.is_signed() => body.binary(ty, Box::new(move |a, b| if wide(a) < wide(b) { a } else { b })),
        "max" if ty.is_signed() => body.binary(ty, Box::new(move |a, b| if wide(a) > wide(b) { a } else { b })),
        "min" => body.binary(ty, Box::new(u64::min)),
        "max" => body.binary(ty, Box::new(u64::max)),
        "sad" => body.ternary(
            ty,
            Box::new(move |a, b, c| {
                let apart = if ty.is_signed() { wide(a).abs_diff(wide(b)) } else { a.abs_diff(b) };
                apart.wrapping_add(c) & all
            }),
        ),
        "popc" => body.unary_to(32, ty, Box::new(|a| u64::from(a.count_ones()))),
        "clz" => body.unary_to(32, ty, Box::new(move |a| u64::from(a.leading_zeros() + bits - 64))),
        "brev" => body.unary(ty, Box::new(move |a| a.reverse_bits() >> (64 - bits))),
        "bfe" if bits >= 32 => {
            body.ternary_of(bits, [ty, U32, U32], Box::new(move |a, at, count| integer::extract(a, at, count, ty)))
        }
        "bfi" => insert(body, ty),
        _ => return None,
    })
}

/// `add`, `sub`, with saturation or the carry flag.
fn sum<'a>(body: &mut Body<'a, '_>, mut opcode: Opcode<'a>) -> Result<Op, Refusal> {
    let takes = matches!(opcode.root(), "addc" | "subc");
    let adds = opcode.root().starts_with("add");
    let saturates = !takes && opcode.take("sat");
    let sets = !saturates && opcode.take("cc");
    let ty = finish(&mut opcode)?;
    let (bits, all) = (ty.bits, mask(ty.bits));
    if saturates {
        if ty.bits != 32 || !ty.is_signed() {
            return Err(opcode.wrong_type());
        }
        let clamped = |sum: i64| sum.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as u64 & mask(32);
        return body.binary(
            ty,
            Box::new(move |a, b| {
                let (a, b) = (signed(a, 32), signed(b, 32));
                clamped(if adds { a + b } else { a - b })
            }),
        );
    }
    if takes || sets {
        if bits < 32 {
            return Err(opcode.wrong_type());
        }
        let kind = if adds { CarryKind::Add } else { CarryKind::Sub };
        let (d, a, b) = (body.destination(bits)?, body.next_source(ty)?, body.next_source(ty)?);
        return Ok(Op::Carry { d, a, b, c: Operand::Immediate(0), carry: Carry { kind, bits, takes, sets } });
    }
    match adds {
        true => body.binary(ty, Box::new(move |a, b| a.wrapping_add(b) & all)),
        false => body.binary(ty, Box::new(move |a, b| a.wrapping_sub(b) & all)),
    }
}

fn product<'a>(body: &mut Body<'a, '_>, mut opcode: Opcode<'a>) -> Result<Op, Refusal> {
    let part = opcode.expect(&PARTS)?;
    let ty = finish(&mut opcode)?;
    let (bits, all) = (ty.bits, mask(ty.bits));
    match part {
        Part::Low => body.binary(ty, Box::new(move |a, b| a.wrapping_mul(b) & all)),
        Part::High => body.binary(ty, Box::new(move |a, b| integer::product_high(a, b, ty))),
        Part::Wide if bits > 32 => Err(opcode.wrong_type()),
        Part::Wide => body.binary_of(2 * bits, ty, ty, Box::new(move |a, b| integer::product_wide(a, b, ty))),
    }
}

fn product_and_sum<'a>(body: &mut Body<'a, '_>, mut opcode: Opcode<'a>) -> Result<Op, Refusal> {
    let takes = opcode.root() == "madc";
    let part = opcode.expect(&PARTS)?;
    let sets = opcode.take("cc");
    let ty = finish(&mut opcode)?;
    let (bits, all) = (ty.bits, mask(ty.bits));
    if takes || sets {
        let kind = match part {
            Part::Low => CarryKind::MadLow,
            Part::High => CarryKind::MadHigh { signed: ty.is_signed() },
            Part::Wide => return Err(opcode.refuse("the carry flag is not known here")),
        };
        if bits < 32 {
            return Err(opcode.wrong_type());
        }
        let (d, a) = (body.destination(bits)?, body.next_source(ty)?);
        let (b, c) = (body.next_source(ty)?, body.next_source(ty)?);
        return Ok(Op::Carry { d, a, b, c, carry: Carry { kind, bits, takes, sets } });
    }
    match part {
        Part::Low => body.ternary(ty, Box::new(move |a, b, c| a.wrapping_mul(b).wrapping_add(c) & all)),
        Part::High => body.ternary(ty, Box::new(move |a, b, c| integer::product_high(a, b, ty).wrapping_add(c) & all)),
        Part::Wide if bits > 32 => Err(opcode.wrong_type()),
        Part::Wide => {
            let all = mask(2 * bits);
            let types = [ty, ty, ty.widened(2 * bits)];
            let f = move |a, b, c| integer::product_wide(a, b, ty).wrapping_add(c) & all;
            body.ternary_of(2 * bits, types, Box::new(f))
        }
    }
}

/// `bfi d, a, b, at, count`, whose four sources are one too many: constants for the last two are resolved here.
fn insert(body: &mut Body<'_, '_>, ty: Type) -> Result<Op, Refusal> {
    let (d, a, b) = (body.destination(ty.bits)?, body.next_source(ty)?, body.next_source(ty)?);
    let (at, count) = (body.next_source(U32)?, body.next_source(U32)?);
    match (at, count) {
        (Operand::Immediate(at), Operand::Immediate(count)) => {
            let bits = ty.bits;
            Ok(Op::Binary { d, a, b, f: Box::new(move |a, b| integer::insert(a, b, at, count, bits)) })
        }
        _ => Ok(Op::Insert { d, a, b, at, count, bits: ty.bits }),
    }
}

/// The sum of the products of four bytes, and `c`.
fn dot_product<'a>(body: &mut Body<'a, '_>, mut opcode: Opcode<'a>) -> Result<Op, Refusal> {
    let a = opcode.ty()?;
    let b = finish(&mut opcode)?;
    if a.bits != 32 || b.bits != 32 || !a.is_integer() || a.class == Class::Bits {
        return Err(opcode.wrong_type());
    }
    body.needs(&opcode, 61)?;
    let byte = |value: u64, index: u32, ty: Type| {
        let byte = value >> (8 * index) & 0xff;
        if ty.is_signed() { signed(byte, 8) } else { byte as i64 }
    };
    let c = if a.is_signed() || b.is_signed() { Type { class: Class::Signed, ..U32 } } else { U32 };
    body.ternary_of(
        32,
        [a, b, c],
        Box::new(move |x, y, z| {
            let sum: i64 = (0..4).map(|index| byte(x, index, a) * byte(y, index, b)).sum();
            z.wrapping_add(sum as u64) & mask(32)
        }),
    )
}
