//! Memory spaces of the host: each allocation is one block of the source, given back when it is dropped.

#![allow(unsafe_code, reason = "blocks of memory are held by address")]

use std::alloc::Layout;
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::Arc;

use purlin::backend::{Allocation, Memory};
use purlin::{Status, StatusOr};

use crate::ByteSource;

/// Every allocation begins at a multiple of this: a cache line, and the widest vector register.
pub const ALIGNMENT_BYTES: usize = 64;

/// One memory space.
pub(crate) struct HostMemory {
    source: Arc<dyn ByteSource>,
}

impl HostMemory {
    pub(crate) fn new(source: Arc<dyn ByteSource>) -> Self {
        Self { source }
    }
}

impl Memory for HostMemory {
    fn allocate(&self, size_bytes: usize) -> StatusOr<Box<dyn Allocation>> {
        let layout = Layout::from_size_align(size_bytes, ALIGNMENT_BYTES)
            .map_err(|_| Status::resource_exhausted("that is more than an address space holds"))?;
        let address = if size_bytes == 0 {
            const NOWHERE: NonZeroUsize = NonZeroUsize::new(ALIGNMENT_BYTES).expect("the alignment is not 0");
            // No byte is ever read or written there; aligned and not null, as callers expect of an address.
            NonNull::without_provenance(NOWHERE)
        } else {
            self.source.take(layout).ok_or_else(|| Status::resource_exhausted("the host has no such memory left"))?
        };
        Ok(Box::new(HostAllocation { address, layout, source: Arc::clone(&self.source) }))
    }
}

/// A block of memory that belongs to this value.
pub(crate) struct HostAllocation {
    address: NonNull<u8>,
    layout: Layout,
    source: Arc<dyn ByteSource>,
}

// SAFETY: the block belongs to this value alone, and memory may be used from any thread; who reads and writes it when is
// ordered by the copies' events (RawBuffer's contract).
unsafe impl Send for HostAllocation {}
// SAFETY: as above; a shared reference gives away only the address.
unsafe impl Sync for HostAllocation {}

impl HostAllocation {
    /// The first byte of the block.
    pub(crate) fn address(&self) -> NonNull<u8> {
        self.address
    }
}

impl Allocation for HostAllocation {
    fn host_address(&self) -> Option<NonNull<u8>> {
        Some(self.address)
    }
}

impl Drop for HostAllocation {
    fn drop(&mut self) {
        if self.layout.size() > 0 {
            // SAFETY: the block came from this source with this layout, and core drops an allocation only when no handle
            // and no copy refers to it.
            unsafe { self.source.give_back(self.address, self.layout) }
        }
    }
}
