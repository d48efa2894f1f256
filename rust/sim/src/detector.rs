//! Which party touched which memory before which other, and the reports of what should not have been.
//!
//! Unwritten memory is followed as it is copied about, and reported when it reaches the host: copying a block of which
//! only a part matters is no mistake, looking at the rest is. Memory that the host can write by itself is not followed.

use std::collections::BTreeMap;

use crate::bytes::Ends;
use crate::report::{Defect, Party, SimReport};
use crate::shadow::{Mark, Shadow, Span};

/// Reports that are kept; more are only counted.
const MOST_REPORTS: usize = 1000;

/// Two copies touch the same bytes, and one of them writes.
pub(crate) struct Clash {
    span: Span,
    /// The one that was asked writes them.
    pub(crate) writes: bool,
    /// The other one does.
    pub(crate) other_writes: bool,
}

impl Ends {
    /// Where the two must not meet. Of several places, one where both write.
    pub(crate) fn clash(&self, other: &Self) -> Option<Clash> {
        let clash = |mine: Span, writes, theirs: Span, other_writes| {
            mine.intersection(theirs).map(|span| Clash { span, writes, other_writes })
        };
        clash(self.to(), true, other.to(), true)
            .or_else(|| clash(self.from(), false, other.to(), true))
            .or_else(|| clash(self.to(), true, other.from(), false))
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
    left_out: u64,
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

    /// A copy begins; `copy` is it. What is to be said against it.
    pub(crate) fn begins(&mut self, ends: &Ends, copy: Party, now_ns: u64) -> Option<String> {
        let writes = |copy: &Party| match copy.clone() {
            Party::Copy { number, what, asked_ns, .. } => Party::Copy { number, what, writes: true, asked_ns },
            other => other,
        };
        let read = self.shadow.find(ends.from()).find_map(|(span, mark)| match mark {
            Mark::Unwritten { number, at_ns } => {
                ends.to_host.then_some((Defect::ReadBeforeWrite, span, Party::Allocation { number, at_ns }))
            }
            Mark::Freed { number, at_ns } => Some((Defect::UseAfterFree, span, Party::Release { number, at_ns })),
        });
        let written = self.shadow.find(ends.to()).find_map(|(span, mark)| match mark {
            Mark::Unwritten { .. } => None,
            Mark::Freed { number, at_ns } => Some((Defect::UseAfterFree, span, Party::Release { number, at_ns })),
        });
        let written = written.map(|(defect, span, earlier)| self.report(defect, span, writes(&copy), earlier, now_ns));
        let read = read.map(|(defect, span, earlier)| self.report(defect, span, copy, earlier, now_ns));
        read.or(written)
    }

    /// A copy has moved its bytes.
    pub(crate) fn copied(&mut self, ends: &Ends) {
        self.shadow.copied(ends.from(), ends.to(), ends.to_watched);
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
    pub(crate) fn left_out(&self) -> u64 {
        self.left_out
    }
}
