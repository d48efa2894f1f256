//! Buffers that are not made from host memory: of memory that is there, that will be, or that never will.

use std::fmt;

use super::Buffer;
use super::donate::checked_layout;
use super::holds::both;
use crate::memory::{AllocOptions, MemorySpace};
use crate::raw_buffer::{RawBuffer, RawBufferPromise};
use purlin_array::layout::Layout;
use purlin_array::shape::Shape;
use purlin_async::event::raw::OwedBy;
use purlin_async::event::{Event, EventPromise};
use purlin_base::label::Label;
use purlin_base::status::{Error, SourceLocation, StatusOr};

impl Buffer {
    /// An array whose elements have not been written, ready when its memory is there.
    ///
    /// # Errors
    /// `InvalidArgument`: a layout of another rank. Otherwise as [`RawBuffer::allocate_with`].
    ///
    /// # Examples
    /// ```
    /// use purlin::{AllocOptions, Buffer, DType, Shape};
    /// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
    /// # let space = client.devices()[0].default_memory_space();
    ///
    /// let shape = Shape::new(DType::F32, &[4])?;
    /// let options = AllocOptions { label: c"accumulator".into(), ..Default::default() };
    /// let room = Buffer::uninitialized(&shape, None, &space, &options)?;
    /// let filled = Buffer::from_slice(&[0.0_f32; 4], &[4], &space)?.copy_into(&room)?;
    /// assert_eq!(filled.to_vec::<f32>()?, [0.0; 4]);
    /// # Ok::<(), purlin::Error>(())
    /// ```
    #[track_caller]
    pub fn uninitialized(
        shape: &Shape,
        layout: Option<&Layout>,
        memory_space: &MemorySpace,
        options: &AllocOptions,
    ) -> StatusOr<Self> {
        let layout = checked_layout(shape, layout)?;
        let memory = RawBuffer::allocate_with(memory_space, shape.on_device_size_bytes(), options)?;
        let ready = memory.allocation_event();
        Ok(Self::new(|| shape.clone(), layout, memory, ready))
    }

    /// `memory` as an array, ready after `ready` and when the memory is there. It stays at least until `ready`, so the
    /// code that writes it needs no reference.
    ///
    /// # Errors
    /// `InvalidArgument`: `memory.size_bytes() != shape.on_device_size_bytes()`, both named, or a layout of another
    /// rank.
    pub fn from_raw(memory: RawBuffer, shape: &Shape, layout: Option<&Layout>, ready: &Event) -> StatusOr<Self> {
        let layout = checked_layout(shape, layout)?;
        if memory.size_bytes() != shape.on_device_size_bytes() {
            return Err(Error::invalid_argument(format!(
                "{shape} is {} bytes, and cannot be {memory:?}",
                shape.on_device_size_bytes()
            )));
        }
        // Until the event itself, whatever becomes of the client: the memory may be written until then.
        memory.retain_until(ready);
        let defined = memory.space().until_end(ready, Label::new(c"definition of a buffer"))?;
        let defined = both(&memory.allocation_event(), &defined);
        if ready.is_ready() {
            return Ok(Self::new(|| shape.clone(), layout, memory, defined));
        }
        // The next owner of the memory waits for the event itself, too.
        Ok(Self::with_uses(|| shape.clone(), layout, memory, defined, std::iter::once(ready.clone()).collect()))
    }

    /// An array that has failed with `error`, and fails what is made of it; no memory.
    ///
    /// ```
    /// use purlin::{Buffer, DType, Shape, Error};
    /// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
    /// # let space = client.devices()[0].default_memory_space();
    ///
    /// let shape = Shape::new(DType::F32, &[4])?;
    /// let failed = Buffer::error(Error::internal("the kernel was lost"), &shape, &space);
    /// assert_eq!(failed.ready_event().error().unwrap().message(), "the kernel was lost");
    /// # Ok::<(), purlin::Error>(())
    /// ```
    #[must_use]
    #[track_caller]
    pub fn error(error: Error, shape: &Shape, memory_space: &MemorySpace) -> Self {
        Self::without_memory(shape.clone(), None, memory_space.clone(), Event::from_error(error))
    }

    /// A token: no elements; ready after `ready`.
    ///
    /// # Errors
    /// As [`RawBuffer::allocate`].
    #[track_caller]
    pub fn token(memory_space: &MemorySpace, ready: &Event) -> StatusOr<Self> {
        let options = AllocOptions { label: Label::new(c"token"), ..Default::default() };
        Self::from_raw(RawBuffer::allocate_with(memory_space, 0, &options)?, &Shape::token(), None, ready)
    }

    /// An array that is provided later, once, and the promise to do so. It can be used at once: copies and reads wait.
    /// Dropping the promise fails it.
    ///
    /// # Errors
    /// `InvalidArgument`: a layout of another rank.
    #[track_caller]
    pub fn channel(
        shape: &Shape,
        layout: Option<&Layout>,
        memory_space: &MemorySpace,
    ) -> StatusOr<(Self, BufferPromise)> {
        let place = SourceLocation::of_call();
        let layout = checked_layout(shape, layout)?;
        let options = AllocOptions { label: Label::new(c"channel"), ..Default::default() };
        let (memory, provides) = RawBuffer::channel(memory_space, shape.on_device_size_bytes(), &options);
        let promise = EventPromise::owed_by(OwedBy::User, c"buffer", place);
        let ready = memory_space.until_end(&promise.event(), Label::new(c"definition of a buffer"))?;
        // The next owner of the memory, even before it is there, waits for the uses that the source will have had.
        let freed = EventPromise::owed_by(OwedBy::Library, c"uses of what a channel is fulfilled with", place);
        let uses = std::iter::once(freed.event()).collect();
        let buffer = Self::with_uses(|| shape.clone(), layout.clone(), memory, ready, uses);
        Ok((buffer, BufferPromise { shape: shape.clone(), layout, provides, freed, promise }))
    }
}

/// The right and the duty to provide a buffer from [`Buffer::channel`]. Dropping it fails the buffer.
///
/// ```
/// use purlin::{Buffer, DType, Shape};
/// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
/// # let space = client.devices()[0].default_memory_space();
///
/// let (buffer, promise) = Buffer::channel(&Shape::new(DType::S32, &[2])?, None, &space)?;
/// assert!(!buffer.ready_event().is_ready());
/// promise.fulfil(&Buffer::from_slice(&[3_i32, 4], &[2], &space)?).map_err(|(error, _promise)| error)?;
/// assert_eq!(buffer.to_vec::<i32>()?, [3, 4]);
/// # Ok::<(), purlin::Error>(())
/// ```
#[must_use = "dropping it fails the buffer"]
pub struct BufferPromise {
    shape: Shape,
    layout: Option<Box<Layout>>,
    provides: RawBufferPromise,
    freed: EventPromise,
    promise: EventPromise,
}

impl BufferPromise {
    /// Donates `source`, whose memory the buffer gets; it becomes ready, or fails, as `source` does.
    ///
    /// # Errors
    /// With the promise back, and `source` as it was: `InvalidArgument`, another shape, layout or memory space, or the
    /// buffer that is to be provided; otherwise as [`Buffer::donate`].
    #[track_caller]
    #[allow(clippy::result_large_err, reason = "the promise comes back as it was")]
    pub fn fulfil(self, source: &Buffer) -> Result<(), (Error, Self)> {
        if *source.shape() != self.shape || source.0.layout != self.layout {
            let error =
                Error::invalid_argument(format!("{source:?} in layout {} cannot be {}", source.layout(), self.shape));
            return Err((error, self));
        }
        let donation = match source.donate(c"FulfilBuffer") {
            Ok(donation) => donation,
            Err(error) => return Err((error, self)),
        };
        let ready = donation.ready_event();
        let Self { shape, layout, provides, freed, promise } = self;
        if let Err((error, provides)) = provides.fulfil(donation.memory()) {
            return Err((error, Self { shape, layout, provides, freed, promise }));
        }
        freed.forward(&donation.free());
        drop(donation.confirm());
        promise.forward(&ready);
        Ok(())
    }

    /// The buffer has failed with `error`.
    ///
    /// ```
    /// use purlin::{Buffer, DType, Shape, Error};
    /// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
    /// # let space = client.devices()[0].default_memory_space();
    ///
    /// let (buffer, promise) = Buffer::channel(&Shape::new(DType::S32, &[2])?, None, &space)?;
    /// promise.fail(Error::unavailable("the producer is gone"));
    /// assert!(buffer.to_vec::<i32>().unwrap_err().message().contains("the producer is gone"));
    /// # Ok::<(), purlin::Error>(())
    /// ```
    pub fn fail(self, error: Error) {
        self.provides.fail(error.clone());
        self.freed.set_ready();
        self.promise.set_error(error);
    }
}

impl fmt::Debug for BufferPromise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BufferPromise({})", self.shape)
    }
}
