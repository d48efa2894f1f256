//! Filling buffers piece by piece from the host, while others already use them: what PJRT calls an asynchronous
//! host-to-device transfer manager.
//!
//! All memory is asked for when the manager is made, and each buffer may be retrieved, once, before its bytes are
//! there. Each has a slot (`slot.rs`) with states of its own: *filling*, until the piece that says it is the last;
//! *sealed*, until no piece is on its way; then *done*; or *failed*, by
//! [`set_buffer_error`](AsyncHostToDeviceTransferManager::set_buffer_error), by a piece that could not be copied, or
//! because the manager was dropped before the last piece. An illegal step is an error and changes nothing.
//!
//! When a piece has been copied, its `on_done` is called first, then the slot counts it, then the buffer becomes ready,
//! if it was the last: so a thread that sees the buffer ready knows that the host memory of all its pieces is free.
//! `on_done` is called under no lock, exactly once on every path, and may drop the manager.

#![allow(unsafe_code, reason = "host memory is read by address")]

mod slot;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use self::slot::Slot;
use crate::buffer::{Buffer, OnDone};
use crate::device::Device;
use crate::memory::{AllocOptions, MemorySpace};
use purlin_array::layout::Layout;
use purlin_array::shape::Shape;
use purlin_array::strided::HostArray;
use purlin_async::event::Event;
use purlin_base::status::{Error, SourceLocation, StatusOr};
use purlin_base::sync::Mutex;

/// What a buffer of a manager is to be.
///
/// ```
/// use purlin::{AllocOptions, AsyncHostToDeviceTransferManager, DType, Layout, Shape, TransferSpec};
/// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
/// # let space = client.devices()[0].default_memory_space();
///
/// let spec = TransferSpec { shape: Shape::new(DType::F32, &[2, 2])?, layout: Some(Layout::new(&[0, 1])?) };
/// let manager = AsyncHostToDeviceTransferManager::new(&[spec], &space, &AllocOptions::default())?;
/// assert_eq!((manager.buffer_count(), manager.buffer_size(0)?), (1, 16));
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TransferSpec {
    /// Element type and dimensions.
    pub shape: Shape,
    /// In which order the elements stand on the device; `None`: row-major.
    pub layout: Option<Layout>,
}

/// See the module. Dropping it fails the buffers whose last piece has not been handed in; it does not wait.
///
/// ```
/// use purlin::{AllocOptions, AsyncHostToDeviceTransferManager, DType, Shape, TransferSpec};
/// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
/// # let space = client.devices()[0].default_memory_space();
///
/// let specs = [TransferSpec { shape: Shape::new(DType::U8, &[4])?, layout: None }];
/// let manager = AsyncHostToDeviceTransferManager::new(&specs, &space, &AllocOptions::default())?;
/// let (buffer, bytes) = (manager.retrieve_buffer(0)?, [1_u8, 2, 3, 4]);
/// // SAFETY: `bytes` are there and unchanged until the transfer is done, which is waited for.
/// unsafe {
///     manager.transfer_raw_data_to_sub_buffer(0, bytes.as_ptr(), 0, 2, false, None)?;
///     manager.transfer_raw_data_to_sub_buffer(0, bytes[2..].as_ptr(), 2, 2, true, None)?;
/// }
/// manager.ready_event().wait()?;
/// assert_eq!(buffer.to_vec::<u8>()?, bytes);
/// # Ok::<(), purlin::Error>(())
/// ```
pub struct AsyncHostToDeviceTransferManager {
    memory_space: MemorySpace,
    slots: Box<[Arc<Slot>]>,
    metadata: Mutex<BTreeMap<String, String>>,
}

impl AsyncHostToDeviceTransferManager {
    /// A manager for one buffer per entry of `specs`, in that order, all in `memory_space`. `options` are those of each
    /// allocation, so memory may be provided after this call has returned.
    ///
    /// # Errors
    /// Then nothing is allocated. `InvalidArgument`: a layout of another rank; otherwise as
    /// [`RawBuffer::allocate_with`](crate::RawBuffer::allocate_with).
    #[track_caller]
    pub fn new(specs: &[TransferSpec], memory_space: &MemorySpace, options: &AllocOptions) -> StatusOr<Self> {
        let place = SourceLocation::of_call();
        let slots = specs.iter().map(|spec| Ok(Arc::new(Slot::new(spec, memory_space, options, place)?)));
        let slots = slots.collect::<StatusOr<_>>()?;
        Ok(Self { memory_space: memory_space.clone(), slots, metadata: Mutex::new(BTreeMap::new()) })
    }

    /// How many buffers there are.
    #[must_use]
    pub fn buffer_count(&self) -> usize {
        self.slots.len()
    }

    /// Where they are.
    #[must_use]
    pub fn memory_space(&self) -> MemorySpace {
        self.memory_space.clone()
    }

    /// The device of [`memory_space`](Self::memory_space).
    #[must_use]
    pub fn device(&self) -> Device {
        self.memory_space.device()
    }

    /// Bytes of that buffer on the device.
    ///
    /// # Errors
    /// `InvalidArgument`, naming index and count: `index >= self.buffer_count()`.
    pub fn buffer_size(&self, index: usize) -> StatusOr<usize> {
        Ok(self.slot(index)?.size_bytes())
    }

    /// That buffer, whether its bytes are there or not. Once: it is then the caller's.
    ///
    /// # Errors
    /// `InvalidArgument`: `index >= self.buffer_count()`; `FailedPrecondition`: it was retrieved before.
    pub fn retrieve_buffer(&self, index: usize) -> StatusOr<Buffer> {
        let slot = self.slot(index)?;
        slot.retrieve().ok_or_else(|| Error::failed_precondition(format!("buffer {index} was retrieved before")))
    }

    /// Copies a whole array, of any strides, to that buffer, packed and in its layout; the buffer then has all its
    /// bytes.
    ///
    /// # Errors
    /// `on_done` is then called with the same error before this returns, and the buffer is as it was.
    /// `InvalidArgument`: `index >= self.buffer_count()`, another shape, null `data` with elements, or "already been
    /// fully transferred"; `FailedPrecondition`: pieces were transferred before; what the buffer has failed with.
    ///
    /// # Safety
    /// Until `on_done` is called (without it, until the buffer is ready), any thread may read the elements of `array`
    /// at `data`, and nothing writes them.
    pub unsafe fn transfer_array(
        &self,
        index: usize,
        data: *const u8,
        array: &HostArray,
        on_done: Option<OnDone>,
    ) -> Result<(), Error> {
        let slot = match self.slot(index) {
            Ok(slot) => slot,
            Err(error) => return Err(slot::told(on_done, error)),
        };
        // SAFETY: the caller's promise.
        unsafe { slot.transfer_array(index, data, array, on_done) }
    }

    /// Copies all bytes of that buffer, as they are to stand on the device.
    ///
    /// # Errors
    /// As [`transfer_raw_data_to_sub_buffer`](Self::transfer_raw_data_to_sub_buffer); `InvalidArgument`, naming both:
    /// `size_bytes != self.buffer_size(index)`.
    ///
    /// # Safety
    /// As there.
    pub unsafe fn transfer_raw_data_to_buffer(
        &self,
        index: usize,
        data: *const u8,
        size_bytes: usize,
        on_done: Option<OnDone>,
    ) -> Result<(), Error> {
        match self.buffer_size(index) {
            Ok(expected) if expected != size_bytes => {
                let error = format!("buffer {index} has {expected} bytes, but {size_bytes} were given");
                Err(slot::told(on_done, Error::invalid_argument(error)))
            }
            // SAFETY: the caller's promise.
            _ => unsafe { self.transfer_raw_data_to_sub_buffer(index, data, 0, size_bytes, true, on_done) },
        }
    }

    /// Copies `size_bytes` bytes, as they are to stand on the device, to that buffer at `offset_bytes`. Pieces may be
    /// transferred and copied in any order; no two may touch the same bytes. After the one with `is_last` there is no
    /// other, and the buffer becomes ready when all have been copied. If one cannot be copied, the buffer fails with
    /// its error, at once.
    ///
    /// # Errors
    /// `on_done` is then called with the same error before this returns, and the buffer is as it was.
    /// `InvalidArgument`: `index >= self.buffer_count()`, null `data` with `size_bytes > 0`, or "already been fully
    /// transferred"; `OutOfRange`, naming the numbers, unless `offset_bytes + size_bytes <= self.buffer_size(index)`;
    /// what the buffer has failed with.
    ///
    /// # Safety
    /// Until `on_done` is called (without it, until the buffer is ready), any thread may read `size_bytes` bytes at
    /// `data`, and nothing writes them.
    pub unsafe fn transfer_raw_data_to_sub_buffer(
        &self,
        index: usize,
        data: *const u8,
        offset_bytes: usize,
        size_bytes: usize,
        is_last: bool,
        on_done: Option<OnDone>,
    ) -> Result<(), Error> {
        let slot = match self.slot(index) {
            Ok(slot) => slot,
            Err(error) => return Err(slot::told(on_done, error)),
        };
        // SAFETY: the caller's promise.
        unsafe { slot.transfer_piece(index, data, offset_bytes, size_bytes, is_last, on_done) }
    }

    /// That buffer fails with `error`; pieces on their way are still copied, and their `on_done` called.
    ///
    /// # Errors
    /// `InvalidArgument`: `index >= self.buffer_count()`, or "already been fully transferred"; what the buffer has
    /// failed with before.
    ///
    /// # Examples
    /// ```
    /// use purlin::{AllocOptions, AsyncHostToDeviceTransferManager, DType, Shape, Error, TransferSpec};
    /// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
    /// # let space = client.devices()[0].default_memory_space();
    ///
    /// let specs = [TransferSpec { shape: Shape::new(DType::U8, &[4])?, layout: None }];
    /// let manager = AsyncHostToDeviceTransferManager::new(&specs, &space, &AllocOptions::default())?;
    /// let buffer = manager.retrieve_buffer(0)?;
    /// manager.set_buffer_error(0, Error::data_loss("the file ended"))?;
    /// assert!(buffer.ready_event().error().unwrap().message().contains("the file ended"));
    /// # Ok::<(), purlin::Error>(())
    /// ```
    pub fn set_buffer_error(&self, index: usize, error: Error) -> Result<(), Error> {
        self.slot(index)?.fail(index, error)
    }

    /// Notes something for debugging; the same key again replaces it.
    pub fn add_transfer_metadata(&self, key: impl Into<String>, value: impl Into<String>) {
        self.metadata.lock().insert(key.into(), value.into());
    }

    /// What was noted, by key.
    #[must_use]
    pub fn transfer_metadata(&self) -> Vec<(String, String)> {
        self.metadata.lock().iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// Happens when all buffers are over: ready, or failed; then it fails with the error of the first of those by
    /// index.
    #[must_use]
    pub fn ready_event(&self) -> Event {
        let events: Vec<Event> = self.slots.iter().map(|slot| slot.ready_event()).collect();
        purlin_async::event::when_all(&events)
    }

    fn slot(&self, index: usize) -> StatusOr<&Arc<Slot>> {
        self.slots.get(index).ok_or_else(|| {
            let count = self.slots.len();
            Error::invalid_argument(format!("there is no buffer {index}: the transfer has {count}, from 0"))
        })
    }
}

impl Drop for AsyncHostToDeviceTransferManager {
    fn drop(&mut self) {
        for slot in &self.slots {
            slot.abandon();
        }
    }
}

impl fmt::Debug for AsyncHostToDeviceTransferManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, metadata) = (self.buffer_count(), self.transfer_metadata());
        write!(f, "AsyncHostToDeviceTransferManager({count} buffers in {}, {metadata:?})", self.memory_space)
    }
}
