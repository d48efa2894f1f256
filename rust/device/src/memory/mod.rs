//! Memory of devices: its spaces, the blocks that are asked for there, and reports of what holds them.

mod alias;
mod alloc_options;
mod block;
#[cfg(not(purlin_model))]
mod decay;
#[cfg(purlin_model)]
#[path = "decay_model.rs"]
mod decay;
mod foreign;
mod listing;
#[cfg(all(test, loom))]
mod loom_model;
pub(crate) mod memory_space;
mod open;
mod report;
mod space;
mod waiting;

pub use alloc_options::{AllocOptions, OomPolicy};
pub(crate) use block::{Backing, MemoryBlock, Tag};
pub use foreign::Release;
pub(crate) use foreign::{Imported, Notified, Owner};
pub use memory_space::MemorySpace;
pub use open::MemoryHook;
pub(crate) use open::open_memories;
pub use report::{MEMORY_REPORT_TYPE_URL, MemoryHolder, MemoryReport};
pub(crate) use space::{Space, SpaceRules};

pub use crate::arena::MemoryStats;

/// What the handles of one client share, with its memory spaces.
pub(crate) type Instance = crate::instance::Instance<Space>;
