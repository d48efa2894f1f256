//! Models have no timers, and their memory goes with them.

use super::Instance;
use crate::sync::PinnedArc;

pub(super) struct Decay;

impl Decay {
    pub(super) fn new() -> Self {
        Self
    }

    pub(super) fn arm(&self, _instance: &PinnedArc<Instance>, _index: usize, _warm_bytes: usize) {}
}
