//! Untyped bytes in a memory space.
//!
//! A [`RawBuffer`] is a range of a block of memory; clones and slices share the block, and the last of them, or the last
//! copy in flight, frees it. Copies are asynchronous and return an [`Event`]. A copy begins after all of its dependencies;
//! if one fails, nothing is copied and the event has that error. Copies that touch the same bytes are not ordered among
//! themselves: say so with dependencies. A copy of 0 bytes copies nothing and completes when its dependencies have.

#![allow(unsafe_code, reason = "copies read and write host memory by address")]

use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::backend::{
    Block, ByteRange, CopyEnds, CopyOperation, CopySchedule, DeviceRange, HostDestination, HostSource,
};
use crate::device::{MemoryBlock, MemorySpace};
use crate::event::{Event, when_all};
use crate::status::{Status, StatusOr};

/// A reference to a range of device memory; it keeps the memory and the client alive.
///
/// Its bytes are reached through events and raw addresses only, never as a Rust reference; so whoever writes them promises
/// that nobody else uses them meanwhile. That is what the `unsafe` methods ask for.
#[derive(Clone)]
pub struct RawBuffer {
    block: Arc<MemoryBlock>,
    range: ByteRange,
}

/// What a copy waits for, and whether its caller then waits for it.
#[derive(Clone, Copy)]
pub(crate) struct CopyOrder<'a> {
    pub(crate) dependencies: &'a [Event],
    pub(crate) caller_waits: bool,
}

impl RawBuffer {
    /// New memory of `size_bytes` (0 is allowed), aligned to at least 64 bytes, contents unspecified.
    ///
    /// # Errors
    /// `ResourceExhausted`, naming size, space and use.
    pub fn allocate(memory_space: &MemorySpace, size_bytes: usize) -> StatusOr<Self> {
        Ok(Self { block: memory_space.allocate(size_bytes)?, range: ByteRange::all(size_bytes) })
    }

    /// Size of this range in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.range.size_bytes()
    }

    /// Where it is.
    #[must_use]
    pub fn memory_space(&self) -> MemorySpace {
        self.block.memory_space().clone()
    }

    /// Address of the first byte if the host can reach the memory. Valid while a reference to the memory lives; reading
    /// and writing through it is ordered by events only.
    #[must_use]
    pub fn host_pointer(&self) -> Option<NonNull<u8>> {
        let base = self.block.allocation().host_address()?;
        NonNull::new(base.as_ptr().wrapping_add(self.range.offset_bytes()))
    }

    /// The bytes `[offset_bytes, offset_bytes + size_bytes)` of this range, sharing the memory.
    ///
    /// # Errors
    /// `OutOfRange`, naming the three numbers, unless `offset_bytes + size_bytes <= self.size_bytes()`.
    pub fn slice(&self, offset_bytes: usize, size_bytes: usize) -> StatusOr<Self> {
        let range = self.range.slice(offset_bytes, size_bytes).map_err(|error| self.named(&error))?;
        Ok(Self { block: Arc::clone(&self.block), range })
    }

    /// Copies `size_bytes` from `source` to this buffer at `offset_bytes`.
    ///
    /// The event fails with `InvalidArgument` (null source, size > 0), `OutOfRange`, a dependency's error, or `Cancelled`
    /// (the copy needed the client's runner, and that has shut down).
    ///
    /// # Safety
    /// Until the event is terminal, any thread may read `size_bytes` bytes at `source` and nobody writes them; and from
    /// the moment when the dependencies have happened, nobody else reads or writes the bytes that are copied to.
    pub unsafe fn copy_from_host(
        &self,
        source: *const u8,
        offset_bytes: usize,
        size_bytes: usize,
        dependencies: &[Event],
    ) -> Event {
        let order = CopyOrder { dependencies, caller_waits: false };
        // SAFETY: the caller keeps the same contract.
        unsafe { self.copy_from_host_ordered(source, offset_bytes, size_bytes, order) }
    }

    /// Copies `size_bytes` at `offset_bytes` of this buffer to `destination`.
    ///
    /// Errors as [`copy_from_host`](Self::copy_from_host); `Unimplemented` where a backend holds no bytes.
    ///
    /// # Safety
    /// Until the event is terminal, any thread may write `size_bytes` bytes at `destination` and nobody else touches them;
    /// and from the moment when the dependencies have happened, nobody writes the bytes that are copied from.
    pub unsafe fn copy_to_host(
        &self,
        destination: *mut u8,
        offset_bytes: usize,
        size_bytes: usize,
        dependencies: &[Event],
    ) -> Event {
        let order = CopyOrder { dependencies, caller_waits: false };
        // SAFETY: the caller keeps the same contract.
        unsafe { self.copy_to_host_ordered(destination, offset_bytes, size_bytes, order) }
    }

    /// Copies all of this buffer to the start of `destination`, in any memory space of the same client. Overlapping
    /// ranges of one allocation are copied as by memmove.
    ///
    /// The event fails with `InvalidArgument` (`self.size_bytes() > destination.size_bytes()`, or another client's
    /// buffer); other errors as [`copy_from_host`](Self::copy_from_host).
    ///
    /// # Safety
    /// From the moment when the dependencies have happened until the event is terminal, nobody else writes the bytes
    /// that are copied from, and nobody else reads or writes those that are copied to.
    pub unsafe fn copy_to(&self, destination: &Self, dependencies: &[Event]) -> Event {
        if !self.block.memory_space().same_client(destination.block.memory_space()) {
            return Event::from_error(Status::invalid_argument(format!(
                "cannot copy from {self:?} to {destination:?} of another client"
            )));
        }
        let Ok(range) = destination.range.slice(0, self.size_bytes()) else {
            return Event::from_error(Status::invalid_argument(format!(
                "cannot copy {} bytes from {self:?} to {destination:?}, which holds {}",
                self.size_bytes(),
                destination.size_bytes()
            )));
        };
        if self.size_bytes() == 0 {
            return when_all(dependencies);
        }
        let ends = CopyEnds::Between(self.device_range(self.range), destination.device_range(range));
        self.copy(ends, CopyOrder { dependencies, caller_waits: false })
    }

    /// See [`copy_from_host`](Self::copy_from_host).
    ///
    /// # Safety
    /// As there.
    pub(crate) unsafe fn copy_from_host_ordered(
        &self,
        source: *const u8,
        offset_bytes: usize,
        size_bytes: usize,
        order: CopyOrder<'_>,
    ) -> Event {
        let range = match self.host_copy_range(source.is_null(), offset_bytes, size_bytes) {
            Ok(range) => range,
            Err(error) => return Event::from_error(error),
        };
        if size_bytes == 0 {
            return when_all(order.dependencies);
        }
        // SAFETY: the caller keeps `size_bytes` bytes readable and unchanged until the event; `range` is as long.
        let source = unsafe { HostSource::new(source) };
        self.copy(CopyEnds::FromHost(source, self.device_range(range)), order)
    }

    /// See [`copy_to_host`](Self::copy_to_host).
    ///
    /// # Safety
    /// As there.
    pub(crate) unsafe fn copy_to_host_ordered(
        &self,
        destination: *mut u8,
        offset_bytes: usize,
        size_bytes: usize,
        order: CopyOrder<'_>,
    ) -> Event {
        let range = match self.host_copy_range(destination.is_null(), offset_bytes, size_bytes) {
            Ok(range) => range,
            Err(error) => return Event::from_error(error),
        };
        if size_bytes == 0 {
            return when_all(order.dependencies);
        }
        // SAFETY: the caller keeps `size_bytes` bytes writable and untouched until the event; `range` is as long.
        let destination = unsafe { HostDestination::new(destination) };
        self.copy(CopyEnds::ToHost(self.device_range(range), destination), order)
    }

    /// The device's end of a copy from or to the host, if the arguments make sense.
    fn host_copy_range(&self, null: bool, offset_bytes: usize, size_bytes: usize) -> StatusOr<ByteRange> {
        let range = self.range.slice(offset_bytes, size_bytes).map_err(|error| self.named(&error))?;
        if null && size_bytes > 0 {
            return Err(Status::invalid_argument(format!(
                "the host pointer for a copy of {size_bytes} bytes from or to {self:?} is null"
            )));
        }
        Ok(range)
    }

    fn copy(&self, ends: CopyEnds, order: CopyOrder<'_>) -> Event {
        let instance = self.block.memory_space().instance();
        let schedule = CopySchedule {
            dependencies: order.dependencies,
            runner: instance.runner(),
            caller_waits: order.caller_waits,
        };
        instance.backend().copy(CopyOperation::new(ends), &schedule)
    }

    fn device_range(&self, range: ByteRange) -> DeviceRange {
        DeviceRange::new(Arc::clone(&self.block) as Arc<dyn Block>, range)
    }

    /// `error`, with this buffer's place in front.
    fn named(&self, error: &Status) -> Status {
        Status::new(error.code(), format!("in {}: {}", self.block, error.message()))
    }
}

/// `RawBuffer([4, 12) in host:0/device)`
impl fmt::Debug for RawBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RawBuffer({:?} in {})", self.range, self.block)
    }
}
