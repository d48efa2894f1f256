//! Which instruction an opcode and its operands are. Everything that is not listed here is refused by its name.

mod compare;
mod control;
mod convert;
mod eighths;
mod float;
mod halves;
mod integer;
mod logic;
mod memory;
mod moves;
mod warp;

use crate::Refusal;
use crate::instruction::{Binary, Op, Ternary, Unary};
use crate::parse::{Body, Opcode};
use crate::types::{Class, Type};

/// Reads the operands of an instruction, up to its semicolon.
pub(crate) fn decode<'a>(body: &mut Body<'a, '_>, opcode: Opcode<'a>) -> Result<Op, Refusal> {
    match opcode.root() {
        "add" | "sub" | "mul" | "mad" | "fma" | "div" | "rem" | "abs" | "neg" | "min" | "max" => {
            let ty = opcode.last_type()?;
            match ty.class {
                Class::Float if ty.bits >= 32 => float::decode(body, opcode, ty),
                Class::Float | Class::Brain | Class::Halves | Class::Brains => halves::decode(body, opcode, ty),
                _ => integer::decode(body, opcode, ty),
            }
        }
        "addc" | "subc" | "madc" => integer::decode(body, opcode.clone(), opcode.last_type()?),
        "sad" | "popc" | "clz" | "bfind" | "brev" | "bfe" | "bfi" | "dp4a" => {
            let ty = opcode.last_type()?;
            integer::decode(body, opcode, ty)
        }
        "and" | "or" | "xor" | "not" | "cnot" | "shl" | "shr" | "shf" | "lop3" | "prmt" => logic::decode(body, opcode),
        "rcp" | "sqrt" | "rsqrt" | "ex2" | "lg2" | "sin" | "cos" | "tanh" | "copysign" => {
            let ty = opcode.last_type()?;
            float::decode(body, opcode, ty)
        }
        "setp" | "set" | "selp" | "slct" | "testp" => compare::decode(body, opcode),
        "cvt" => convert::decode(body, opcode),
        "mov" | "cvta" | "isspacep" => moves::decode(body, opcode),
        "ld" | "ldu" | "st" | "atom" | "red" | "prefetch" | "prefetchu" => memory::decode(body, opcode),
        "bra" | "brx" | "call" | "ret" | "exit" | "trap" | "bar" | "barrier" | "membar" | "fence" | "nanosleep" => {
            control::decode(body, opcode)
        }
        "shfl" | "vote" | "activemask" | "match" | "redux" => warp::decode(body, opcode),
        _ => Err(opcode.refuse("this instruction is not known")),
    }
}

impl Body<'_, '_> {
    /// Refuses an instruction that the text's target does not have: `sm_80` for `least` 80. Nobody compiles what stands
    /// in `asm` before a driver does.
    fn needs(&self, opcode: &Opcode<'_>, least: u32) -> Result<(), Refusal> {
        let target = self.builder.chip;
        if target < least {
            return Err(opcode.refuse(format!("it needs sm_{least}, and the target is sm_{target}")));
        }
        Ok(())
    }

    /// `d, a`, both of that type.
    fn unary(&mut self, ty: Type, f: Unary) -> Result<Op, Refusal> {
        self.unary_to(ty.bits, ty, f)
    }

    /// `d, a`, the result of so many bits.
    fn unary_to(&mut self, bits: u32, ty: Type, f: Unary) -> Result<Op, Refusal> {
        Ok(Op::Unary { d: self.destination(bits)?, a: self.next_source(ty)?, f })
    }

    /// `d, a, b`, all of that type.
    fn binary(&mut self, ty: Type, f: Binary) -> Result<Op, Refusal> {
        self.binary_of(ty.bits, ty, ty, f)
    }

    fn binary_of(&mut self, bits: u32, a: Type, b: Type, f: Binary) -> Result<Op, Refusal> {
        Ok(Op::Binary { d: self.destination(bits)?, a: self.next_source(a)?, b: self.next_source(b)?, f })
    }

    /// `d, a, b, c`, all of that type.
    fn ternary(&mut self, ty: Type, f: Ternary) -> Result<Op, Refusal> {
        self.ternary_of(ty.bits, [ty; 3], f)
    }

    fn ternary_of(&mut self, bits: u32, [a, b, c]: [Type; 3], f: Ternary) -> Result<Op, Refusal> {
        let d = self.destination(bits)?;
        Ok(Op::Ternary { d, a: self.next_source(a)?, b: self.next_source(b)?, c: self.next_source(c)?, f })
    }
}
