//! The memory of a GPU, and pinned memory of the host.

#![allow(unsafe_code, reason = "the driver is called")]

use std::any::Any;
use std::ffi::c_void;
use std::ops::Range;
use std::ptr::{self, NonNull};
use std::sync::{Arc, Weak};

use purlin_base::{Error, StatusOr};
use purlin_device::backend::{DeviceRange, Extent, Memory, MemoryProperties};

use crate::driver::Driver;
use crate::err;
use crate::gpu::Gpu;
use crate::janitor::{Garbage, Janitor};
use crate::mapped::MappedBytes;
use crate::pinned::{Pinned, PinnedRanges};
use crate::pointer::check_of_gpu;
use crate::staging::PORTABLE;
use crate::stream::{Role, Stream, SyncPoint};
use crate::uses::Uses;

/// What the driver's allocations begin at a multiple of.
const ALIGNMENT_BYTES: usize = 256;
/// What extents are multiples of.
const GRANULE_BYTES: usize = 2 << 20;

/// What all memories of a backend share.
pub(crate) struct Keepers {
    pub(crate) janitor: Janitor,
    pub(crate) pinned: PinnedRanges,
    pub(crate) mapped: MappedBytes,
}

impl Keepers {
    pub(crate) fn new(driver: &'static Driver) -> Self {
        Self { janitor: Janitor::new(driver), pinned: PinnedRanges::default(), mapped: MappedBytes::default() }
    }
}

/// Memory of the GPU, which the host does not reach.
///
/// Extents are allocated and freed in the order of streams that do nothing else, so neither waits for the GPU's work.
/// Core drops an extent when all that uses it is enqueued, so a free comes behind its last [uses](crate::uses). The
/// [janitor](crate::janitor) then waits for that, upon which the driver's pool gives the bytes to other processes.
/// Without such allocation in the driver, the janitor frees.
pub(crate) struct DeviceMemory {
    pub(crate) gpu: Arc<Gpu>,
    pub(crate) keepers: Arc<Keepers>,
}

struct DeviceExtent {
    gpu: Arc<Gpu>,
    keepers: Arc<Keepers>,
    address: usize,
    /// How many bytes the driver has given for it.
    size_bytes: usize,
    how: How,
    uses: Uses<SyncPoint>,
}

/// Whether it is memory of a GPU.
pub(crate) fn is_of_gpu(range: &DeviceRange) -> bool {
    range.memory_kind() == "device"
}

/// Where the uses of a GPU's memory are written down, and which of the bytes there are those of the range. `None` for
/// memory of the host, and for imported memory, whose owner would not wait for what is enqueued.
pub(crate) fn uses(range: &DeviceRange) -> Option<(&Uses<SyncPoint>, Range<usize>)> {
    let (extent, begin) = range.place();
    let extent = (extent as &dyn Any).downcast_ref::<DeviceExtent>()?;
    match extent.how {
        How::Foreign => None,
        How::Pool(_) | How::Plain(_) => Some((&extent.uses, begin..begin + range.size_bytes())),
    }
}

/// How memory of the GPU was allocated.
#[derive(Clone, Copy)]
enum How {
    /// By the pool, at that address.
    Pool(u64),
    /// By `cuMemAlloc`, at that address.
    Plain(u64),
    /// By somebody else.
    Foreign,
}

impl DeviceMemory {
    /// That there is no memory, with who has it.
    fn full(&self, error: &Error) -> Error {
        let Some((free, total)) = self.gpu.free_bytes() else { return error.clone() };
        let own = self.keepers.mapped.of(self.gpu.ordinal);
        let others = total.saturating_sub(free).saturating_sub(own);
        Error::new(
            error.code(),
            format!(
                "{}; GPU {} says that {free} of its {total} bytes are free: this client has {own}, and others in this \
                 process or on the GPU have {others}",
                error.message(),
                self.gpu.ordinal
            ),
        )
    }

    fn extent(&self, address: usize, size_bytes: usize, how: How) -> Arc<dyn Extent> {
        let (gpu, keepers) = (Arc::clone(&self.gpu), Arc::clone(&self.keepers));
        keepers.mapped.add(gpu.ordinal, size_bytes);
        Arc::new(DeviceExtent { gpu, keepers, address, size_bytes, how, uses: Uses::default() })
    }
}

impl Memory for DeviceMemory {
    fn properties(&self) -> MemoryProperties {
        MemoryProperties {
            alignment_bytes: ALIGNMENT_BYTES,
            granule_bytes: GRANULE_BYTES,
            takes_strided_arrays: true,
            ..Default::default()
        }
    }

    fn map(&self, size_bytes: usize, alignment_bytes: usize) -> StatusOr<Arc<dyn Extent>> {
        let gpu = &self.gpu;
        gpu.driver.check_process()?;
        gpu.check_whole()?;
        let _current = gpu.enter()?;
        // The driver's own alignment is enough for all that asks for no more.
        let more_bytes = if alignment_bytes > ALIGNMENT_BYTES { alignment_bytes } else { 0 };
        let Some(bytes) = size_bytes.checked_add(more_bytes) else {
            return Err(Error::resource_exhausted(format!("no GPU has {size_bytes} bytes")));
        };
        let what = || format!("allocating {bytes} bytes on GPU {}", gpu.ordinal);
        let stream = gpu.stream(Role::Memory).handle();
        let mut address = 0;
        let mut allocate = || match gpu.pool {
            // SAFETY: the driver writes an address; freed when the extent is dropped.
            Some(pool) => unsafe { (pool.api.allocate)(&mut address, bytes, pool.handle, stream) },
            // SAFETY: as above.
            None => unsafe { (gpu.api().base.allocate)(&mut address, bytes) },
        };
        let mut code = allocate();
        if code == err::OUT_OF_MEMORY {
            // Some of it may be on its way back.
            gpu.stream(Role::Free).drain(gpu);
            self.keepers.janitor.settle();
            code = allocate();
        }
        gpu.check(code, what).map_err(|error| self.full(&error))?;
        let how = if let Some(pool) = gpu.pool {
            // From here on, every stream may use it.
            // SAFETY: the stream is ours.
            let code = unsafe { (gpu.api().base.synchronize_stream)(stream) };
            if let Err(error) = gpu.check(code, what) {
                // SAFETY: allocated in the line above, and nobody has the address.
                unsafe { (pool.api.free)(address, stream) };
                return Err(error);
            }
            How::Pool(address)
        } else {
            How::Plain(address)
        };
        Ok(self.extent((address as usize).next_multiple_of(alignment_bytes), bytes, how))
    }

    fn import(&self, address: usize, size_bytes: usize) -> StatusOr<Option<Arc<dyn Extent>>> {
        check_of_gpu(&self.gpu, address, size_bytes)?;
        Ok(Some(self.extent(address, 0, How::Foreign)))
    }
}

impl Extent for DeviceExtent {
    fn address(&self) -> usize {
        self.address
    }

    fn host_address(&self) -> Option<NonNull<u8>> {
        None
    }
}

impl Drop for DeviceExtent {
    fn drop(&mut self) {
        if !self.gpu.driver.is_here() {
            return;
        }
        self.keepers.mapped.remove(self.gpu.ordinal, self.size_bytes);
        let used = self.uses.all();
        match (self.how, self.gpu.pool) {
            (How::Pool(address), Some(pool)) => {
                let _current = self.gpu.enter().ok();
                // SAFETY: allocated so; what uses it still, this comes behind.
                let freed = Stream::free_after(&self.gpu, &used, |stream| unsafe { (pool.api.free)(address, stream) });
                let gpu = Arc::clone(&self.gpu);
                self.keepers.janitor.take(match freed {
                    Ok(()) => Garbage::Freed(gpu),
                    Err(_) => Garbage::Pooled(gpu, address, used),
                });
            }
            (How::Plain(address), _) => {
                self.keepers.janitor.take(Garbage::Device(Arc::clone(&self.gpu), address, used));
            }
            _ => {}
        }
    }
}

/// Memory of the host that the GPUs reach, too.
pub(crate) struct PinnedMemory {
    pub(crate) gpu: Arc<Gpu>,
    pub(crate) keepers: Arc<Keepers>,
}

struct PinnedExtent {
    gpu: Arc<Gpu>,
    keepers: Arc<Keepers>,
    memory: NonNull<c_void>,
    address: NonNull<u8>,
}

// SAFETY: memory that any thread may use; accesses are ordered by the operations' events.
unsafe impl Send for PinnedExtent {}
// SAFETY: as above; a shared reference gives away only the address.
unsafe impl Sync for PinnedExtent {}

impl Memory for PinnedMemory {
    fn properties(&self) -> MemoryProperties {
        MemoryProperties { granule_bytes: GRANULE_BYTES, is_host_visible: true, ..Default::default() }
    }

    fn map(&self, size_bytes: usize, alignment_bytes: usize) -> StatusOr<Arc<dyn Extent>> {
        /// What the driver's pinned memory begins at a multiple of: a page.
        const PAGE_BYTES: usize = 4096;
        let gpu = &self.gpu;
        gpu.driver.check_process()?;
        gpu.check_whole()?;
        let _current = gpu.enter()?;
        let more_bytes = if alignment_bytes > PAGE_BYTES { alignment_bytes } else { 0 };
        let Some(bytes) = size_bytes.checked_add(more_bytes) else {
            return Err(Error::resource_exhausted(format!("no host has {size_bytes} bytes")));
        };
        let mut memory = ptr::null_mut();
        // SAFETY: the driver writes an address; freed when the extent is dropped.
        let code = unsafe { (gpu.api().base.allocate_host)(&mut memory, bytes, PORTABLE) };
        gpu.check(code, || format!("pinning {bytes} bytes of the host"))?;
        let aligned = memory.cast::<u8>();
        let aligned = aligned.wrapping_add(aligned.addr().next_multiple_of(alignment_bytes) - aligned.addr());
        let (Some(memory), Some(address)) = (NonNull::new(memory), NonNull::new(aligned)) else {
            return Err(Error::internal(format!("CUDA's driver pinned {bytes} bytes nowhere")));
        };
        self.keepers.pinned.add(memory.addr().get(), bytes, None);
        let (gpu, keepers) = (Arc::clone(gpu), Arc::clone(&self.keepers));
        Ok(Arc::new(PinnedExtent { gpu, keepers, memory, address }))
    }

    fn import(&self, _address: usize, _size_bytes: usize) -> StatusOr<Option<Arc<dyn Extent>>> {
        // Host memory is what it is: copies of what nothing has pinned go through pinned memory.
        Ok(None)
    }
}

impl Extent for PinnedExtent {
    fn address(&self) -> usize {
        self.address.as_ptr().expose_provenance()
    }

    fn host_address(&self) -> Option<NonNull<u8>> {
        Some(self.address)
    }
}

impl Drop for PinnedExtent {
    fn drop(&mut self) {
        if self.gpu.driver.is_here() {
            self.keepers.pinned.remove(self.memory.addr().get());
            self.keepers.janitor.take(Garbage::Host(Arc::clone(&self.gpu), self.memory.as_ptr()));
        }
    }
}

/// Memory of the host that callers have pinned, for as long as one of them wants it or a copy uses it.
pub(crate) struct Registration {
    gpu: Arc<Gpu>,
    keepers: Weak<Keepers>,
    address: usize,
}

impl Registration {
    /// Pins the memory, or shares what pins it already. `None`: somebody else has pinned a part of it, and so nothing
    /// is pinned here: copies go through pinned chunks.
    ///
    /// # Errors
    /// What the driver says.
    pub(crate) fn new(gpu: &Arc<Gpu>, keepers: &Arc<Keepers>, address: usize, size_bytes: usize) -> StatusOr<Pinned> {
        gpu.driver.check_process()?;
        gpu.check_whole()?;
        if let Some(pinned) = keepers.pinned.find(address, size_bytes) {
            return Ok(pinned);
        }
        let _current = gpu.enter()?;
        let memory = ptr::with_exposed_provenance_mut(address);
        // SAFETY: core's caller says that the memory is there until it is unmapped.
        let code = unsafe { (gpu.api().base.register_host)(memory, size_bytes, PORTABLE) };
        if code == err::ALREADY_REGISTERED {
            return Ok(None);
        }
        gpu.check(code, || format!("pinning the {size_bytes} bytes at {address:#x}"))?;
        let this = Arc::new(Self { gpu: Arc::clone(gpu), keepers: Arc::downgrade(keepers), address });
        keepers.pinned.add(address, size_bytes, Some(Arc::downgrade(&this)));
        Ok(Some(this))
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if !self.gpu.driver.is_here() {
            return;
        }
        if let Some(keepers) = self.keepers.upgrade() {
            keepers.pinned.remove(self.address);
        }
        let _current = self.gpu.enter().ok();
        // SAFETY: registered in new(), and no copy uses it any more. What fails here has nobody to be told.
        unsafe { (self.gpu.api().base.unregister_host)(ptr::with_exposed_provenance_mut(self.address)) };
    }
}
