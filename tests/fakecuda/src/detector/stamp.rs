//! Who did something: one operation on a stream, or one act of the host, with its clock at the call.

use std::fmt;
use std::sync::Arc;

use super::clock::{Clock, HOST};

/// See the module.
#[derive(Debug)]
pub(crate) struct Stamp {
    /// Operations and acts are numbered in the order of their calls.
    pub(crate) number: u64,
    pub(crate) entry: &'static str,
    /// Which kernel, of a launch.
    pub(crate) kernel: Option<Arc<str>>,
    pub(crate) label: Arc<str>,
    /// What the lane is called.
    pub(crate) place: Arc<str>,
    pub(crate) lane: usize,
    /// Its number in the lane; 0 for a call that is refused, which is no operation of it.
    pub(crate) sequence: u64,
    pub(crate) clock: Clock,
}

impl Stamp {
    /// Whether something orders this before `other`.
    pub(crate) fn is_before(&self, other: &Self) -> bool {
        other.clock.at(self.lane) >= self.sequence
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, entry, kernel, label, place, lane, sequence, .. } = self;
        write!(f, "{entry} #{number}")?;
        if let Some(kernel) = kernel {
            write!(f, " of {kernel}")?;
        }
        match (*lane, *sequence) {
            (HOST, _) => write!(f, " by the host")?,
            (_, 0) => write!(f, " on {place}")?,
            _ => write!(f, " on {place}, its operation {sequence}")?,
        }
        if label.is_empty() { Ok(()) } else { write!(f, " [{label}]") }
    }
}
