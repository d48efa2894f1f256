//! A kind of memory of one device, and the blocks that are allocated there.

use std::fmt;
use std::sync::Arc;

use super::{Device, Instance, MemoryStats};
use crate::backend::{Allocation, Block};
use crate::status::{Status, StatusOr};

/// A handle to one kind of memory of one device; it keeps its client alive. Equal if it is the same space of the same
/// client.
#[derive(Clone)]
pub struct MemorySpace {
    instance: Arc<Instance>,
    /// In 0..instance.spaces().len().
    index: usize,
}

impl MemorySpace {
    /// `index < instance.spaces().len()`
    pub(super) fn new(instance: Arc<Instance>, index: usize) -> Self {
        Self { instance, index }
    }

    /// Unique within the client.
    #[must_use]
    pub fn id(&self) -> i32 {
        i32::try_from(self.index).expect("a client has at most 1024 devices with a handful of spaces each")
    }

    /// The backend's name for the kind, such as `"device"` or `"pinned_host"`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.instance.spaces()[self.index].kind
    }

    /// The device it belongs to.
    #[must_use]
    pub fn device(&self) -> Device {
        Device::new(Arc::clone(&self.instance), self.device_index())
    }

    /// What is allocated here now, and was at most.
    #[must_use]
    pub fn stats(&self) -> MemoryStats {
        self.instance.spaces()[self.index].ledger.read()
    }

    /// True if `other` belongs to the same client.
    #[must_use]
    pub fn same_client(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.instance, &other.instance)
    }

    pub(crate) fn instance(&self) -> &Instance {
        &self.instance
    }

    fn device_index(&self) -> usize {
        self.index / self.instance.kind_count()
    }

    /// New memory, entered into the books for as long as it lives.
    ///
    /// # Errors
    /// The backend's, with size, space and use added.
    pub(crate) fn allocate(&self, size_bytes: usize) -> StatusOr<Arc<MemoryBlock>> {
        let space = &self.instance.spaces()[self.index];
        let allocation = space.memory.allocate(size_bytes).map_err(|reason| {
            let in_use = space.ledger.read().bytes_in_use;
            Status::new(
                reason.code(),
                format!("cannot allocate {size_bytes} bytes in {self} ({in_use} bytes in use): {}", reason.message()),
            )
        })?;
        space.ledger.charge(size_bytes as u64);
        Ok(Arc::new(MemoryBlock { allocation, charge: Charge { space: self.clone(), size_bytes } }))
    }
}

impl PartialEq for MemorySpace {
    fn eq(&self, other: &Self) -> bool {
        self.same_client(other) && self.index == other.index
    }
}

impl Eq for MemorySpace {}

/// `host:2/pinned_host`
impl fmt::Display for MemorySpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}/{}", self.instance.backend().device_kind(), self.device_index(), self.kind())
    }
}

impl fmt::Debug for MemorySpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Memory that lives as long as a handle or a copy in flight refers to it. The allocation goes first, then its charge.
pub(crate) struct MemoryBlock {
    allocation: Box<dyn Allocation>,
    charge: Charge,
}

impl MemoryBlock {
    /// Where it is.
    pub(crate) fn memory_space(&self) -> &MemorySpace {
        &self.charge.space
    }
}

impl Block for MemoryBlock {
    fn allocation(&self) -> &dyn Allocation {
        &*self.allocation
    }
}

impl fmt::Display for MemoryBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.charge.space.fmt(f)
    }
}

/// An entry in the books of a memory space; dropping it strikes it out.
struct Charge {
    space: MemorySpace,
    size_bytes: usize,
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.space.instance.spaces()[self.space.index].ledger.release(self.size_bytes as u64);
    }
}
