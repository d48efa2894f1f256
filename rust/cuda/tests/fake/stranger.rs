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
        // SAFETY: the driver writes a handle; released in drop().
        assert_eq!(unsafe { (driver.cuda.cuDevicePrimaryCtxRetain)(&mut context, device) }, 0);
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
