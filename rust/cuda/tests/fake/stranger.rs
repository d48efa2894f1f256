//! Another library in this process, which has memory of the same GPUs by the same driver.

#![allow(unsafe_code, reason = "the driver is called, and memory is taken by address")]

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use purlin::{Error, Mutability, RawBuffer};
use purlin_fakecuda::Driver;

use crate::support::Session;

/// It has the primary context of a GPU.
pub(crate) struct Stranger {
    driver: Driver,
    device: c_int,
    context: usize,
}

impl Stranger {
    pub(crate) fn on(device: c_int) -> Self {
        let (driver, mut context) = (Driver::open(), 0);
        // SAFETY: the driver may be initialised again, and writes a handle; released in drop().
        let codes = unsafe { [(driver.cuda.cuInit)(0), (driver.cuda.cuDevicePrimaryCtxRetain)(&mut context, device)] };
        assert_eq!(codes, [0; 2]);
        Self { driver, device, context }
    }

    /// Has the context current while it calls.
    fn call(&self, call: impl FnOnce() -> u32) {
        // SAFETY: the context is retained, and this thread has no other.
        let codes = unsafe {
            let set = (self.driver.cuda.cuCtxSetCurrent)(self.context);
            [set, call(), (self.driver.cuda.cuCtxSetCurrent)(0)]
        };
        assert_eq!(codes, [0; 3]);
    }

    /// The context is current on this thread from now on.
    pub(crate) fn enter(&self) {
        // SAFETY: the context is retained.
        assert_eq!(unsafe { (self.driver.cuda.cuCtxSetCurrent)(self.context) }, 0);
    }

    /// No context is current on this thread any more.
    pub(crate) fn leave(&self) {
        // SAFETY: null is no context.
        assert_eq!(unsafe { (self.driver.cuda.cuCtxSetCurrent)(0) }, 0);
    }

    /// Whether the context is current on this thread.
    pub(crate) fn is_here(&self) -> bool {
        let mut current = 0;
        // SAFETY: the driver writes a handle.
        assert_eq!(unsafe { (self.driver.cuda.cuCtxGetCurrent)(&mut current) }, 0);
        current == self.context
    }

    pub(crate) fn allocate(&self, bytes: usize) -> *mut u8 {
        let mut address = 0;
        // SAFETY: the driver writes an address.
        self.call(|| unsafe { (self.driver.cuda.cuMemAlloc_v2)(&mut address, bytes) });
        std::ptr::with_exposed_provenance_mut(usize::try_from(address).unwrap())
    }

    pub(crate) fn free(&self, address: *mut u8) {
        // SAFETY: tests free what allocate() returned, once.
        self.call(|| unsafe { (self.driver.cuda.cuMemFree_v2)(address.addr() as u64) });
    }

    /// Frees what allocate() returned, and lets go of a GPU that is broken: the driver answers its code, and takes it.
    pub(crate) fn gives_up(self, address: *mut u8) {
        // SAFETY: as in free() and drop(), which this takes the place of.
        let codes = unsafe {
            let set = (self.driver.cuda.cuCtxSetCurrent)(self.context);
            let freed = (self.driver.cuda.cuMemFree_v2)(address.addr() as u64);
            let unset = (self.driver.cuda.cuCtxSetCurrent)(0);
            [set, freed, unset, (self.driver.cuda.cuDevicePrimaryCtxRelease_v2)(self.device)]
        };
        assert!(codes[1] != 0 && codes[2..] == [0, 0], "the GPU is not broken: {codes:?}");
        std::mem::forget(self);
    }

    /// Page-locked memory.
    pub(crate) fn allocate_host(&self, bytes: usize) -> *mut u8 {
        let mut address = std::ptr::null_mut();
        // SAFETY: the driver writes an address.
        self.call(|| unsafe { (self.driver.cuda.cuMemHostAlloc)(&mut address, bytes, 0) });
        address.cast()
    }

    pub(crate) fn free_host(&self, address: *mut u8) {
        // SAFETY: as in free().
        self.call(|| unsafe { (self.driver.cuda.cuMemFreeHost)(address.cast()) });
    }

    /// Makes a pool of the GPU, which others do not reach, its current one.
    pub(crate) fn make_pool_current(&self) -> usize {
        // CUmemPoolProps: pinned memory of a device.
        let (mut pool, mut properties) = (0, [0_u32; 22]);
        (properties[0], properties[2], properties[3]) = (1, 1, self.device.cast_unsigned());
        let cuda = &self.driver.cuda;
        // SAFETY: the driver reads properties, and writes a handle.
        self.call(|| unsafe { (cuda.cuMemPoolCreate)(&mut pool, properties.as_ptr().cast()) });
        // SAFETY: the pool is there.
        self.call(|| unsafe { (cuda.cuDeviceSetMemPool)(self.device, pool) });
        pool
    }

    pub(crate) fn destroy_pool(&self, pool: usize) {
        // SAFETY: tests destroy what make_pool_current() returned, once.
        self.call(|| unsafe { (self.driver.cuda.cuMemPoolDestroy)(pool) });
    }

    /// A stream of the stranger's, without order with the legacy default stream.
    pub(crate) fn make_stream(&self) -> usize {
        let mut stream = 0;
        // SAFETY: the driver writes a handle.
        self.call(|| unsafe { (self.driver.cuda.cuStreamCreate)(&mut stream, 1) });
        stream
    }

    /// What it has goes on.
    pub(crate) fn destroy_stream(&self, stream: usize) {
        // SAFETY: tests destroy what make_stream() returned, once.
        self.call(|| unsafe { (self.driver.cuda.cuStreamDestroy_v2)(stream) });
    }

    /// An event that was never recorded.
    pub(crate) fn make_event(&self) -> usize {
        let mut event = 0;
        // SAFETY: the driver writes a handle.
        self.call(|| unsafe { (self.driver.cuda.cuEventCreate)(&mut event, 2) });
        event
    }

    pub(crate) fn record(&self, event: usize, stream: usize) {
        // SAFETY: tests pass handles that are there.
        self.call(|| unsafe { (self.driver.cuda.cuEventRecord)(event, stream) });
    }

    /// Waits for it go on.
    pub(crate) fn destroy_event(&self, event: usize) {
        // SAFETY: tests destroy what make_event() returned, once.
        self.call(|| unsafe { (self.driver.cuda.cuEventDestroy_v2)(event) });
    }

    /// Fills bytes on that stream.
    pub(crate) fn set(&self, stream: usize, address: *mut u8, byte: u8, bytes: usize) {
        // SAFETY: tests keep the memory until the work is over, and order what uses it.
        self.call(|| unsafe { (self.driver.cuda.cuMemsetD8Async)(address.addr() as u64, byte, bytes, stream) });
    }

    /// Copies from one address of the GPU to another on that stream.
    pub(crate) fn copy(&self, stream: usize, from: *mut u8, to: *mut u8, bytes: usize) {
        let (from, to) = (from.addr() as u64, to.addr() as u64);
        // SAFETY: as in set().
        self.call(|| unsafe { (self.driver.cuda.cuMemcpyDtoDAsync_v2)(to, from, bytes, stream) });
    }

    /// Waits for the stream.
    pub(crate) fn synchronise(&self, stream: usize) {
        // SAFETY: tests pass handles that are there.
        self.call(|| unsafe { (self.driver.cuda.cuStreamSynchronize)(stream) });
    }

    /// The stream records what is enqueued, for a graph.
    pub(crate) fn begin_capture(&self, stream: usize) {
        // SAFETY: tests pass handles that are there.
        self.call(|| unsafe { (self.driver.cuda.cuStreamBeginCapture_v2)(stream, 1) });
    }

    /// What the driver says to the end of a capture, whose graph is thrown away.
    pub(crate) fn end_capture(&self, stream: usize) -> u32 {
        let (mut graph, mut code) = (0, 0);
        self.call(|| {
            // SAFETY: the driver writes a handle.
            code = unsafe { (self.driver.cuda.cuStreamEndCapture)(stream, &mut graph) };
            0
        });
        if graph != 0 {
            // SAFETY: the graph is there, and is destroyed once.
            self.call(|| unsafe { (self.driver.cuda.cuGraphDestroy)(graph) });
        }
        code
    }

    /// Launches `fill_64` of the PTX on the legacy default stream, which fills eight bytes there. The module.
    pub(crate) fn fill(&self, ptx: &str, address: *mut u8) -> usize {
        self.fill_on(0, ptx, address)
    }

    /// As [`fill`](Self::fill), on that stream.
    pub(crate) fn fill_on(&self, stream: usize, ptx: &str, address: *mut u8) -> usize {
        let (mut module, mut function) = (0, 0);
        let ptx = [ptx.as_bytes(), b"\0"].concat();
        let (mut address, mut value, mut count) = (address.addr() as u64, 0_u64, 1_u64);
        let mut values = [(&raw mut address).cast(), (&raw mut value).cast(), (&raw mut count).cast()];
        let cuda = &self.driver.cuda;
        // SAFETY: the driver writes handles, reads PTX that ends in a null, and copies the values.
        self.call(|| unsafe { (cuda.cuModuleLoadData)(&mut module, ptx.as_ptr().cast()) });
        // SAFETY: as above.
        self.call(|| unsafe { (cuda.cuModuleGetFunction)(&mut function, module, c"fill_64".as_ptr()) });
        let nothing = std::ptr::null_mut();
        // SAFETY: as above.
        self.call(|| unsafe {
            (cuda.cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, stream, values.as_mut_ptr(), nothing)
        });
        module
    }

    /// How many bytes of the GPU are free.
    pub(crate) fn free_bytes(&self) -> usize {
        let (mut free, mut total) = (0, 0);
        // SAFETY: the driver writes two numbers.
        self.call(|| unsafe { (self.driver.cuda.cuMemGetInfo_v2)(&mut free, &mut total) });
        free
    }

    /// Whether all of the legacy default stream is over.
    pub(crate) fn is_idle(&self) -> bool {
        let mut code = 0;
        self.call(|| {
            // SAFETY: it asks for a stream that each context has.
            code = unsafe { (self.driver.cuda.cuStreamQuery)(0) };
            0
        });
        code == 0
    }

    /// Waits for the legacy default stream, and unloads what was loaded for it.
    pub(crate) fn unload(&self, module: usize) {
        // SAFETY: it waits for a stream that each context has.
        self.call(|| unsafe { (self.driver.cuda.cuStreamSynchronize)(0) });
        // SAFETY: fill() has loaded it, and nothing of it runs any more.
        self.call(|| unsafe { (self.driver.cuda.cuModuleUnload)(module) });
    }

    /// Kind and device of an address, as the driver has them: 1 and 2 are the host and a device, 0 is neither.
    pub(crate) fn kind_of(&self, address: usize) -> (u32, i32) {
        let (mut kind, mut device, asked) = (0_u32, 0_i32, [2, 9]);
        let mut answers = [(&raw mut kind).cast(), (&raw mut device).cast()];
        // SAFETY: the driver writes two numbers.
        self.call(|| unsafe {
            (self.driver.cuda.cuPointerGetAttributes)(2, asked.as_ptr(), answers.as_mut_ptr(), address as u64)
        });
        (kind, device)
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        // SAFETY: retained in on().
        let code = unsafe { (self.driver.cuda.cuDevicePrimaryCtxRelease_v2)(self.device) };
        assert!(code == 0 || std::thread::panicking(), "code {code}");
    }
}

/// How often the owner of imported memory was told that nothing uses it any more.
#[derive(Clone, Default)]
pub(crate) struct Told(Arc<AtomicUsize>);

impl Told {
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }

    /// What tells.
    pub(crate) fn release(&self) -> Box<dyn FnOnce() + Send + Sync> {
        let count = self.clone();
        Box::new(move || _ = count.0.fetch_add(1, Ordering::Release))
    }

    /// Whether nothing else would tell.
    pub(crate) fn is_forgotten(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}

/// The memory as a buffer in that space, whose owner counts in `told`.
pub(crate) fn import(
    session: &Session,
    (device, kind): (usize, &str),
    address: *mut u8,
    bytes: usize,
    told: &Told,
) -> Result<RawBuffer, Error> {
    let space = session.client.devices()[device].memory_space(kind)?;
    // SAFETY: tests keep the memory until all is over, and nothing else uses it.
    unsafe { RawBuffer::import(&space, address, bytes, Mutability::Mutable, Some(told.release())) }
}
