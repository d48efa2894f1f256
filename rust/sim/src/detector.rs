//! Which party touched which memory before which other, and the reports of what should not have been.
//!
//! Unwritten memory is followed as it is copied about, and reported when it reaches the host: copying a block of which
//! only a part matters is no mistake, looking at the rest is. Memory that the host can write by itself is not followed.

use std::collections::BTreeMap;

use crate::report::{Defect, Party, SimReport};
use crate::shadow::{Mark, Shadow, Span};
use crate::touched::Touched;

/// Reports that are kept; more are only counted.
const MOST_REPORTS: usize = 1000;

/// Two operations touch the same bytes, and one of them writes.
pub(crate) struct Clash {
    span: Span,
    /// The one that was asked writes them.
    pub(crate) writes: bool,
    /// The other one does.
    pub(crate) other_writes: bool,
}

impl Touched {
    /// Where the two must not meet. Of several places, one where both write.
    pub(crate) fn clash(&self, other: &Self) -> Option<Clash> {
        fn meet(mine: impl Iterator<Item = Span>, theirs: impl Iterator<Item = Span> + Clone) -> Option<Span> {
            mine.filter_map(|span| theirs.clone().find_map(|other| span.intersection(other))).next()
        }
        let clash = |writes, other_writes| move |span| Clash { span, writes, other_writes };
        let (reads, writes): (Vec<_>, Vec<_>) = (other.reads().collect(), other.writes().collect());
        meet(self.writes(), writes.iter().copied())
            .map(clash(true, true))
            .or_else(|| meet(self.reads(), writes.iter().copied()).map(clash(false, true)))
            .or_else(|| meet(self.writes(), reads.iter().copied()).map(clash(true, false)))
    }
}

/// See the module.
#[derive(Default)]
pub(crate) struct Detector {
    shadow: Shadow,
    blocks: u64,
    /// The numbers of the blocks that are in use, by address.
    in_use: BTreeMap<usize, u64>,
    reports: Vec<SimReport>,
    left_out: usize,
}

impl Detector {
    /// A block is handed out. `is_watched`: only copies write it.
    pub(crate) fn handed_out(&mut self, span: Span, is_watched: bool, at_ns: u64) {
        let number = self.blocks;
        self.blocks += 1;
        self.in_use.insert(span.start, number);
        if is_watched {
            self.shadow.set(span, Mark::Unwritten { number, at_ns });
        } else {
            self.shadow.clear(span);
        }
    }

    /// A block is given back, while the copies of `in_use` touch these bytes.
    pub(crate) fn given_back(&mut self, span: Span, at_ns: u64, in_use: Vec<(Span, Party)>) {
        let Some(number) = self.in_use.remove(&span.start) else { return };
        for (touched, copy) in in_use {
            self.report(Defect::FreedInUse, touched, Party::Release { number, at_ns }, copy, at_ns);
        }
        self.shadow.set(span, Mark::Freed { number, at_ns });
    }

    /// Memory is gone for us; whose it is next, we do not know.
    pub(crate) fn unmapped(&mut self, span: Span) {
        self.shadow.clear(span);
    }

    /// Two copies that no event orders touch the same bytes. What is to be said of it.
    pub(crate) fn unordered(&mut self, clash: Clash, later: Party, earlier: Party, now_ns: u64) -> String {
        let both = clash.writes && clash.other_writes;
        let defect = if both { Defect::UnorderedWrites } else { Defect::UnorderedReadAndWrite };
        self.report(defect, clash.span, later, earlier, now_ns)
    }

    /// An operation begins; `party` is it. What is to be said against it.
    pub(crate) fn begins(&mut self, touched: &Touched, party: &Party, now_ns: u64) -> Option<String> {
        let freed = |number, at_ns| (Defect::UseAfterFree, Party::Release { number, at_ns });
        let shadow = &self.shadow;
        let read = touched.reads().find_map(|read| {
            shadow.find(read).find_map(|(span, mark)| match mark {
                Mark::Unwritten { number, at_ns } => {
                    touched.to_host.then_some((span, (Defect::ReadBeforeWrite, Party::Allocation { number, at_ns })))
                }
                Mark::Freed { number, at_ns } => Some((span, freed(number, at_ns))),
            })
        });
        let written = touched.writes().find_map(|written| {
            shadow.find(written).find_map(|(span, mark)| match mark {
                Mark::Unwritten { .. } => None,
                Mark::Freed { number, at_ns } => Some((span, freed(number, at_ns))),
            })
        });
        let mut report = |(span, (defect, earlier)), writes| {
            self.report(defect, span, party.clone().that_writes(writes), earlier, now_ns)
        };
        let written = written.map(|found| report(found, true));
        let read = read.map(|found| report(found, false));
        read.or(written)
    }

    /// An operation has done its work.
    pub(crate) fn done(&mut self, touched: &Touched) {
        match touched.copied() {
            Some((from, to, is_watched)) => self.shadow.copied(from, to, is_watched),
            None => touched.writes().for_each(|written| self.shadow.clear(written)),
        }
    }

    fn report(&mut self, defect: Defect, span: Span, later: Party, earlier: Party, found_ns: u64) -> String {
        let report = SimReport { defect, address: span.start, size_bytes: span.size_bytes(), later, earlier, found_ns };
        let text = report.to_string();
        if self.reports.len() < MOST_REPORTS {
            self.reports.push(report);
        } else {
            self.left_out += 1;
        }
        text
    }

    pub(crate) fn reports(&self) -> &[SimReport] {
        &self.reports
    }

    /// How many reports are not among [`reports`](Self::reports).
    pub(crate) fn left_out(&self) -> usize {
        self.left_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_ranges_each_is_compared_with_each() {
        let at = |start| Span::new(start, 10);
        let launch = Touched::by_call(&[at(0), at(100), at(200)], &[at(300), at(400)]);
        let clash = |reads: &[Span], writes: &[Span]| {
            let clash = launch.clash(&Touched::by_call(reads, writes))?;
            Some((clash.span.start, clash.span.size_bytes(), clash.writes, clash.other_writes))
        };
        assert_eq!(clash(&[at(0), at(100), at(205)], &[at(500), at(600)]), None, "both only read");
        assert_eq!(clash(&[at(310), at(390)], &[at(10), at(90)]), None, "they touch no common byte");
        assert_eq!(clash(&[], &[at(500), at(195)]), Some((200, 5, false, true)), "the last that is read");
        assert_eq!(clash(&[at(500), at(405)], &[at(600)]), Some((405, 5, true, false)), "the last that is written");
        assert_eq!(clash(&[at(300)], &[at(0), at(409)]), Some((409, 1, true, true)), "two writes are told first");
    }
}
