//! `ld`, `st`, `atom`, `red`, `prefetch`.
//!
//! How a cache is to be used, and in which order and scope others see an access, makes no difference here: one thread
//! runs at a time, and each sees all that was written before.

use crate::Refusal;
use crate::instruction::{Access, Op, Operand, SINK, Space, Ternary};
use crate::number::float::{Exact, Mode, exact_64};
use crate::number::format::Rounding;
use crate::parse::{Body, Opcode};
use crate::types::{Class, Type, mask, signed};

use super::halves;

const SPACES: [(&str, Space); 8] = [
    ("global", Space::Global),
    ("const", Space::Constant),
    ("shared", Space::Shared),
    ("shared::cta", Space::Shared),
    ("local", Space::Local),
    ("param", Space::Parameter),
    ("param::entry", Space::Parameter),
    ("param::func", Space::Parameter),
];
/// Order, scope, caches. `true`: other threads may access the same at the same time.
const HINTS: [(&str, bool); 24] = [
    ("weak", false),
    ("volatile", true),
    ("relaxed", true),
    ("acquire", true),
    ("release", true),
    ("acq_rel", true),
    ("cta", false),
    ("cluster", false),
    ("gpu", false),
    ("sys", false),
    ("ca", false),
    ("cg", false),
    ("cs", false),
    ("lu", false),
    ("cv", false),
    ("wb", false),
    ("wt", false),
    ("L1::evict_normal", false),
    ("L1::evict_first", false),
    ("L1::evict_last", false),
    ("L1::no_allocate", false),
    ("L2::64B", false),
    ("L2::128B", false),
    ("L2::256B", false),
];

pub(super) fn decode<'a>(body: &mut Body<'a, '_>, opcode: Opcode<'a>) -> Result<Op, Refusal> {
    match opcode.root() {
        "ld" | "ldu" => load(body, opcode),
        "st" => store(body, opcode),
        "atom" => atomic(body, opcode, true),
        "red" => atomic(body, opcode, false),
        _ => prefetch(body, opcode),
    }
}

/// The space, which is generic if none is named, and whether a hint beside it says that others may access the same.
fn space(opcode: &mut Opcode<'_>) -> (Space, bool) {
    let mut is_strong = false;
    let mut hints = |opcode: &mut Opcode<'_>| {
        while let Some(strong) = opcode.one_of(&HINTS) {
            is_strong |= strong;
        }
    };
    hints(opcode);
    let space = opcode.one_of(&SPACES).unwrap_or(Space::Generic);
    hints(opcode);
    (space, is_strong)
}

/// The vector's length and the element's type, which end the opcode.
fn shape(opcode: &mut Opcode<'_>) -> Result<(u8, Type), Refusal> {
    let count = opcode.one_of(&[("v2", 2), ("v4", 4)]).unwrap_or(1);
    let ty = opcode.ty()?;
    opcode.finish()?;
    let is_known = ty.is_integer() || ty.is_plain_float();
    if !is_known || ty.size_bytes() * usize::from(count) > 16 {
        return Err(opcode.wrong_type());
    }
    Ok((count, ty))
}

fn load<'a>(body: &mut Body<'a, '_>, mut opcode: Opcode<'a>) -> Result<Op, Refusal> {
    let (space, is_strong) = space(&mut opcode);
    if opcode.take("nc") && space != Space::Global {
        return Err(opcode.refuse("only global memory is read with .nc"));
    }
    while opcode.one_of(&HINTS).is_some() {}
    let (count, ty) = shape(&mut opcode)?;
    let most = if ty.is_integer() { 64 } else { ty.bits };
    let listed = body.list(|body| body.destination_with_width(ty.bits, most))?;
    let bits = listed.iter().find(|(register, _)| *register != SINK).map_or(64, |(_, bits)| *bits);
    if listed.len() != usize::from(count) || listed.iter().any(|&(register, other)| register != SINK && other != bits) {
        return Err(opcode.refuse("its registers are not as many, or not as wide, as its elements"));
    }
    body.text.expect(',')?;
    let address = body.address(space)?;
    let access = Access { space, size_bytes: ty.size_bytes() as u8, count, is_strong, address };
    let into = listed.into_iter().map(|(register, _)| register).collect();
    Ok(Op::Load { access, into, sign_bits: if ty.is_signed() { bits as u8 } else { 0 } })
}

fn store<'a>(body: &mut Body<'a, '_>, mut opcode: Opcode<'a>) -> Result<Op, Refusal> {
    let (space, is_strong) = space(&mut opcode);
    if space == Space::Constant {
        return Err(opcode.refuse("constant memory cannot be written"));
    }
    let (count, ty) = shape(&mut opcode)?;
    let address = body.address(space)?;
    body.text.expect(',')?;
    let most = if ty.is_integer() { 64 } else { ty.bits };
    let from = body.list(|body| body.source_of(ty, most))?;
    if from.len() != usize::from(count) {
        return Err(opcode.refuse("its registers are not as many as its elements"));
    }
    let access = Access { space, size_bytes: ty.size_bytes() as u8, count, is_strong, address };
    Ok(Op::Store { access, from: from.into() })
}

fn prefetch<'a>(body: &mut Body<'a, '_>, mut opcode: Opcode<'a>) -> Result<Op, Refusal> {
    let (space, _) = space(&mut opcode);
    opcode.expect(&[("L1", ()), ("L2", ()), ("L2::evict_last", ()), ("L2::evict_normal", ())])?;
    opcode.finish()?;
    body.address(space)?;
    Ok(Op::Nothing)
}

/// What an atomic operation does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Atomic {
    Add,
    And,
    Or,
    Xor,
    Min,
    Max,
    Increment,
    Decrement,
    Exchange,
    CompareAndSwap,
}

const ATOMICS: [(&str, Atomic); 10] = [
    ("add", Atomic::Add),
    ("and", Atomic::And),
    ("or", Atomic::Or),
    ("xor", Atomic::Xor),
    ("min", Atomic::Min),
    ("max", Atomic::Max),
    ("inc", Atomic::Increment),
    ("dec", Atomic::Decrement),
    ("exch", Atomic::Exchange),
    ("cas", Atomic::CompareAndSwap),
];

/// `atom`, or, without a result, `red`.
fn atomic<'a>(body: &mut Body<'a, '_>, mut opcode: Opcode<'a>, has_result: bool) -> Result<Op, Refusal> {
    let (space, _) = space(&mut opcode);
    if !matches!(space, Space::Generic | Space::Global | Space::Shared) {
        return Err(opcode.refuse("it works on global and shared memory"));
    }
    let operation = opcode.expect(&ATOMICS)?;
    let noftz = opcode.take("noftz");
    let ty = opcode.ty()?;
    opcode.finish()?;
    let is_small = !ty.is_integer() && !ty.is_plain_float();
    if noftz != is_small || !has_result && matches!(operation, Atomic::Exchange | Atomic::CompareAndSwap) {
        return Err(opcode.refuse("this is not known of this type"));
    }
    let f = function(operation, ty).ok_or_else(|| opcode.wrong_type())?;
    let least = match (ty.class, ty.bits) {
        (Class::Brain | Class::Brains, _) => 90,
        (Class::Bits, 16) | (Class::Float, 16) => 70,
        (Class::Float, 64) | (Class::Halves, _) => 60,
        _ => 50,
    };
    body.needs(&opcode, least)?;
    let d = if has_result {
        let d = body.destination(ty.bits)?;
        body.text.expect(',')?;
        d
    } else {
        SINK
    };
    let address = body.address(space)?;
    let b = body.next_source(ty)?;
    let c = if operation == Atomic::CompareAndSwap { body.next_source(ty)? } else { Operand::Immediate(0) };
    let access = Access { space, size_bytes: ty.size_bytes() as u8, count: 1, is_strong: false, address };
    Ok(Op::Atomic { access, d, b, c, f })
}

/// What is written, of what is there and the operands; `None`: there is no such thing.
fn function(operation: Atomic, ty: Type) -> Option<Ternary> {
    let (bits, all) = (ty.bits, mask(ty.bits));
    let is_number = matches!(ty.class, Class::Unsigned | Class::Signed);
    let is_bits = ty.class == Class::Bits;
    let below = move |a, b| if ty.is_signed() { signed(a, bits) < signed(b, bits) } else { a < b };
    Some(match operation {
        Atomic::CompareAndSwap if is_bits && bits >= 16 => Box::new(|there, b, c| if there == b { c } else { there }),
        Atomic::Exchange if is_bits && bits >= 32 => Box::new(|_, b, _| b),
        Atomic::And if is_bits && bits >= 32 => Box::new(|there, b, _| there & b),
        Atomic::Or if is_bits && bits >= 32 => Box::new(|there, b, _| there | b),
        Atomic::Xor if is_bits && bits >= 32 => Box::new(|there, b, _| there ^ b),
        Atomic::Add if is_number && bits >= 32 => Box::new(move |there, b, _| there.wrapping_add(b) & all),
        Atomic::Min if is_number && bits >= 32 => Box::new(move |there, b, _| if below(b, there) { b } else { there }),
        Atomic::Max if is_number && bits >= 32 => Box::new(move |there, b, _| if below(there, b) { b } else { there }),
        Atomic::Increment if is_number && !ty.is_signed() && bits == 32 => {
            Box::new(|there, b, _| if there >= b { 0 } else { there + 1 })
        }
        Atomic::Decrement if is_number && !ty.is_signed() && bits == 32 => {
            Box::new(|there, b, _| if there == 0 || there > b { b } else { there - 1 })
        }
        Atomic::Add if ty.class == Class::Float && bits == 64 => {
            Box::new(|there, b, _| exact_64(Exact::Add, there, b, 0))
        }
        // In global memory subnormal numbers are flushed on chips of old; since sm_70, say, they are not.
        Atomic::Add if ty.class == Class::Float && bits == 32 => {
            let mode = Mode { rounding: Rounding::Nearest, flushes: false, saturates: false };
            Box::new(move |there, b, _| mode.exact_32(Exact::Add, there, b, 0))
        }
        Atomic::Add if !ty.is_integer() && !ty.is_predicate() => {
            let sum = halves::sum(ty);
            Box::new(move |there, b, _| sum(there, b))
        }
        _ => return None,
    })
}
