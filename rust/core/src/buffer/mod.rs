//! An array on a device: a shape, bytes, and an event that says when they are there.
//!
//! The shape never changes, and the bytes do not once the buffer is ready. Clones refer to the same array, and
//! [`Buffer::delete`] gives its memory up through all of them (`state.rs` has the states). Everything here is any
//! thread's to call; only [`Buffer::to_vec`] and a copy from the host "only during call" block.

#![allow(unsafe_code, reason = "copies read and write host memory by address")]

mod state;

use std::fmt;
use std::sync::Arc;

use self::state::BufferState;
use crate::device::{Device, MemorySpace};
use crate::dtype::{DType, Element};
use crate::event::Event;
use crate::raw_buffer::{CopyOrder, RawBuffer};
use crate::shape::Shape;
use crate::status::{Status, StatusOr};

/// How long the host memory given to [`Buffer::from_host`] stays readable and unchanged. PJRT's numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(i32)]
pub enum HostBufferSemantics {
    /// Only until the call returns: the bytes are copied before that.
    #[default]
    ImmutableOnlyDuringCall = 0,
    /// Until the buffer's ready event: the copy may run behind.
    ImmutableUntilTransferCompletes = 1,
}

/// A reference to an array on a device; it keeps the client alive, and the memory until [`delete`](Self::delete).
#[derive(Clone)]
pub struct Buffer(Arc<Array>);

struct Array {
    shape: Shape,
    memory_space: MemorySpace,
    ready: Event,
    state: BufferState,
}

impl Buffer {
    /// Copies a dense row-major array of `size_bytes` bytes from the host into `memory_space`. Blocks for the copy under
    /// [`HostBufferSemantics::ImmutableOnlyDuringCall`], never otherwise.
    ///
    /// # Errors
    /// `InvalidArgument`, naming the values: a negative dimension, a product that overflows,
    /// `size_bytes != product(dims) * dtype.byte_width()`, null `data` with `size_bytes > 0`. `ResourceExhausted`: no
    /// memory. When it blocks, also what the copy failed with.
    ///
    /// # Safety
    /// For as long as `semantics` says, any thread may read `size_bytes` bytes at `data` and nobody writes them.
    pub unsafe fn from_host(
        data: *const u8,
        size_bytes: usize,
        dtype: DType,
        dims: &[i64],
        memory_space: &MemorySpace,
        semantics: HostBufferSemantics,
    ) -> StatusOr<Self> {
        let shape = Shape::new(dtype, dims)?;
        check_size(&shape, size_bytes)?;
        check_pointer(&shape, data.is_null())?;
        let memory = RawBuffer::allocate(memory_space, size_bytes)?;
        let caller_waits = semantics == HostBufferSemantics::ImmutableOnlyDuringCall;
        let order = CopyOrder { dependencies: &[], caller_waits };
        // SAFETY: the caller keeps `data` readable for as long as `semantics` says, and either that is until the event,
        // or we wait for the event below. The memory is new: nobody else has it.
        let copied = unsafe { memory.copy_from_host_ordered(data, 0, size_bytes, order) };
        if caller_waits {
            copied.wait()?;
        }
        Ok(Self::new(shape, memory, copied))
    }

    /// Copies `values` into `memory_space`, as the array of shape `dims`. Blocks for the copy.
    ///
    /// # Errors
    /// As [`from_host`](Self::from_host).
    pub fn from_slice<T: Element>(values: &[T], dims: &[i64], memory_space: &MemorySpace) -> StatusOr<Self> {
        let semantics = HostBufferSemantics::ImmutableOnlyDuringCall;
        // SAFETY: the slice is borrowed until the call returns, and the semantics ask for no longer.
        unsafe { Self::from_host(values.as_ptr().cast(), size_of_val(values), T::DTYPE, dims, memory_space, semantics) }
    }

    fn new(shape: Shape, memory: RawBuffer, ready: Event) -> Self {
        let memory_space = memory.memory_space();
        Self(Arc::new(Array { shape, memory_space, ready, state: BufferState::live(memory) }))
    }

    /// Element type.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.0.shape.dtype()
    }

    /// Dimensions, outermost first; none for a scalar.
    #[must_use]
    pub fn dims(&self) -> &[i64] {
        self.0.shape.dims()
    }

    /// Element type and dimensions.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.0.shape
    }

    /// `product(dims) * dtype.byte_width()`.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.0.shape.size_bytes()
    }

    /// Where it is.
    #[must_use]
    pub fn memory_space(&self) -> MemorySpace {
        self.0.memory_space.clone()
    }

    /// The device of [`memory_space`](Self::memory_space).
    #[must_use]
    pub fn device(&self) -> Device {
        self.0.memory_space.device()
    }

    /// Happens when the bytes are there; fails with why they will never be. Stays valid after [`delete`](Self::delete).
    #[must_use]
    pub fn ready_event(&self) -> Event {
        self.0.ready.clone()
    }

    /// Copies the whole array to `destination` once it is ready.
    ///
    /// The event fails with `InvalidArgument` (`size_bytes != self.size_bytes()`, both named; null `destination` with
    /// `size_bytes > 0`; deleted), with the buffer's own error if it never became ready, or as
    /// [`RawBuffer::copy_to_host`].
    ///
    /// # Safety
    /// Until the event is terminal, any thread may write `size_bytes` bytes at `destination` and nobody else touches
    /// them.
    pub unsafe fn copy_to_host(&self, destination: *mut u8, size_bytes: usize) -> Event {
        let checked = check_size(&self.0.shape, size_bytes)
            .and_then(|()| check_pointer(&self.0.shape, destination.is_null()))
            .and_then(|()| self.0.state.memory());
        let source = match checked {
            Ok(source) => source,
            Err(error) => return Event::from_error(error),
        };
        // SAFETY: the caller keeps `destination` writable and untouched until the event; the array does not change once
        // it is ready, as in copy_to_memory_space().
        unsafe { source.copy_to_host(destination, 0, size_bytes, std::slice::from_ref(&self.0.ready)) }
    }

    /// Waits for the array and returns its elements in row-major order. Blocks.
    ///
    /// # Errors
    /// `InvalidArgument`, naming both types, unless `T::DTYPE == self.dtype()`; `ResourceExhausted`: no host memory;
    /// otherwise as [`copy_to_host`](Self::copy_to_host).
    pub fn to_vec<T: Element>(&self) -> StatusOr<Vec<T>> {
        if T::DTYPE != self.dtype() {
            return Err(Status::invalid_argument(format!(
                "the elements of {} cannot be read as {}",
                self.0.shape,
                T::DTYPE
            )));
        }
        let source = self.0.state.memory()?;
        let count = self.0.shape.element_count();
        let mut values = Vec::<T>::new();
        values.try_reserve_exact(count).map_err(|_| {
            let size_bytes = self.size_bytes();
            Status::resource_exhausted(format!("no host memory for the {size_bytes} bytes of {}", self.0.shape))
        })?;
        // Waiting here rather than in a task of the runner: this thread has nothing better to do.
        self.0.ready.wait()?;
        let order = CopyOrder { dependencies: &[], caller_waits: true };
        // SAFETY: the vector has room for `count` elements, which is as many bytes as the array has; it stays here,
        // untouched, until the wait below has seen the event terminal. The array is ready and does not change any more.
        let copied = unsafe { source.copy_to_host_ordered(values.as_mut_ptr().cast(), 0, self.size_bytes(), order) };
        copied.wait()?;
        // SAFETY: the copy has written all `count` elements, and every bit pattern is a value of an Element.
        unsafe { values.set_len(count) };
        Ok(values)
    }

    /// A new buffer in the default memory space of `device` that becomes ready after this one and the copy, or fails with
    /// this one's error. Never blocks.
    ///
    /// # Errors
    /// As [`copy_to_memory_space`](Self::copy_to_memory_space).
    pub fn copy_to_device(&self, device: &Device) -> StatusOr<Self> {
        self.copy_to_memory_space(&device.default_memory_space())
    }

    /// A new buffer in `memory_space` that becomes ready after this one and the copy, or fails with this one's error.
    /// Never blocks.
    ///
    /// # Errors
    /// `InvalidArgument`: deleted, or another client's space. `ResourceExhausted`: no memory there.
    pub fn copy_to_memory_space(&self, memory_space: &MemorySpace) -> StatusOr<Self> {
        let source = self.0.state.memory()?;
        if !memory_space.same_client(&self.0.memory_space) {
            return Err(Status::invalid_argument(format!("cannot copy {self:?} to {memory_space} of another client")));
        }
        let destination = RawBuffer::allocate(memory_space, self.size_bytes())?;
        // SAFETY: the destination is new, nobody else has it; the source does not change once it is ready, and whoever
        // writes through a raw alias of it has promised (RawBuffer) that nobody reads meanwhile.
        let copied = unsafe { source.copy_to(&destination, std::slice::from_ref(&self.0.ready)) };
        Ok(Self::new(self.0.shape.clone(), destination, copied))
    }

    /// The bytes themselves, for those who compute on them: read them only after [`ready_event`](Self::ready_event).
    ///
    /// # Errors
    /// `InvalidArgument`: deleted.
    pub fn raw_alias(&self) -> StatusOr<RawBuffer> {
        self.0.state.memory()
    }

    /// Gives the memory up, through every reference; work in flight keeps what it needs. Idempotent; never blocks.
    pub fn delete(&self) {
        self.0.state.delete();
    }

    /// True after [`delete`](Self::delete).
    #[must_use]
    pub fn is_deleted(&self) -> bool {
        self.0.state.is_deleted()
    }
}

/// `Buffer(f32[2,3] in host:0/device)`
impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} in {})", self.0.shape, self.0.memory_space)
    }
}

fn check_size(shape: &Shape, size_bytes: usize) -> Result<(), Status> {
    if size_bytes == shape.size_bytes() {
        return Ok(());
    }
    Err(Status::invalid_argument(format!("{shape} is {} bytes, but {size_bytes} were given", shape.size_bytes())))
}

fn check_pointer(shape: &Shape, null: bool) -> Result<(), Status> {
    if null && shape.size_bytes() > 0 {
        return Err(Status::invalid_argument(format!(
            "the host pointer for the {} bytes of {shape} is null",
            shape.size_bytes()
        )));
    }
    Ok(())
}
