//! Memory of the process, in disguise: of the kind `device` the host has no address, though it lies here. What is
//! handed out and what is given back is filled with patterns, so that a program which relies on either computes visible
//! nonsense.

#![allow(unsafe_code, reason = "memory is held, filled and given back by address")]

use std::alloc::{self, Layout};
use std::any::Any;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use purlin_base::{Error, StatusOr};
use purlin_device::backend::{DeviceRange, Extent, Memory, MemoryProperties};

use crate::shadow::Span;
use crate::simulation::Simulation;

/// Every byte of a block that was just allocated.
pub const FRESH_BYTE: u8 = 0xD5;
/// Every byte of a block that was given back.
pub const FREED_BYTE: u8 = 0xDB;
/// Every byte of a copy's destination while the copy is under way.
pub const IN_FLIGHT_BYTE: u8 = 0xDE;

/// One memory space.
pub(crate) struct SimMemory {
    simulation: Arc<Simulation>,
    is_host_visible: bool,
    /// Bytes that are mapped.
    mapped_bytes: Arc<AtomicUsize>,
}

impl SimMemory {
    pub(crate) fn new(simulation: Arc<Simulation>, is_host_visible: bool) -> Self {
        Self { simulation, is_host_visible, mapped_bytes: Arc::default() }
    }

    fn extent(&self, base: NonNull<u8>, owned: Option<Layout>) -> Arc<SimExtent> {
        Arc::new(SimExtent {
            simulation: Arc::clone(&self.simulation),
            base,
            is_host_visible: self.is_host_visible || owned.is_none(),
            owned: owned.map(|layout| (layout, Arc::clone(&self.mapped_bytes))),
        })
    }
}

impl Memory for SimMemory {
    fn properties(&self) -> MemoryProperties {
        MemoryProperties {
            is_host_visible: self.is_host_visible,
            // In the order of the operations, so that the host's array is read as late as on hardware.
            takes_strided_arrays: true,
            ..Default::default()
        }
    }

    fn map(&self, size_bytes: usize, alignment_bytes: usize) -> StatusOr<Arc<dyn Extent>> {
        let most_bytes = self.simulation.options().space_bytes;
        let full = || Error::resource_exhausted(format!("a simulated memory space has {most_bytes} bytes"));
        let layout = Layout::from_size_align(size_bytes, alignment_bytes).map_err(|_| full())?;
        // Relaxed: the counter publishes nothing but itself.
        let taken = self.mapped_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |mapped_bytes| {
            mapped_bytes.checked_add(size_bytes).filter(|&sum| sum <= most_bytes)
        });
        taken.map_err(|_| full())?;
        // SAFETY: core guarantees that the size is not 0.
        let Some(base) = NonNull::new(unsafe { alloc::alloc(layout) }) else {
            // Relaxed: as above.
            self.mapped_bytes.fetch_sub(size_bytes, Ordering::Relaxed);
            return Err(Error::resource_exhausted("the process has no such memory left"));
        };
        Ok(self.extent(base, Some(layout)))
    }

    fn import(&self, address: usize, _size_bytes: usize) -> StatusOr<Option<Arc<dyn Extent>>> {
        let base = NonNull::new(ptr::with_exposed_provenance_mut(address));
        Ok(Some(self.extent(base.unwrap_or_else(|| unreachable!("core guarantees that it is not null")), None)))
    }
}

/// Memory from which core cuts blocks, or that a foreign owner keeps for us.
pub(crate) struct SimExtent {
    simulation: Arc<Simulation>,
    base: NonNull<u8>,
    /// Whether the host may write it by itself, so that it is not known what was written.
    is_host_visible: bool,
    /// How it was allocated, and its counter; `None`: foreign.
    owned: Option<(Layout, Arc<AtomicUsize>)>,
}

// SAFETY: the memory belongs to this value or is kept by its owner, and may be used from any thread; reads and writes
// are ordered by the copies' events (RawBuffer's contract).
unsafe impl Send for SimExtent {}
// SAFETY: as above; a shared reference gives away only the address.
unsafe impl Sync for SimExtent {}

impl SimExtent {
    fn span(&self, offset_bytes: usize, size_bytes: usize) -> Span {
        Span::new(self.address() + offset_bytes, size_bytes)
    }

    fn fill(&self, offset_bytes: usize, size_bytes: usize, byte: u8) {
        // SAFETY: core hands out and takes back ranges within the extent, and they are not used at that moment.
        unsafe { ptr::write_bytes(self.base.as_ptr().wrapping_add(offset_bytes), byte, size_bytes) }
    }
}

impl Extent for SimExtent {
    fn address(&self) -> usize {
        self.base.as_ptr().expose_provenance()
    }

    fn host_address(&self) -> Option<NonNull<u8>> {
        self.is_host_visible.then_some(self.base)
    }

    fn handed_out(&self, offset_bytes: usize, size_bytes: usize) {
        self.fill(offset_bytes, size_bytes, FRESH_BYTE);
        self.simulation.handed_out(self.span(offset_bytes, size_bytes), !self.is_host_visible);
    }

    fn given_back(&self, offset_bytes: usize, size_bytes: usize) {
        self.fill(offset_bytes, size_bytes, FREED_BYTE);
        self.simulation.given_back(self.span(offset_bytes, size_bytes));
    }
}

impl Drop for SimExtent {
    fn drop(&mut self) {
        let Some((layout, mapped_bytes)) = &self.owned else { return };
        self.simulation.unmapped(self.span(0, layout.size()));
        // SAFETY: it was allocated with this layout, and core drops an extent only when no handle and no copy refers to
        // it.
        unsafe { alloc::dealloc(self.base.as_ptr(), *layout) };
        // Relaxed: as in map().
        mapped_bytes.fetch_sub(layout.size(), Ordering::Relaxed);
    }
}

/// Where the bytes of a range are. Only after the operation's dependencies.
pub(crate) struct Place {
    pub(crate) address: *mut u8,
    pub(crate) is_host_visible: bool,
}

impl Place {
    pub(crate) fn of(range: &DeviceRange) -> Self {
        let (extent, offset_bytes) = range.place();
        let Some(extent) = (extent as &dyn Any).downcast_ref::<SimExtent>() else {
            unreachable!("core guarantees that ranges belong to the backend's own client")
        };
        let address = extent.base.as_ptr().wrapping_add(offset_bytes);
        Self { address, is_host_visible: extent.is_host_visible }
    }
}
