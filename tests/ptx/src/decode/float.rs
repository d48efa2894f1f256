//! Arithmetic of f32 and f64.
//!
//! A product or sum without a rounding (`mul.f32`, not `mul.rn.f32`) is rounded to the nearest here. A GPU's assembler
//! may make one `fma` of two of them, with another last bit: PTX allows it. A kernel whose bits matter says `.rn`, as
//! the compiler does with `--fmad=false`.

use crate::Refusal;
use crate::instruction::Op;
use crate::number::float::{self, Exact, Function, Mode};
use crate::number::format::Rounding;
use crate::parse::{Body, Opcode};
use crate::types::{Class, Type};

const ROUNDINGS: [(&str, Rounding); 4] =
    [("rn", Rounding::Nearest), ("rz", Rounding::TowardsZero), ("rm", Rounding::Down), ("rp", Rounding::Up)];

pub(super) fn decode<'a>(body: &mut Body<'a, '_>, opcode: Opcode<'a>, ty: Type) -> Result<Op, Refusal> {
    if ty.class != Class::Float || ty.bits < 32 {
        return Err(opcode.wrong_type());
    }
    match opcode.root() {
        "add" => exact(body, opcode, Exact::Add, false),
        "sub" => exact(body, opcode, Exact::Sub, false),
        "mul" => exact(body, opcode, Exact::Mul, false),
        // Since the first chips that have an fma, mad is one.
        "fma" | "mad" => exact(body, opcode, Exact::Fma, true),
        "div" => divide(body, opcode),
        "rcp" => rounded_or_approximate(body, opcode, Exact::Reciprocal, Function::Reciprocal),
        "sqrt" => rounded_or_approximate(body, opcode, Exact::Sqrt, Function::Sqrt),
        "rsqrt" => approximate(body, opcode, Function::ReciprocalSqrt),
        "ex2" => approximate(body, opcode, Function::Exp2),
        "lg2" => approximate(body, opcode, Function::Log2),
        "sin" => approximate(body, opcode, Function::Sin),
        "cos" => approximate(body, opcode, Function::Cos),
        "tanh" => approximate(body, opcode, Function::Tanh),
        "abs" | "neg" => sign(body, opcode),
        "copysign" => copy_sign(body, opcode),
        "min" => extreme(body, opcode, false),
        "max" => extreme(body, opcode, true),
        _ => Err(opcode.wrong_type()),
    }
}

/// `.ftz`, `.sat` and the type; f64 has neither.
fn mode(opcode: &mut Opcode<'_>, rounding: Rounding) -> Result<(Mode, Type), Refusal> {
    let (flushes, saturates) = (opcode.take("ftz"), opcode.take("sat"));
    let ty = opcode.ty()?;
    opcode.finish()?;
    if ty.bits == 64 && (flushes || saturates || rounding != Rounding::Nearest) {
        return Err(opcode.refuse("of f64, only what is rounded to the nearest is known"));
    }
    Ok((Mode { rounding, flushes, saturates }, ty))
}

fn exact<'a>(
    body: &mut Body<'a, '_>,
    mut opcode: Opcode<'a>,
    operation: Exact,
    is_ternary: bool,
) -> Result<Op, Refusal> {
    let rounding = opcode.one_of(&ROUNDINGS);
    if is_ternary && rounding.is_none() {
        return Err(opcode.unknown());
    }
    let (mode, ty) = mode(&mut opcode, rounding.unwrap_or(Rounding::Nearest))?;
    match (is_ternary, ty.bits) {
        (true, 64) => body.ternary(ty, Box::new(move |a, b, c| float::exact_64(operation, a, b, c))),
        (true, _) => body.ternary(ty, Box::new(move |a, b, c| mode.exact_32(operation, a, b, c))),
        (false, 64) => body.binary(ty, Box::new(move |a, b| float::exact_64(operation, a, b, 0))),
        (false, _) => body.binary(ty, Box::new(move |a, b| mode.exact_32(operation, a, b, 0))),
    }
}

fn divide<'a>(body: &mut Body<'a, '_>, mut opcode: Opcode<'a>) -> Result<Op, Refusal> {
    let is_close = opcode.take("approx") || opcode.take("full");
    if !is_close {
        return if opcode.peek().is_some_and(|next| ROUNDINGS.iter().any(|(name, _)| *name == next)) {
            exact(body, opcode, Exact::Div, false)
        } else {
            Err(opcode.unknown())
        };
    }
    let (mode, ty) = mode(&mut opcode, Rounding::Nearest)?;
    if ty.bits == 64 || mode.saturates {
        return Err(opcode.wrong_type());
    }
    body.binary(ty, Box::new(move |a, b| mode.exact_32(Exact::Div, a, b, 0)))
}

fn rounded_or_approximate<'a>(
    body: &mut Body<'a, '_>,
    mut opcode: Opcode<'a>,
    operation: Exact,
    function: Function,
) -> Result<Op, Refusal> {
    if opcode.peek() == Some("approx") {
        return approximate(body, opcode, function);
    }
    let rounding = opcode.expect(&ROUNDINGS)?;
    let (mode, ty) = mode(&mut opcode, rounding)?;
    if mode.saturates {
        return Err(opcode.refuse("it has no .sat"));
    }
    match ty.bits {
        64 => body.unary(ty, Box::new(move |a| float::exact_64(operation, a, 0, 0))),
        _ => body.unary(ty, Box::new(move |a| mode.exact_32(operation, a, 0, 0))),
    }
}

fn approximate<'a>(body: &mut Body<'a, '_>, mut opcode: Opcode<'a>, function: Function) -> Result<Op, Refusal> {
    if !opcode.take("approx") {
        return Err(opcode.unknown());
    }
    let flushes = opcode.take("ftz");
    let ty = opcode.ty()?;
    opcode.finish()?;
    if ty.bits == 64 {
        return match (function, flushes) {
            (Function::Reciprocal | Function::ReciprocalSqrt, true) => {
                body.unary(ty, Box::new(move |a| function.of_upper_half(a)))
            }
            (Function::ReciprocalSqrt, false) => {
                body.unary(ty, Box::new(move |a| float::output_64(function.of(f64::from_bits(a)))))
            }
            _ => Err(opcode.wrong_type()),
        };
    }
    if function == Function::Tanh {
        body.needs(&opcode, 75)?;
        if flushes {
            return Err(opcode.refuse("it has no .ftz"));
        }
    }
    let mode = Mode { rounding: Rounding::Nearest, flushes, saturates: false };
    body.unary(ty, Box::new(move |a| mode.output(function.of(f64::from(mode.input(a))) as f32)))
}

/// `abs` and `neg`: of the sign alone.
fn sign<'a>(body: &mut Body<'a, '_>, mut opcode: Opcode<'a>) -> Result<Op, Refusal> {
    let negates = opcode.root() == "neg";
    let (mode, ty) = mode(&mut opcode, Rounding::Nearest)?;
    if mode.saturates {
        return Err(opcode.refuse("it has no .sat"));
    }
    let sign = 1_u64 << (ty.bits - 1);
    body.unary(
        ty,
        Box::new(move |a| {
            let a = if mode.flushes { u64::from(mode.input(a).to_bits()) } else { a };
            if negates { a ^ sign } else { a & !sign }
        }),
    )
}

/// The magnitude of b with the sign of a.
fn copy_sign<'a>(body: &mut Body<'a, '_>, mut opcode: Opcode<'a>) -> Result<Op, Refusal> {
    let ty = opcode.ty()?;
    opcode.finish()?;
    let sign = 1_u64 << (ty.bits - 1);
    body.binary(ty, Box::new(move |a, b| a & sign | b & !sign))
}

fn extreme<'a>(body: &mut Body<'a, '_>, mut opcode: Opcode<'a>, largest: bool) -> Result<Op, Refusal> {
    let (flushes, keeps_nan) = (opcode.take("ftz"), opcode.take("NaN"));
    let ty = opcode.ty()?;
    opcode.finish()?;
    if keeps_nan {
        body.needs(&opcode, 80)?;
    }
    if ty.bits == 64 {
        if flushes || keeps_nan {
            return Err(opcode.refuse("of f64, neither .ftz nor .NaN is known"));
        }
        let f = move |a, b| float::extreme(f64::from_bits(a), f64::from_bits(b), largest, false);
        return body.binary(ty, Box::new(move |a, b| float::output_64(f(a, b))));
    }
    let mode = Mode { rounding: Rounding::Nearest, flushes, saturates: false };
    body.binary(ty, Box::new(move |a, b| mode.output(float::extreme(mode.input(a), mode.input(b), largest, keeps_nan))))
}
