//! The race detector: missing waits by the clocks of enqueueing, whatever the timing.
//!
//! Each stream and the host have a vector clock. The host's is joined when a thread sees an event or a stream complete,
//! and given to everything that is enqueued after; a wait joins the clock that the event's record had. Every access (a
//! byte range, read or write) carries the clock of its operation at the call. Two that overlap, one of them a write,
//! neither before the other, are a race, whenever the ranges become known: those of copies at the call, those of
//! kernels when they run.
//!
//! Unwritten bytes may be copied about on devices, and are reported when a kernel or the host reads them: copying a
//! block of which only a part matters is no mistake, looking at the rest is. Memory of the host is not followed, since
//! the host's own writes are not seen.
//!
//! All of it is under the driver's lock. Nothing here fails; switched off, nothing is recorded.

pub(crate) mod clock;
pub(crate) mod report;
pub(crate) mod shadow;
pub(crate) mod stamp;

use std::collections::BTreeSet;
use std::sync::Arc;

use purlin_fakecuda_options::Options;

use clock::{Clock, HOST};
use report::{Kind, Reports, Side};
use shadow::{Shadow, Span, Touch};
use stamp::Stamp;

/// The life of a block, as far as the detector cares.
#[derive(Clone)]
pub(crate) struct Life {
    pub(crate) span: Span,
    pub(crate) made: Arc<Stamp>,
    pub(crate) freed: Option<Arc<Stamp>>,
    /// Only operations write it: its unwritten bytes are known.
    pub(crate) is_followed: bool,
}

/// One range that an operation touches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) span: Span,
    pub(crate) writes: bool,
    /// A read whose bytes somebody looks at, so that they must have been written.
    pub(crate) must_be_written: bool,
}

/// See the module.
pub(crate) struct Detector {
    pub(crate) is_on: bool,
    pub(crate) reports: Reports,
    host: Clock,
    numbers: u64,
    shadow: Shadow,
    /// Numbers of operations of which something is known only when they run.
    pending: BTreeSet<u64>,
    /// Freed while something was pending.
    retired: Vec<Span>,
    free_lanes: Vec<(usize, u64)>,
    lanes: usize,
}

impl Detector {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            is_on: options.detector,
            reports: Reports::new(options.on_report),
            host: Clock::default(),
            numbers: 0,
            shadow: Shadow::default(),
            pending: BTreeSet::new(),
            retired: Vec::new(),
            free_lanes: Vec::new(),
            lanes: HOST,
        }
    }

    /// A lane for a new stream, and the number that its operations go on from.
    pub(crate) fn new_lane(&mut self) -> (usize, u64) {
        self.free_lanes.pop().unwrap_or_else(|| {
            self.lanes += 1;
            (self.lanes, 0)
        })
    }

    /// A stream has ended. Its lane is another's if the host has seen all of it: then no later operation of another
    /// stream races with it.
    pub(crate) fn end_lane(&mut self, lane: usize, last: u64) {
        if !self.is_on || self.host.at(lane) >= last {
            self.free_lanes.push((lane, last));
        }
    }

    /// The stamp of an operation on a stream, whose clock goes on.
    pub(crate) fn stamp(&mut self, clock: &mut Clock, lane: usize, sequence: u64, mut stamp: Stamp) -> Arc<Stamp> {
        self.numbers += 1;
        if self.is_on {
            clock.join(&self.host);
            clock.set(lane, sequence);
            stamp.clock = clock.clone();
        }
        Arc::new(Stamp { number: self.numbers, lane, sequence, ..stamp })
    }

    /// The stamp of an act of the host.
    pub(crate) fn host_stamp(&mut self, entry: &'static str, label: Arc<str>) -> Arc<Stamp> {
        self.numbers += 1;
        let sequence = self.host.at(HOST) + 1;
        self.host.set(HOST, sequence);
        let (place, clock) = (Arc::from("the host"), self.host.clone());
        Arc::new(Stamp { number: self.numbers, entry, kernel: None, label, place, lane: HOST, sequence, clock })
    }

    /// The stamp of a call on a lane that becomes no operation of it. Nothing is ordered with it.
    pub(crate) fn refused_stamp(
        &mut self,
        entry: &'static str,
        label: Arc<str>,
        place: Arc<str>,
        lane: usize,
    ) -> Stamp {
        self.numbers += 1;
        let clock = Clock::default();
        Stamp { number: self.numbers, entry, kernel: None, label, place, lane, sequence: 0, clock }
    }

    /// A thread saw that all of this is over.
    pub(crate) fn host_saw(&mut self, clock: &Clock) {
        if self.is_on {
            self.host.join(clock);
        }
    }

    /// Something of the operation will be known only when it runs; [`over`](Self::over) must follow.
    pub(crate) fn expect(&mut self, stamp: &Stamp) {
        self.pending.insert(stamp.number);
    }

    /// All is known of the operation.
    pub(crate) fn over(&mut self, stamp: &Stamp) {
        if self.pending.remove(&stamp.number) && self.pending.is_empty() {
            let retired = std::mem::take(&mut self.retired);
            retired.into_iter().for_each(|span| self.shadow.forget(span));
        }
    }

    /// Whether an operation before this one is not known in full.
    pub(crate) fn is_early(&self, stamp: &Stamp) -> bool {
        self.pending.first().is_some_and(|first| *first < stamp.number)
    }

    /// An operation touches a range of a block.
    pub(crate) fn access(&mut self, access: Access, stamp: &Arc<Stamp>, life: &Life) {
        if !self.is_on {
            return;
        }
        let Access { span, writes, .. } = access;
        let this = Side::new(stamp, span);
        if let Some(freed) = &life.freed
            && !stamp.is_before(freed)
        {
            let kind = if freed.is_before(stamp) { Kind::UseOfFreed } else { Kind::FreeBeforeUse };
            self.reports.add(kind, Some(span), this, Some(Side::new(freed, life.span)), "");
        }
        if !life.made.is_before(stamp) {
            self.reports.add(Kind::UseBeforeAllocation, Some(span), this, Some(Side::new(&life.made, life.span)), "");
        }
        let may_prune = !self.is_early(stamp);
        for race in self.shadow.access(span, stamp, writes, may_prune) {
            let kind = if race.both_write { Kind::WriteWrite } else { Kind::ReadWrite };
            let Touch { stamp, span } = &race.earlier;
            self.reports.add(kind, Some(race.span), this, Some(Side::new(stamp, *span)), "nothing orders the two");
        }
    }

    /// An operation reads a range, and whatever was to be written before is known.
    pub(crate) fn must_be_written(&mut self, span: Span, stamp: &Arc<Stamp>, life: &Life) {
        if self.is_on && life.is_followed {
            for part in self.shadow.unwritten(span, stamp) {
                let (read, made) = (Side::new(stamp, span), Side::new(&life.made, life.span));
                self.reports.add(Kind::Unwritten, Some(part), read, Some(made), "it left them unwritten");
            }
        }
    }

    /// Bytes were copied on a device: where the source is unwritten, the destination is.
    pub(crate) fn copied(&mut self, from: Span, to: Span, stamp: &Arc<Stamp>) {
        if self.is_on && !self.is_early(stamp) {
            for part in self.shadow.unwritten(from, stamp) {
                self.shadow.hollow(Span::new(part.start - from.start + to.start, part.end - part.start));
            }
        }
    }

    /// A block is freed; all of its uses should be before that.
    pub(crate) fn freed(&mut self, span: Span, freed: &Arc<Stamp>) {
        if !self.is_on {
            return;
        }
        for used in self.shadow.accesses(span) {
            if !used.stamp.is_before(freed) {
                let place = span.intersection(used.span);
                let (free, used) = (Side::new(freed, span), Side::new(&used.stamp, used.span));
                self.reports.add(Kind::FreeBeforeUse, Some(place), free, Some(used), "nothing orders the two");
            }
        }
        if self.pending.is_empty() {
            self.shadow.forget(span);
        } else {
            self.retired.push(span);
        }
    }
}
