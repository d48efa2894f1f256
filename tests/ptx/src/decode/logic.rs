//! Bits: logic, shifts, permutations.

use crate::Refusal;
use crate::instruction::{Op, Operand};
use crate::number::integer::{self, Permute};
use crate::parse::{Body, Opcode};
use crate::types::{Class, Type, U32, mask, signed};

pub(super) fn decode<'a>(body: &mut Body<'a, '_>, mut opcode: Opcode<'a>) -> Result<Op, Refusal> {
    match opcode.root() {
        "shf" => funnel(body, opcode),
        "lop3" => look_up(body, opcode),
        "prmt" => permute(body, opcode),
        root => {
            let ty = opcode.ty()?;
            opcode.finish()?;
            let all = mask(ty.bits);
            let shifts = matches!(root, "shl" | "shr");
            let is_known = ty.is_integer() && ty.bits >= 16 && (ty.class == Class::Bits || root == "shr");
            if !is_known && (shifts || !ty.is_predicate()) {
                return Err(opcode.wrong_type());
            }
            match root {
                "and" => body.binary(ty, Box::new(|a, b| a & b)),
                "or" => body.binary(ty, Box::new(|a, b| a | b)),
                "xor" => body.binary(ty, Box::new(|a, b| a ^ b)),
                "not" => body.unary(ty, Box::new(move |a| !a & all)),
                "cnot" if !ty.is_predicate() => body.unary(ty, Box::new(|a| u64::from(a == 0))),
                "shl" => body.binary_of(ty.bits, ty, U32, Box::new(move |a, by| shifted_left(a, by, ty))),
                "shr" => body.binary_of(ty.bits, ty, U32, Box::new(move |a, by| shifted_right(a, by, ty))),
                _ => Err(opcode.wrong_type()),
            }
        }
    }
}

fn shifted_left(a: u64, by: u64, ty: Type) -> u64 {
    if by >= u64::from(ty.bits) { 0 } else { a << by & mask(ty.bits) }
}

fn shifted_right(a: u64, by: u64, ty: Type) -> u64 {
    if ty.is_signed() {
        let by = by.min(u64::from(ty.bits - 1));
        (signed(a, ty.bits) >> by) as u64 & mask(ty.bits)
    } else if by >= u64::from(ty.bits) {
        0
    } else {
        a >> by
    }
}

const B32: Type = Type { class: Class::Bits, bits: 32 };

/// The type is b32, and there is nothing behind it.
fn finish_b32(opcode: &mut Opcode<'_>) -> Result<(), Refusal> {
    if opcode.ty()? != B32 {
        return Err(opcode.wrong_type());
    }
    opcode.finish()
}

fn funnel<'a>(body: &mut Body<'a, '_>, mut opcode: Opcode<'a>) -> Result<Op, Refusal> {
    let left = opcode.expect(&[("l", true), ("r", false)])?;
    let clamps = opcode.expect(&[("clamp", true), ("wrap", false)])?;
    finish_b32(&mut opcode)?;
    body.ternary_of(32, [B32, B32, U32], Box::new(move |a, b, by| integer::funnel(a, b, by, left, clamps)))
}

fn look_up<'a>(body: &mut Body<'a, '_>, mut opcode: Opcode<'a>) -> Result<Op, Refusal> {
    finish_b32(&mut opcode)?;
    let (d, a, b, c) = (body.destination(32)?, body.next_source(B32)?, body.next_source(B32)?, body.next_source(B32)?);
    let Operand::Immediate(table @ 0..=255) = body.next_source(U32)? else {
        return Err(opcode.refuse("its table is a number from 0 to 255"));
    };
    Ok(Op::Ternary { d, a, b, c, f: Box::new(move |a, b, c| integer::look_up(a, b, c, table as u8)) })
}

fn permute<'a>(body: &mut Body<'a, '_>, mut opcode: Opcode<'a>) -> Result<Op, Refusal> {
    if opcode.ty()? != B32 {
        return Err(opcode.wrong_type());
    }
    let modes = [
        ("f4e", Permute::Forward),
        ("b4e", Permute::Backward),
        ("rc8", Permute::ReplicateByte),
        ("ecl", Permute::ClampLeft),
        ("ecr", Permute::ClampRight),
        ("rc16", Permute::ReplicateHalf),
    ];
    let mode = opcode.one_of(&modes).unwrap_or(Permute::Any);
    opcode.finish()?;
    body.ternary(B32, Box::new(move |a, b, selector| integer::permute(a, b, selector, mode)))
}
