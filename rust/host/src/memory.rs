//! Memory spaces of the host: extents from the system, or from an allocator of the user's.

use std::alloc::Layout;
use std::sync::Arc;

use purlin_base::fault::{self, Site};
use purlin_base::{Error, StatusOr};
use purlin_device::backend::{Extent, Memory, MemoryProperties};

use crate::ByteSource;
use crate::extent::{Lent, Mapped};

/// Every allocation begins at a multiple of this: a cache line, and the widest vector register.
pub const ALIGNMENT_BYTES: usize = 64;

/// Foreign memory must begin at a multiple of this: what any allocator gives, and enough for every element type.
pub const IMPORT_ALIGNMENT_BYTES: usize = 16;

/// A huge page.
pub(crate) const HUGE_PAGE_BYTES: usize = 2 << 20;

/// One memory space.
pub(crate) struct HostMemory {
    /// `None`: the system.
    source: Option<Arc<dyn ByteSource>>,
}

impl HostMemory {
    pub(crate) fn new(source: Option<Arc<dyn ByteSource>>) -> Self {
        Self { source }
    }
}

impl Memory for HostMemory {
    fn properties(&self) -> MemoryProperties {
        MemoryProperties {
            alignment_bytes: ALIGNMENT_BYTES,
            import_alignment_bytes: IMPORT_ALIGNMENT_BYTES,
            granule_bytes: HUGE_PAGE_BYTES,
            // A user's allocator has a policy of its own.
            caching: self.source.is_none(),
            is_host_visible: true,
            takes_strided_arrays: true,
        }
    }

    fn map(&self, size_bytes: usize, alignment_bytes: usize) -> StatusOr<Arc<dyn Extent>> {
        let Some(source) = &self.source else {
            fault::point(Site::MapHost)?;
            let none_left = || Error::resource_exhausted("the host has no such memory left");
            return Ok(Arc::new(Mapped::new(size_bytes, alignment_bytes).ok_or_else(none_left)?));
        };
        let layout = Layout::from_size_align(size_bytes, alignment_bytes)
            .map_err(|_| Error::resource_exhausted("that is more than an address space holds"))?;
        Ok(Arc::new(Lent::new(Arc::clone(source), layout)?))
    }

    fn import(&self, _address: usize, _size_bytes: usize) -> StatusOr<Option<Arc<dyn Extent>>> {
        Ok(None)
    }
}
