//! `cvt` of two floats of 8 bits, e4m3 or e5m2, from and to those of 32 and 16.

use crate::Refusal;
use crate::instruction::Op;
use crate::number::format::{E4M3, E5M2, F16, Format, Rounding};
use crate::parse::{Body, Opcode};
use crate::types::{Class, Type};

const F32: Type = Type { class: Class::Float, bits: 32 };
const PAIR: Type = Type { class: Class::Bits, bits: 16 };
const HALVES: Type = Type { class: Class::Halves, bits: 32 };
pub(super) const FORMATS: [(&str, Format); 2] = [("e4m3x2", E4M3), ("e5m2x2", E5M2)];

/// `cvt.rn.satfinite.e4m3x2.f32 d, a, b`, of which a becomes the upper half, and `cvt.rn.satfinite.e4m3x2.f16x2 d, a`;
/// behind `.satfinite`.
pub(super) fn narrow<'a>(body: &mut Body<'a, '_>, mut opcode: Opcode<'a>) -> Result<Op, Refusal> {
    let clamps = opcode.take("relu");
    let format = opcode.expect(&FORMATS)?;
    let from = opcode.ty()?;
    opcode.finish()?;
    body.needs(&opcode, 89)?;
    let eighth = move |value: f64| format.round_to_finite(if clamps && value < 0.0 { 0.0 } else { value });
    if from == F32 {
        let value = move |bits: u64| eighth(f64::from(f32::from_bits(bits as u32)));
        return body.binary_of(16, F32, F32, Box::new(move |a, b| value(a) << 8 | value(b)));
    }
    if from != HALVES {
        return Err(opcode.wrong_type());
    }
    let value = move |bits: u64| eighth(F16.value(bits & 0xffff));
    body.unary_to(16, HALVES, Box::new(move |a| value(a >> 16) << 8 | value(a)))
}

/// `cvt.rn.f16x2.e4m3x2 d, a`, behind the first type.
pub(super) fn widen<'a>(
    body: &mut Body<'a, '_>,
    mut opcode: Opcode<'a>,
    format: Format,
    clamps: bool,
) -> Result<Op, Refusal> {
    opcode.expect(&FORMATS)?;
    opcode.finish()?;
    body.needs(&opcode, 89)?;
    let half = move |bits: u64| {
        let value = format.value(bits & 0xff);
        F16.round(if clamps && value < 0.0 { 0.0 } else { value }, Rounding::Nearest)
    };
    body.unary_to(32, PAIR, Box::new(move |a| half(a >> 8) << 16 | half(a)))
}
