//! Arrays from the memory of the host: copied, or used where they are.

#![allow(unsafe_code, reason = "host memory is read by address")]

use super::Buffer;
use super::array_source::ArraySource;
use super::frozen::Frozen;
use crate::memory::{AllocOptions, MemorySpace, Owner, Tag};
use crate::raw_buffer::{Mutability, RawBuffer};
use purlin_array::dtype::{DType, Element};
use purlin_array::layout::Layout;
use purlin_array::shape::Shape;
use purlin_array::strided::HostArray;
use purlin_async::event::{Event, EventPromise};
use purlin_base::label::Label;
use purlin_base::panics::contained;
use purlin_base::status::{Error, SourceLocation, StatusOr};
use std::fmt;
use std::ptr::NonNull;

/// How long the host memory given to [`Buffer::from_host`] stays readable and unchanged. PJRT's numbers.
///
/// ```
/// use purlin::{Buffer, DType, HostBufferSemantics};
/// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
/// # let space = client.devices()[0].default_memory_space();
///
/// let values = [1_u8, 2, 3, 4];
/// let semantics = HostBufferSemantics::ImmutableOnlyDuringCall;
/// // SAFETY: the four bytes are read during this call only.
/// let buffer = unsafe { Buffer::from_host(values.as_ptr(), 4, DType::U8, &[4], &space, semantics)? };
/// assert_eq!(buffer.to_vec::<u8>()?, values);
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(i32)]
#[non_exhaustive]
pub enum HostBufferSemantics {
    /// Only until the call returns: the bytes are copied before that.
    #[default]
    ImmutableOnlyDuringCall = 0,
    /// Until `on_done`, or the buffer's ready event: the copy may run behind.
    ImmutableUntilTransferCompletes = 1,
    /// Until `on_done`, which is called when the buffer's memory is no longer used: it may be the host's. Where it
    /// cannot be (strides, layout, packed types, alignment, the backend), it is copied as with
    /// `ImmutableUntilTransferCompletes`.
    ImmutableZeroCopy = 2,
    /// As `ImmutableZeroCopy`, and the buffer's users may write the memory.
    MutableZeroCopy = 3,
}

/// Whether a buffer uses the memory that it was made from.
///
/// ```
/// use purlin::{Aliasing, Buffer, DType, FromHostOptions, HostArray, Shape};
/// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
/// # let space = client.devices()[0].default_memory_space();
///
/// let values = [1.0_f32, 2.0];
/// let array = HostArray::new(&Shape::new(DType::F32, &[2])?, None)?;
/// // SAFETY: the default semantics read `values` during the call only.
/// let (_buffer, aliasing) =
///     unsafe { Buffer::from_host_array(values.as_ptr().cast(), &array, &space, FromHostOptions::default())? };
/// assert_eq!(aliasing, Aliasing::Copied);
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aliasing {
    /// Its memory is the host's.
    Aliased,
    /// It has its own.
    Copied,
}

/// Called exactly once, when the host memory is no longer read, with how that went: also when the call that got it
/// fails.
///
/// ```
/// use std::sync::mpsc;
///
/// use purlin::{Buffer, DType, FromHostOptions, HostArray, OnDone, Shape};
/// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
/// # let space = client.devices()[0].default_memory_space();
///
/// let (sender, receiver) = mpsc::channel();
/// let on_done: OnDone = Box::new(move |outcome| sender.send(outcome.is_ok()).unwrap());
/// let (values, array) = ([1_u8, 2], HostArray::new(&Shape::new(DType::U8, &[2])?, None)?);
/// let options = FromHostOptions { on_done: Some(on_done), ..Default::default() };
/// // SAFETY: the default semantics read `values` during the call only.
/// let (buffer, _) = unsafe { Buffer::from_host_array(values.as_ptr(), &array, &space, options)? };
/// buffer.ready_event().wait()?;
/// assert_eq!(receiver.recv(), Ok(true));
/// # Ok::<(), purlin::Error>(())
/// ```
pub type OnDone = Box<dyn FnOnce(Result<(), Error>) + Send + Sync>;

/// How an array is taken from the host.
///
/// ```
/// use purlin::{Buffer, DType, FromHostOptions, HostArray, Layout, Shape};
/// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
/// # let space = client.devices()[0].default_memory_space();
///
/// let (rows, shape) = ([1_u8, 2, 3, 4, 5, 6], Shape::new(DType::U8, &[2, 3])?);
/// let columns = FromHostOptions { layout: Some(Layout::new(&[0, 1])?), ..Default::default() };
/// // SAFETY: the default semantics read `rows` during the call only.
/// let (buffer, _) =
///     unsafe { Buffer::from_host_array(rows.as_ptr(), &HostArray::new(&shape, None)?, &space, columns)? };
/// assert_eq!(buffer.layout(), Layout::new(&[0, 1])?);
/// assert_eq!(buffer.to_vec::<u8>()?, rows, "back in row-major order");
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Default)]
pub struct FromHostOptions {
    /// How long the host memory stays as it is.
    pub semantics: HostBufferSemantics,
    /// In which order the elements stand on the device; `None`: row-major.
    pub layout: Option<Layout>,
    /// How the memory on the device is asked for, and what it is for.
    pub alloc: AllocOptions,
    /// Called before the buffer is ready if the bytes are copied, or when its memory is released if they are not; on
    /// the caller's thread, or on that which is the last to use the host memory.
    pub on_done: Option<OnDone>,
}

impl fmt::Debug for FromHostOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FromHostOptions")
            .field("semantics", &self.semantics)
            .field("layout", &self.layout)
            .field("alloc", &self.alloc)
            .finish_non_exhaustive()
    }
}

impl Buffer {
    /// Copies a dense row-major array of `size_bytes` bytes from the host into `memory_space`. Blocks for the copy
    /// under [`HostBufferSemantics::ImmutableOnlyDuringCall`], never otherwise.
    ///
    /// # Errors
    /// As [`from_host_array`](Self::from_host_array); also `InvalidArgument`, naming the values: a negative dimension,
    /// a product that overflows, `size_bytes != shape.host_size_bytes()`.
    ///
    /// # Safety
    /// For as long as `semantics` says, any thread may read `size_bytes` bytes at `data` and nothing writes them.
    #[track_caller]
    pub unsafe fn from_host(
        data: *const u8,
        size_bytes: usize,
        dtype: DType,
        dims: &[i64],
        memory_space: &MemorySpace,
        semantics: HostBufferSemantics,
    ) -> StatusOr<Self> {
        // By reference, so that it stays where it was made.
        let shape = &Shape::new(dtype, dims);
        let shape = shape.as_ref().map_err(Error::clone)?;
        if size_bytes != shape.host_size_bytes() {
            return Err(Error::invalid_argument(format!(
                "{shape} is {} bytes, but {size_bytes} were given",
                shape.host_size_bytes()
            )));
        }
        let (alloc, nobody) = (AllocOptions::default(), None::<OnDone>);
        // SAFETY: the caller's promise.
        Ok(unsafe { Self::from_host_dense(data, shape, memory_space, semantics, &alloc, nobody) }?.0)
    }

    /// The dense row-major array of `shape` at `data`, as [`from_host_array`](Self::from_host_array) makes it. Of its
    /// own, because small arrays are made often: it needs no strides, and `on_done`, which is
    /// [`FromHostOptions::on_done`], no box.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Safety
    /// As there.
    #[doc(hidden)]
    #[track_caller]
    pub unsafe fn from_host_dense<D: FnOnce(Result<(), Error>) + Send + Sync + 'static>(
        data: *const u8,
        shape: &Shape,
        memory_space: &MemorySpace,
        semantics: HostBufferSemantics,
        alloc: &AllocOptions,
        on_done: Option<D>,
    ) -> StatusOr<(Self, Aliasing)> {
        let (place, done) = (SourceLocation::of_call(), Done::new(on_done));
        let array;
        let source = if shape.dtype().is_sub_byte() {
            array = match HostArray::new(shape, None) {
                Ok(array) => array,
                Err(error) => return Err(done.fail(error)),
            };
            ArraySource::new(data, &array, None)
        } else {
            ArraySource::dense(data, shape)
        };
        match source {
            // SAFETY: the caller's promise.
            Ok(source) => unsafe { source.into_memory(memory_space, semantics, alloc, done, place) },
            Err(error) => Err(done.fail(error)),
        }
    }

    /// Copies `values` into `memory_space`, as the array of shape `dims`. Blocks for the copy.
    ///
    /// # Errors
    /// As [`from_host`](Self::from_host).
    ///
    /// # Examples
    /// ```
    /// use purlin::{Buffer, StatusCode};
    /// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
    /// # let space = client.devices()[0].default_memory_space();
    ///
    /// let buffer = Buffer::from_slice(&[1_i64, 2, 3, 4], &[2, 2], &space)?;
    /// assert_eq!(buffer.to_vec::<i64>()?, [1, 2, 3, 4]);
    /// let error = Buffer::from_slice(&[1_i64, 2, 3], &[2, 2], &space).unwrap_err();
    /// assert_eq!(error.code(), StatusCode::InvalidArgument);
    /// # Ok::<(), purlin::Error>(())
    /// ```
    #[track_caller]
    pub fn from_slice<T: Element>(values: &[T], dims: &[i64], memory_space: &MemorySpace) -> StatusOr<Self> {
        let semantics = HostBufferSemantics::ImmutableOnlyDuringCall;
        // SAFETY: the slice is borrowed until the call returns, and the semantics ask for no longer.
        unsafe { Self::from_host(values.as_ptr().cast(), size_of_val(values), T::DTYPE, dims, memory_space, semantics) }
    }

    /// The array that `array` describes and whose element `[0, 0, ...]` is at `data`, in `memory_space`; and whether
    /// its memory is the host's. Copies before it returns under [`HostBufferSemantics::ImmutableOnlyDuringCall`], never
    /// blocks otherwise.
    ///
    /// # Errors
    /// `on_done` is then called with the same error before this returns. `InvalidArgument`: null `data` with elements,
    /// a layout of another rank. As [`RawBuffer::allocate_with`]. When it blocks, also what the copy failed with.
    ///
    /// # Safety
    /// Until `options.on_done` is called (without it, for as long as `options.semantics` says), any thread may read the
    /// bytes of `array.extent()` from `data` that are elements, and nothing writes them; under `MutableZeroCopy`, the
    /// buffer's users may also write them, and other code reads them only as ordered by events.
    ///
    /// # Examples
    /// ```
    /// use purlin::{Buffer, DType, FromHostOptions, HostArray, Shape};
    /// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
    /// # let space = client.devices()[0].default_memory_space();
    ///
    /// // The first two columns of a matrix with three.
    /// let matrix = [1_u8, 2, 3, 4, 5, 6];
    /// let array = HostArray::new(&Shape::new(DType::U8, &[2, 2])?, Some(&[3, 1]))?;
    /// // SAFETY: the array's extent is in `matrix`, which is read during the call only.
    /// let (buffer, _) =
    ///     unsafe { Buffer::from_host_array(matrix.as_ptr(), &array, &space, FromHostOptions::default())? };
    /// assert_eq!(buffer.to_vec::<u8>()?, [1, 2, 4, 5]);
    /// # Ok::<(), purlin::Error>(())
    /// ```
    #[track_caller]
    pub unsafe fn from_host_array(
        data: *const u8,
        array: &HostArray,
        memory_space: &MemorySpace,
        options: FromHostOptions,
    ) -> StatusOr<(Self, Aliasing)> {
        let FromHostOptions { semantics, layout, alloc, on_done } = options;
        let (place, done) = (SourceLocation::of_call(), Done::new(on_done));
        let source = match ArraySource::new(data, array, layout.as_ref()) {
            Ok(source) => source,
            Err(error) => return Err(done.fail(error)),
        };
        // SAFETY: the caller's promise.
        unsafe { source.into_memory(memory_space, semantics, &alloc, done, place) }
    }
}

/// The callback to call when host memory is no longer read; if this is dropped, the memory has not been read and will
/// not be.
pub(super) struct Done<D: FnOnce(Result<(), Error>) + Send + Sync + 'static = OnDone>(Option<D>);

impl<D: FnOnce(Result<(), Error>) + Send + Sync + 'static> Done<D> {
    pub(super) fn new(on_done: Option<D>) -> Self {
        Self(on_done)
    }

    pub(super) fn tell(mut self, outcome: Result<(), Error>) {
        if let Some(on_done) = self.0.take() {
            contained("on_done of host memory", Label::default, || on_done(outcome));
        }
    }

    /// `error`, after `done` was called with it.
    pub(super) fn fail(self, error: Error) -> Error {
        self.tell(Err(error.clone()));
        error
    }
}

impl<D: FnOnce(Result<(), Error>) + Send + Sync + 'static> Drop for Done<D> {
    fn drop(&mut self) {
        if self.0.is_some() {
            Self(self.0.take()).tell(Err(Error::cancelled("the transfer from host memory was given up")));
        }
    }
}

/// The host, whose memory a buffer uses.
struct Host<D: FnOnce(Result<(), Error>) + Send + Sync + 'static> {
    done: Done<D>,
    frozen: Option<Box<Frozen>>,
}

impl<D: FnOnce(Result<(), Error>) + Send + Sync + 'static> Owner for Host<D> {
    fn take_back(self) {
        // SAFETY: the memory is the caller's promise until `done` is called, which happens next.
        let outcome = self.frozen.map_or(Ok(()), |frozen| unsafe { frozen.check() });
        self.done.tell(outcome);
    }
}

impl ArraySource<'_> {
    /// Aliases or copies.
    ///
    /// # Safety
    /// As [`Buffer::from_host_array`].
    #[track_caller]
    unsafe fn into_memory<D: FnOnce(Result<(), Error>) + Send + Sync + 'static>(
        self,
        memory_space: &MemorySpace,
        semantics: HostBufferSemantics,
        alloc: &AllocOptions,
        done: Done<D>,
        place: SourceLocation,
    ) -> StatusOr<(Buffer, Aliasing)> {
        let mutability = match semantics {
            HostBufferSemantics::ImmutableZeroCopy => Some(Mutability::Immutable),
            HostBufferSemantics::MutableZeroCopy => Some(Mutability::Mutable),
            _ => None,
        };
        let mut done = done;
        if let Some(mutability) = mutability.filter(|_| self.can_be_aliased(memory_space)) {
            let first = match RawBuffer::check_import(memory_space, self.data.cast_mut(), self.shape().size_bytes()) {
                Ok(first) => first,
                Err(error) => return Err(done.fail(error)),
            };
            // SAFETY: the caller's promise, until `done` is called.
            match unsafe { self.alias(memory_space, first, mutability, done, place) } {
                Ok(memory) => return Ok((self.into_buffer(memory, Event::ready()), Aliasing::Aliased)),
                Err((error, unused)) => {
                    tracing::debug!(target: "purlin", %error, "host memory is copied, as it cannot be imported");
                    done = unused;
                }
            }
        }
        // SAFETY: the caller's promise.
        let buffer = unsafe { self.copy(memory_space, semantics, alloc, done, place) }?;
        Ok((buffer, Aliasing::Copied))
    }

    /// # Errors
    /// Why the backend refuses to import the memory, and `done`, uncalled.
    ///
    /// # Safety
    /// Until `done` is called, the memory is as [`Buffer::from_host_array`] says. `first` is its address.
    unsafe fn alias<D: FnOnce(Result<(), Error>) + Send + Sync + 'static>(
        &self,
        memory_space: &MemorySpace,
        first: NonNull<u8>,
        mutability: Mutability,
        done: Done<D>,
        place: SourceLocation,
    ) -> Result<RawBuffer, (Error, Done<D>)> {
        let frozen = (mutability == Mutability::Immutable).then(|| self.freeze(memory_space, place)).flatten();
        let (size_bytes, host) = (self.shape().size_bytes(), Host { done, frozen });
        let tag = Tag::new(Label::new(c"imported"), place);
        // SAFETY: the caller's promise: until `on_done`, by which the host is notified.
        let imported = unsafe { RawBuffer::import_from(memory_space, first, size_bytes, mutability, Some(host), tag) };
        imported.map_err(|(error, host)| (error, host.map_or(Done::new(None), |host| host.done)))
    }

    /// # Safety
    /// As [`Buffer::from_host_array`].
    #[track_caller]
    unsafe fn copy<D: FnOnce(Result<(), Error>) + Send + Sync + 'static>(
        self,
        memory_space: &MemorySpace,
        semantics: HostBufferSemantics,
        alloc: &AllocOptions,
        done: Done<D>,
        place: SourceLocation,
    ) -> StatusOr<Buffer> {
        let memory = match RawBuffer::allocate_from(memory_space, self.shape().size_bytes(), alloc, place) {
            Ok(memory) => memory,
            Err(error) => return Err(done.fail(error)),
        };
        let caller_waits = semantics == HostBufferSemantics::ImmutableOnlyDuringCall;
        if caller_waits && let Err(error) = memory.allocation_event().check_wait() {
            return Err(done.fail(error));
        }
        let frozen = if caller_waits { None } else { self.freeze(memory_space, place) };
        // SAFETY: the caller's promise. If it ends with the call, we wait below.
        let mut copied = unsafe { self.start(&memory, caller_waits) };
        if caller_waits {
            if let Err(error) = copied.wait_uninterruptible() {
                return Err(done.fail(error));
            }
            done.tell(Ok(()));
        } else if done.0.is_some() || frozen.is_some() {
            copied = finish(&copied, done, frozen);
        }
        Ok(self.into_buffer(memory, copied))
    }

    /// In debug mode, what the memory is now.
    fn freeze(&self, memory_space: &MemorySpace, place: SourceLocation) -> Option<Box<Frozen>> {
        let checked = memory_space.checks_frozen_memory() && self.is_dense;
        // SAFETY: the caller's promise: dense bytes are readable.
        checked.then(|| Box::new(unsafe { Frozen::new(self.data, self.shape(), place) }))
    }
}

/// An event that happens after `copied`, and after every callback that reports that the host memory is no longer read.
fn finish<D: FnOnce(Result<(), Error>) + Send + Sync + 'static>(
    copied: &Event,
    done: Done<D>,
    frozen: Option<Box<Frozen>>,
) -> Event {
    let end = move |outcome: Result<(), Error>| {
        // SAFETY: the memory is the caller's promise until `done` is called, which happens next.
        let frozen = frozen.map_or(Ok(()), |frozen| unsafe { frozen.check() });
        let outcome = outcome.and(frozen);
        done.tell(outcome.clone());
        outcome
    };
    if copied.is_ready() {
        return match end(copied.error().map_or(Ok(()), Err)) {
            Ok(()) => Event::ready(),
            Err(error) => Event::from_error(error),
        };
    }
    let promise = EventPromise::guarding(c"from host");
    promise.waits_for(copied);
    let finished = promise.event();
    copied.on_ready(move |outcome| {
        let outcome = promise.owed_after(|| end(outcome.clone()));
        promise.set(outcome);
    });
    finished
}
