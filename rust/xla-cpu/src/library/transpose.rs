//! A copy from one layout to another.

#![allow(unsafe_code, reason = "operands are memory by address")]

use purlin_base::Error;
use purlin_program::{LibraryCall, LibraryContext, OperandBytes};

use super::elements::{read, write};
use crate::module::Array;

/// Copies an array to another layout, element by element.
#[derive(Debug)]
pub(crate) struct Transpose {
    width: usize,
    /// The dimensions of the output in memory order, the slowest first: the size, and the stride in the input, in
    /// elements.
    dims: Vec<(usize, usize)>,
}

impl Transpose {
    pub(crate) fn new(from: &Array, to: &Array) -> Result<Self, String> {
        let width = from.shape.dtype().byte_width();
        if from.shape != to.shape || width == 0 {
            return Err(format!("a copy of {} in layout {} as {} in {}", from.shape, from.layout, to.shape, to.layout));
        }
        let (dims, strides) = (from.dims(), from.strides());
        let order = to.layout.minor_to_major().iter().rev().map(|&axis| (dims[axis as usize], strides[axis as usize]));
        Ok(Self { width, dims: order.collect() })
    }
}

impl LibraryCall for Transpose {
    fn name(&self) -> &str {
        "transpose"
    }

    fn run(&self, operands: &[OperandBytes], _context: &LibraryContext<'_>) -> Result<(), Error> {
        // SAFETY: the command reads the first operand and writes the second, both of the shape that new() has checked.
        let (from, to) = unsafe { (read::<u8>(&operands[0]), write::<u8>(&operands[1])) };
        let mut index = vec![0; self.dims.len()];
        let mut at = 0;
        for element in to.chunks_exact_mut(self.width) {
            element.copy_from_slice(&from[at * self.width..][..self.width]);
            // The next index, the fastest dimension first.
            for (place, &(size, stride)) in index.iter_mut().zip(&self.dims).rev() {
                *place += 1;
                at += stride;
                if *place < size {
                    break;
                }
                at -= stride * size;
                *place = 0;
            }
        }
        Ok(())
    }

    fn is_pure(&self) -> bool {
        true
    }
}
