//! What belongs to one kind of memory of one device, beside its handles ([`MemorySpace`](super::MemorySpace)).

use super::Instance;
use super::alias::Links;
use super::block::MemoryBlock;
use super::decay::Decay;
use super::open::MemoryHook;
use super::waiting::Waiting;
use crate::arena::Arena;
use purlin_base::sync::{Mutex, Uncounted};

/// What a client asks of all its spaces.
#[derive(Clone, Default)]
pub(crate) struct SpaceRules {
    /// Asked for help when memory is short.
    pub(crate) out_of_memory: Option<MemoryHook>,
    /// Whether host memory that is to stay as it is while it is used is checked to have stayed so.
    pub(crate) checks_frozen_memory: bool,
}

/// One kind of memory of one device.
pub(crate) struct Space {
    /// The instance that owns it.
    instance: Uncounted<Instance>,
    pub(crate) rules: SpaceRules,
    /// Where it stands among the instance's spaces.
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
        rules: SpaceRules,
    ) -> Self {
        let (waiting, decay, links) = (Waiting::new(), Decay::new(), Mutex::new(Links::new()));
        Self { instance, rules, index, kind, arena, waiting, decay, links }
    }

    /// The instance: valid for as long as this is.
    pub(crate) fn instance(&self) -> Uncounted<Instance> {
        self.instance
    }
}
