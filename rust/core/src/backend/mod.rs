//! What a kind of hardware must do to carry Purlin: hand out memory and copy bytes.
//!
//! **Core validates, backends trust.** Ranges lie inside their allocations, both ends of a copy are equally long and not
//! empty, host pointers are not null, both ends belong to one client, and handles are counted, before a backend is
//! called. A backend checks only what its driver tells it; what core excludes is `unreachable!("core guarantees ...")`.
//!
//! A new backend begins as a copy of [`null`], passes the suites of `tests/conformance`, and lists
//! each case that it cannot pass together with the reason.
//!
//! # Lifetimes
//! Core calls [`Backend::open_memory`] once per device and kind while the client is made, and drops the [`Memory`] with
//! the client. An [`Allocation`] is dropped once, on any thread, when no handle and no copy in flight refers to it any
//! more; its drop is the release of the memory. Core keeps the books (bytes in use, peak) around both.
//!
//! # Order
//! A copy begins after all of its dependencies and completes its event once. Two copies that no event orders may run at
//! the same time. What a copy wrote is visible to whoever saw its event ready; [`CopySchedule::run`] gives a backend
//! whose copies are plain calls all of this.
//!
//! # Backends with streams
//! Where the hardware orders work itself (CUDA: a stream), [`Backend::copy`] does not block and does not use
//! [`CopySchedule::run`]:
//! 1. Dependencies that the backend itself has enqueued become waits between streams (`cuStreamWaitEvent`); it
//!    recognises them by keeping its own events' headers. For the others it attaches to
//!    [`when_all`](crate::event::when_all) and goes on from there; a failed one ends the copy with that error.
//! 2. [`CopyOperation::promise`] gives the event to return and the [`PromisedCopy`] that owes it. The copy is enqueued,
//!    and behind it a record (`cuEventRecord`) that the backend's completion thread polls or waits for.
//! 3. When the record is reached, [`PromisedCopy::complete`] lets go of both ends, then completes the event; so the memory
//!    outlives the hardware's use of it, and a driver's error reaches the event.
//!
//! If the stream is torn down first, dropping the [`PromisedCopy`] fails the event: no path loses a completion.

mod copy;
pub mod null;
mod range;
mod schedule;
#[cfg(test)]
mod test_operation;

use std::any::Any;
use std::ptr::NonNull;

pub(crate) use copy::Block;
pub use copy::{CopyEnds, CopyOperation, DeviceRange, HostDestination, HostSource, PromisedCopy};
pub use null::NullBackend;
pub use range::ByteRange;
pub use schedule::CopySchedule;

use crate::event::Event;
use crate::status::{Status, StatusOr};

/// A kind of hardware. One value serves one client or several.
pub trait Backend: Send + Sync {
    /// The name by which clients ask for it, such as `"host"`.
    fn platform_name(&self) -> &'static str;

    /// What one of its devices is called, such as `"host"`; devices are written as `host:0`.
    fn device_kind(&self) -> &'static str {
        self.platform_name()
    }

    /// The kinds of memory of every device, the default one first. Never empty, no kind twice.
    fn memory_kinds(&self) -> &'static [&'static str];

    /// Opens the memory `kind` (one of [`memory_kinds`](Self::memory_kinds)) of device number `device`.
    ///
    /// # Errors
    /// What the driver says; the client is then not made.
    fn open_memory(&self, device: usize, kind: &'static str) -> StatusOr<Box<dyn Memory>>;

    /// Copies without blocking on the dependencies; the event tells when it is done or why it will not be. See the
    /// module for order.
    ///
    /// The default fails with `Unimplemented`.
    fn copy(&self, operation: CopyOperation, schedule: &CopySchedule<'_>) -> Event {
        let _ = schedule;
        Event::from_error(Status::unimplemented(format!("the backend {} has no {operation:?}", self.platform_name())))
    }
}

/// One kind of memory of one device.
pub trait Memory: Send + Sync {
    /// New memory of `size_bytes` (0 is allowed), aligned to at least 64 bytes, contents unspecified.
    ///
    /// # Errors
    /// `ResourceExhausted` with the reason; core adds size, space and use. Never aborts, however large the size.
    fn allocate(&self, size_bytes: usize) -> StatusOr<Box<dyn Allocation>>;
}

/// Memory that was handed out. Dropping it gives it back.
pub trait Allocation: Any + Send + Sync {
    /// Address of the first byte if the host can reach it. Readable and writable for as many bytes as were asked for,
    /// until the allocation is dropped.
    fn host_address(&self) -> Option<NonNull<u8>>;
}
