//! What a kernel touched, as ranges of bytes: accesses that touch each other are one range.

use std::collections::BTreeMap;

use crate::detector::shadow::Span;

/// Ranges that neither overlap nor touch, by start.
#[derive(Default)]
struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    fn covers(&self, span: Span) -> bool {
        self.0.range(..=span.start).next_back().is_some_and(|(_, end)| *end >= span.end)
    }

    fn add(&mut self, span: Span) {
        if self.covers(span) {
            return;
        }
        let Span { mut start, mut end } = span;
        while let Some((other, other_end)) = self.0.range(..=end).next_back().map(|(start, end)| (*start, *end)) {
            if other_end < start {
                break;
            }
            self.0.remove(&other);
            (start, end) = (start.min(other), end.max(other_end));
        }
        self.0.insert(start, end);
    }

    fn spans(&self) -> impl Iterator<Item = Span> {
        self.0.iter().map(|(start, end)| Span { start: *start, end: *end })
    }
}

/// See the module. Bytes that the kernel wrote before it read them are only written.
#[derive(Default)]
pub(crate) struct Touched {
    reads: Ranges,
    writes: Ranges,
}

impl Touched {
    pub(crate) fn read(&mut self, span: Span) {
        if !self.writes.covers(span) {
            self.reads.add(span);
        }
    }

    pub(crate) fn write(&mut self, span: Span) {
        self.writes.add(span);
    }

    pub(crate) fn reads(&self) -> impl Iterator<Item = Span> {
        self.reads.spans()
    }

    pub(crate) fn writes(&self) -> impl Iterator<Item = Span> {
        self.writes.spans()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_that_touch_are_one_range() {
        let mut touched = Touched::default();
        for start in [8, 0, 4, 40, 36, 12, 20] {
            touched.read(Span::new(start, 4));
        }
        touched.write(Span::new(100, 8));
        touched.read(Span::new(104, 4));
        touched.read(Span::new(104, 8));
        let reads: Vec<_> = touched.reads().map(|span| (span.start, span.end)).collect();
        assert_eq!(reads, [(0, 16), (20, 24), (36, 44), (104, 112)]);
        assert_eq!(touched.writes().collect::<Vec<_>>(), [Span::new(100, 8)]);
    }
}
