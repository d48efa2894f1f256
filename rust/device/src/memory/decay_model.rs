//! Models have no timers, and their memory is freed with them.

use super::Instance;
use purlin_base::sync::PinnedArc;

pub(crate) struct Decay;

impl Decay {
    pub(crate) fn new() -> Self {
        Self
    }

    pub(crate) fn arm(&self, _instance: &PinnedArc<Instance>, _index: usize, _warm_bytes: usize) {}
}
