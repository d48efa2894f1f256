//! What a kind of hardware must do to carry Purlin: hand out memory, and do operations on it.
//!
//! **Core validates, backends trust.** Ranges lie inside their allocations, both ends of a copy are equally long and
//! not empty, host pointers are not null, all ranges belong to one client, and handles are counted, before a backend is
//! called. A backend checks only what its driver reports; what core excludes is `unreachable!("core guarantees ...")`.
//!
//! A new backend begins as a copy of [`null`], passes the suites of `tests/conformance`, and lists
//! each case that it cannot pass together with the reason.
//!
//! # Lifetimes
//! Core calls [`Backend::open_memory`] once per device and kind while the client is made, and drops the [`Memory`] with
//! the client. Memory is mapped in [`Extent`]s, which core cuts into blocks, keeps warm and counts (`arena`); an extent
//! is dropped once, on any thread, when no block of it is used by a handle or a copy in flight, and its drop unmaps it.
//!
//! # Order
//! An [`Operation`] is some [`Work`] and the ranges of device memory that it touches, each read or written. It begins
//! after all of its dependencies and completes its event once. Two operations that no event orders may run at the same
//! time. What an operation wrote is visible to any thread that saw its event ready; [`Schedule::run`] gives a backend
//! whose operations are plain calls all of this.
//!
//! # Backends with streams
//! Where the hardware orders work itself (CUDA: a stream), [`Backend::run`] does not block and does not use
//! [`Schedule::run`]:
//! 1. Dependencies that the backend itself has enqueued become waits between streams (`cuStreamWaitEvent`); it
//!    recognises them by keeping its own events' headers. For each of the others it continues when
//!    [`Schedule::gate`] says so; one that fails, or the client's end, ends the operation with that error.
//! 2. [`Schedule::begin`] gives the event to return and the [`OperationPromise`] that owes it. The work is enqueued,
//!    and behind it a record (`cuEventRecord`) that the backend's completion thread polls or waits for.
//! 3. When the record is reached, [`OperationPromise::complete_on_runner`] hands the operation to the client's runner,
//!    which releases the ranges, then completes the event. So the memory outlives the hardware's use of it, a driver's
//!    error reaches the event, and the completion thread runs no code but the backend's.
//! 4. A backend that orders all its work on the same bytes by itself may give memory up earlier, when the work is
//!    enqueued: [`OperationPromise::release_ranges`].
//!
//! If the stream is torn down first, dropping the [`OperationPromise`] fails the event: no path loses a completion.

mod byte_source;
mod commands;
mod description;
mod device_range;
mod flow;
mod foreign_work;
mod gated;
mod host_address;
mod idle_workers;
mod kernel;
mod launch;
mod move_bytes;
pub mod null;
mod operation;
mod pending;
mod promise;
mod range;
mod schedule;
#[cfg(test)]
mod test_operation;

use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;

pub use byte_source::ByteSource;
pub use commands::{Command, CommandList, FillPattern, KernelCommand, Place, Touched};
pub use description::{AttributeValue, DeviceAttribute, DeviceDescription};
pub use device_range::{Access, DeviceRange};
pub(crate) use device_range::{Block, erased};
pub use flow::{Choice, CommandFlow, FlowStep};
pub use foreign_work::{ForeignEvent, ForeignStream, ForeignWork};
pub(crate) use gated::Gated;
pub use host_address::{HostDestination, HostSource};
pub use idle_workers::IdleWorkers;
pub(crate) use idle_workers::{ClientTasks, Piece, Share};
pub use kernel::{DeviceKernel, KernelCode, KernelImage, LaunchDimensions};
pub use launch::{Launch, LaunchInfo};
pub use null::NullBackend;
pub use operation::{HostCall, Operation, Work};
pub(crate) use pending::{Accounting, Pending, is_notifying_here};
pub use promise::{OperationPromise, OperationRunner};
pub use range::ByteRange;
pub use schedule::{Gate, INLINE_LIMIT_BYTES, Schedule};
pub(crate) use schedule::{Held, Keep, Runner};

use purlin_async::event::Event;
#[doc(inline)]
pub use purlin_async::task::driver::{Driver, drive};
use purlin_base::status::{Error, StatusOr};

/// What a backend did for a range of host memory; dropping it undoes that.
pub type DmaRegistration = Box<dyn Any + Send + Sync>;

/// A kind of hardware. One value serves one client or several.
///
/// ```
/// use std::sync::Arc;
///
/// use purlin::backend::{Backend, Memory};
/// use purlin::{Client, ClientOptions, Error, StatusOr};
///
/// /// Hardware that is not plugged in.
/// struct Unplugged;
///
/// impl Backend for Unplugged {
///     fn platform_name(&self) -> &'static str {
///         "unplugged"
///     }
///     fn memory_kinds(&self) -> &'static [&'static str] {
///         &["device"]
///     }
///     fn open_memory(&self, device: usize, kind: &'static str) -> StatusOr<Box<dyn Memory>> {
///         Err(Error::unavailable(format!("there is no device {device} with {kind} memory")))
///     }
/// }
///
/// let error = Client::new(&ClientOptions::default(), Arc::new(Unplugged)).unwrap_err();
/// assert!(error.message().contains("no device 0"), "{error}");
/// ```
///
/// A device whose one stream is a thread, in memory of the host. Here each dependency passes a gate; a backend of
/// hardware makes its own events waits between streams instead.
///
/// ```
/// use std::ptr;
/// use std::sync::{Arc, mpsc};
///
/// use purlin::backend::{
///     Backend, DeviceRange, Extent, Memory, MemoryProperties, Operation, OperationPromise, Schedule, Work,
/// };
/// use purlin::host::HostBackend;
/// use purlin::{Client, ClientOptions, Error, Event, RawBuffer, StatusOr, when_all};
///
/// /// The host's memory. It cannot import memory of others.
/// struct StreamMemory(Box<dyn Memory>);
///
/// impl Memory for StreamMemory {
///     fn properties(&self) -> MemoryProperties {
///         self.0.properties()
///     }
///     fn map(&self, size_bytes: usize, alignment_bytes: usize) -> StatusOr<Arc<dyn Extent>> {
///         self.0.map(size_bytes, alignment_bytes)
///     }
/// }
///
/// struct StreamBackend(mpsc::Sender<OperationPromise>);
///
/// impl StreamBackend {
///     fn new() -> Self {
///         let (sender, stream) = mpsc::channel::<OperationPromise>();
///         std::thread::spawn(move || {
///             for promise in stream {
///                 // SAFETY: what the operation waits for has happened, and its event has not.
///                 unsafe { copy(promise.operation()) };
///                 promise.complete_on_runner(Ok(()));
///             }
///         });
///         Self(sender)
///     }
/// }
///
/// /// Where the bytes of a range begin.
/// fn address(range: &DeviceRange) -> *mut u8 {
///     let (extent, offset_bytes) = range.place();
///     ptr::with_exposed_provenance_mut(extent.address() + offset_bytes)
/// }
///
/// /// # Safety
/// /// What the operation waits for has happened, and its event has not.
/// unsafe fn copy(operation: &Operation) {
///     let ranges: Vec<_> = operation.ranges().map(|(_access, range)| address(range)).collect();
///     let (from, to) = match operation.work() {
///         Work::CopyFromHost(source) => (source.address(), ranges[0]),
///         Work::CopyToHost(destination) => (ranges[0].cast_const(), destination.address()),
///         _ => (ranges[0].cast_const(), ranges[1]),
///     };
///     // SAFETY: core guarantees that both ends have so many bytes, until the event.
///     unsafe { ptr::copy(from, to, operation.size_bytes()) };
/// }
///
/// impl Backend for StreamBackend {
///     fn platform_name(&self) -> &'static str {
///         "stream"
///     }
///     fn memory_kinds(&self) -> &'static [&'static str] {
///         &["device"]
///     }
///     fn open_memory(&self, device: usize, kind: &'static str) -> StatusOr<Box<dyn Memory>> {
///         Ok(Box::new(StreamMemory(HostBackend::new().open_memory(device, kind)?)))
///     }
///     fn run(&self, operation: Operation, schedule: &Schedule<'_>) -> Event {
///         if !matches!(operation.work(), Work::CopyFromHost(_) | Work::CopyToHost(_) | Work::Copy) {
///             return Event::from_error(Error::unimplemented(format!("no {operation:?}")));
///         }
///         let gate = schedule.gate(&operation);
///         let (event, promise) = match schedule.begin(operation) {
///             Ok(begun) => begun,
///             Err(refused) => return Event::from_error(refused),
///         };
///         let stream = self.0.clone();
///         gate.when_ready(&when_all(schedule.dependencies), move |outcome| match outcome {
///             // A stream that has ended drops the promise, which fails the event.
///             Ok(()) => drop(stream.send(promise)),
///             Err(error) => promise.complete(Err(error.clone())),
///         });
///         event
///     }
/// }
///
/// let client = Client::new(&ClientOptions::default(), Arc::new(StreamBackend::new()))?;
/// let block = RawBuffer::allocate(&client.devices()[0].default_memory_space(), 4)?;
/// let (bytes, mut read) = ([1_u8, 2, 3, 4], [0_u8; 4]);
/// // SAFETY: both arrays stay until the wait, and no other code uses the block.
/// let copied = unsafe {
///     let written = block.copy_from_host(bytes.as_ptr(), 0, 4, &[]);
///     block.copy_to_host(read.as_mut_ptr(), 0, 4, &[written])
/// };
/// copied.wait()?;
/// assert_eq!(read, bytes);
/// # Ok::<(), Error>(())
/// ```
pub trait Backend: Send + Sync {
    /// The name by which clients ask for it, such as `"host"`.
    fn platform_name(&self) -> &'static str;

    /// What is known of the devices of a client that asks for `count` of them (at least 1), which may be virtual: as
    /// many, in their order.
    ///
    /// The default has no attributes, and devices of a kind that is called as the platform.
    ///
    /// # Errors
    /// `InvalidArgument`, naming both numbers: there are not so many. `Unavailable`: there is no such hardware here.
    fn devices(&self, count: usize) -> StatusOr<Vec<DeviceDescription>> {
        Ok(vec![DeviceDescription::of_kind(self.platform_name()); count])
    }

    /// How many devices there are, if these are hardware: a client that asks for 0 gets all of them. `None`, which is
    /// the default: devices are virtual, and there are as many as a client asks for.
    fn device_count(&self) -> Option<usize> {
        None
    }

    /// The kinds of memory of every device, the default one first. Never empty, no kind twice.
    fn memory_kinds(&self) -> &'static [&'static str];

    /// Opens the memory `kind` (one of [`memory_kinds`](Self::memory_kinds)) of device number `device`.
    ///
    /// # Errors
    /// What the driver says; the client is then not made.
    fn open_memory(&self, device: usize, kind: &'static str) -> StatusOr<Box<dyn Memory>>;

    /// Makes `size_bytes` bytes of host memory at `address` reachable for the hardware, until the answer is dropped.
    /// Neither is 0, and core never asks for overlapping ranges.
    ///
    /// The default does nothing, for backends whose hardware reaches all host memory.
    ///
    /// # Errors
    /// What the driver says.
    fn dma_map(&self, address: usize, size_bytes: usize) -> StatusOr<DmaRegistration> {
        let _ = (address, size_bytes);
        Ok(Box::new(()))
    }

    /// Whether a launch may wait for launches on other devices of its client: it blocks no thread that those need. The
    /// default says no.
    fn launches_may_wait(&self) -> bool {
        false
    }

    /// Whether launches are calls on memory of the host. If they are, a launch whose dependencies and memory are ready
    /// is executed inside the call if it is small ([`INLINE_LIMIT_BYTES`]) or its caller waits: on the calling thread,
    /// at the host's addresses of its ranges, without an operation for [`run`](Self::run). The default says no.
    fn launches_inside_calls(&self) -> bool {
        false
    }

    /// Whether kernels are functions of the host, which get the host's addresses. The default says yes; a backend that
    /// says no has [`load_kernel`](Self::load_kernel).
    fn kernels_are_host_functions(&self) -> bool {
        true
    }

    /// Loads a kernel for device number `device`, to be part of a [`CommandList`] there. May take as long as a compiler
    /// does, on the calling thread. A kernel whose code is loaded already shares it.
    ///
    /// The default fails with `Unimplemented`.
    ///
    /// # Errors
    /// `InvalidArgument`, with the driver's log: code that is none, or parameters that are not as said. `NotFound`: the
    /// code has no kernel of that name. `Unimplemented`, naming chip or version: code that the device cannot run.
    fn load_kernel(&self, device: usize, code: &KernelCode<'_>) -> StatusOr<Arc<dyn DeviceKernel>> {
        let (_, name) = (device, self.platform_name());
        Err(Error::unimplemented(format!(
            "the platform {name} cannot load {code}: its kernels are functions of the host"
        )))
    }

    /// Does the operation without blocking on the dependencies; the event says when it is over or why it will not be.
    /// See the module for order.
    ///
    /// The default fails with `Unimplemented`; so does a backend with [`Work`] that it does not know.
    fn run(&self, operation: Operation, schedule: &Schedule<'_>) -> Event {
        let _ = schedule;
        Event::from_error(Error::unimplemented(format!("the backend {} has no {operation:?}", self.platform_name())))
    }

    /// Ends `operation`, which touches nothing and has nothing else to do, when all is over that others have enqueued
    /// by now on device number `device`. It has no dependencies. Does not block; see
    /// [`Device::foreign_event`](crate::Device::foreign_event).
    ///
    /// The default fails with `Unimplemented`.
    fn await_foreign(&self, device: usize, work: ForeignWork, operation: Operation, schedule: &Schedule<'_>) -> Event {
        let _ = (device, operation, schedule);
        Event::from_error(no_streams(self.platform_name(), &work))
    }

    /// Has what others enqueue on their stream from now on come behind `event`; see
    /// [`Device::have_stream_wait`](crate::Device::have_stream_wait).
    ///
    /// The default fails with `Unimplemented`.
    ///
    /// # Errors
    /// As there.
    fn have_stream_wait(&self, device: usize, stream: ForeignStream, event: &Event) -> Result<(), Error> {
        let _ = (device, event);
        Err(no_streams(self.platform_name(), &stream))
    }

    /// The handle of a stream for launches; see [`Device::launch_stream`](crate::Device::launch_stream).
    ///
    /// The default fails with `Unimplemented`.
    ///
    /// # Errors
    /// As there.
    fn launch_stream(&self, device: usize, number: u8) -> StatusOr<usize> {
        let _ = device;
        Err(no_streams(self.platform_name(), &format_args!("the stream for launches {number}")))
    }
}

/// What a platform answers whose work has no streams.
fn no_streams(platform: &str, wanted: &dyn std::fmt::Display) -> Error {
    Error::unimplemented(format!("{wanted} cannot be used: the platform {platform} has no streams"))
}

/// What is to be known of a kind of memory.
///
/// ```
/// use purlin::backend::MemoryProperties;
///
/// let properties = MemoryProperties { granule_bytes: 2 << 20, is_host_visible: true, ..Default::default() };
/// assert_eq!(properties.granule_bytes % properties.alignment_bytes, 0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryProperties {
    /// Every block begins at a multiple of this, a power of two, at least 64.
    pub alignment_bytes: usize,
    /// Memory that the library does not own can be imported if it begins at a multiple of this power of two.
    pub import_alignment_bytes: usize,
    /// Extents are multiples of this, unless a limit or a block of its own asks for less; smaller parts of them cannot
    /// be given back. A multiple of `alignment_bytes`.
    pub granule_bytes: usize,
    /// Whether blocks are cut from extents that stay mapped, or each block is an extent.
    pub caching: bool,
    /// Whether the host reads and writes it by address ([`Extent::host_address`]).
    pub is_host_visible: bool,
    /// Whether the backend does [`Work::Gather`] and [`Work::Scatter`] on it although the host does not reach it. If
    /// not, strided and packed arrays pass through a block of the host's as large as the array, and the backend is
    /// asked for plain copies of that. Where the host reaches the memory, the backend is asked for both anyway.
    pub takes_strided_arrays: bool,
}

impl MemoryProperties {
    /// Whether the backend is asked for [`Work::Gather`] and [`Work::Scatter`] on it.
    pub(crate) fn has_strided_work(&self) -> bool {
        self.is_host_visible || self.takes_strided_arrays
    }
}

impl Default for MemoryProperties {
    fn default() -> Self {
        Self {
            alignment_bytes: 64,
            import_alignment_bytes: 16,
            granule_bytes: 4096,
            caching: true,
            is_host_visible: false,
            takes_strided_arrays: false,
        }
    }
}

/// One kind of memory of one device.
///
/// See the example of [`Backend`].
pub trait Memory: Send + Sync {
    /// The same at every call.
    fn properties(&self) -> MemoryProperties {
        MemoryProperties::default()
    }

    /// New memory of `size_bytes` (never 0) that begins at a multiple of `alignment_bytes` (a power of two, not less
    /// than that of the [properties](Self::properties)), contents unspecified. Core asks from one thread at a time
    /// where it keeps extents mapped, and holds a lock meanwhile.
    ///
    /// # Errors
    /// `ResourceExhausted` with the reason; core adds size, space and use. Never aborts, however large the size.
    fn map(&self, size_bytes: usize, alignment_bytes: usize) -> StatusOr<Arc<dyn Extent>>;

    /// Memory that the library does not own, as an extent: `size_bytes` (never 0) at `address`, which is aligned as the
    /// properties say. Its owner keeps it for as long as the extent lives. Its drop releases nothing but what this call
    /// made. `None`: there is nothing to be made; device and host reach it at `address` itself.
    ///
    /// # Errors
    /// Why not; the default has `Unimplemented`.
    fn import(&self, address: usize, size_bytes: usize) -> StatusOr<Option<Arc<dyn Extent>>> {
        Err(Error::unimplemented(format!("this memory cannot import the {size_bytes} bytes at {address:#x}")))
    }
}

/// Memory from which blocks are cut. Dropping it unmaps it.
///
/// ```
/// use std::ptr::NonNull;
///
/// use purlin::backend::Extent;
///
/// /// A page that is never given back.
/// struct Page(usize);
///
/// impl Extent for Page {
///     fn address(&self) -> usize {
///         self.0
///     }
///     fn host_address(&self) -> Option<NonNull<u8>> {
///         NonNull::new(std::ptr::with_exposed_provenance_mut(self.0))
///     }
/// }
///
/// let bytes: &'static mut [u64] = vec![0; 512].leak();
/// let page = Page(bytes.as_mut_ptr().expose_provenance());
/// assert_eq!(page.host_address().map(|address| address.addr().get()), Some(page.address()));
/// ```
pub trait Extent: Any + Send + Sync {
    /// Of the first byte, as the device sees it.
    fn address(&self) -> usize;

    /// Address of the first byte if the host can reach it. Readable and writable for as many bytes as the extent has,
    /// until it is dropped.
    fn host_address(&self) -> Option<NonNull<u8>>;

    /// A block of `size_bytes`, as many as were asked for, is allocated at `offset_bytes`. For backends that watch
    /// accesses.
    fn handed_out(&self, offset_bytes: usize, size_bytes: usize) {
        let _ = (offset_bytes, size_bytes);
    }

    /// That block is freed.
    fn given_back(&self, offset_bytes: usize, size_bytes: usize) {
        let _ = (offset_bytes, size_bytes);
    }

    /// The contents of that range are not needed, and the range will not be used soon: its pages may go back to the
    /// system. They are there again, with unspecified contents, when they are touched.
    fn discard(&self, offset_bytes: usize, size_bytes: usize) {
        let _ = (offset_bytes, size_bytes);
    }
}
