//! Who touched which bytes: an interval map by address.
//!
//! A segment holds the writes and the reads that a later access may still race with. An access drops those before it,
//! since whatever races with them races with it, too; but only while no access with an earlier number is still to come
//! (`may_prune`): what a kernel touches is known when it runs, and it must meet all that it was not ordered with.
//!
//! `first` is the write that nothing recorded was before; a segment without one has bytes that nothing wrote.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::stamp::Stamp;

/// `[start, end)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl Span {
    /// The end of the address space at most.
    pub(crate) fn new(start: u64, size_bytes: u64) -> Self {
        Self { start, end: start.saturating_add(size_bytes) }
    }

    pub(crate) fn intersection(self, other: Self) -> Self {
        Self { start: self.start.max(other.start), end: self.end.min(other.end) }
    }

    pub(crate) fn is_empty(self) -> bool {
        self.start >= self.end
    }
}

/// An access, with the whole range that it was told with: a segment may be a part of it.
#[derive(Clone)]
pub(crate) struct Touch {
    pub(crate) stamp: Arc<Stamp>,
    pub(crate) span: Span,
}

#[derive(Clone, Default)]
struct Segment {
    end: u64,
    writes: Vec<Touch>,
    reads: Vec<Touch>,
    first: Option<Arc<Stamp>>,
}

/// A race that an access has with an earlier one, where the two overlap.
pub(crate) struct Race {
    pub(crate) span: Span,
    pub(crate) earlier: Touch,
    pub(crate) both_write: bool,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Shadow {
    /// By start; never overlapping, never empty.
    segments: BTreeMap<u64, Segment>,
}

fn are_unordered(one: &Stamp, other: &Stamp) -> bool {
    one.number != other.number && !one.is_before(other) && !other.is_before(one)
}

impl Shadow {
    /// Records an access, and answers what it races with.
    pub(crate) fn access(&mut self, span: Span, stamp: &Arc<Stamp>, writes: bool, may_prune: bool) -> Vec<Race> {
        let mut races = Vec::new();
        if span.is_empty() {
            return races;
        }
        self.split_at(span.start);
        self.split_at(span.end);
        self.fill_gaps(span);
        let mut was_all_pruned = writes && may_prune;
        for segment in self.segments.range_mut(span.start..span.end).map(|(_, segment)| segment) {
            let touch = Touch { stamp: Arc::clone(stamp), span };
            let mut race = |earlier: &Touch, both_write| {
                if are_unordered(&earlier.stamp, stamp) {
                    let place = span.intersection(earlier.span);
                    races.push(Race { span: place, earlier: earlier.clone(), both_write });
                }
            };
            segment.writes.iter().for_each(|write| race(write, writes));
            if writes {
                segment.reads.iter().for_each(|read| race(read, false));
            }
            let is_kept = |other: &Touch| !may_prune || !other.stamp.is_before(stamp);
            segment.reads.retain(is_kept);
            if writes {
                segment.writes.retain(is_kept);
                segment.writes.push(touch);
                if segment.first.as_ref().is_none_or(|first| may_prune || stamp.is_before(first)) {
                    segment.first = Some(Arc::clone(stamp));
                }
                was_all_pruned &= segment.writes.len() == 1 && segment.reads.is_empty();
            } else {
                segment.reads.push(touch);
            }
        }
        if was_all_pruned {
            self.make_one(span);
        }
        races
    }

    /// The parts of `span` that `reader` finds unwritten.
    pub(crate) fn unwritten(&self, span: Span, reader: &Stamp) -> Vec<Span> {
        let mut found: Vec<Span> = Vec::new();
        let mut at = span.start;
        let mut add = |part: Span| match found.last_mut() {
            _ if part.is_empty() => {}
            Some(last) if last.end == part.start => last.end = part.end,
            _ => found.push(part),
        };
        for (start, segment) in self.overlapping(span) {
            let part = Span { start, end: segment.end }.intersection(span);
            add(Span { start: at, end: part.start });
            let is_after = |first: &Arc<Stamp>| first.number != reader.number && reader.is_before(first);
            if segment.first.as_ref().is_none_or(is_after) {
                add(part);
            }
            at = part.end;
        }
        add(Span { start: at, end: span.end });
        found
    }

    /// What was written there had no content: it was copied from unwritten bytes.
    pub(crate) fn hollow(&mut self, span: Span) {
        self.split_at(span.start);
        self.split_at(span.end);
        self.segments.range_mut(span.start..span.end).for_each(|(_, segment)| segment.first = None);
    }

    /// All accesses there: of each at least one part.
    pub(crate) fn accesses(&self, span: Span) -> impl Iterator<Item = &Touch> {
        self.overlapping(span).flat_map(|(_, segment)| segment.writes.iter().chain(&segment.reads))
    }

    /// Nothing is known of these bytes any more.
    pub(crate) fn forget(&mut self, span: Span) {
        self.split_at(span.start);
        self.split_at(span.end);
        let starts: Vec<u64> = self.segments.range(span.start..span.end).map(|(start, _)| *start).collect();
        starts.iter().for_each(|start| _ = self.segments.remove(start));
    }

    fn overlapping(&self, span: Span) -> impl Iterator<Item = (u64, &Segment)> {
        let before = self.segments.range(..span.start).next_back().filter(|(_, segment)| segment.end > span.start);
        before.into_iter().chain(self.segments.range(span.start..span.end)).map(|(start, segment)| (*start, segment))
    }

    fn split_at(&mut self, at: u64) {
        if let Some((_, segment)) = self.segments.range_mut(..at).next_back()
            && segment.end > at
        {
            let rest = segment.clone();
            segment.end = at;
            self.segments.insert(at, rest);
        }
    }

    fn fill_gaps(&mut self, span: Span) {
        let (mut at, mut gaps) = (span.start, Vec::new());
        for (start, segment) in self.segments.range(span.start..span.end) {
            gaps.extend((at < *start).then_some((at, *start)));
            at = segment.end;
        }
        gaps.extend((at < span.end).then_some((at, span.end)));
        for (start, end) in gaps {
            self.segments.insert(start, Segment { end, ..Segment::default() });
        }
    }

    /// The segments of `span`, which are alike, become one.
    fn make_one(&mut self, span: Span) {
        let first = self.segments.remove(&span.start);
        self.forget(span);
        if let Some(first) = first {
            self.segments.insert(span.start, Segment { end: span.end, ..first });
        }
    }
}

#[cfg(test)]
mod tests;
