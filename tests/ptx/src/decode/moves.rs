//! `mov`, `cvta`, `isspacep`: values, addresses, special registers, and vectors as one value.

use crate::Refusal;
use crate::instruction::{Address, Op, Space, Special};
use crate::parse::{Body, Opcode, Token};
use crate::types::{Class, Type, U64};

const SPECIALS: [(&str, Special, u32); 30] = [
    ("%tid.x", Special::Thread(0), 32),
    ("%tid.y", Special::Thread(1), 32),
    ("%tid.z", Special::Thread(2), 32),
    ("%ntid.x", Special::Threads(0), 32),
    ("%ntid.y", Special::Threads(1), 32),
    ("%ntid.z", Special::Threads(2), 32),
    ("%ctaid.x", Special::Block(0), 32),
    ("%ctaid.y", Special::Block(1), 32),
    ("%ctaid.z", Special::Block(2), 32),
    ("%nctaid.x", Special::Blocks(0), 32),
    ("%nctaid.y", Special::Blocks(1), 32),
    ("%nctaid.z", Special::Blocks(2), 32),
    ("%laneid", Special::Lane, 32),
    ("%warpid", Special::Warp, 32),
    ("%nwarpid", Special::Warps, 32),
    ("%lanemask_eq", Special::LanesEqual, 32),
    ("%lanemask_lt", Special::LanesBelow, 32),
    ("%lanemask_le", Special::LanesUpTo, 32),
    ("%lanemask_gt", Special::LanesAbove, 32),
    ("%lanemask_ge", Special::LanesFrom, 32),
    ("%smid", Special::Zero, 32),
    ("%nsmid", Special::One, 32),
    ("%gridid", Special::Zero, 64),
    ("%clock", Special::Clock, 32),
    ("%clock_hi", Special::Zero, 32),
    ("%clock64", Special::Clock, 64),
    ("%dynamic_smem_size", Special::DynamicShared, 32),
    ("%total_smem_size", Special::StaticAndDynamicShared, 32),
    // The clock of the world: as reproducible as the other.
    ("%globaltimer", Special::Timer, 64),
    ("%globaltimer_lo", Special::Timer, 32),
];

const WINDOWS: [(&str, Space); 8] = [
    ("global", Space::Global),
    ("const", Space::Constant),
    ("shared", Space::Shared),
    ("shared::cta", Space::Shared),
    ("local", Space::Local),
    ("param", Space::Parameter),
    ("param::entry", Space::Parameter),
    ("param::func", Space::Parameter),
];

pub(super) fn decode<'a>(body: &mut Body<'a, '_>, opcode: Opcode<'a>) -> Result<Op, Refusal> {
    match opcode.root() {
        "mov" => move_value(body, opcode),
        "cvta" => convert_address(body, opcode),
        _ => is_space(body, opcode),
    }
}

fn move_value<'a>(body: &mut Body<'a, '_>, mut opcode: Opcode<'a>) -> Result<Op, Refusal> {
    let ty = opcode.ty()?;
    opcode.finish()?;
    let is_known = ty.is_predicate() || ty.is_plain_float() || ty.is_integer() && ty.bits >= 16;
    if !is_known {
        return Err(opcode.wrong_type());
    }
    if body.text.peek() == Token::Sign('{') {
        return unpack(body, opcode, ty);
    }
    let d = body.destination(ty.bits)?;
    body.text.expect(',')?;
    match body.text.peek() {
        Token::Sign('{') => {
            let parts = part_type(body, &opcode, ty)?;
            let listed = body.list(|body| body.source(parts))?;
            check_parts(&opcode, listed.len(), parts, ty)?;
            Ok(Op::Pack { d, parts: listed.into(), bits: parts.bits })
        }
        Token::Word(name) => {
            if let Some(&(_, special, bits)) = SPECIALS.iter().find(|(known, ..)| *known == name) {
                body.text.next()?;
                if !ty.is_integer() || ty.bits != bits {
                    return Err(opcode.refuse(format!("{name} has {bits} bits")));
                }
                return Ok(Op::Special { d, special });
            }
            if let Some((address, space)) = variable(body)? {
                let least = if matches!(space, Space::Global | Space::Constant) { 64 } else { 32 };
                if !ty.is_integer() || ty.bits < least {
                    return Err(opcode.wrong_type());
                }
                return Ok(Op::AddressOf { d, address, window: Space::Global });
            }
            Ok(Op::Move { d, a: body.source(ty)? })
        }
        _ => Ok(Op::Move { d, a: body.source(ty)? }),
    }
}

/// The address of the variable that is next, if one is, and its space.
fn variable(body: &mut Body<'_, '_>) -> Result<Option<(Address, Space)>, Refusal> {
    let Token::Word(name) = body.text.peek() else { return Ok(None) };
    if name == "WARP_SZ" {
        return Ok(None);
    }
    let symbol = body.lookup(name)?;
    if symbol.is_register() {
        return Ok(None);
    }
    let (base, offset, space) = body.place(name, symbol)?;
    body.text.next()?;
    Ok(Some((Address { base, offset }, space)))
}

/// The type of a part, by the width of the first register, which is not read yet: parts of a value are 2 or 4.
fn part_type<'a>(body: &mut Body<'a, '_>, opcode: &Opcode<'a>, ty: Type) -> Result<Type, Refusal> {
    let bits = body.first_width()?;
    if !matches!(ty.bits / bits.max(1), 2 | 4) || bits < 16 {
        return Err(opcode.refuse("its parts are not two or four"));
    }
    Ok(Type { class: Class::Bits, bits })
}

fn check_parts(opcode: &Opcode<'_>, count: usize, parts: Type, ty: Type) -> Result<(), Refusal> {
    if count * parts.bits as usize == ty.bits as usize {
        return Ok(());
    }
    Err(opcode.refuse("its parts are more or fewer than the whole"))
}

/// `mov.b64 {a, b}, c`.
fn unpack<'a>(body: &mut Body<'a, '_>, opcode: Opcode<'a>, ty: Type) -> Result<Op, Refusal> {
    let parts = part_type(body, &opcode, ty)?;
    let listed = body.list(|body| body.destination(parts.bits))?;
    check_parts(&opcode, listed.len(), parts, ty)?;
    let a = body.next_source(ty)?;
    Ok(Op::Unpack { parts: listed.into(), a, bits: parts.bits })
}

fn convert_address<'a>(body: &mut Body<'a, '_>, mut opcode: Opcode<'a>) -> Result<Op, Refusal> {
    let from_generic = opcode.take("to");
    let space = opcode.expect(&WINDOWS)?;
    if opcode.ty()? != U64 {
        return Err(opcode.wrong_type());
    }
    opcode.finish()?;
    let d = body.destination(64)?;
    body.text.expect(',')?;
    if !from_generic && let Some((address, found)) = variable(body)? {
        if found != space {
            return Err(opcode.refuse("this variable is in another memory"));
        }
        return Ok(Op::AddressOf { d, address, window: space });
    }
    let a = body.source(U64)?;
    Ok(if from_generic { Op::FromGeneric { d, a, space } } else { Op::ToGeneric { d, a, space } })
}

fn is_space<'a>(body: &mut Body<'a, '_>, mut opcode: Opcode<'a>) -> Result<Op, Refusal> {
    let space = opcode.expect(&WINDOWS)?;
    opcode.finish()?;
    if space == Space::Constant {
        return Err(opcode.refuse("constant and global memory are one here"));
    }
    let d = body.destination(1)?;
    Ok(Op::IsSpace { d, a: body.next_source(U64)?, space })
}
