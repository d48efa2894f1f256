//! The driver in short words: what a test expects to work, does, or fails the test with the call's code.

#![allow(dead_code, unused_imports, reason = "each test program uses some of it")]

mod kernels;

use std::ffi::{CString, c_void};
use std::ptr;

pub(crate) use kernels::TEXT;
pub(crate) use purlin_fakecuda::{Driver, Options, process};

/// Calls an entry point; its code.
macro_rules! cu {
    ($driver:expr, $name:ident($($argument:expr),* $(,)?)) => {{
        // SAFETY: each test gives what the manual asks for: places for what is answered, memory that lives, or, on
        // purpose, handles and addresses that are only numbers to the fake.
        unsafe { ($driver.cuda.$name)($($argument),*) }
    }};
}

/// As `cu`, for calls that work.
macro_rules! ok {
    ($driver:expr, $name:ident($($argument:expr),* $(,)?)) => {
        assert_eq!(cu!($driver, $name($($argument),*)), 0, stringify!($name))
    };
}

// Behind the macros, which it uses.
pub(crate) mod planted;
pub(crate) mod reported;

pub(crate) const BLOCKING: u32 = 0;
pub(crate) const NON_BLOCKING: u32 = 1;
pub(crate) const NOT_READY: u32 = 600;

/// A driver with the context of each device retained, the first one current.
pub(crate) struct Session {
    pub(crate) driver: Driver,
    pub(crate) contexts: Vec<usize>,
}

impl std::ops::Deref for Session {
    type Target = Driver;

    fn deref(&self) -> &Driver {
        &self.driver
    }
}

impl Session {
    pub(crate) fn new() -> Self {
        let driver = Driver::open();
        ok!(driver, cuInit(0));
        let mut count = 0;
        ok!(driver, cuDeviceGetCount(&mut count));
        let retain = |device| {
            let mut context = 0;
            ok!(driver, cuDevicePrimaryCtxRetain(&mut context, device));
            context
        };
        let contexts: Vec<usize> = (0..count).map(retain).collect();
        let session = Self { driver, contexts };
        session.make_current(0);
        session
    }

    pub(crate) fn make_current(&self, device: usize) {
        ok!(self, cuCtxSetCurrent(self.contexts[device]));
    }

    pub(crate) fn stream(&self, flags: u32) -> usize {
        let mut stream = 0;
        ok!(self, cuStreamCreate(&mut stream, flags));
        stream
    }

    pub(crate) fn event(&self) -> usize {
        let mut event = 0;
        ok!(self, cuEventCreate(&mut event, 2));
        event
    }

    pub(crate) fn record(&self, event: usize, stream: usize) {
        ok!(self, cuEventRecord(event, stream));
    }

    pub(crate) fn wait(&self, stream: usize, event: usize) {
        ok!(self, cuStreamWaitEvent(stream, event, 0));
    }

    /// A wait by a new event.
    pub(crate) fn order(&self, first: usize, then: usize) {
        let event = self.event();
        self.record(event, first);
        self.wait(then, event);
        ok!(self, cuEventDestroy_v2(event));
    }

    pub(crate) fn sync(&self, stream: usize) {
        ok!(self, cuStreamSynchronize(stream));
    }

    pub(crate) fn sync_all(&self) {
        ok!(self, cuCtxSynchronize());
    }

    pub(crate) fn allocate(&self, size: usize) -> u64 {
        let mut address = 0;
        ok!(self, cuMemAlloc_v2(&mut address, size));
        address
    }

    pub(crate) fn allocate_async(&self, size: usize, stream: usize) -> u64 {
        let mut address = 0;
        ok!(self, cuMemAllocAsync(&mut address, size, stream));
        address
    }

    pub(crate) fn free(&self, address: u64) {
        ok!(self, cuMemFree_v2(address));
    }

    pub(crate) fn fill(&self, address: u64, byte: u8, size: usize, stream: usize) {
        ok!(self, cuMemsetD8Async(address, byte, size, stream));
    }

    pub(crate) fn d2d(&self, to: u64, from: u64, size: usize, stream: usize) {
        ok!(self, cuMemcpyDtoDAsync_v2(to, from, size, stream));
    }

    /// Pageable, so the caller waits.
    pub(crate) fn read(&self, address: u64, size: usize, stream: usize) -> Vec<u8> {
        let mut bytes = vec![0; size];
        ok!(self, cuMemcpyDtoHAsync_v2(bytes.as_mut_ptr().cast(), address, size, stream));
        bytes
    }

    /// Pageable, so the bytes are taken at the call.
    pub(crate) fn write(&self, address: u64, bytes: &[u8], stream: usize) {
        ok!(self, cuMemcpyHtoDAsync_v2(address, bytes.as_ptr().cast(), bytes.len(), stream));
    }

    pub(crate) fn pinned(&self, size: usize) -> Pinned<'_> {
        let mut address = ptr::null_mut();
        ok!(self, cuMemHostAlloc(&mut address, size, 1));
        Pinned { session: self, address: address.cast(), size }
    }

    pub(crate) fn module(&self, text: &str) -> usize {
        let (mut module, text) = (0, CString::new(text).unwrap());
        ok!(self, cuModuleLoadDataEx(&mut module, text.as_ptr().cast(), 0, ptr::null_mut(), ptr::null_mut()));
        module
    }

    pub(crate) fn function(&self, module: usize, name: &str) -> usize {
        let (mut function, name) = (0, CString::new(name).unwrap());
        ok!(self, cuModuleGetFunction(&mut function, module, name.as_ptr()));
        function
    }

    /// A launch of so many blocks of so many threads, with arguments of eight bytes each.
    pub(crate) fn launch(&self, function: usize, blocks: u32, threads: u32, stream: usize, arguments: &[u64]) {
        assert_eq!(self.try_launch(function, blocks, threads, stream, arguments), 0, "cuLaunchKernel");
    }

    pub(crate) fn try_launch(
        &self,
        function: usize,
        blocks: u32,
        threads: u32,
        stream: usize,
        arguments: &[u64],
    ) -> u32 {
        let mut places: Vec<*mut c_void> = arguments.iter().map(|at| ptr::from_ref(at).cast_mut().cast()).collect();
        let each = places.as_mut_ptr();
        cu!(self, cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, stream, each, ptr::null_mut()))
    }

    /// Gives the contexts back. Nothing may be left.
    #[track_caller]
    pub(crate) fn end(self) {
        self.driver.control.no_reports();
        for device in 0..self.contexts.len() {
            ok!(self, cuDevicePrimaryCtxRelease_v2(i32::try_from(device).unwrap()));
        }
        assert_eq!(self.driver.left(), [], "what was made and not destroyed");
        assert_eq!(self.driver.control.ledger("threads"), 0);
    }
}

/// Pinned memory of the test's.
pub(crate) struct Pinned<'a> {
    session: &'a Session,
    pub(crate) address: *mut u8,
    size: usize,
}

impl Pinned<'_> {
    pub(crate) fn set(&self, byte: u8) {
        // SAFETY: the block is ours, and that long, until it is freed.
        unsafe { self.address.write_bytes(byte, self.size) };
    }

    pub(crate) fn get(&self) -> Vec<u8> {
        // SAFETY: as above; the caller has waited for what writes it.
        (0..self.size).map(|at| unsafe { self.address.add(at).read_volatile() }).collect()
    }

    pub(crate) fn to_device(&self, to: u64, stream: usize) {
        ok!(self.session, cuMemcpyHtoDAsync_v2(to, self.address.cast(), self.size, stream));
    }

    pub(crate) fn read_from(&self, from: u64, stream: usize) {
        ok!(self.session, cuMemcpyDtoHAsync_v2(self.address.cast(), from, self.size, stream));
    }

    pub(crate) fn free(self) {
        ok!(self.session, cuMemFreeHost(self.address.cast()));
    }
}
