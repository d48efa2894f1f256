//! Parts of an array, each of which fits into a block of memory.
//!
//! Where the device's order is near to the host's, a part is one run of elements. Where an array is transposed, a run
//! that fills a block may take one element from each of very many cache lines of the host, and the next block would
//! read all of them again. There, a part is as many shorter runs as a tile has rows: the same elements of neighbouring
//! steps of a loop.

use std::ops::Range;

/// A part of an array, as [`StridedPlan::sections`](super::StridedPlan::sections) makes it: runs of equally many
/// elements, at equal distances in the device's order.
///
/// ```
/// use purlin::{DType, HostArray, Layout, Shape, StridedPlan};
///
/// // 4096 rows of 4 elements, stored by columns: a block of 1 KiB takes a part of each column.
/// let array = HostArray::new(&Shape::new(DType::U8, &[4096, 4])?, None)?;
/// let plan = StridedPlan::new(&array, &Layout::new(&[0, 1])?)?;
/// let first = plan.sections(1024).next().unwrap();
/// assert!(first.runs().eq([0..256, 4096..4352, 8192..8448, 12288..12544]));
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    begin: usize,
    /// Elements of a run.
    run: usize,
    /// Elements from the beginning of a run to that of the next.
    step: usize,
    runs: usize,
}

impl Section {
    /// The elements of each run, at least one. A run begins and ends on bytes, as [`StridedPlan`](super::StridedPlan)
    /// wants it.
    #[must_use]
    pub fn runs(&self) -> impl DoubleEndedIterator<Item = Range<usize>> + ExactSizeIterator + use<> {
        let Self { begin, run, step, runs } = *self;
        (0..runs).map(move |index| begin + index * step..begin + index * step + run)
    }
}

impl Section {
    /// Whether its runs are those of neighbouring steps of a loop.
    pub(super) fn is_of(&self, steps: Steps) -> bool {
        let Steps { inside, count, .. } = steps;
        self.step == inside
            && self.begin % inside + self.run <= inside
            && self.begin / inside % count + self.runs <= count
    }
}

/// A loop of a plan: `count` steps over `inside` elements each, of which `side` are a row of a tile.
#[derive(Clone, Copy)]
pub(super) struct Steps {
    pub(super) inside: usize,
    pub(super) count: usize,
    pub(super) side: usize,
}

/// The parts of an array. See [`StridedPlan::sections`](super::StridedPlan::sections).
///
/// ```
/// use purlin::StridedPlan;
///
/// let mut sections = StridedPlan::dense(100).sections(64);
/// assert_eq!(sections.len(), 2);
/// assert!(sections.next().unwrap().runs().eq([0..64]));
/// assert!(sections.next().unwrap().runs().eq([64..100]));
/// ```
#[derive(Clone, Debug)]
pub struct Sections {
    /// Those that are left, by number.
    left: Range<usize>,
    /// Elements of a run.
    run: usize,
    /// Elements of a step of the loop; of all if there is none.
    inside: usize,
    /// Steps of the loop, and how many of them a part has.
    count: usize,
    side: usize,
}

impl Sections {
    /// Runs of `run` elements, one after the other.
    pub(super) fn of_runs(elements: usize, run: usize) -> Self {
        Self { left: 0..elements.div_ceil(run), run, inside: elements, count: 1, side: 1 }
    }

    /// Runs of neighbouring steps, of at most `most` elements together, which is a multiple of `per_byte` and not 0. A
    /// run is whole tiles, if one has room, and whole bytes.
    pub(super) fn of_steps(elements: usize, steps: Steps, most: usize, per_byte: usize, tile: usize) -> Self {
        let Steps { inside, count, side } = steps;
        let side = side.min(most / per_byte);
        let (run, unit) = (most / side, if most / side >= tile { tile } else { per_byte });
        let run = run / unit * unit;
        let outside = elements / (inside * count);
        Self { left: 0..outside * count.div_ceil(side) * inside.div_ceil(run), run, inside, count, side }
    }
}

impl Iterator for Sections {
    type Item = Section;

    fn next(&mut self) -> Option<Section> {
        let number = self.left.next()?;
        let Self { left: _, run, inside, count, side } = *self;
        // Runs of a step, the steps of a group, groups of the loop, and what is outside of it.
        let (per_step, groups) = (inside.div_ceil(run), count.div_ceil(side));
        let (begin, number) = (number % per_step * run, number / per_step);
        let (group, outside) = (number % groups, number / groups);
        let step = outside * count + group * side;
        Some(Section {
            begin: step * inside + begin,
            run: run.min(inside - begin),
            step: inside,
            runs: side.min(count - group * side),
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.left.size_hint()
    }
}

impl ExactSizeIterator for Sections {}
