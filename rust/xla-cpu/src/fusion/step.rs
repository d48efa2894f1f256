//! The steps of a fusion: each writes one array.

#![allow(unsafe_code, reason = "operands are memory by address")]

use std::sync::Arc;

use purlin_array::DType;
use purlin_base::Error;
use purlin_program::{LibraryCall, LibraryContext, OperandBytes};

use super::expression::Expression;
use super::machine::{BLOCK, Machine, Registers, store, width};
use super::place::{Memory, Shared, Spot};
use super::reduce::{GRAIN, Reduce};

/// A step.
#[derive(Debug)]
pub(super) enum Step {
    Elementwise(Elementwise),
    Reduce(Reduce),
    Pad(Pad),
    /// A matrix product or a convolution.
    Library(Library),
}

impl Step {
    pub(super) fn run(&self, memory: &Memory<'_>, context: &LibraryContext<'_>) -> Result<(), Error> {
        match self {
            Self::Elementwise(step) => step.run(memory, context),
            Self::Reduce(step) => step.run(memory, context),
            Self::Pad(step) => {
                step.run(memory);
                Ok(())
            }
            Self::Library(step) => step.run(memory, context),
        }
    }

    /// The cost in additions.
    pub(super) fn cost(&self) -> usize {
        let elements = |expression: &Expression| expression.count.saturating_mul(expression.cost);
        match self {
            Self::Elementwise(step) => elements(&step.expression),
            Self::Reduce(step) => elements(&step.expression),
            Self::Pad(step) => step.count * 2,
            Self::Library(step) => step.call.cost_bytes().unwrap_or(0).saturating_mul(2),
        }
    }

    pub(super) fn flops(&self) -> u64 {
        match self {
            Self::Library(step) => step.call.flops().unwrap_or(0),
            _ => self.cost() as u64,
        }
    }
}

/// Writes the elements of an expression.
#[derive(Debug)]
pub(super) struct Elementwise {
    pub(super) expression: Expression,
    pub(super) out: Spot,
    pub(super) dtype: DType,
}

impl Elementwise {
    fn run(&self, memory: &Memory<'_>, context: &LibraryContext<'_>) -> Result<(), Error> {
        let count = self.expression.count;
        let out = Shared(memory.address(self.out));
        let is_native = self.expression.class().native() == self.dtype;
        let grain = (GRAIN / self.expression.cost.saturating_mul(BLOCK)).max(1);
        context.parallel_for(count.div_ceil(BLOCK), grain, &|range| {
            let mut registers = Registers::new();
            // SAFETY: the expression was planned for this memory.
            let mut machine = unsafe { Machine::new(&self.expression, memory, &mut registers) };
            for begin in range.map(|block| block * BLOCK) {
                let count = BLOCK.min(count - begin);
                let to = out.at(begin * width(self.dtype));
                // SAFETY: the elements lie in the iteration space, which is as large as the result. The plan writes a
                // result to memory that no operand of the expression has. Each task writes its own elements.
                unsafe {
                    if is_native {
                        machine.evaluate(begin, count, to);
                    } else {
                        store(self.dtype, machine.evaluate(begin, count, std::ptr::null_mut()), to, count);
                    }
                }
            }
            Ok(())
        })
    }
}

/// Writes an array with gaps, which have the value of a scalar.
#[derive(Debug)]
pub(super) struct Pad {
    pub(super) from: Spot,
    pub(super) value: Spot,
    pub(super) out: Spot,
    pub(super) width: usize,
    /// The number of elements of the result.
    pub(super) count: usize,
    /// The first place of the operand in the result.
    pub(super) first: usize,
    /// The dimensions of the operand, the slowest first: the size, and the strides of operand and result.
    pub(super) dims: Vec<(usize, usize, usize)>,
}

impl Pad {
    fn run(&self, memory: &Memory<'_>) {
        let (from, value) = (memory.address(self.from), memory.address(self.value));
        let out = memory.address(self.out);
        // SAFETY: the graph has checked that all places lie in the arrays, which are different memory.
        unsafe {
            for at in 0..self.count {
                std::ptr::copy_nonoverlapping(value, out.add(at * self.width), self.width);
            }
            let inner: usize = self.dims.iter().map(|dim| dim.0).product();
            for mut number in 0..inner {
                let (mut source, mut to) = (0, self.first);
                for &(size, from_stride, to_stride) in self.dims.iter().rev() {
                    source += number % size * from_stride;
                    to += number % size * to_stride;
                    number /= size;
                }
                std::ptr::copy_nonoverlapping(from.add(source * self.width), out.add(to * self.width), self.width);
            }
        }
    }
}

/// A library call of two operands.
#[derive(Debug)]
pub(super) struct Library {
    pub(super) call: Arc<dyn LibraryCall>,
    /// The two operands and the result, with their sizes in bytes.
    pub(super) places: [(Spot, usize); 3],
}

impl Library {
    fn run(&self, memory: &Memory<'_>, context: &LibraryContext<'_>) -> Result<(), Error> {
        let operands =
            self.places.map(|(place, size_bytes)| OperandBytes { address: memory.address(place), size_bytes });
        self.call.run(&operands, context)
    }
}
