//! In which allocation each result lies.
//!
//! The executable does not say it. It says which value lies where, and a value is a part of what an instruction
//! defines. So the root of the entry is followed to the instruction that defines the part: through what only passes
//! parts on (tuple, get-tuple-element, bitcast), into what is called, and, at a parameter, back to the caller's
//! operand. A loop's value lies where its first one does, because both have the same memory; so does that of a branch.

use std::collections::HashMap;

use purlin_program::ProgramSignature;

use super::hlo::Hlo;
use super::shapes;
use crate::fault::{Fault, Reasons};
use crate::proto::{BufferAssignmentProto, InstructionProto, LocationProto, ProgramShapeProto};

/// More steps than any result takes to its definition: the module may lead in circles.
const MOST_STEPS: usize = 100_000;

/// Where a value lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Home {
    pub(crate) allocation: usize,
    pub(crate) offset: i64,
}

/// Which values there are, and where they lie.
#[derive(Debug)]
pub(crate) struct Values<'a> {
    /// By instruction and the path in its value.
    homes: HashMap<(i64, &'a [i64]), Home>,
    /// By the number of the value.
    definitions: HashMap<i64, &'a LocationProto>,
}

impl<'a> Values<'a> {
    pub(crate) fn new(assignment: &'a BufferAssignmentProto) -> Result<Self, Fault> {
        let defined = assignment.logical_buffers.iter();
        let definitions: HashMap<i64, &LocationProto> =
            defined.filter_map(|buffer| Some((buffer.id, buffer.defined_at.as_ref()?))).collect();
        let mut homes = HashMap::new();
        for (allocation, proto) in assignment.allocations.iter().enumerate() {
            for assigned in &proto.assigned {
                let Some(at) = definitions.get(&assigned.logical_buffer) else {
                    let why =
                        format!("allocation {allocation} holds value {}, which there is not", assigned.logical_buffer);
                    return Err(Fault::damage(0, why));
                };
                let home = Home { allocation, offset: assigned.offset };
                homes.insert((at.instruction, at.shape_index.as_slice()), home);
            }
        }
        Ok(Self { homes, definitions })
    }

    /// Where the value of that number is defined.
    pub(crate) fn definition(&self, value: i64) -> Option<&'a LocationProto> {
        self.definitions.get(&value).copied()
    }
}

/// The allocation of each result, in their order. Where one cannot be found, the reason is told.
pub(crate) fn trace(
    hlo: &Hlo<'_>,
    values: &Values<'_>,
    signature: &ProgramSignature,
    layout: &ProgramShapeProto,
    reasons: &mut Reasons,
) -> Vec<Option<usize>> {
    let (_, is_tuple) = shapes::results(layout);
    let homes = (0..signature.results.len()).map(|result| {
        let path = if is_tuple { vec![result as i64] } else { Vec::new() };
        let home = Trace { hlo, callers: Vec::new(), path }.find(values, hlo.entry().root);
        match home {
            Ok(Home { allocation, offset: 0 }) => Some(allocation),
            Ok(home) => {
                reasons.add(format!("result {result} lies inside of allocation {}", home.allocation));
                None
            }
            Err(why) => {
                reasons.add(format!("result {result} cannot be traced: {why}"));
                None
            }
        }
    });
    homes.collect()
}

/// A part of an instruction's value, on its way to where it is defined.
struct Trace<'a, 'b> {
    hlo: &'b Hlo<'a>,
    /// The instructions that called the computations which the trace is in, and as which of their operands a parameter
    /// comes: the operand of parameter 0.
    callers: Vec<(&'a InstructionProto, usize)>,
    /// The part, outermost index last.
    path: Vec<i64>,
}

impl<'a> Trace<'a, '_> {
    fn find(mut self, values: &Values<'_>, root: i64) -> Result<Home, String> {
        let mut at = self.instruction(root)?;
        for _ in 0..MOST_STEPS {
            let index: Vec<i64> = self.path.iter().rev().copied().collect();
            if let Some(home) = values.homes.get(&(at.id, index.as_slice())) {
                return Ok(*home);
            }
            at = self.step(at)?;
        }
        Err("the module leads in circles".to_owned())
    }

    /// Where the same part comes from.
    fn step(&mut self, at: &'a InstructionProto) -> Result<&'a InstructionProto, String> {
        match at.opcode.as_str() {
            "tuple" => {
                let index = self.path.pop().ok_or("a tuple has no memory of its own")?;
                self.operand(at, index)
            }
            "get-tuple-element" => {
                self.path.push(at.tuple_index);
                self.operand(at, 0)
            }
            "bitcast" | "optimization-barrier" | "add-dependency" | "while" => self.operand(at, 0),
            "call" => self.enter(at, 0, 0),
            // Operand 0 says which branch; the first branch's is operand 1.
            "conditional" => self.enter(at, 0, 1),
            "parameter" => {
                let (caller, first) = self.callers.pop().ok_or("a parameter has no memory")?;
                let number = usize::try_from(at.parameter_number).ok().and_then(|number| number.checked_add(first));
                self.operand(caller, number.and_then(|number| i64::try_from(number).ok()).unwrap_or(-1))
            }
            other => Err(format!("no memory is known of a part of '{other}'")),
        }
    }

    /// The root of what an instruction calls.
    fn enter(&mut self, at: &'a InstructionProto, called: usize, first: usize) -> Result<&'a InstructionProto, String> {
        let id = at.called.get(called).ok_or_else(|| format!("a '{}' calls nothing", at.opcode))?;
        let computation = self.hlo.computation(*id).ok_or_else(|| format!("there is no computation {id}"))?;
        self.callers.push((at, first));
        self.instruction(computation.root)
    }

    fn operand(&self, at: &'a InstructionProto, number: i64) -> Result<&'a InstructionProto, String> {
        let id = usize::try_from(number).ok().and_then(|number| at.operands.get(number));
        self.instruction(*id.ok_or_else(|| format!("a '{}' has no operand {number}", at.opcode))?)
    }

    fn instruction(&self, id: i64) -> Result<&'a InstructionProto, String> {
        self.hlo.instruction(id).ok_or_else(|| format!("there is no instruction {id}"))
    }
}
