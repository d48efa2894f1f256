//! Host memory that a client's hardware may reach, as its user holds it.

use std::fmt;

use crate::dma::Mapped;
use crate::memory::Instance;
use purlin_base::status::{Error, StatusOr};
use purlin_base::sync::PinnedArc;

/// The right to end the mapping of host memory that [`Client::dma_map`](super::Client::dma_map) has announced to the
/// backend. Copies that use the memory keep it mapped; it keeps the client alive.
///
/// The memory may be freed once it is unmapped: when [`unmap`](Self::unmap) has succeeded, or when this is dropped and
/// the events of the copies that used the memory have happened. So it is unmapped on the thread that drops this, or by
/// which the last of these copies completes. A driver may make that thread wait for its hardware
/// (`cuMemHostUnregister`).
///
/// ```
/// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
/// # let space = client.devices()[0].default_memory_space();
/// let memory = vec![0_u8; 4096];
/// let mapping = client.dma_map(memory.as_ptr(), memory.len())?;
/// assert_eq!(mapping.range(), (memory.as_ptr() as usize, 4096));
/// assert_eq!(mapping.in_flight(), 0);
/// mapping.unmap().map_err(|(error, _mapping)| error)?;
/// # Ok::<(), purlin::Error>(())
/// ```
#[must_use = "dropping it unmaps the memory"]
pub struct DmaMapping {
    mapped: Mapped,
    /// Dropped after the mapping, which its backend ends.
    instance: PinnedArc<Instance>,
}

impl DmaMapping {
    /// As [`Client::dma_map`](super::Client::dma_map).
    ///
    /// # Errors
    /// As there.
    pub(super) fn new(instance: &PinnedArc<Instance>, address: usize, size_bytes: usize) -> StatusOr<Self> {
        let mapped = Mapped::new(instance.dma_mappings(), instance.backend(), address, size_bytes)?;
        Ok(Self { mapped, instance: instance.clone() })
    }

    /// Address and bytes.
    #[must_use]
    pub fn range(&self) -> (usize, usize) {
        self.mapped.range()
    }

    /// Copies in flight that use the memory.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.mapped.in_flight()
    }

    /// Unmaps the memory, at once.
    ///
    /// # Errors
    /// `FailedPrecondition`, with the mapping back: copies in flight use the memory, and how many.
    pub fn unmap(self) -> Result<(), (Error, Self)> {
        let Self { mapped, instance } = self;
        mapped.unmap().map_err(|(error, mapped)| (error, Self { mapped, instance }))
    }
}

impl fmt::Debug for DmaMapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (address, size_bytes) = self.range();
        write!(f, "DmaMapping({size_bytes} bytes at {address:#x}, {} copies in flight)", self.in_flight())
    }
}
