//! The bytes that were written on every path that leads to a command.

use smallvec::SmallVec;

use crate::allocation::Slice;

/// Ranges `[start, end)` of one allocation: sorted, not adjacent, not empty. Most allocations are written as a whole,
/// so one range is the usual case.
#[derive(Clone, Default)]
struct Ranges(SmallVec<[(usize, usize); 1]>);

impl Ranges {
    /// The first gap in `[start, end)`: its first byte, and its end within that range.
    fn gap(&self, start: usize, end: usize) -> Option<(usize, usize)> {
        if start >= end {
            return None;
        }
        // The number of ranges that begin at or before `start`.
        let behind = self.0.partition_point(|&(begins, _)| begins <= start);
        let covered = behind.checked_sub(1).map_or(start, |at| self.0[at].1.max(start));
        if covered >= end {
            return None;
        }
        let next = self.0.get(behind).map_or(end, |&(begins, _)| begins.min(end));
        Some((covered, next))
    }

    fn add(&mut self, mut start: usize, mut end: usize) {
        if start >= end {
            return;
        }
        // Ranges that overlap or touch the new one are merged with it.
        let first = self.0.partition_point(|&(_, ends)| ends < start);
        let behind = self.0.partition_point(|&(begins, _)| begins <= end);
        if first < behind {
            start = start.min(self.0[first].0);
            end = end.max(self.0[behind - 1].1);
            self.0.drain(first..behind);
        }
        self.0.insert(first, (start, end));
    }

    /// The bytes that are in both.
    fn intersection(&self, other: &Self) -> Self {
        let (mut mine, mut theirs) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut both = Self::default();
        while let (Some(&&(start, end)), Some(&&(other_start, other_end))) = (mine.peek(), theirs.peek()) {
            both.add(start.max(other_start), end.min(other_end));
            if end < other_end {
                mine.next();
            } else {
                theirs.next();
            }
        }
        both
    }
}

/// The defined bytes of all allocations.
#[derive(Clone)]
pub(super) struct Defined(Vec<Ranges>);

impl Defined {
    /// No bytes, for this number of allocations.
    pub(super) fn nothing(allocations: usize) -> Self {
        Self(vec![Ranges::default(); allocations])
    }

    /// The first gap of `slice`: bytes that are not defined.
    pub(super) fn gap(&self, slice: &Slice) -> Option<(usize, usize)> {
        self.0[slice.allocation as usize].gap(slice.offset_bytes, slice.end_bytes())
    }

    pub(super) fn add(&mut self, slice: &Slice) {
        self.0[slice.allocation as usize].add(slice.offset_bytes, slice.end_bytes());
    }

    /// The bytes that are defined after either of two paths.
    pub(super) fn either(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(mine, theirs)| mine.intersection(theirs)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(bytes: &[bool]) -> Ranges {
        let mut ranges = Ranges::default();
        for (at, _) in bytes.iter().enumerate().filter(|(_, is_in)| **is_in) {
            ranges.add(at, at + 1);
        }
        ranges
    }

    fn bytes(number: u32) -> [bool; 8] {
        std::array::from_fn(|at| number >> at & 1 == 1)
    }

    /// All sets of eight bytes, compared with flags.
    #[test]
    fn ranges_are_sets_of_bytes() {
        for number in 0..256 {
            let (flags, set) = (bytes(number), ranges(&bytes(number)));
            assert!(set.0.windows(2).all(|pair| pair[0].1 < pair[1].0), "sorted and apart: {:?}", set.0);
            for start in 0..8 {
                for end in start..=8 {
                    let first = (start..end).find(|&at| !flags[at]);
                    let gap = first.map(|first| (first, (first..end).find(|&at| flags[at]).unwrap_or(end)));
                    assert_eq!(set.gap(start, end), gap, "{flags:?} in {start}..{end}");
                    let mut more = set.clone();
                    more.add(start, end);
                    let mut expected = flags;
                    expected[start..end].fill(true);
                    assert_eq!(more.0, ranges(&expected).0);
                }
            }
            for other in 0..256 {
                assert_eq!(set.intersection(&ranges(&bytes(other))).0, ranges(&bytes(number & other)).0);
            }
        }
    }
}
