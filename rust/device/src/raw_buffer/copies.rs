//! Copies of raw bytes, checked: between host and device, and between devices.

#![allow(unsafe_code, reason = "copies read and write host memory by address")]

use std::panic::Location;

use super::RawBuffer;
use crate::backend::{Access, ByteRange, DeviceRange, HostDestination, HostSource, Keep, Operation};
use crate::dma::DmaUse;
use purlin_async::event::{Event, EventPromise, EventState, when_all};
use purlin_base::fault::{self, Site};
use purlin_base::status::{Error, StatusOr};

/// What a copy waits for, and whether its caller then waits for it.
#[derive(Clone, Copy)]
pub(crate) struct CopyOrder<'a> {
    pub(crate) dependencies: &'a [Event],
    pub(crate) caller_waits: bool,
    /// Where it was asked for in Rust. Not known by `#[track_caller]` all the way, which costs each call an argument.
    pub(crate) location: &'static Location<'static>,
}

impl RawBuffer {
    /// Copies `size_bytes` from `source` to this buffer at `offset_bytes`.
    ///
    /// The event fails with `InvalidArgument` (null source, size > 0; memory that may not be written), `OutOfRange`, a
    /// dependency's error, or `Cancelled` (the copy needed the client's runner, and that has shut down).
    ///
    /// # Safety
    /// Until the event is terminal, any thread may read `size_bytes` bytes at `source` and nothing writes them; and
    /// from the moment when the dependencies have happened, nothing else reads or writes the bytes that are copied to.
    #[track_caller]
    pub unsafe fn copy_from_host(
        &self,
        source: *const u8,
        offset_bytes: usize,
        size_bytes: usize,
        dependencies: &[Event],
    ) -> Event {
        let order = CopyOrder { dependencies, caller_waits: false, location: Location::caller() };
        // SAFETY: the caller keeps the same contract.
        unsafe { self.copy_from_host_ordered(source, offset_bytes, size_bytes, order) }
    }

    /// Copies `size_bytes` at `offset_bytes` of this buffer to `destination`.
    ///
    /// Errors as [`copy_from_host`](Self::copy_from_host); `Unimplemented` where a backend holds no bytes.
    ///
    /// # Safety
    /// Until the event is terminal, any thread may write `size_bytes` bytes at `destination` and nothing else touches
    /// them; and from the moment when the dependencies have happened, nothing writes the bytes that are copied from.
    #[track_caller]
    pub unsafe fn copy_to_host(
        &self,
        destination: *mut u8,
        offset_bytes: usize,
        size_bytes: usize,
        dependencies: &[Event],
    ) -> Event {
        let order = CopyOrder { dependencies, caller_waits: false, location: Location::caller() };
        // SAFETY: the caller keeps the same contract.
        unsafe { self.copy_to_host_ordered(destination, offset_bytes, size_bytes, order) }
    }

    /// Copies all of this buffer to the start of `destination`, in any memory space of the same client. Overlapping
    /// ranges of one allocation are copied as by memmove.
    ///
    /// The event fails with `InvalidArgument` (`self.size_bytes() > destination.size_bytes()`, another client's buffer,
    /// or a destination that may not be written); other errors as [`copy_from_host`](Self::copy_from_host).
    ///
    /// # Safety
    /// From the moment when the dependencies have happened until the event is terminal, nothing else writes the bytes
    /// that are copied from, and nothing else reads or writes those that are copied to.
    ///
    /// # Examples
    /// ```
    /// use purlin::{Buffer, RawBuffer};
    /// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
    /// # let space = client.devices()[0].default_memory_space();
    ///
    /// let source = Buffer::from_slice(&[1_i32, 2], &[2], &space)?;
    /// let target = RawBuffer::allocate(&space, 8)?;
    /// // SAFETY: no other code uses `target`, and `source` is written no more once it is ready.
    /// let copied = unsafe { source.raw_alias()?.copy_to(&target, &[source.ready_event()]) };
    /// let copy = Buffer::from_raw(target, source.shape(), None, &copied)?;
    /// assert_eq!(copy.to_vec::<i32>()?, [1, 2]);
    /// # Ok::<(), purlin::Error>(())
    /// ```
    #[track_caller]
    pub unsafe fn copy_to(&self, destination: &Self, dependencies: &[Event]) -> Event {
        if self.size_bytes() > destination.size_bytes() {
            return Event::from_error(Error::invalid_argument(format!(
                "cannot copy {} bytes from {self:?} to {destination:?}, which holds {}",
                self.size_bytes(),
                destination.size_bytes()
            )));
        }
        // SAFETY: the caller's promise.
        unsafe { self.copy_range_to(0, destination, 0, self.size_bytes(), dependencies) }
    }

    /// Copies `size_bytes` at `offset_bytes` of this buffer to `destination` at `destination_offset_bytes`, in any
    /// memory space of the same client.
    ///
    /// The event fails with `OutOfRange`, naming the numbers, if either range does not lie within its buffer; with
    /// `InvalidArgument` (another client's buffer, or a destination that may not be written); other errors as
    /// [`copy_from_host`](Self::copy_from_host).
    ///
    /// # Safety
    /// As [`copy_to`](Self::copy_to).
    #[track_caller]
    pub unsafe fn copy_range_to(
        &self,
        offset_bytes: usize,
        destination: &Self,
        destination_offset_bytes: usize,
        size_bytes: usize,
        dependencies: &[Event],
    ) -> Event {
        let ends = self.ranges(offset_bytes, destination, destination_offset_bytes, size_bytes);
        let (from, to) = match ends {
            Ok(ends) => ends,
            Err(error) => return Event::from_error(error),
        };
        if size_bytes == 0 {
            return when_all(dependencies);
        }
        let operation = || Operation::copy(self.device_range(from), destination.device_range(to));
        let order = CopyOrder { dependencies, caller_waits: false, location: Location::caller() };
        if destination.block.allocated().state() == EventState::Ready {
            return self.run(operation, order);
        }
        let dependencies = [dependencies, &[destination.writable()]].concat();
        self.run(operation, CopyOrder { dependencies: &dependencies, ..order })
    }

    /// Both ends of a copy, if the arguments make sense.
    fn ranges(
        &self,
        offset_bytes: usize,
        destination: &Self,
        destination_offset_bytes: usize,
        size_bytes: usize,
    ) -> StatusOr<(ByteRange, ByteRange)> {
        if !self.space().same_client(destination.space()) {
            return Err(Error::invalid_argument(format!(
                "cannot copy from {self:?} to {destination:?} of another client"
            )));
        }
        destination.check_mutable()?;
        let from = self.range.slice(offset_bytes, size_bytes).map_err(|error| self.named(&error))?;
        let to = destination.range.slice(destination_offset_bytes, size_bytes);
        Ok((from, to.map_err(|error| destination.named(&error))?))
    }

    pub(super) fn check_mutable(&self) -> Result<(), Error> {
        if self.is_mutable() {
            return Ok(());
        }
        Err(Error::invalid_argument(format!("{self:?} may not be written: it was imported read-only")))
    }

    /// Happens when the memory, which is not there yet, is there, and fails if it may not be written then: a channel
    /// may be fulfilled with read-only memory after it was taken for a destination.
    pub(super) fn writable(&self) -> Event {
        let (destination, promise) = (self.clone(), EventPromise::guarding(c"memory to write to"));
        promise.waits_for(self.block.allocated());
        promise.lends_throughout();
        let writable = promise.event();
        self.block.allocated().on_ready(move |allocated| {
            let outcome = allocated.clone().and_then(|()| destination.check_mutable());
            // First, so that it is not kept for the waiters.
            drop(destination);
            promise.set(outcome);
        });
        writable
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
        let range = self.host_copy_range(source.is_null(), offset_bytes, size_bytes);
        let range = match self.check_mutable().and(range) {
            Ok(range) => range,
            Err(error) => return Event::from_error(error),
        };
        if size_bytes == 0 {
            return when_all(order.dependencies);
        }
        let mapped = self.space().instance().dma_mappings().use_of(source.addr(), size_bytes);
        // SAFETY: the caller keeps `size_bytes` bytes readable and unchanged until the event; `range` is as long.
        let source = unsafe { HostSource::new(source) };
        let operation = || Operation::copy_from_host(source, self.device_range(range));
        match mapped {
            None => self.run(operation, order),
            Some(mapped) => self.run_mapped(operation(), order, mapped),
        }
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
        let mapped = self.space().instance().dma_mappings().use_of(destination.addr(), size_bytes);
        // SAFETY: the caller keeps `size_bytes` bytes writable and untouched until the event; `range` is as long.
        let destination = unsafe { HostDestination::new(destination) };
        let operation = || Operation::copy_to_host(self.device_range(range), destination);
        match mapped {
            None => self.run(operation, order),
            Some(mapped) => self.run_mapped(operation(), order, mapped),
        }
    }

    /// The device's end of a copy from or to the host, if the arguments make sense.
    fn host_copy_range(&self, null: bool, offset_bytes: usize, size_bytes: usize) -> StatusOr<ByteRange> {
        let range = self.range.slice(offset_bytes, size_bytes).map_err(|error| self.named(&error))?;
        if null && size_bytes > 0 {
            return Err(Error::invalid_argument(format!(
                "the host pointer for a copy of {size_bytes} bytes from or to {self:?} is null"
            )));
        }
        Ok(range)
    }

    /// Starts `operation`, whose range 0 is of this buffer, and waits for this buffer's memory too. It is made at the
    /// last moment: it is large, and would be moved where the backend gets it from.
    #[inline(always)]
    pub(crate) fn run(&self, operation: impl FnOnce() -> Operation, order: CopyOrder<'_>) -> Event {
        self.run_keeping(operation, order, None)
    }

    /// As [`run`](Self::run), of an operation that uses mapped memory of the host.
    #[cold]
    #[inline(never)]
    fn run_mapped(&self, operation: Operation, order: CopyOrder<'_>, mapped: DmaUse) -> Event {
        let kept = Keep::new(Box::new(mapped));
        self.run_keeping(|| operation, order, Some(&kept))
    }

    #[inline(always)]
    fn run_keeping(&self, operation: impl FnOnce() -> Operation, order: CopyOrder<'_>, kept: Option<&Keep>) -> Event {
        if self.block.allocated().state() != EventState::Ready {
            return self.run_once_there(operation(), order, kept);
        }
        self.start(operation, order, kept)
    }

    #[cold]
    #[inline(never)]
    fn run_once_there(&self, operation: Operation, order: CopyOrder<'_>, kept: Option<&Keep>) -> Event {
        let there = match operation.ranges().next() {
            Some((Access::Write, _)) => self.writable(),
            _ => self.block.allocated().clone(),
        };
        let dependencies = [order.dependencies, &[there]].concat();
        self.start(|| operation, CopyOrder { dependencies: &dependencies, ..order }, kept)
    }

    #[inline(always)]
    fn start(&self, operation: impl FnOnce() -> Operation, order: CopyOrder<'_>, kept: Option<&Keep>) -> Event {
        if let Err(error) = fault::point(Site::StartCopy) {
            return Event::from_error(error);
        }
        let instance = self.space().instance();
        instance.run(order.location, operation(), order.dependencies, order.caller_waits, kept)
    }

    /// All of it, as an operation touches it.
    pub(crate) fn whole_range(&self) -> DeviceRange {
        self.device_range(self.range)
    }

    pub(super) fn device_range(&self, range: ByteRange) -> DeviceRange {
        DeviceRange::new(&self.block, range)
    }
}
