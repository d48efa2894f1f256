//! What a warp does together.

use crate::Refusal;
use crate::instruction::{Op, Operand, Reduce, Register, SINK, Shuffle, Together, WarpOp};
use crate::parse::{Body, Opcode};
use crate::types::{Class, Type, U32};

const NONE: Operand = Operand::Immediate(0);

pub(super) fn decode<'a>(body: &mut Body<'a, '_>, mut opcode: Opcode<'a>) -> Result<Op, Refusal> {
    match opcode.root() {
        "activemask" => {
            finish(&mut opcode, "b32")?;
            let d = body.destination(32)?;
            Ok(together(WarpOp::ActiveMask, None, d, SINK, [NONE; 3]))
        }
        "shfl" => {
            opcode.expect(&[("sync", ())])?;
            let modes =
                [("up", Shuffle::Up), ("down", Shuffle::Down), ("bfly", Shuffle::Butterfly), ("idx", Shuffle::Index)];
            let how = opcode.expect(&modes)?;
            finish(&mut opcode, "b32")?;
            let (d, p) = destinations(body, 32)?;
            let bits = Type { class: Class::Bits, ..U32 };
            let values = [body.next_source(bits)?, body.next_source(U32)?, body.next_source(U32)?];
            let lanes = body.next_source(U32)?;
            Ok(together(WarpOp::Shuffle(how), Some(lanes), d, p, values))
        }
        "vote" => vote(body, opcode),
        "match" => {
            let any = opcode.expect(&[("any", true), ("all", false)])?;
            opcode.expect(&[("sync", ())])?;
            let ty = opcode.ty()?;
            opcode.finish()?;
            if ty.class != Class::Bits || ty.bits < 32 {
                return Err(opcode.wrong_type());
            }
            body.needs(&opcode, 70)?;
            let (d, p) = if any { (body.destination(32)?, SINK) } else { destinations(body, 32)? };
            let a = body.next_source(ty)?;
            let lanes = body.next_source(U32)?;
            let what = if any { WarpOp::MatchAny(ty.bits) } else { WarpOp::MatchAll(ty.bits) };
            Ok(together(what, Some(lanes), d, p, [a, NONE, NONE]))
        }
        _ => reduce(body, opcode),
    }
}

fn together(what: WarpOp, lanes: Option<Operand>, d: Register, p: Register, [a, b, c]: [Operand; 3]) -> Op {
    Op::Together(Box::new(Together { what, lanes, d, p, a, b, c }))
}

fn finish(opcode: &mut Opcode<'_>, last: &str) -> Result<(), Refusal> {
    opcode.expect(&[(last, ())])?;
    opcode.finish()
}

/// `d`, or `d|p`.
fn destinations(body: &mut Body<'_, '_>, bits: u32) -> Result<(Register, Register), Refusal> {
    let d = body.destination(bits)?;
    let p = if body.text.take('|')? { body.destination(1)? } else { SINK };
    Ok((d, p))
}

fn vote<'a>(body: &mut Body<'a, '_>, mut opcode: Opcode<'a>) -> Result<Op, Refusal> {
    opcode.expect(&[("sync", ())])?;
    let modes = [
        ("all", WarpOp::VoteAll),
        ("any", WarpOp::VoteAny),
        ("uni", WarpOp::VoteUniform),
        ("ballot", WarpOp::VoteBallot),
    ];
    let what = opcode.expect(&modes)?;
    let (last, bits) = if what == WarpOp::VoteBallot { ("b32", 32) } else { ("pred", 1) };
    finish(&mut opcode, last)?;
    let d = body.destination(bits)?;
    body.text.expect(',')?;
    let predicate = body.predicate()?;
    let lanes = body.next_source(U32)?;
    let negated = Operand::Immediate(u64::from(predicate.negated));
    Ok(together(what, Some(lanes), d, SINK, [predicate.value, negated, NONE]))
}

fn reduce<'a>(body: &mut Body<'a, '_>, mut opcode: Opcode<'a>) -> Result<Op, Refusal> {
    opcode.expect(&[("sync", ())])?;
    let name = opcode.peek().unwrap_or_default();
    opcode.expect(&["add", "min", "max", "and", "or", "xor"].map(|known| (known, ())))?;
    let ty = opcode.ty()?;
    opcode.finish()?;
    let signed = ty.is_signed();
    let is_number = matches!(ty.class, Class::Unsigned | Class::Signed);
    let reduce = match name {
        "add" if is_number => Reduce::Add,
        "min" if is_number => Reduce::Min { signed },
        "max" if is_number => Reduce::Max { signed },
        "and" if ty.class == Class::Bits => Reduce::And,
        "or" if ty.class == Class::Bits => Reduce::Or,
        "xor" if ty.class == Class::Bits => Reduce::Xor,
        _ => return Err(opcode.wrong_type()),
    };
    if ty.bits != 32 {
        return Err(opcode.wrong_type());
    }
    body.needs(&opcode, 80)?;
    let d = body.destination(32)?;
    let ty = Type { class: Class::Bits, ..ty };
    let a = body.next_source(ty)?;
    let lanes = body.next_source(U32)?;
    Ok(together(WarpOp::Reduce(reduce), Some(lanes), d, SINK, [a, NONE, NONE]))
}
