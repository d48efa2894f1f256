//! What was found, as text, once per pair of operations and kind.

use std::collections::HashSet;
use std::{fmt, process};

use purlin_fakecuda_options::OnReport;

use super::shadow::Span;
use super::stamp::Stamp;
use crate::driver;

/// Reports that are kept; more are only counted.
const MOST_KEPT: usize = 1000;

/// A kind of mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    WriteWrite,
    ReadWrite,
    UseOfFreed,
    FreeBeforeUse,
    UseBeforeAllocation,
    OutOfBounds,
    WildAddress,
    Unwritten,
    StrangersContext,
    CallInHostFunction,
}

impl Kind {
    /// How a report begins.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::WriteWrite => "write/write race",
            Self::ReadWrite => "read/write race",
            Self::UseOfFreed => "use of freed memory",
            Self::FreeBeforeUse => "free not ordered behind a use",
            Self::UseBeforeAllocation => "use not ordered behind the allocation",
            Self::OutOfBounds => "out of bounds",
            Self::WildAddress => "wild address",
            Self::Unwritten => "read of bytes that nothing wrote",
            Self::StrangersContext => "a stranger's context",
            Self::CallInHostFunction => "a CUDA call in a host function",
        }
    }
}

/// An operation, and the bytes of it that a report is about.
#[derive(Clone, Copy)]
pub(crate) struct Side<'a> {
    stamp: &'a Stamp,
    span: Option<Span>,
}

impl<'a> Side<'a> {
    pub(crate) fn new(stamp: &'a Stamp, span: Span) -> Self {
        Self { stamp, span: Some(span) }
    }

    /// It is about no bytes.
    pub(crate) fn without_bytes(stamp: &'a Stamp) -> Self {
        Self { stamp, span: None }
    }
}

impl fmt::Display for Side<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.span {
            Some(Span { start, end }) => write!(f, "{}, bytes {start:#x}..{end:#x}", self.stamp),
            None => write!(f, "{}", self.stamp),
        }
    }
}

/// All reports since the last [`clear`](Self::clear).
pub(crate) struct Reports {
    kept: Vec<String>,
    count: usize,
    known: HashSet<(Kind, u64, u64)>,
    on_report: OnReport,
}

impl Reports {
    pub(crate) fn new(on_report: OnReport) -> Self {
        Self { kept: Vec::new(), count: 0, known: HashSet::new(), on_report }
    }

    pub(crate) fn kept(&self) -> &[String] {
        &self.kept
    }

    /// With those that are not kept.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    pub(crate) fn clear(&mut self) {
        self.kept.clear();
        self.known.clear();
        self.count = 0;
    }

    /// Two operations that should not meet at `place`; what meets nothing has one side only.
    pub(crate) fn add(
        &mut self,
        kind: Kind,
        place: Option<Span>,
        later: Side<'_>,
        earlier: Option<Side<'_>>,
        why: &str,
    ) {
        let (one, other) = (later.stamp.number, earlier.map_or(0, |earlier| earlier.stamp.number));
        let pair = (one.max(other), one.min(other));
        if !self.known.insert((kind, pair.0, pair.1)) {
            return;
        }
        let place = place.map_or_else(String::new, |Span { start, end }| {
            format!(" of {} bytes at {start:#x}..{end:#x}", end - start)
        });
        let earlier = earlier.map_or_else(String::new, |earlier| format!("; {earlier}"));
        let why = if why.is_empty() { String::new() } else { format!("; {why}") };
        let text = format!("{}{place}: {later}{earlier}{why}", kind.text());
        self.count += 1;
        if self.on_report != OnReport::Keep {
            driver::complain(&text);
        }
        if self.on_report == OnReport::Abort {
            process::abort();
        }
        if self.kept.len() < MOST_KEPT {
            self.kept.push(text);
        }
    }
}
