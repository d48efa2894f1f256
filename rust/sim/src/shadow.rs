//! What is known of memory besides its bytes: which of them have not been written, and which have no owner.
//!
//! An interval map by address that holds the exceptions only: a byte without an entry is defined, or not watched
//! (memory that the host reaches by itself, and foreign memory). Intervals never overlap and are never empty.

use std::collections::BTreeMap;

/// An exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Allocated as block `number`, not written since.
    Unwritten { number: u64, at_ns: u64 },
    /// Given back; it was block `number`.
    Freed { number: u64, at_ns: u64 },
}

/// `[start, end)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Span {
    pub(crate) fn new(start: usize, size_bytes: usize) -> Self {
        Self { start, end: start + size_bytes }
    }

    pub(crate) fn intersection(self, other: Self) -> Option<Self> {
        let (start, end) = (self.start.max(other.start), self.end.min(other.end));
        (start < end).then_some(Self { start, end })
    }

    pub(crate) fn size_bytes(self) -> usize {
        self.end - self.start
    }
}

/// See the module.
#[derive(Default)]
pub(crate) struct Shadow {
    /// By start: end, and what is there.
    marks: BTreeMap<usize, (usize, Mark)>,
}

impl Shadow {
    /// All of `span` becomes `mark`.
    pub(crate) fn set(&mut self, span: Span, mark: Mark) {
        self.clear(span);
        self.marks.insert(span.start, (span.end, mark));
    }

    /// All of `span` becomes defined.
    pub(crate) fn clear(&mut self, span: Span) {
        let touched: Vec<Span> = self.overlapping(span).map(|(found, _)| found).collect();
        for Span { start, end } in touched {
            let Some((_, mark)) = self.marks.remove(&start) else { continue };
            if start < span.start {
                self.marks.insert(start, (span.start, mark));
            }
            if span.end < end {
                self.marks.insert(span.end, (end, mark));
            }
        }
    }

    /// The marks within `span`, cut to it, by address.
    pub(crate) fn find(&self, span: Span) -> impl Iterator<Item = (Span, Mark)> {
        self.overlapping(span).filter_map(move |(found, mark)| Some((found.intersection(span)?, mark)))
    }

    /// What is known of `from` holds for the bytes at `to` too: they were copied. Only if `keeps_marks`; otherwise they
    /// are defined from now on.
    pub(crate) fn copied(&mut self, from: Span, to: Span, keeps_marks: bool) {
        let moved: Vec<(Span, Mark)> = if keeps_marks { self.find(from).collect() } else { Vec::new() };
        self.clear(to);
        for (found, mark) in moved {
            if let Mark::Unwritten { .. } = mark {
                self.set(Span::new(found.start - from.start + to.start, found.size_bytes()), mark);
            }
        }
    }

    /// The marks that touch `span`, whole.
    fn overlapping(&self, span: Span) -> impl Iterator<Item = (Span, Mark)> {
        let before = self.marks.range(..span.start).next_back().filter(|(_, (end, _))| *end > span.start);
        let within = self.marks.range(span.start..span.end);
        before.into_iter().chain(within).map(|(&start, &(end, mark))| (Span { start, end }, mark))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Mark = Mark::Unwritten { number: 0, at_ns: 0 };
    const SECOND: Mark = Mark::Freed { number: 1, at_ns: 5 };

    fn span(start: usize, end: usize) -> Span {
        Span { start, end }
    }

    fn all(shadow: &Shadow) -> Vec<(usize, usize, Mark)> {
        shadow.find(span(0, 1000)).map(|(found, mark)| (found.start, found.end, mark)).collect()
    }

    #[test]
    fn a_write_in_the_middle_splits() {
        let mut shadow = Shadow::default();
        shadow.set(span(10, 100), FIRST);
        shadow.clear(span(20, 30));
        assert_eq!(all(&shadow), [(10, 20, FIRST), (30, 100, FIRST)]);
        shadow.clear(span(0, 15));
        shadow.clear(span(90, 200));
        assert_eq!(all(&shadow), [(15, 20, FIRST), (30, 90, FIRST)]);
        shadow.clear(span(16, 17));
        shadow.clear(span(0, 1000));
        assert_eq!(all(&shadow), []);
    }

    #[test]
    fn the_latest_mark_counts() {
        let mut shadow = Shadow::default();
        shadow.set(span(10, 20), FIRST);
        shadow.set(span(15, 30), SECOND);
        assert_eq!(all(&shadow), [(10, 15, FIRST), (15, 30, SECOND)]);
        assert_eq!(shadow.find(span(12, 16)).collect::<Vec<_>>(), [(span(12, 15), FIRST), (span(15, 16), SECOND)]);
    }

    #[test]
    fn copies_take_along_what_is_unwritten() {
        let mut shadow = Shadow::default();
        shadow.set(span(10, 20), FIRST);
        shadow.copied(span(5, 15), span(105, 115), true);
        assert_eq!(all(&shadow), [(10, 20, FIRST), (110, 115, FIRST)]);
        shadow.copied(span(0, 10), span(105, 115), true);
        assert_eq!(all(&shadow), [(10, 20, FIRST)]);
        shadow.copied(span(10, 20), span(12, 22), true);
        assert_eq!(all(&shadow), [(10, 12, FIRST), (12, 22, FIRST)], "the ranges overlap");
        shadow.copied(span(10, 12), span(200, 202), false);
        assert_eq!(all(&shadow).len(), 2);
    }

    /// Random operations, beside a table with an entry per byte.
    #[test]
    fn spans_are_as_bytes_would_be() {
        const BYTES: usize = 64;
        let mut state = 1_u64;
        let mut draw = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let (mut shadow, mut bytes) = (Shadow::default(), [None; BYTES]);
        for round in 0..5000 {
            let start = draw(BYTES);
            let end = start + 1 + draw(BYTES - start);
            if draw(3) == 0 {
                shadow.clear(span(start, end));
                bytes[start..end].fill(None);
            } else {
                let mark = Mark::Unwritten { number: round, at_ns: 0 };
                shadow.set(span(start, end), mark);
                bytes[start..end].fill(Some(mark));
            }
            let mut found = [None; BYTES];
            for (span, mark) in shadow.find(span(0, BYTES)) {
                assert!(found[span.start..span.end].iter().all(Option::is_none));
                found[span.start..span.end].fill(Some(mark));
            }
            assert_eq!(found, bytes, "after {round}");
        }
    }
}
