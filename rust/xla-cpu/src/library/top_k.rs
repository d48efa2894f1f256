//! TopK: the greatest elements of each row, the greatest first. Of equal elements the earlier one is first.

#![allow(unsafe_code, reason = "operands are memory by address")]

use std::cmp::Ordering;

use purlin_base::Error;
use purlin_program::{LibraryCall, LibraryContext, OperandBytes};

use super::elements::{read, write};

/// Takes rows of f32. Writes the `k` greatest elements of each to one operand, and their indices, as i32, to another.
#[derive(Debug)]
pub(crate) struct TopK {
    row: usize,
    k: usize,
}

impl TopK {
    /// `sizes` are the number of rows, the number of elements in a row, and `k`. `bytes` are the sizes of values,
    /// output and indices.
    pub(crate) fn new(sizes: [u64; 3], bytes: [usize; 3]) -> Result<Self, String> {
        let [rows, row, k] = sizes;
        let expected = [rows.checked_mul(row), rows.checked_mul(k), rows.checked_mul(k)];
        let is_sound = expected
            .iter()
            .zip(bytes)
            .all(|(elements, bytes)| elements.and_then(|elements| elements.checked_mul(4)) == Some(bytes as u64));
        if !is_sound || k > row || row > i32::MAX as u64 {
            return Err(format!("the {k} greatest of {row} in {rows} rows, in {bytes:?} bytes"));
        }
        Ok(Self { row: row as usize, k: k as usize })
    }
}

impl LibraryCall for TopK {
    fn name(&self) -> &str {
        "topk"
    }

    fn run(&self, operands: &[OperandBytes], _context: &LibraryContext<'_>) -> Result<(), Error> {
        // SAFETY: the operands have the sizes that new() has checked, with four bytes for each element. The command
        // reads the first and writes the others.
        let (values, output, places) =
            unsafe { (read::<f32>(&operands[0]), write::<f32>(&operands[1]), write::<i32>(&operands[2])) };
        if self.k == 0 {
            return Ok(());
        }
        let mut order: Vec<i32> = Vec::new();
        let rows =
            values.chunks_exact(self.row).zip(output.chunks_exact_mut(self.k)).zip(places.chunks_exact_mut(self.k));
        for ((row, output), places) in rows {
            order.clear();
            order.extend(0..row.len() as i32);
            // The total order, as in XLA: a positive NaN is greater than all numbers, and -0 is less than 0.
            let greater =
                |a: &i32, b: &i32| -> Ordering { row[*b as usize].total_cmp(&row[*a as usize]).then(a.cmp(b)) };
            if self.k < order.len() {
                order.select_nth_unstable_by(self.k - 1, greater);
                order.truncate(self.k);
            }
            order.sort_unstable_by(greater);
            for ((place, to), from) in places.iter_mut().zip(output).zip(&order) {
                (*place, *to) = (*from, row[*from as usize]);
            }
        }
        Ok(())
    }

    fn is_pure(&self) -> bool {
        true
    }
}
