//! Pinned memory through which copies go whose end on the host is not pinned.
//!
//! Such memory is slow to make, so each GPU keeps what it has made: up to [`CHUNKS`] chunks, and as many slabs for
//! small copies. A copy that finds none waits for one that is given back, and goes on then as a task of its client's
//! runner, since the poller gives chunks back, and runs nobody's code; a thread that waits for its copy gets one that
//! is not kept.

#![allow(unsafe_code, reason = "the driver is called")]

use std::collections::VecDeque;
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use purlin_base::StatusOr;
use purlin_base::sync::Mutex;
use purlin_device::backend::OperationRunner;

use crate::gpu::Gpu;
use crate::janitor::Garbage;
use crate::memory::Keepers;

/// A chunk, in bytes.
pub(crate) const CHUNK_BYTES: usize = 4 << 20;
/// A slab, in bytes: copies of at most so many go through one.
pub(crate) const SLAB_BYTES: usize = 64 << 10;
/// How many of either a GPU has at most. Models explore what happens without one.
const CHUNKS: usize = if cfg!(loom) { 1 } else { 16 };

/// `CU_MEMHOSTALLOC_PORTABLE`: pinned for every context.
pub(crate) const PORTABLE: u32 = 1;

/// See the module.
pub(crate) struct Staging {
    gpu: Arc<Gpu>,
    keepers: Arc<Keepers>,
    sizes: [Mutex<OfSize>; 2],
}

/// What hands a chunk to the copy that waits for it. It takes little time.
type Waiter = Box<dyn FnOnce(Chunk) + Send>;

#[derive(Default)]
struct OfSize {
    idle: Vec<Address>,
    made: usize,
    waiters: VecDeque<Waiter>,
}

struct Address(*mut c_void);

// SAFETY: it is only an address, of memory that any thread may use.
unsafe impl Send for Address {}

/// Pinned memory that one copy has. Dropping it gives it back, once the GPU no longer uses it.
pub(crate) struct Chunk {
    address: Address,
    is_small: bool,
    /// Whether it goes back to the others.
    is_kept: bool,
    staging: Arc<Staging>,
}

impl Chunk {
    pub(crate) fn address(&self) -> *mut u8 {
        self.address.0.cast()
    }
}

impl Staging {
    pub(crate) fn new(gpu: Arc<Gpu>, keepers: Arc<Keepers>) -> Arc<Self> {
        Arc::new(Self { gpu, keepers, sizes: Default::default() })
    }

    /// Memory for a copy, or a part of one, of `size_bytes`. `None`: there is none; [wait](Self::wait_on) for it. The
    /// context is current.
    ///
    /// # Errors
    /// What the driver says, if it gives none and no copy has any.
    pub(crate) fn take(self: &Arc<Self>, size_bytes: usize) -> StatusOr<Option<Chunk>> {
        let is_small = size_bytes <= SLAB_BYTES;
        {
            let mut of_size = self.sizes[usize::from(is_small)].lock();
            if let Some(address) = of_size.idle.pop() {
                return Ok(Some(self.chunk(address, is_small)));
            }
            if of_size.made == CHUNKS {
                return Ok(None);
            }
            of_size.made += 1;
        }
        let error = match self.allocate(is_small) {
            Ok(address) => return Ok(Some(self.chunk(address, is_small))),
            Err(error) => error,
        };
        let mut of_size = self.sizes[usize::from(is_small)].lock();
        of_size.made -= 1;
        // With others there, one of them will come back.
        let is_hopeless = of_size.made == 0;
        drop(of_size);
        if is_hopeless || self.gpu.check_whole().is_err() { Err(error) } else { Ok(None) }
    }

    /// Memory beyond what is kept, for a thread that must not wait for what other threads give back. The
    /// [janitor](crate::janitor) frees it. The context is current.
    ///
    /// # Errors
    /// What the driver says.
    pub(crate) fn make(self: &Arc<Self>, size_bytes: usize) -> StatusOr<Chunk> {
        let is_small = size_bytes <= SLAB_BYTES;
        Ok(Chunk { address: self.allocate(is_small)?, is_small, is_kept: false, staging: Arc::clone(self) })
    }

    /// The context is current. Under no lock.
    fn allocate(&self, is_small: bool) -> StatusOr<Address> {
        let bytes = if is_small { SLAB_BYTES } else { CHUNK_BYTES };
        let mut address = ptr::null_mut();
        // SAFETY: the driver writes an address; freed when the chunk or this is dropped.
        let code = unsafe { (self.gpu.api().base.allocate_host)(&mut address, bytes, PORTABLE) };
        self.gpu.check(code, || format!("pinning {bytes} bytes to copy through"))?;
        Ok(Address(address))
    }

    /// Calls `then` with such memory once there is some, or with why it cannot be used: as a task of `runner`, or where
    /// it is given back if that has shut down. What waited for it releases memory and tells dependents when it is
    /// enqueued, and either may run code of callers. The context is current there.
    pub(crate) fn wait_on(
        self: &Arc<Self>,
        runner: OperationRunner,
        size_bytes: usize,
        then: impl FnOnce(StatusOr<Chunk>) + Send + 'static,
    ) {
        self.wait(size_bytes, move |chunk| {
            runner.run(move || match Arc::clone(&chunk.staging).gpu.enter() {
                Ok(_current) => then(Ok(chunk)),
                Err(error) => then(Err(error)),
            });
        });
    }

    /// Calls `then` with such memory, on a thread that gives it back, or here.
    fn wait(self: &Arc<Self>, size_bytes: usize, then: impl FnOnce(Chunk) + Send + 'static) {
        let is_small = size_bytes <= SLAB_BYTES;
        let mut of_size = self.sizes[usize::from(is_small)].lock();
        match of_size.idle.pop() {
            Some(address) => {
                drop(of_size);
                then(self.chunk(address, is_small));
            }
            None => of_size.waiters.push_back(Box::new(then)),
        }
    }

    fn chunk(self: &Arc<Self>, address: Address, is_small: bool) -> Chunk {
        Chunk { address, is_small, is_kept: true, staging: Arc::clone(self) }
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        let address = Address(self.address.0);
        if !self.is_kept {
            return self.staging.keepers.janitor.take(Garbage::Host(Arc::clone(&self.staging.gpu), address.0));
        }
        let mut of_size = self.staging.sizes[usize::from(self.is_small)].lock();
        let Some(waiter) = of_size.waiters.pop_front() else { return of_size.idle.push(address) };
        drop(of_size);
        waiter(self.staging.chunk(address, self.is_small));
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.gpu.driver.is_here() {
            return;
        }
        let _current = self.gpu.enter().ok();
        // The client has ended, which waits for what the janitor does, too.
        for Address(address) in self.sizes.iter().flat_map(|of_size| std::mem::take(&mut of_size.lock().idle)) {
            // SAFETY: made by allocate_host, and no copy has it. What fails here has nobody to be told.
            unsafe { (self.gpu.api().base.free_host)(address) };
        }
    }
}

#[cfg(all(test, loom))]
mod loom_model;
