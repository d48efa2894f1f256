//! Finds the allocation of each result.
//!
//! The executable does not contain it. It lists the allocation of each value, and a value is a part of an instruction's
//! result. So the search starts at the root of the entry, and follows the part to the instruction that defines it. It
//! passes through instructions that only forward parts (tuple, get-tuple-element, bitcast), enters computations that
//! are called, and returns at a parameter to the caller's operand. The value of a loop has the memory of its initial
//! value, so the search follows the loop's operand. All branches of a conditional write the same memory, so the search
//! enters the first one.

use std::collections::HashMap;

use purlin_program::ProgramSignature;

use super::hlo::Hlo;
use super::shapes;
use crate::fault::{Contradiction, Reasons};
use crate::proto::{BufferAssignmentProto, InstructionProto, LocationProto, ProgramShapeProto};

/// The bound of one search, far more steps than a result needs: the module's instructions may form a cycle.
const MOST_STEPS: usize = 100_000;

/// The fields that lead to a value in an allocation.
const ALLOCATIONS: u32 = 3;
const ASSIGNED: u32 = 9;

/// The memory of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Home {
    pub(crate) allocation: usize,
    pub(crate) offset: i64,
}

/// The values, and their memory.
#[derive(Debug)]
pub(crate) struct Values<'a> {
    /// Keyed by instruction, and by the path to the part in its result.
    homes: HashMap<(i64, &'a [i64]), Home>,
    /// Keyed by the number of the value.
    definitions: HashMap<i64, &'a LocationProto>,
}

impl<'a> Values<'a> {
    pub(crate) fn new(assignment: &'a BufferAssignmentProto) -> Result<Self, Contradiction> {
        let defined = assignment.logical_buffers.iter();
        let definitions: HashMap<i64, &LocationProto> =
            defined.filter_map(|buffer| Some((buffer.id, buffer.defined_at.as_ref()?))).collect();
        let mut homes = HashMap::new();
        for (allocation, proto) in assignment.allocations.iter().enumerate() {
            for (number, assigned) in proto.assigned.iter().enumerate() {
                let Some(at) = definitions.get(&assigned.logical_buffer) else {
                    let why =
                        format!("allocation {allocation} holds value {}, which there is not", assigned.logical_buffer);
                    return Err(Contradiction::new(why)
                        .within_each(ASSIGNED, number)
                        .within_each(ALLOCATIONS, allocation));
                };
                let home = Home { allocation, offset: assigned.offset };
                homes.insert((at.instruction, at.shape_index.as_slice()), home);
            }
        }
        Ok(Self { homes, definitions })
    }

    /// The definition of the value of that number.
    pub(crate) fn definition(&self, value: i64) -> Option<&'a LocationProto> {
        self.definitions.get(&value).copied()
    }
}

/// The allocation of each result, in their order. `None`: the search failed, and the cause is added to `reasons`.
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

/// The search for the definition of a part of an instruction's result.
struct Trace<'a, 'b> {
    hlo: &'b Hlo<'a>,
    /// The instructions that called the computations which the search is in, the innermost last. Each has the number of
    /// its operand that is parameter 0.
    callers: Vec<(&'a InstructionProto, usize)>,
    /// The path to the part, the outermost index last.
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

    /// The instruction that the same part comes from.
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
            // Operand 0 chooses the branch. Operand 1 is the argument of the first branch.
            "conditional" => self.enter(at, 0, 1),
            "parameter" => {
                let (caller, first) = self.callers.pop().ok_or("a parameter has no memory")?;
                let number = usize::try_from(at.parameter_number).ok().and_then(|number| number.checked_add(first));
                self.operand(caller, number.and_then(|number| i64::try_from(number).ok()).unwrap_or(-1))
            }
            other => Err(format!("no memory is known of a part of '{other}'")),
        }
    }

    /// Enters the computation that an instruction calls, and returns its root.
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
