//! Part of a convolution: one phase of each dimension, as rows of a matrix.
//!
//! A row is a place of the output, and has what the taps cover there: for each tap, an element of each channel.

use std::iter;
use std::ops::Range;

use super::super::gemm::Product;
use super::axis::{Phase, Reach};

/// One phase of each dimension, that of the batch first, and the innermost last.
#[derive(Debug)]
pub(super) struct Part {
    phases: Vec<Phase>,
    /// The number of rows.
    pub(super) places: usize,
    /// The number of taps.
    pub(super) taps: usize,
    /// Where its first place begins in the output, in elements.
    output: usize,
}

/// The input of one group of channels: its elements from the group's first on, the number of channels, and the distance
/// between them.
#[derive(Debug)]
pub(super) struct Channels<'a, T> {
    pub(super) elements: &'a [T],
    pub(super) count: usize,
    pub(super) stride: usize,
}

impl Part {
    pub(super) fn new(phases: Vec<Phase>) -> Self {
        let places = phases.iter().map(|phase| phase.places).product();
        let taps = phases.iter().map(|phase| phase.taps).product();
        let output = phases.iter().map(|phase| phase.output).sum();
        Self { phases, places, taps, output }
    }

    /// Calls `each` with the offset in the output of each of these places.
    pub(super) fn each_output(&self, places: Range<usize>, mut each: impl FnMut(usize)) {
        let mut index = self.index(places.start);
        for _ in places {
            each(self.output + index.iter().zip(&self.phases).map(|(at, phase)| at * phase.output_step).sum::<usize>());
            self.next(&mut index);
        }
    }

    /// Where place number zero is in the output, and the distance between places. `None`: it is not the same for all.
    pub(super) fn even_output(&self) -> Option<(usize, usize)> {
        even(self.phases.iter().map(|phase| (phase.places, phase.output_step))).map(|apart| (self.output, apart))
    }

    /// Where place number zero reads its only tap, and the distance between places. `None`: there are more taps, some
    /// are padding, or the distance is not the same for all.
    pub(super) fn even_input(&self) -> Option<(usize, usize)> {
        let mut first = 0;
        for phase in &self.phases {
            let ends = [phase.reach(0), phase.reach(phase.places - 1)];
            if phase.taps != 1 || ends.iter().any(|reach| reach.inside != (0..1)) {
                return None;
            }
            first += phase.offset(&ends[0], 0);
        }
        even(self.phases.iter().map(|phase| (phase.places, phase.place_apart()))).map(|apart| (first, apart))
    }

    /// Whether the taps are all `window` taps of the kernel, each `channels * outputs` elements from the one before.
    pub(super) fn has_whole_kernel(&self, window: usize, row: usize) -> bool {
        let mut apart = row as isize;
        let mut in_order = self.taps == window;
        for phase in self.phases.iter().rev() {
            in_order &= phase.taps == 1 || phase.kernel_step == apart;
            apart = apart.saturating_mul(phase.taps as isize);
        }
        in_order
    }

    /// The offset in the kernel of tap number `tap`.
    pub(super) fn kernel(&self, mut tap: usize) -> usize {
        let mut offset = 0;
        for phase in self.phases.iter().rev() {
            offset += phase.kernel(tap % phase.taps);
            tap /= phase.taps;
        }
        offset
    }

    /// Writes the rows of these places to `rows`, one after the other, in place of what it has.
    pub(super) fn gather<T: Product>(&self, input: &Channels<'_, T>, zero: T, places: Range<usize>, rows: &mut Vec<T>) {
        rows.clear();
        rows.reserve(places.len() * self.taps * input.count);
        let mut index = self.index(places.start);
        let mut reaches: Vec<Reach> =
            self.phases.iter().zip(&index).map(|(phase, &place)| phase.reach(place)).collect();
        let mut taps = vec![0; self.phases.len() - 1];
        for _ in places {
            self.gather_row(input, zero, &reaches, &mut taps, rows);
            let moved = self.next(&mut index);
            for at in moved..index.len() {
                reaches[at] = self.phases[at].reach(index[at]);
            }
        }
    }

    /// Adds one row. `taps` has an element for each dimension but the innermost, and all are zero.
    fn gather_row<T: Product>(
        &self,
        input: &Channels<'_, T>,
        zero: T,
        reaches: &[Reach],
        taps: &mut [usize],
        row: &mut Vec<T>,
    ) {
        let outer = self.phases.len() - 1;
        let (inner, reach) = (&self.phases[outer], &reaches[outer]);
        let fill = |row: &mut Vec<T>, taps: usize| row.extend(iter::repeat_n(zero, taps * input.count));
        for _ in 0..self.taps / inner.taps.max(1) {
            let mut begin = Some(0);
            for (at, &tap) in taps.iter().enumerate() {
                let inside = reaches[at].inside.contains(&tap);
                begin = begin.filter(|_| inside).map(|begin| begin + self.phases[at].offset(&reaches[at], tap));
            }
            match begin.filter(|_| !reach.inside.is_empty()) {
                Some(begin) => {
                    fill(row, reach.inside.start);
                    let begin = begin + inner.offset(reach, reach.inside.start);
                    input.copy(begin, inner.tap_apart(), reach.inside.len(), row);
                    fill(row, inner.taps - reach.inside.end);
                }
                None => fill(row, inner.taps),
            }
            for (at, tap) in taps.iter_mut().enumerate().rev() {
                *tap += 1;
                if *tap < self.phases[at].taps {
                    break;
                }
                *tap = 0;
            }
        }
    }

    /// The place of each dimension, for place number `place` of all.
    fn index(&self, mut place: usize) -> Vec<usize> {
        let mut index = vec![0; self.phases.len()];
        for (at, phase) in index.iter_mut().zip(&self.phases).rev() {
            *at = place % phase.places;
            place /= phase.places;
        }
        index
    }

    /// Moves on to the next place, and answers which dimension is the outermost that moved.
    fn next(&self, index: &mut [usize]) -> usize {
        for (axis, at) in index.iter_mut().enumerate().rev() {
            *at += 1;
            if *at < self.phases[axis].places {
                return axis;
            }
            *at = 0;
        }
        0
    }
}

impl<T: Product> Channels<'_, T> {
    /// Adds all channels of `taps` taps, the first of which begins at `begin`.
    fn copy(&self, begin: usize, tap_apart: usize, taps: usize, to: &mut Vec<T>) {
        let contiguous = self.stride == 1 || self.count == 1;
        if contiguous && (tap_apart == self.count || taps == 1) {
            to.extend_from_slice(&self.elements[begin..][..taps * self.count]);
            return;
        }
        for begin in (0..taps).map(|tap| begin + tap * tap_apart) {
            if contiguous {
                to.extend_from_slice(&self.elements[begin..][..self.count]);
            } else {
                to.extend((0..self.count).map(|channel| self.elements[begin + channel * self.stride]));
            }
        }
    }
}

/// The one distance between all elements, given the size and the stride of each dimension, the innermost last.
fn even(dims: impl DoubleEndedIterator<Item = (usize, usize)>) -> Option<usize> {
    let mut found: Option<(usize, usize)> = None;
    for (size, stride) in dims.rev().filter(|dim| dim.0 != 1) {
        match found {
            Some((_, next)) if next != stride => return None,
            _ => found = Some((found.map_or(stride, |found| found.0), stride.saturating_mul(size))),
        }
    }
    Some(found.map_or(1, |found| found.0))
}
