//! Sort: sorts arrays along one dimension, by a comparator from the executable's code.
//!
//! Each row is copied, its indices are sorted by merging, and the elements are written back in that order. The sort is
//! always stable, even if the executable does not require it. Merging makes no assumption about the comparator: an
//! inconsistent one gives an arbitrary order, but never the same element twice.

#![allow(unsafe_code, reason = "operands are memory by address; comparators are functions that take addresses")]

use std::any::Any;
use std::ffi::c_void;
use std::fmt;
use std::ptr;
use std::sync::Arc;

use purlin_base::Error;
use purlin_base::sync::OnceLock;
use purlin_program::{LibraryCall, LibraryContext, OperandBytes};

use super::elements::write;
use crate::module::Array;

/// XLA:CPU's comparator: writes whether the left elements are ordered before the right ones. It gets their addresses,
/// left and right for each array in turn. The other arguments are null.
pub(crate) type Comparator = unsafe extern "C" fn(
    out: *mut u8,
    run_options: *const c_void,
    pairs: *const *const c_void,
    buffers: *const *const c_void,
    counters: *mut i64,
    status: *mut c_void,
);

/// Arrays of the same dimensions, which are sorted together along one of them.
#[derive(Clone, Debug)]
pub(crate) struct SortArrays {
    /// The size of an element, for each array.
    widths: Vec<usize>,
    /// The number of elements in a row.
    length: usize,
    /// The stride between the elements of a row, in elements. It is also the number of rows that are interleaved.
    stride: usize,
    /// The number of groups of interleaved rows.
    outer: usize,
}

impl SortArrays {
    pub(crate) fn new(arrays: &[Array], dimension: i64) -> Result<Self, String> {
        let first = arrays.first().ok_or("a sort of nothing")?;
        let axis = usize::try_from(dimension).ok().filter(|&axis| axis < first.shape.rank());
        let axis = axis.ok_or_else(|| format!("a sort of {} along dimension {dimension}", first.shape))?;
        let mut widths = Vec::new();
        for array in arrays {
            if array.shape.dims() != first.shape.dims() || array.layout != first.layout {
                return Err(format!("a sort of {} together with {}", first.shape, array.shape));
            }
            match array.shape.dtype().byte_width() {
                0 => return Err(format!("a sort of {}", array.shape)),
                width => widths.push(width),
            }
        }
        let (length, stride) = (first.dims()[axis], first.strides()[axis]);
        let count = usize::try_from(first.shape.element_count()).expect("an array in memory has no more");
        let outer = count.checked_div(length * stride).unwrap_or(0);
        Ok(Self { widths, length, stride, outer })
    }
}

/// A sort and its comparator.
pub(crate) struct Sort {
    arrays: SortArrays,
    /// The comparator, and the owner of its code, once that is loaded.
    code: OnceLock<(Comparator, Arc<dyn Any + Send + Sync>)>,
}

impl fmt::Debug for Sort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sort").field("arrays", &self.arrays).finish_non_exhaustive()
    }
}

impl Sort {
    /// A sort without a comparator, which cannot run.
    pub(crate) fn new(arrays: SortArrays) -> Self {
        Self { arrays, code: OnceLock::new() }
    }

    /// Gives it its comparator, whose code stays mapped while `owner` has a reference.
    ///
    /// # Safety
    /// As long as `owner` lives, any thread may call `comparator` with the addresses of two elements of each array. The
    /// comparator reads those, writes its answer of one byte, and returns.
    pub(crate) unsafe fn bind(&self, comparator: Comparator, owner: Arc<dyn Any + Send + Sync>) {
        // A second comparator would be dropped: the first one may be running.
        self.code.get_or_init(|| (comparator, owner));
    }

    /// Whether the elements at index `a` of the rows are ordered before those at `b`.
    fn is_less(
        &self,
        comparator: Comparator,
        rows: &[Vec<u8>],
        pairs: &mut [*const c_void],
        a: usize,
        b: usize,
    ) -> bool {
        for ((row, &width), pair) in rows.iter().zip(&self.arrays.widths).zip(pairs.chunks_exact_mut(2)) {
            pair[0] = row[a * width..].as_ptr().cast();
            pair[1] = row[b * width..].as_ptr().cast();
        }
        let mut answer = 0_u8;
        // SAFETY: the caller of bind() has promised it; the elements are in the rows.
        unsafe {
            let (options, buffers, counters, status) = (ptr::null(), ptr::null(), ptr::null_mut(), ptr::null_mut());
            comparator(&raw mut answer, options, pairs.as_ptr(), buffers, counters, status);
        }
        answer != 0
    }
}

impl LibraryCall for Sort {
    fn name(&self) -> &str {
        "sort"
    }

    fn run(&self, operands: &[OperandBytes], _context: &LibraryContext<'_>) -> Result<(), Error> {
        let Some(&(comparator, _)) = self.code.get() else {
            return Err(Error::internal("a sort was not given its comparator"));
        };
        let SortArrays { widths, length, stride, outer } = &self.arrays;
        let (length, stride) = (*length, *stride);
        let mut rows: Vec<Vec<u8>> = widths.iter().map(|width| vec![0; width * length]).collect();
        let (mut order, mut scratch) = (vec![0; length], vec![0; length]);
        let mut pairs = vec![ptr::null(); 2 * widths.len()];
        for begin in (0..*outer).flat_map(|group| (0..stride).map(move |inner| group * length * stride + inner)) {
            let element = |at: usize, width: usize| (begin + at * stride) * width..(begin + at * stride + 1) * width;
            for ((row, &width), operand) in rows.iter_mut().zip(widths).zip(operands) {
                // SAFETY: the command reads and writes the operand, which has the shape that new() has checked. Only
                // one slice of it exists at a time.
                let array = unsafe { write::<u8>(operand) };
                for (at, to) in row.chunks_exact_mut(width).enumerate() {
                    to.copy_from_slice(&array[element(at, width)]);
                }
            }
            order.iter_mut().enumerate().for_each(|(at, place)| *place = at);
            merge_sort(&mut order, &mut scratch, &mut |a, b| self.is_less(comparator, &rows, &mut pairs, a, b));
            for ((row, &width), operand) in rows.iter().zip(widths).zip(operands) {
                // SAFETY: as above.
                let array = unsafe { write::<u8>(operand) };
                for (at, &from) in order.iter().enumerate() {
                    array[element(at, width)].copy_from_slice(&row[from * width..][..width]);
                }
            }
        }
        Ok(())
    }

    fn is_pure(&self) -> bool {
        true
    }
}

/// Pieces of this length are sorted by insertion.
const RUN: usize = 16;

/// Sorts `places` stably. `scratch` has the same length.
fn merge_sort(places: &mut [usize], scratch: &mut [usize], is_less: &mut impl FnMut(usize, usize) -> bool) {
    for run in places.chunks_mut(RUN) {
        for sorted in 1..run.len() {
            let mut at = sorted;
            while at > 0 && is_less(run[at], run[at - 1]) {
                run.swap(at, at - 1);
                at -= 1;
            }
        }
    }
    let mut width = RUN;
    while width < places.len() {
        for (pair, merged) in places.chunks(2 * width).zip(scratch.chunks_mut(2 * width)) {
            let (mut left, mut right) = pair.split_at(width.min(pair.len()));
            for to in merged {
                let takes_right = match (left.first(), right.first()) {
                    (Some(&left), Some(&right)) => is_less(right, left),
                    (left, _) => left.is_none(),
                };
                let side = if takes_right { &mut right } else { &mut left };
                (*to, *side) = (side[0], &side[1..]);
            }
        }
        places.copy_from_slice(scratch);
        width *= 2;
    }
}
