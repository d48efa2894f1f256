//! What belongs to one kind of memory of one device, beside its handles ([`MemorySpace`](super::MemorySpace)).

use super::alias::Links;
use super::block::MemoryBlock;
use super::decay::Decay;
use super::waiting::Waiting;
use crate::arena::Arena;
use crate::instance::Instance;
use purlin_base::sync::{Mutex, Uncounted};

/// One kind of memory of one device.
pub(crate) struct Space {
    /// Whose it is: the instance that owns it.
    instance: Uncounted<Instance>,
    /// Where it stands among [`Instance::spaces`].
    pub(crate) index: usize,
    pub(crate) kind: &'static str,
    pub(crate) arena: Arena<MemoryBlock>,
    /// Allocations that wait for others to be freed.
    pub(crate) waiting: Waiting,
    pub(crate) decay: Decay,
    /// Of blocks that stand for others.
    pub(crate) links: Mutex<Links>,
}

impl Space {
    /// A space without blocks.
    pub(crate) fn new(
        instance: Uncounted<Instance>,
        index: usize,
        kind: &'static str,
        arena: Arena<MemoryBlock>,
    ) -> Self {
        let (waiting, decay, links) = (Waiting::new(), Decay::new(), Mutex::new(Links::new()));
        Self { instance, index, kind, arena, waiting, decay, links }
    }

    /// The instance: valid for as long as this is.
    pub(crate) fn instance(&self) -> Uncounted<Instance> {
        self.instance
    }
}
