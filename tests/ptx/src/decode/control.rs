//! Jumps, calls, ends and barriers.

use crate::Refusal;
use crate::instruction::{Barrier, Op, Operand, Predicate, Reduction, SINK, Together, WarpOp};
use crate::parse::{Body, Opcode, Token};
use crate::types::U32;

const SCOPES: [(&str, ()); 4] = [("cta", ()), ("cluster", ()), ("gpu", ()), ("sys", ())];

pub(super) fn decode<'a>(body: &mut Body<'a, '_>, mut opcode: Opcode<'a>) -> Result<Op, Refusal> {
    match opcode.root() {
        "bar" | "barrier" => barrier(body, opcode),
        "bra" => {
            opcode.take("uni");
            opcode.finish()?;
            Ok(Op::Jump(body.target()?))
        }
        "brx" => {
            opcode.expect(&[("idx", ())])?;
            opcode.take("uni");
            opcode.finish()?;
            let index = body.source(U32)?;
            body.text.expect(',')?;
            Ok(Op::JumpTable { index, table: body.table()? })
        }
        "call" => {
            opcode.take("uni");
            opcode.finish()?;
            body.call()
        }
        "ret" => {
            opcode.take("uni");
            opcode.finish()?;
            Ok(Op::Return)
        }
        "membar" => {
            opcode.expect(&[("cta", ()), ("gl", ()), ("sys", ())])?;
            opcode.finish()?;
            Ok(Op::Nothing)
        }
        "fence" => {
            opcode.one_of(&[("sc", ()), ("acq_rel", ()), ("acquire", ()), ("release", ())]);
            opcode.expect(&SCOPES)?;
            opcode.finish()?;
            Ok(Op::Nothing)
        }
        "nanosleep" => {
            opcode.expect(&[("u32", ())])?;
            opcode.finish()?;
            body.needs(&opcode, 70)?;
            body.source(U32)?;
            Ok(Op::Nothing)
        }
        root => {
            opcode.finish()?;
            Ok(if root == "exit" { Op::Exit } else { Op::Trap })
        }
    }
}

fn barrier<'a>(body: &mut Body<'a, '_>, mut opcode: Opcode<'a>) -> Result<Op, Refusal> {
    let is_old = opcode.root() == "bar";
    if is_old && opcode.take("warp") {
        opcode.expect(&[("sync", ())])?;
        opcode.finish()?;
        let lanes = Some(body.source(U32)?);
        let none = Operand::Immediate(0);
        let together = Together { what: WarpOp::Meet, lanes, d: SINK, p: SINK, a: none, b: none, c: none };
        return Ok(Op::Together(Box::new(together)));
    }
    opcode.take("cta");
    let kind = opcode.expect(&[("sync", 0), ("arrive", 1), ("red", 2)])?;
    let reductions = [("popc", Reduction::Count), ("and", Reduction::All), ("or", Reduction::Any)];
    let reduction = if kind == 2 { opcode.expect(&reductions)? } else { Reduction::None };
    let aligned = is_old || opcode.take("aligned");
    let bits = match reduction {
        Reduction::None => None,
        Reduction::Count => Some(opcode.expect(&[("u32", 32)])?),
        Reduction::All | Reduction::Any => Some(opcode.expect(&[("pred", 1)])?),
    };
    opcode.finish()?;
    let is_right = |operand, right: fn(u64) -> bool| match operand {
        Operand::Immediate(value) => right(value),
        Operand::Register(_) => true,
    };
    let d = match bits {
        None => SINK,
        Some(bits) => {
            let d = body.destination(bits)?;
            body.text.expect(',')?;
            d
        }
    };
    let id = body.source(U32)?;
    if !is_right(id, |id| id < 16) {
        return Err(opcode.refuse("a block has the barriers 0 to 15"));
    }
    let (mut count, mut predicate) = (None, Predicate { value: Operand::Immediate(0), negated: false });
    if body.text.take(',')? {
        // The last of a reduction is a predicate; before it, there may be a count.
        let is_predicate = bits.is_some() && (body.text.peek() == Token::Sign('!') || body.next_is_predicate()?);
        if is_predicate {
            predicate = body.predicate()?;
        } else {
            count = Some(body.source(U32)?);
            if bits.is_some() {
                body.text.expect(',')?;
                predicate = body.predicate()?;
            }
        }
    } else if bits.is_some() {
        return Err(body.text.unexpected("','"));
    }
    if count.is_some_and(|count| !is_right(count, |count| count % 32 == 0)) {
        return Err(opcode.refuse("its threads are no whole warps"));
    }
    if kind == 1 && count.is_none() {
        return Err(opcode.refuse("it has no number of threads"));
    }
    let arrives = kind == 1;
    Ok(Op::Barrier(Box::new(Barrier { id, count, aligned, arrives, reduction, predicate, d })))
}
