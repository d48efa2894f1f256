//! Which bytes of a range are taken.

use std::collections::BTreeMap;

/// Disjoint ranges by their first byte, none touching the next.
#[derive(Debug, Default)]
pub(super) struct Ranges {
    ends: BTreeMap<usize, usize>,
    /// Bytes in all of them.
    pub(super) size_bytes: usize,
}

impl Ranges {
    /// Adds `[begin, end)`.
    ///
    /// # Errors
    /// The part of it that is taken already, the first if there are several; then nothing is added.
    pub(super) fn add(&mut self, begin: usize, end: usize) -> Result<(), (usize, usize)> {
        if begin >= end {
            return Ok(());
        }
        let before = self.ends.range(..=begin).next_back().map(|(&first, &last)| (first, last));
        let after = self.ends.range(begin..).next().map(|(&first, &last)| (first, last));
        for (first, last) in before.iter().chain(&after) {
            let (from, to) = (begin.max(*first), end.min(*last));
            if from < to {
                return Err((from, to));
            }
        }
        let (mut begin_all, mut end_all) = (begin, end);
        if let Some((first, _)) = before.filter(|&(_, last)| last == begin) {
            begin_all = first;
        }
        if let Some((first, last)) = after.filter(|&(first, _)| first == end) {
            self.ends.remove(&first);
            end_all = last;
        }
        self.ends.insert(begin_all, end_all);
        self.size_bytes += end - begin;
        Ok(())
    }
}

#[cfg(all(test, not(purlin_model)))]
mod tests {
    use super::*;

    #[test]
    fn what_touches_becomes_one() {
        let mut ranges = Ranges::default();
        for (begin, end) in [(10, 20), (30, 40), (20, 30), (0, 10), (50, 60)] {
            ranges.add(begin, end).unwrap();
        }
        assert_eq!((ranges.size_bytes, ranges.ends.len()), (50, 2));
    }

    #[test]
    fn what_is_taken_is_named_and_nothing_is_added() {
        let mut ranges = Ranges::default();
        ranges.add(10, 20).unwrap();
        ranges.add(30, 40).unwrap();
        for (begin, end, taken) in [
            (0, 11, (10, 11)),
            (19, 25, (19, 20)),
            (12, 13, (12, 13)),
            (25, 50, (30, 40)),
            (0, 50, (10, 20)),
            (10, 20, (10, 20)),
        ] {
            assert_eq!(ranges.add(begin, end), Err(taken), "[{begin}, {end})");
        }
        assert_eq!(ranges.size_bytes, 20);
        ranges.add(20, 30).unwrap();
        assert_eq!(ranges.add(20, 20), Ok(()), "nothing is never taken");
        assert_eq!((ranges.size_bytes, ranges.ends.len()), (30, 1));
    }
}
