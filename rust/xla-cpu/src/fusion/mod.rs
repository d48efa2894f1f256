//! Fused computations that have no code: XLA hands them to YNNPACK, and here the library executes them.
//!
//! | module | what it is |
//! |---|---|
//! | `read` | the fused computation of a thunk, as a graph |
//! | `graph` | values that are computed from earlier ones, checked |
//! | `plan` | the steps of a graph, and the memory of intermediate values |
//! | `expression` | elementwise operations, compiled for the register machine |
//! | `machine` | the register machine, which evaluates a block of elements |
//! | `lanes`, `math` | operations on blocks, as loops that the compiler vectorises |
//! | `reduce` | reductions |
//! | `step` | the steps of a run |
//! | `place` | where values lie during a run |
//!
//! A fusion is read, checked and planned when the executable is loaded. A run executes steps: matrix products and
//! convolutions by the library, and expressions in blocks that stay in the first-level cache. No code is generated.
//! Sums are in another order than YNNPACK's, and its elementary functions differ in the last bits, so results do, too.

mod expression;
mod graph;
mod lanes;
mod machine;
mod math;
mod place;
mod plan;
mod read;
mod reduce;
mod step;
#[cfg(test)]
mod tests;

use purlin_base::Error;
use purlin_program::{LibraryCall, LibraryContext, OperandBytes};

use self::graph::Graph;
use self::place::Memory;
use self::plan::Plan;
pub(crate) use self::read::read;

/// A planned fusion. Its operands are the parameters, the results, and the scratch memory, if it needs some.
#[derive(Debug)]
pub(crate) struct Fusion {
    plan: Plan,
}

impl Fusion {
    /// Plans a graph of so many parameters. `in_place`: a result may share memory with a parameter.
    fn new(graph: &Graph, parameters: usize, in_place: bool) -> Result<Self, String> {
        plan::plan(graph, parameters, in_place).map(|plan| Self { plan })
    }

    /// The size of the last operand, which begins at a multiple of 64 bytes. 0: there is none.
    pub(crate) fn scratch_bytes(&self) -> usize {
        self.plan.scratch_bytes
    }
}

impl LibraryCall for Fusion {
    fn name(&self) -> &str {
        "ynn-fusion"
    }

    fn run(&self, operands: &[OperandBytes], context: &LibraryContext<'_>) -> Result<(), Error> {
        let memory = Memory::new(operands, &self.plan.constants);
        self.plan.steps.iter().try_for_each(|step| step.run(&memory, context))
    }

    fn cost_bytes(&self) -> Option<usize> {
        // An addition of a block takes about as long as copying its elements.
        Some(self.plan.steps.iter().fold(0, |sum: usize, step| sum.saturating_add(step.cost() / 2)))
    }

    fn flops(&self) -> Option<u64> {
        Some(self.plan.steps.iter().fold(0, |sum: u64, step| sum.saturating_add(step.flops())))
    }

    fn is_pure(&self) -> bool {
        true
    }
}
