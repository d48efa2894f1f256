//! Arrays to the memory of the host.

#![allow(unsafe_code, reason = "host memory is written by address")]

use std::panic::Location;
use std::sync::Arc;

use super::array_source::{no_staging, staging};
use super::{Buffer, UsageHold};
use crate::backend::{HostDestination, Operation};
use crate::raw_buffer::CopyOrder;
use purlin_array::dtype::Element;
use purlin_array::shape::Shape;
use purlin_array::strided::{HostArray, StridedPlan};
use purlin_async::event::{Event, EventPromise};
use purlin_async::future::Future;
use purlin_base::fault::{self, Site};
use purlin_base::label::Label;
use purlin_base::status::{Error, SourceLocation, StatusOr, called_from};

/// Memory of the host that a copy is to write, as it travels from the code that finds it: a pointer that any thread may
/// use.
///
/// ```
/// use purlin::{Buffer, HostAddress, Promise};
/// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
/// # let space = client.devices()[0].default_memory_space();
///
/// let (buffer, mut room) = (Buffer::from_slice(&[1_u8, 2, 3, 4], &[4], &space)?, [0_u8; 2]);
/// let address = Promise::new(c"room");
/// // SAFETY: `room` has two bytes, and no other code uses them until the event.
/// let copied = unsafe { buffer.copy_raw_to_host_when(&address.future(), 1, 2) };
/// address.set(Ok(HostAddress(room.as_mut_ptr()))).unwrap();
/// copied.wait()?;
/// assert_eq!(room, [2, 3]);
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct HostAddress(pub *mut u8);

// SAFETY: a number until a thread writes there, which copy_raw_to_host_when's caller promises to be sound on any
// thread.
unsafe impl Send for HostAddress {}
// SAFETY: as above.
unsafe impl Sync for HostAddress {}

impl Buffer {
    /// Copies the whole array, dense and row-major, to `destination` once it is ready. Blocks only while the buffer is
    /// being donated.
    ///
    /// The event fails with `InvalidArgument` (`size_bytes != shape().host_size_bytes()`, both named; null
    /// `destination` with `size_bytes > 0`; the buffer is gone), with the buffer's own error if it never became ready,
    /// or as [`RawBuffer::copy_to_host`](crate::RawBuffer::copy_to_host).
    ///
    /// # Safety
    /// Until the event is terminal, any thread may write `size_bytes` bytes at `destination` and nothing else touches
    /// them.
    ///
    /// # Examples
    /// ```
    /// use purlin::Buffer;
    /// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
    /// # let space = client.devices()[0].default_memory_space();
    ///
    /// let (buffer, mut room) = (Buffer::from_slice(&[1_u8, 2, 3, 4], &[4], &space)?, [0_u8; 4]);
    /// // SAFETY: `room` has four bytes, and no other code uses them until the event.
    /// unsafe { buffer.copy_to_host(room.as_mut_ptr(), 4) }.wait()?;
    /// assert_eq!(room, [1, 2, 3, 4]);
    /// # Ok::<(), purlin::Error>(())
    /// ```
    #[track_caller]
    pub unsafe fn copy_to_host(&self, destination: *mut u8, size_bytes: usize) -> Event {
        let shape = &self.0.shape;
        if size_bytes != shape.host_size_bytes() {
            return Event::from_error(Error::invalid_argument(format!(
                "{shape} is {} bytes, but {size_bytes} were given",
                shape.host_size_bytes()
            )));
        }
        let is_plain = self.0.layout.is_none() && !shape.dtype().is_sub_byte() && !shape.is_dynamic();
        if is_plain && !(destination.is_null() && size_bytes > 0) {
            // SAFETY: the caller's promise; the elements stand on the device as they are to stand on the host, first of
            // all.
            return unsafe { self.copy_raw_to_host(destination, 0, size_bytes) };
        }
        match HostArray::new(shape, None) {
            // SAFETY: the caller's promise; a dense array is `size_bytes` bytes.
            Ok(array) => unsafe { self.copy_to_host_array(destination, &array) },
            Err(error) => Event::from_error(error),
        }
    }

    /// Copies the array to where `array` says that its elements are, the first at `destination`, once it is ready: any
    /// strides that do not overlap. Blocks only while the buffer is being donated.
    ///
    /// The event fails with `InvalidArgument` (another shape than this one's; strides by which elements overlap; null
    /// `destination` with elements; the buffer is gone), with the buffer's own error if it never became ready, or as
    /// [`RawBuffer::copy_to_host`](crate::RawBuffer::copy_to_host).
    ///
    /// # Safety
    /// Until the event is terminal, any thread may write the bytes of `array.extent()` from `destination` that are
    /// elements, and nothing else touches them.
    #[track_caller]
    pub unsafe fn copy_to_host_array(&self, destination: *mut u8, array: &HostArray) -> Event {
        let order = CopyOrder {
            dependencies: std::slice::from_ref(&self.0.ready),
            caller_waits: false,
            location: Location::caller(),
        };
        // SAFETY: the caller's promise.
        unsafe { self.read(destination, array, order) }
    }

    /// Copies `size_bytes` bytes, as they stand on the device, at `offset_bytes` to `destination`, once the array is
    /// ready. Blocks only while the buffer is being donated.
    ///
    /// The event fails with `OutOfRange`, naming the numbers, unless `offset_bytes + size_bytes <= self.size_bytes()`;
    /// otherwise as [`copy_to_host`](Self::copy_to_host).
    ///
    /// # Safety
    /// As [`copy_to_host`](Self::copy_to_host).
    #[track_caller]
    pub unsafe fn copy_raw_to_host(&self, destination: *mut u8, offset_bytes: usize, size_bytes: usize) -> Event {
        let hold = match self.usage_hold() {
            Ok(hold) => hold,
            Err(error) => return Event::from_error(error),
        };
        let ready = std::slice::from_ref(&self.0.ready);
        // SAFETY: the caller's promise; the array does not change once it is ready.
        let copied = unsafe { hold.memory().copy_to_host(destination, offset_bytes, size_bytes, ready) };
        hold.release_after_operation(&copied);
        copied
    }

    /// As [`copy_raw_to_host`](Self::copy_raw_to_host), to an address that is known later; the buffer is in use until
    /// the event is terminal. If `destination` fails, or the client ends first, nothing is copied and the event fails
    /// with that error.
    ///
    /// # Safety
    /// From when `destination` has its address until the event is terminal, any thread may write `size_bytes` bytes
    /// there, and nothing else touches them.
    #[track_caller]
    pub unsafe fn copy_raw_to_host_when(
        &self,
        destination: &Future<HostAddress>,
        offset_bytes: usize,
        size_bytes: usize,
    ) -> Event {
        let hold = match self.usage_hold() {
            Ok(hold) => hold,
            Err(error) => return Event::from_error(error),
        };
        let part = match hold.memory().slice(offset_bytes, size_bytes) {
            Ok(part) => part,
            Err(error) => return Event::from_error(error),
        };
        let space = &self.0.memory_space;
        let arrived = match space.until_end(&destination.ready_event(), Label::new(c"read of a buffer")) {
            Ok(arrived) => arrived,
            Err(error) => return Event::from_error(error),
        };
        let (promise, ready) = (EventPromise::guarding(c"copy"), self.ready_event());
        promise.waits_for(&arrived);
        promise.lends_throughout();
        let copied = promise.event();
        hold.release_after_operation(&copied);
        let (destination, place) = (destination.clone(), SourceLocation::of_call());
        arrived.on_ready(move |outcome| {
            let copied = match destination.get().filter(|_| outcome.is_ok()) {
                Some(&HostAddress(to)) => {
                    // SAFETY: the caller's promise; the array does not change once it is ready.
                    let copy = || unsafe { part.copy_to_host(to, 0, part.size_bytes(), &[ready]) };
                    called_from(place, copy)
                }
                None => outcome.clone().map_or_else(Event::from_error, |()| Event::ready()),
            };
            // First, so that the memory is free when the event says so.
            drop(part);
            promise.forward(&copied);
        });
        copied
    }

    /// Waits for the array and returns its elements in row-major order. Blocks.
    ///
    /// # Errors
    /// `InvalidArgument`, naming both types, unless `T::DTYPE == self.dtype()`; `ResourceExhausted`: no host memory;
    /// otherwise as [`copy_to_host`](Self::copy_to_host).
    ///
    /// # Examples
    /// ```
    /// use purlin::{Buffer, StatusCode};
    /// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
    /// # let space = client.devices()[0].default_memory_space();
    ///
    /// let buffer = Buffer::from_slice(&[1.5_f64, 2.5], &[2], &space)?;
    /// assert_eq!(buffer.to_vec::<f64>()?, [1.5, 2.5]);
    /// assert_eq!(buffer.to_vec::<i32>().unwrap_err().code(), StatusCode::InvalidArgument);
    /// # Ok::<(), purlin::Error>(())
    /// ```
    #[track_caller]
    pub fn to_vec<T: Element>(&self) -> StatusOr<Vec<T>> {
        let shape = &self.0.shape;
        if T::DTYPE != self.dtype() {
            return Err(Error::invalid_argument(format!("the elements of {shape} cannot be read as {}", T::DTYPE)));
        }
        let count = shape.element_count() as usize;
        let array = HostArray::new(shape, None)?;
        fault::point(Site::Collect)?;
        let mut values = Vec::<T>::new();
        values.try_reserve_exact(count).map_err(|_| no_staging(shape.host_size_bytes()))?;
        let hold = self.usage_hold()?;
        // Waiting here rather than in a task of the runner: this thread has nothing better to do.
        self.0.ready.wait_unlent()?;
        let order = CopyOrder { dependencies: &[], caller_waits: true, location: Location::caller() };
        // SAFETY: the vector has room for `count` elements, which is as many bytes as the array has; it stays here,
        // untouched, until the wait below has seen the event terminal. The array is ready and does not change any more.
        let copied = unsafe { read(&hold, shape, &array, values.as_mut_ptr().cast(), order) };
        copied.wait_uninterruptible()?;
        // SAFETY: the copy has written all `count` elements, and every bit pattern is a value of an Element.
        unsafe { values.set_len(count) };
        Ok(values)
    }

    /// The actual dimensions: `dims()` of a static shape, else what the array says once it is ready. Blocks until then.
    ///
    /// # Errors
    /// The buffer's own, if it never becomes ready; `InvalidArgument`: it is gone; `DataLoss`, naming them: sizes that
    /// are no dimensions of this shape.
    #[track_caller]
    pub fn logical_dims(&self) -> StatusOr<Vec<i64>> {
        let shape = &self.0.shape;
        if !shape.is_dynamic() {
            return Ok(shape.dims().to_vec());
        }
        self.0.ready.check_wait()?;
        let mut sizes = vec![0_i32; shape.rank()];
        // SAFETY: the vector is as long as the sizes behind the elements, and stays here until the wait.
        let read = unsafe {
            self.copy_raw_to_host(sizes.as_mut_ptr().cast(), shape.size_bytes(), size_of_val(sizes.as_slice()))
        };
        read.wait_uninterruptible()?;
        let sizes: Vec<i64> = sizes.into_iter().map(i64::from).collect();
        let fits = |axis: usize| match shape.dynamic_dimension(axis) {
            true => (0..=shape.dims()[axis]).contains(&sizes[axis]),
            false => sizes[axis] == shape.dims()[axis],
        };
        if !(0..shape.rank()).all(fits) {
            return Err(Error::data_loss(format!("an array of shape {shape} says that its dimensions are {sizes:?}")));
        }
        Ok(sizes)
    }

    /// # Safety
    /// As [`copy_to_host_array`](Self::copy_to_host_array); `order` has the array's readiness, or that has been seen.
    unsafe fn read(&self, destination: *mut u8, array: &HostArray, order: CopyOrder<'_>) -> Event {
        let checked = self.check(destination.is_null(), array).and_then(|()| self.usage_hold());
        let hold = match checked {
            Ok(hold) => hold,
            Err(error) => return Event::from_error(error),
        };
        // SAFETY: the caller's promise.
        let copied = unsafe { read(&hold, &self.0.shape, array, destination, order) };
        hold.release_after_operation(&copied);
        copied
    }

    fn check(&self, is_null: bool, array: &HostArray) -> Result<(), Error> {
        let shape = &self.0.shape;
        if array.shape() != shape {
            return Err(Error::invalid_argument(format!("{shape} cannot be read as {}", array.shape())));
        }
        if is_null && shape.element_count() > 0 {
            return Err(Error::invalid_argument(format!(
                "the host pointer for the {} bytes of {shape} is null",
                shape.host_size_bytes()
            )));
        }
        array.check_writable()
    }
}

/// Starts to copy the array that is held to `destination`.
///
/// # Safety
/// As [`Buffer::copy_to_host_array`], with `array` of that shape and writable; `order` has the array's readiness, or
/// that has been seen.
unsafe fn read(
    hold: &UsageHold,
    shape: &Shape,
    array: &HostArray,
    destination: *mut u8,
    order: CopyOrder<'_>,
) -> Event {
    let (memory, size_bytes) = (hold.memory(), shape.size_bytes());
    if size_bytes == 0 || hold.is_stored_as(array) {
        // SAFETY: the caller's promise; dense bytes begin at the first element.
        return unsafe { memory.copy_to_host_ordered(destination, 0, size_bytes, order) };
    }
    let (memory, layout) = (memory.clone(), hold.layout());
    let plan = match StridedPlan::new(array, &layout) {
        Ok(plan) => plan,
        Err(error) => return Event::from_error(error),
    };
    // SAFETY: the caller's promise, of all elements of the plan.
    let to = unsafe { HostDestination::new(destination) };
    if memory.space().properties().has_strided_work() {
        return memory.run(|| Operation::scatter(memory.whole_range(), plan, to), order);
    }
    let mut staged = match staging(size_bytes) {
        Ok(staged) => staged,
        Err(error) => return Event::from_error(error),
    };
    let block = staged.as_mut_ptr();
    // SAFETY: the block lives until the copy is over: the waiter below keeps it, and nothing else touches it before.
    let copied = unsafe { memory.copy_to_host_ordered(block, 0, size_bytes, order) };
    let staged = Arc::new(staged);
    let kept = Arc::clone(&staged);
    copied.on_ready(move |_outcome| drop(kept));
    let spread = move || {
        // SAFETY: the caller's promise; the copy into the block is over.
        unsafe { plan.scatter(staged.as_ptr(), to.address(), plan.elements()) };
        Ok(())
    };
    let spread = Operation::call(c"copy", [], size_bytes, spread);
    memory.space().instance().run(order.location, spread, &[copied], false, None)
}
