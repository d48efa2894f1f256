//! Where the host backend takes its memory from: each block is taken from the source and given back to it, and a source
//! that has nothing left is an error, never an abort.

#![allow(unsafe_code, reason = "a source of memory is an unsafe trait")]

use std::alloc::Layout;
use std::collections::HashMap;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};

use purlin_base::StatusCode;
use purlin_device::{Buffer, Client, ClientOptions, MemorySpace, RawBuffer};
use purlin_host::{ALIGNMENT_BYTES, ByteSource, HostBackend, SystemSource};

/// Lends so many blocks at a time, and knows them all.
struct Counted {
    most: usize,
    lent: Mutex<HashMap<usize, Layout>>,
}

// SAFETY: the memory is the system's, handed through.
unsafe impl ByteSource for Counted {
    fn take(&self, layout: Layout) -> Option<NonNull<u8>> {
        let mut lent = self.lent.lock().unwrap();
        if lent.len() == self.most {
            return None;
        }
        let address = SystemSource.take(layout)?;
        assert_eq!(lent.insert(address.as_ptr() as usize, layout), None, "a block is lent once");
        Some(address)
    }

    unsafe fn give_back(&self, address: NonNull<u8>, layout: Layout) {
        let known = self.lent.lock().unwrap().remove(&(address.as_ptr() as usize));
        assert_eq!(known, Some(layout), "a block comes back once, and as it was lent");
        // SAFETY: the block came from SystemSource with this layout, as was just checked.
        unsafe { SystemSource.give_back(address, layout) }
    }
}

fn client(most: usize) -> (Arc<Counted>, Arc<Client>, MemorySpace) {
    let source = Arc::new(Counted { most, lent: Mutex::default() });
    let backend = HostBackend::with_source(source.clone());
    let client =
        Client::new(&ClientOptions { device_count: 1, worker_count: 1, ..Default::default() }, Arc::new(backend))
            .unwrap();
    let space = client.devices()[0].default_memory_space();
    (source, client, space)
}

impl Counted {
    fn lent(&self) -> Vec<Layout> {
        self.lent.lock().unwrap().values().copied().collect()
    }
}

#[test]
fn every_block_goes_back() {
    let (source, _client, space) = client(usize::MAX);
    let buffer = RawBuffer::allocate(&space, 1000).unwrap();
    let part = buffer.slice(10, 10).unwrap();
    drop(buffer);
    assert_eq!(source.lent(), [Layout::from_size_align(1024, ALIGNMENT_BYTES).unwrap()]);
    drop(part);
    assert_eq!(source.lent(), []);
}

#[test]
fn zero_bytes_take_the_smallest_block() {
    let (source, _client, space) = client(1);
    let empty = RawBuffer::allocate(&space, 0).unwrap();
    assert_eq!(source.lent(), [Layout::from_size_align(ALIGNMENT_BYTES, ALIGNMENT_BYTES).unwrap()]);
    assert!(empty.host_pointer().is_some());
}

#[test]
fn an_empty_source_is_resource_exhausted() {
    let (source, _client, space) = client(1);
    let held = Buffer::from_slice(&[1.0_f32, 2.0], &[2], &space).unwrap();
    for error in
        [RawBuffer::allocate(&space, 77).err().unwrap(), Buffer::from_slice(&[0_u8; 77], &[77], &space).unwrap_err()]
    {
        assert_eq!(error.code(), StatusCode::ResourceExhausted);
        let expected = "cannot allocate 77 bytes in host:0/device (8 bytes in use): the host has no such memory left";
        assert_eq!(error.message().lines().next(), Some(expected));
    }
    assert_eq!(held.copy_to_device(&held.device()).unwrap_err().code(), StatusCode::ResourceExhausted);
    assert_eq!(held.to_vec::<f32>(), Ok(vec![1.0, 2.0]), "what was there is unharmed");

    held.delete();
    drop(RawBuffer::allocate(&space, 77).unwrap());
    assert_eq!(source.lent(), []);
}

#[test]
fn the_last_copy_in_flight_gives_the_blocks_back() {
    let (source, client, space) = client(usize::MAX);
    let gate = purlin_async::EventPromise::new(c"gate");
    let buffers = [RawBuffer::allocate(&space, 50).unwrap(), RawBuffer::allocate(&space, 60).unwrap()];
    // SAFETY: nothing else uses the bytes.
    let copied = unsafe { buffers[0].copy_to(&buffers[1], &[gate.event()]) };
    drop((buffers, space, client));
    assert_eq!(source.lent().len(), 2);
    gate.set_ready();
    assert_eq!(copied.wait(), Ok(()));
    assert_eq!(source.lent(), []);
}

/// Panics when it is asked, and when something is given back.
struct Broken;

// SAFETY: it never lends anything but the system's memory.
unsafe impl ByteSource for Broken {
    fn take(&self, layout: Layout) -> Option<NonNull<u8>> {
        if layout.size() > 64 { panic!("expected by a test: nothing for you") } else { SystemSource.take(layout) }
    }

    unsafe fn give_back(&self, address: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's promises.
        unsafe { SystemSource.give_back(address, layout) };
        panic!("expected by a test: I have enough");
    }
}

#[test]
fn an_allocator_that_panics_is_an_error_and_changes_no_count() {
    let options = ClientOptions { worker_count: 1, memory_limit_bytes: 4096, ..Default::default() };
    let client = Client::new(&options, Arc::new(HostBackend::with_source(Arc::new(Broken)))).unwrap();
    let space = client.devices()[0].default_memory_space();
    // More often than the limit would allow if each left its bytes counted.
    for _ in 0..5 {
        let error = RawBuffer::allocate(&space, 1000).unwrap_err();
        assert_eq!(error.code(), StatusCode::Internal);
        let told = "the host's allocator, asked for 1024 bytes, panicked: expected by a test: nothing for you";
        assert!(error.message().contains(told), "{error}");
        assert_eq!((space.stats().bytes_in_use, space.stats().pool_bytes), (0, 0));
    }
    drop(RawBuffer::allocate(&space, 10).unwrap());
    assert_eq!((space.stats().bytes_in_use, space.stats().pool_bytes), (0, 0));
}
