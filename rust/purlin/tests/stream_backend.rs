//! A backend with one stream: operations are done in the order in which they were asked for, when the test says so.
//! What a backend of hardware with streams relies on, in small.

#![allow(unsafe_code, reason = "bytes are moved by address")]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use purlin::backend::{
    AttributeValue, Backend, DeviceDescription, DeviceRange, Extent, Memory, MemoryProperties, Operation,
    OperationPromise, Schedule, Work,
};
use purlin::host::HostBackend;
use purlin::{
    Aliasing, Buffer, Client, ClientOptions, DType, Error, Event, EventPromise, FromHostOptions, HostArray,
    HostBufferSemantics, MemorySpace, Mutability, RawBuffer, Shape, StatusCode, StatusOr,
};

/// Bytes that the stream moves.
struct Move {
    from: usize,
    to: usize,
    size_bytes: usize,
}

/// See the file.
struct Stream {
    memory: HostBackend,
    queue: Mutex<VecDeque<(Move, OperationPromise)>>,
    /// Memory may be allocated anew while operations that use it are in the queue.
    reuses_early: bool,
    /// How it refuses to import memory; `None`: it takes it.
    refusal: Option<StatusCode>,
}

impl Stream {
    fn new(reuses_early: bool) -> Arc<Self> {
        Self::with(Some(StatusCode::Unimplemented), reuses_early)
    }

    fn with(refusal: Option<StatusCode>, reuses_early: bool) -> Arc<Self> {
        Arc::new(Self { memory: HostBackend::new(), queue: Mutex::default(), reuses_early, refusal })
    }

    /// Does all that is in the queue; the waiters run on the client's runner.
    fn run_all(&self) -> usize {
        let queue = std::mem::take(&mut *self.queue.lock().unwrap());
        let count = queue.len();
        for (Move { from, to, size_bytes }, promise) in queue {
            let (from, to) = (std::ptr::with_exposed_provenance::<u8>(from), std::ptr::with_exposed_provenance_mut(to));
            // SAFETY: both ends are as long, and are kept until the event: by the caller, by the operation, or by the
            // arena, which keeps its extents mapped while this test runs.
            unsafe { std::ptr::copy(from, to, size_bytes) };
            promise.complete_on_runner(Ok(()));
        }
        count
    }
}

fn address(range: &DeviceRange) -> usize {
    let (extent, offset_bytes) = range.place();
    extent.address() + offset_bytes
}

impl Backend for Stream {
    fn platform_name(&self) -> &'static str {
        "stream"
    }

    fn devices(&self, count: usize) -> StatusOr<Vec<DeviceDescription>> {
        if count > 1 {
            return Err(Error::invalid_argument(format!("{count} devices were asked for, and there is 1")));
        }
        let mut device = DeviceDescription::of_kind("Test 1").with_attribute("streams", AttributeValue::Integer(1));
        device.local_hardware_id = Some(7);
        Ok(vec![device])
    }

    fn memory_kinds(&self) -> &'static [&'static str] {
        &["device"]
    }

    fn open_memory(&self, device: usize, kind: &'static str) -> StatusOr<Box<dyn Memory>> {
        Ok(Box::new(StreamMemory(self.memory.open_memory(device, kind)?, self.refusal)))
    }

    fn run(&self, operation: Operation, schedule: &Schedule<'_>) -> Event {
        let ranges: Vec<&DeviceRange> = operation.ranges().map(|(_, range)| range).collect();
        assert!(ranges.iter().all(|range| (range.device(), range.memory_kind()) == (0, "device")));
        let (from, to) = match operation.work() {
            Work::CopyFromHost(from) => (from.address().expose_provenance(), address(ranges[0])),
            Work::CopyToHost(to) => (address(ranges[0]), to.address().expose_provenance()),
            Work::Copy => (address(ranges[0]), address(ranges[1])),
            _ => return Event::from_error(Error::unimplemented(format!("no {operation:?}"))),
        };
        let bytes = Move { from, to, size_bytes: operation.size_bytes() };
        match schedule.begin(operation) {
            Ok((event, mut promise)) => {
                if self.reuses_early {
                    promise.release_ranges(|_| true);
                }
                self.queue.lock().unwrap().push_back((bytes, promise));
                event
            }
            Err(refused) => Event::from_error(refused),
        }
    }
}

/// Memory that takes none of the host's, and refuses with that code, if there is one.
struct StreamMemory(Box<dyn Memory>, Option<StatusCode>);

impl Memory for StreamMemory {
    fn properties(&self) -> MemoryProperties {
        self.0.properties()
    }

    fn map(&self, size_bytes: usize, alignment_bytes: usize) -> StatusOr<Arc<dyn Extent>> {
        self.0.map(size_bytes, alignment_bytes)
    }

    fn import(&self, address: usize, size_bytes: usize) -> StatusOr<Option<Arc<dyn Extent>>> {
        match self.1 {
            Some(code) => Err(Error::new(code, format!("no import of {size_bytes} bytes at {address:#x}"))),
            None => self.0.import(address, size_bytes),
        }
    }
}

fn client(backend: &Arc<Stream>) -> (Arc<Client>, MemorySpace) {
    let options = ClientOptions { worker_count: 1, ..Default::default() };
    let client = Client::new(&options, backend.clone()).unwrap();
    let space = client.devices()[0].default_memory_space();
    (client, space)
}

/// Most bytes in use while `steps` blocks are allocated, written and dropped before the stream does anything.
fn peak_bytes(reuses_early: bool, steps: usize) -> u64 {
    let backend = Stream::new(reuses_early);
    let (_client, space) = client(&backend);
    let bytes = [7_u8; 4096];
    let written: Vec<Event> = (0..steps)
        .map(|_| {
            let block = RawBuffer::allocate(&space, bytes.len()).unwrap();
            // SAFETY: the bytes stay until the end, and no other code uses the block.
            unsafe { block.copy_from_host(bytes.as_ptr(), 0, bytes.len(), &[]) }
        })
        .collect();
    let peak = space.stats().peak_bytes_in_use;
    assert_eq!(backend.run_all(), steps);
    written.iter().for_each(|event| event.wait().unwrap());
    peak
}

#[test]
fn memory_is_reused_before_its_last_use_is_over_where_the_backend_orders_it() {
    assert_eq!(peak_bytes(false, 100), 100 * 4096, "without that, each block is kept until its operation is over");
    assert_eq!(peak_bytes(true, 100), 4096);
}

#[test]
fn operations_of_a_reused_block_keep_their_order() {
    let backend = Stream::new(true);
    let (_client, space) = client(&backend);
    let (bytes, mut read) = ([[1_u8; 64], [2; 64], [3; 64]], [[0_u8; 64]; 3]);
    let events: Vec<Event> = bytes
        .iter()
        .zip(&mut read)
        .map(|(bytes, read)| {
            let block = RawBuffer::allocate(&space, 64).unwrap();
            // SAFETY: both arrays stay until the waits below; the stream orders the operations.
            unsafe {
                block.copy_from_host(bytes.as_ptr(), 0, 64, &[]);
                block.copy_to_host(read.as_mut_ptr(), 0, 64, &[])
            }
        })
        .collect();
    assert_eq!((space.stats().peak_bytes_in_use, backend.run_all()), (64, 6));
    events.iter().for_each(|event| event.wait().unwrap());
    assert_eq!(read, bytes);
}

#[test]
fn memory_of_others_is_not_given_back_before_its_last_use_is_over() {
    let backend = Stream::with(None, true);
    let (_client, space) = client(&backend);
    let (lent, source) = (Box::leak(Box::new([0_u128; 4])), [7_u8; 64]);
    let (address, released) = (lent.as_mut_ptr().cast::<u8>(), EventPromise::new(c"released"));
    let is_released = released.event();
    let release = Box::new(move || _ = released.set_ready());
    // SAFETY: the memory is never freed, and only the buffers use it; `source` stays until the wait below.
    let written = unsafe {
        let whole = RawBuffer::import(&space, address, 64, Mutability::Mutable, Some(release)).unwrap();
        // Of an array, which is another block for the same memory.
        let shape = Shape::new(DType::U8, &[64]).unwrap();
        let array = Buffer::from_raw(whole, &shape, None, &Event::ready()).unwrap();
        array.raw_alias().unwrap().copy_from_host(source.as_ptr(), 0, 64, &[])
    };
    assert!(!is_released.is_ready() && !written.is_ready());
    assert_eq!(backend.run_all(), 1);
    assert_eq!((written.wait(), is_released.is_ready()), (Ok(()), true));
}

/// A copy of eight bytes into a block of its own.
fn write_eight_bytes(space: &MemorySpace) -> Event {
    static BYTES: [u8; 8] = [1; 8];
    let block = RawBuffer::allocate(space, BYTES.len()).unwrap();
    // SAFETY: the bytes are there for ever and never written; no other code uses the block.
    unsafe { block.copy_from_host(BYTES.as_ptr(), 0, BYTES.len(), &[]) }
}

#[test]
fn waiters_run_on_the_clients_runner_and_not_on_the_backends_thread() {
    let backend = Stream::new(false);
    let (client, space) = client(&backend);
    let written = write_eight_bytes(&space);
    let (thread, there) = (EventPromise::new(c"waiter"), client.runner().clone());
    let seen = thread.event();
    written.on_ready(move |_| {
        let outcome = if there.current_thread().is_some() { Ok(()) } else { Err(Error::internal("not on the runner")) };
        thread.set(outcome);
    });
    assert_eq!(backend.run_all(), 1);
    assert_eq!(seen.wait(), Ok(()));
}

#[test]
fn an_operation_that_is_over_after_the_runner_ends_here() {
    let backend = Stream::new(false);
    let (client, space) = client(&backend);
    let written = write_eight_bytes(&space);
    client.runner().shutdown().unwrap();
    assert_eq!(backend.run_all(), 1);
    assert_eq!(written.wait(), Ok(()), "its outcome is what it was, though the runner refuses tasks");
}

#[test]
fn zero_copy_of_memory_that_cannot_be_imported_is_a_copy() {
    let values: Box<[u64]> = vec![5; 64].into_boxed_slice();
    let array = HostArray::new(&Shape::new(DType::U64, &[64]).unwrap(), None).unwrap();
    let codes = [StatusCode::Unimplemented, StatusCode::InvalidArgument, StatusCode::Internal];
    let both = [HostBufferSemantics::ImmutableZeroCopy, HostBufferSemantics::MutableZeroCopy];
    for (code, semantics) in codes.into_iter().flat_map(|code| both.map(|semantics| (code, semantics))) {
        let backend = Stream::with(Some(code), false);
        let (_client, space) = client(&backend);
        let done = EventPromise::new(c"done");
        let is_done = done.event();
        let on_done = Box::new(move |outcome| _ = done.set(outcome));
        let options = FromHostOptions { semantics, on_done: Some(on_done), ..Default::default() };
        // SAFETY: the values stay until `done`.
        let (buffer, aliasing) =
            unsafe { Buffer::from_host_array(values.as_ptr().cast(), &array, &space, options).unwrap() };
        assert_eq!(aliasing, Aliasing::Copied, "{code:?}");
        assert!(!is_done.is_ready(), "the host's memory is read by the stream");
        assert_eq!(backend.run_all(), 1);
        assert_eq!((buffer.ready_event().wait(), is_done.wait()), (Ok(()), Ok(())));
    }
}

#[test]
fn zero_copy_of_no_memory_is_an_error_and_no_copy() {
    let backend = Stream::new(false);
    let (_client, space) = client(&backend);
    let array = HostArray::new(&Shape::new(DType::U64, &[64]).unwrap(), None).unwrap();
    let done = EventPromise::new(c"done");
    let is_done = done.event();
    let on_done = Box::new(move |outcome| _ = done.set(outcome));
    let semantics = HostBufferSemantics::ImmutableZeroCopy;
    let options = FromHostOptions { semantics, on_done: Some(on_done), ..Default::default() };
    // SAFETY: null is refused.
    let error = unsafe { Buffer::from_host_array(std::ptr::null(), &array, &space, options) }.unwrap_err();
    assert_eq!((error.code(), is_done.wait()), (StatusCode::InvalidArgument, Err(error)));
}

#[test]
fn devices_are_what_the_backend_says_of_them() {
    let backend = Stream::new(false);
    let (client, _) = client(&backend);
    let device = &client.devices()[0];
    assert_eq!((device.to_string().as_str(), device.kind(), device.local_hardware_id()), ("stream:0", "Test 1", 7));
    assert_eq!(device.attributes()[0].to_string(), "streams=1");
    let two = ClientOptions { device_count: 2, ..Default::default() };
    let error = Client::new(&two, backend).unwrap_err();
    assert_eq!(error.code(), StatusCode::InvalidArgument);
    assert_eq!(error.message(), "2 devices were asked for, and there is 1");
}
