//! `cvt`.

use crate::Refusal;
use crate::instruction::Op;
use crate::number::convert::{Conversion, small};
use crate::number::format::{Rounding, TF32};
use crate::parse::{Body, Opcode};
use crate::types::{Class, Type};

use super::eighths;

const F32: Type = Type { class: Class::Float, bits: 32 };

/// The rounding of a fraction, and, `true`, to a whole number.
const ROUNDINGS: [(&str, (Rounding, bool)); 9] = [
    ("rn", (Rounding::Nearest, false)),
    ("rna", (Rounding::NearestAway, false)),
    ("rz", (Rounding::TowardsZero, false)),
    ("rm", (Rounding::Down, false)),
    ("rp", (Rounding::Up, false)),
    ("rni", (Rounding::Nearest, true)),
    ("rzi", (Rounding::TowardsZero, true)),
    ("rmi", (Rounding::Down, true)),
    ("rpi", (Rounding::Up, true)),
];

pub(super) fn decode<'a>(body: &mut Body<'a, '_>, mut opcode: Opcode<'a>) -> Result<Op, Refusal> {
    let rounding = opcode.one_of(&ROUNDINGS);
    if rounding == Some((Rounding::Nearest, false)) && opcode.take("satfinite") {
        return eighths::narrow(body, opcode);
    }
    let clamps = opcode.take("relu");
    let (flushes, saturates) = (opcode.take("ftz"), opcode.take("sat"));
    if let (Some((rounding, false)), false, false) = (rounding, flushes, saturates) {
        if opcode.take("tf32") {
            return tf32(body, opcode, rounding, clamps);
        }
        if opcode.peek().is_some_and(|next| next.ends_with("x2")) {
            return pair(body, opcode, rounding, clamps);
        }
    }
    let (to, from) = (opcode.ty()?, opcode.ty()?);
    opcode.finish()?;
    let is_known = |ty: Type| {
        let is_number = matches!(ty.class, Class::Unsigned | Class::Signed);
        is_number || (ty.class == Class::Float) || ty.class == Class::Brain
    };
    if !is_known(to) || !is_known(from) || clamps && (to.bits != 16 || to.is_integer()) {
        return Err(opcode.wrong_type());
    }
    if [to, from].iter().any(|ty| ty.class == Class::Brain) {
        body.needs(&opcode, 80)?;
    }
    let (rounding, to_whole) = roundings(&opcode, to, from, rounding)?;
    let (d, register_bits) = body.destination_with_width(to.bits, if to.is_integer() { 64 } else { to.bits })?;
    body.text.expect(',')?;
    let a = body.source_of(from, if from.is_integer() { 64 } else { from.bits })?;
    let conversion = Conversion { to, from, rounding, to_whole, flushes, saturates, register_bits };
    Ok(match clamps {
        false => Op::Unary { d, a, f: Box::new(move |a| conversion.convert(a)) },
        true => Op::Unary { d, a, f: Box::new(move |a| clamped(conversion.convert(a), to.class)) },
    })
}

/// `.relu`: what is below zero is zero.
fn clamped(bits: u64, class: Class) -> u64 {
    if bits >> 15 & 1 == 1 && !small(class).value(bits).is_nan() { 0 } else { bits }
}

/// Which of the two roundings there must be, and that no other is.
fn roundings(
    opcode: &Opcode<'_>,
    to: Type,
    from: Type,
    given: Option<(Rounding, bool)>,
) -> Result<(Rounding, Option<Rounding>), Refusal> {
    // bf16 has the exponents of f32: neither it nor f16 has all numbers of the other.
    let narrows = to.bits < from.bits || to.bits == from.bits && to.class != from.class;
    match (from.is_integer(), to.is_integer(), given) {
        (true, true, None) => Ok((Rounding::Nearest, None)),
        (true, false, Some((rounding, false))) if to.bits < 64 || rounding == Rounding::Nearest => Ok((rounding, None)),
        (false, true, Some((rounding, true))) => Ok((Rounding::Nearest, Some(rounding))),
        (false, false, None) if !narrows => Ok((Rounding::Nearest, None)),
        (false, false, Some((rounding, false))) if narrows => Ok((rounding, None)),
        (false, false, Some((rounding, true))) if to == from => Ok((Rounding::Nearest, Some(rounding))),
        _ => Err(opcode.refuse("this rounding is not known between these types")),
    }
}

/// `cvt.rn.f16x2.f32 d, a, b`: a becomes the upper half.
fn pair<'a>(body: &mut Body<'a, '_>, mut opcode: Opcode<'a>, rounding: Rounding, clamps: bool) -> Result<Op, Refusal> {
    let to = opcode.ty()?;
    let eighth = eighths::FORMATS.iter().find(|(name, _)| opcode.peek() == Some(name));
    if let Some(&(_, format)) = eighth.filter(|_| to.class == Class::Halves && rounding == Rounding::Nearest) {
        return eighths::widen(body, opcode, format, clamps);
    }
    body.needs(&opcode, 80)?;
    if !matches!(to.class, Class::Halves | Class::Brains) || opcode.ty()? != F32 {
        return Err(opcode.wrong_type());
    }
    opcode.finish()?;
    let half = move |bits: u64| {
        let bits = small(to.class).round(f64::from(f32::from_bits(bits as u32)), rounding);
        if clamps { clamped(bits, to.class) } else { bits }
    };
    body.binary(F32, Box::new(move |a, b| half(a) << 16 | half(b)))
}

/// An f32 whose last 13 bits are zero.
fn tf32<'a>(body: &mut Body<'a, '_>, mut opcode: Opcode<'a>, rounding: Rounding, clamps: bool) -> Result<Op, Refusal> {
    if opcode.ty()? != F32 || !matches!(rounding, Rounding::Nearest | Rounding::NearestAway | Rounding::TowardsZero) {
        return Err(opcode.wrong_type());
    }
    opcode.finish()?;
    body.needs(&opcode, 80)?;
    body.unary(
        F32,
        Box::new(move |a| {
            let value = f32::from_bits(a as u32);
            let bits = TF32.round(f64::from(if clamps && value < 0.0 { 0.0 } else { value }), rounding);
            bits << 13
        }),
    )
}
