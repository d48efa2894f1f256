//! No sleeper is recorded: models look at which thread is woken, not at its description.

use super::abi::EventHeader;
use purlin_base::status::Error;

pub(super) struct Sleepers;

impl Sleepers {
    pub(super) const fn new() -> Self {
        Self
    }

    pub(super) fn describe_this_thread(_event: &EventHeader, _may_end: bool, _pool: usize) {}

    pub(super) fn enter(&mut self, _sleeper: ()) {}

    pub(super) fn take_end(&mut self, _key: ()) -> Option<Error> {
        None
    }

    pub(super) fn leave(&mut self, _key: ()) {}
}
