//! Arithmetic of f16 and bf16, alone or two in a register.

use crate::Refusal;
use crate::instruction::Op;
use crate::number::convert::small;
use crate::number::float::{self, Exact};
use crate::number::format::{Format, Rounding};
use crate::parse::{Body, Opcode};
use crate::types::{Class, Type};

/// What is done with each half.
#[derive(Clone, Copy)]
struct Half {
    format: Format,
    flushes: bool,
    saturates: bool,
    /// `.relu`.
    clamps: bool,
}

impl Half {
    fn input(self, bits: u64) -> f64 {
        self.format.value(self.flushed(bits))
    }

    fn flushed(self, bits: u64) -> u64 {
        let is_subnormal = bits & 0x7fff < 0x0400;
        if self.flushes && is_subnormal { bits & 0x8000 } else { bits }
    }

    fn output(self, value: f64) -> u64 {
        let value = match (self.saturates, self.clamps) {
            (true, _) if value > 0.0 => value.min(1.0),
            (true, _) => 0.0,
            (_, true) if value < 0.0 => 0.0,
            _ => value,
        };
        self.flushed(self.format.round(value, Rounding::Nearest))
    }

    fn exact(self, operation: Exact, a: u64, b: u64, c: u64) -> u64 {
        self.output(float::odd(operation, self.input(a), self.input(b), self.input(c)))
    }
}

/// A function of halves as one of both halves of a register, if the type has two.
fn both(ty: Type, f: impl Fn(u64, u64, u64) -> u64) -> impl Fn(u64, u64, u64) -> u64 {
    move |a, b, c| {
        if ty.bits == 16 {
            return f(a, b, c);
        }
        let at = |place: u32| f(a >> place & 0xffff, b >> place & 0xffff, c >> place & 0xffff) << place;
        at(0) | at(16)
    }
}

pub(super) fn decode<'a>(body: &mut Body<'a, '_>, mut opcode: Opcode<'a>, ty: Type) -> Result<Op, Refusal> {
    let root = opcode.root();
    let rounds = opcode.take("rn");
    let flushes = opcode.take("ftz");
    let (saturates, clamps) = (opcode.take("sat"), opcode.take("relu"));
    let keeps_nan = matches!(root, "min" | "max") && opcode.take("NaN");
    opcode.ty()?;
    opcode.finish()?;
    let is_arithmetic = matches!(root, "add" | "sub" | "mul" | "fma");
    let is_brain = matches!(ty.class, Class::Brain | Class::Brains);
    if (rounds || saturates) && !is_arithmetic || clamps && root != "fma" || is_brain && (flushes || saturates) {
        return Err(opcode.refuse("these modifiers are not known together here"));
    }
    body.needs(&opcode, if is_brain { 80 } else { 53 })?;
    let half = Half { format: small(ty.class), flushes, saturates, clamps };
    let of_two = |body: &mut Body<'a, '_>, operation| {
        let f = both(ty, move |a, b, _| half.exact(operation, a, b, 0));
        body.binary(ty, Box::new(move |a, b| f(a, b, 0)))
    };
    match root {
        "add" => of_two(body, Exact::Add),
        "sub" => of_two(body, Exact::Sub),
        "mul" => of_two(body, Exact::Mul),
        "fma" if rounds => body.ternary(ty, Box::new(both(ty, move |a, b, c| half.exact(Exact::Fma, a, b, c)))),
        "neg" | "abs" => {
            let negates = root == "neg";
            let f = both(ty, move |a, _, _| if negates { half.flushed(a) ^ 0x8000 } else { half.flushed(a) & 0x7fff });
            body.unary(ty, Box::new(move |a| f(a, 0, 0)))
        }
        "min" | "max" => {
            let largest = root == "max";
            let f =
                both(ty, move |a, b, _| half.output(float::extreme(half.input(a), half.input(b), largest, keeps_nan)));
            body.binary(ty, Box::new(move |a, b| f(a, b, 0)))
        }
        _ => Err(opcode.wrong_type()),
    }
}

/// `atom.add.noftz`: the sum of each half.
pub(super) fn sum(ty: Type) -> impl Fn(u64, u64) -> u64 {
    let half = Half { format: small(ty.class), flushes: false, saturates: false, clamps: false };
    let f = both(ty, move |a, b, _| half.exact(Exact::Add, a, b, 0));
    move |a, b| f(a, b, 0)
}
