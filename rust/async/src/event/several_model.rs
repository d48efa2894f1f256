//! Models have no reports, so joins note nothing.

use super::Event;
use super::abi::EventHeader;

/// See `several.rs`.
pub struct Awaited;

impl Awaited {
    /// See `several.rs`.
    pub(super) fn of(_event: &EventHeader, _sources: &[Event]) -> Option<Self> {
        None
    }

    /// See `several.rs`.
    pub fn pending(&self) -> Vec<Event> {
        Vec::new()
    }
}

/// See `several.rs`.
pub(super) fn of(_waiter: usize) -> Vec<usize> {
    Vec::new()
}
