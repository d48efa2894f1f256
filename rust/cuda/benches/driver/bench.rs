//! A client with one GPU, the bare driver beside it, and memory that both use.

use std::sync::Arc;
use std::time::Duration;

use purlin::{Client, ClientOptions, Device, Event, RawBuffer, ShutdownMode, ShutdownOptions};
use purlin_cuda::CudaBackend;

use crate::bare::Bare;
use crate::row::Row;

/// See the module.
pub(crate) struct Bench {
    client: Arc<Client>,
    pub(crate) device: Device,
    pub(crate) bare: Bare,
    is_quick: bool,
}

impl Bench {
    pub(crate) fn new(backend: CudaBackend, is_quick: bool) -> Self {
        let options = ClientOptions { device_count: 1, worker_count: 2, ..ClientOptions::default() };
        let client = Client::new(&options, Arc::new(backend)).expect("a client");
        let device = client.devices()[0].clone();
        Self { client, device, bare: Bare::new(), is_quick }
    }

    /// So many MiB; less where only a few turns are made.
    pub(crate) fn mib(&self, count: usize) -> usize {
        if self.is_quick { count << 16 } else { count << 20 }
    }

    pub(crate) fn block(&self, kind: &str, bytes: usize) -> RawBuffer {
        RawBuffer::allocate(&self.device.memory_space(kind).expect("a kind of CUDA's"), bytes).expect("memory")
    }

    /// All handles to memory are gone.
    pub(crate) fn end(self) {
        let options = ShutdownOptions { mode: ShutdownMode::Drain, timeout: Some(Duration::from_secs(20)) };
        self.client.shutdown(options).expect("nothing is in flight");
        self.bare.end();
    }
}

/// Waits, and must succeed.
pub(crate) fn done(event: &Event) {
    event.wait().expect("an operation of Purlin's");
}

/// All of a block to another.
pub(crate) fn copy(from: &RawBuffer, to: &RawBuffer) -> Event {
    // SAFETY: rows wait for each turn, and each has blocks of its own.
    unsafe { from.copy_to(to, &[]) }
}

/// The address by which the driver knows a block.
pub(crate) fn address(block: &RawBuffer) -> u64 {
    block.device_pointer().expect("memory that is there") as u64
}

/// The bytes of a block that the host reaches.
pub(crate) fn bytes(block: &RawBuffer) -> &[u8] {
    let first = block.host_pointer().expect("memory of the host");
    // SAFETY: the block lives, was written as a whole, and rows look between turns, while nothing writes it.
    unsafe { std::slice::from_raw_parts(first.as_ptr(), block.size_bytes()) }
}

/// Writes a block that the host reaches.
pub(crate) fn write(block: &RawBuffer, bytes: &[u8]) {
    let first = block.host_pointer().expect("memory of the host");
    assert_eq!(bytes.len(), block.size_bytes());
    // SAFETY: the block lives and is as long, and rows write between turns, while nothing uses it.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), first.as_ptr(), bytes.len()) };
}

impl<'a> Row<'a> {
    /// Each turn must write `data` at the address `at` of the GPU.
    ///
    /// # Safety
    /// The memory is the row's as long as it is measured, and turns wait for what they do.
    pub(crate) unsafe fn fills(self, bare: &'a Bare, at: u64, data: &'a [u8]) -> Self {
        // SAFETY: the caller's promise.
        let clear = move || unsafe { bare.clear(at, data.len()) };
        // SAFETY: the caller's promise.
        let read = move || unsafe { bare.read(at, data.len()) };
        self.checked(clear, move || read() == data)
    }
}

/// Bytes that differ from place to place.
pub(crate) fn pattern(count: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut bytes = Vec::with_capacity(count + 8);
    while bytes.len() < count {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(count);
    bytes
}
