//! An array on a device: a shape, bytes, and an event that says when they are there.
//!
//! The shape never changes, and the bytes do not once the buffer is ready. Clones refer to the same array; deleting,
//! donating or releasing it ends it for all of them (`state.rs` has the states, `holds.rs` the rights). Everything here
//! is any thread's to call; what blocks says so.
//!
//! Files: `create.rs` buffers without bytes from the host; `from_host.rs`, `shards.rs`, `array_source.rs` and
//! `to_host.rs` both ways; `copy.rs` to other spaces, `donate.rs` a buffer that becomes another one, `launched.rs` one
//! that a launch writes.

#![allow(unsafe_code, reason = "a buffer crosses the boundary as a pointer that is counted")]

mod array_source;
mod array_space;
mod copy;
mod create;
mod donate;
mod from_host;
mod frozen;
mod holds;
mod launched;
#[cfg(all(test, loom))]
mod loom_model;
mod shards;
mod state;
#[cfg(all(test, not(purlin_model)))]
mod tests;
mod to_host;

use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use self::array_space::ArraySpace;
use self::state::{BufferState, Ending, Uses};
use crate::device::Device;
use crate::memory::{MemoryBlock, MemorySpace};
use crate::raw_buffer::RawBuffer;
use purlin_array::dtype::DType;
use purlin_array::layout::Layout;
use purlin_array::shape::Shape;
use purlin_async::event::{Event, after_all};
use purlin_base::status::{Error, SourceLocation};
use purlin_base::sync::PinnedArc;

pub(crate) use array_source::ArraySource;
pub use create::BufferPromise;
pub use from_host::{Aliasing, FromHostOptions, HostBufferSemantics, OnDone};
pub use holds::{BorrowedDonationHold, BorrowedUsageHold, DonationHold, ExternalReference, UsageHold};
pub use shards::HostShard;
pub use to_host::HostAddress;

/// A reference to an array on a device; it keeps the client alive, and the memory until the array ends.
///
/// ```
/// use purlin::{Buffer, DType};
/// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
/// # let space = client.devices()[0].default_memory_space();
///
/// let buffer = Buffer::from_slice(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3], &space)?;
/// assert_eq!((buffer.dtype(), buffer.dims(), buffer.size_bytes()), (DType::F32, &[2_i64, 3][..], 24));
/// assert_eq!(format!("{buffer:?}"), "Buffer(f32[2,3] in host:0/device)");
/// buffer.delete();
/// assert!(buffer.is_deleted());
/// # Ok::<(), purlin::Error>(())
/// ```
pub struct Buffer(ManuallyDrop<PinnedArc<Array>>);

impl Clone for Buffer {
    #[inline]
    fn clone(&self) -> Self {
        Self::of(self.array())
    }
}

impl Drop for Buffer {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: it is taken once, here; no weak or uncounted reference to an array is ever made.
        unsafe { PinnedArc::drop_without_weak(ManuallyDrop::take(&mut self.0)) };
    }
}

/// What references to a buffer share; there may be very many, so it is kept small.
pub struct Array {
    shape: Shape,
    /// `None`: row-major.
    layout: Option<Box<Layout>>,
    memory_space: ArraySpace,
    ready: Event,
    state: BufferState<PinnedArc<MemoryBlock>>,
}

impl Drop for Array {
    fn drop(&mut self) {
        if !self.state.has_memory_now() {
            // SAFETY: without memory in the state a reference is counted; the space is not used again.
            unsafe { self.memory_space.let_go() };
        }
    }
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Array({} in {})", self.shape, self.memory_space)
    }
}

impl Array {
    /// Element type and dimensions.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }
}

impl Buffer {
    /// `memory` is as long as the shape needs, which `shape` makes in its place.
    #[inline]
    fn new(shape: impl FnOnce() -> Shape, layout: Option<Box<Layout>>, memory: RawBuffer, ready: Event) -> Self {
        Self::with_uses(shape, layout, memory, ready, Uses::new())
    }

    /// A buffer without memory, whose `ready` has failed.
    fn without_memory(shape: Shape, layout: Option<Box<Layout>>, space: MemorySpace, ready: Event) -> Self {
        Self::of(PinnedArc::new_in_place(|| {
            let (memory_space, state) = (ArraySpace::without_memory(space), BufferState::new(None));
            Array { shape, layout, memory_space, ready, state }
        }))
    }

    /// As `new`, for memory that others may still use until `uses`.
    #[inline]
    fn with_uses(
        shape: impl FnOnce() -> Shape,
        layout: Option<Box<Layout>>,
        memory: RawBuffer,
        ready: Event,
        uses: Uses,
    ) -> Self {
        let memory = memory.into_block();
        Self::of(PinnedArc::new_in_place(|| {
            let shape = shape();
            let memory_space = ArraySpace::of(&memory);
            let state = BufferState::with_uses(memory, uses);
            Array { shape, layout, memory_space, ready, state }
        }))
    }

    fn of(array: PinnedArc<Array>) -> Self {
        Self(ManuallyDrop::new(array))
    }

    /// The reference as a pointer, to be given back once by [`from_pointer`](Self::from_pointer).
    #[must_use]
    pub fn into_pointer(self) -> *const Array {
        let pointer = PinnedArc::into_value(self.into_array());
        // Code that has only a reference to what it points to finds the counts beside that again.
        let _ = pointer.expose_provenance();
        pointer.as_ptr()
    }

    /// A reference that [`into_pointer`](Self::into_pointer) has put aside.
    ///
    /// # Safety
    /// The pointer has a reference, and the caller gives it up; or the answer is never dropped, and the pointer keeps a
    /// reference for as long as the answer lives.
    #[must_use]
    pub unsafe fn from_pointer(pointer: *const Array) -> Self {
        let pointer = std::ptr::with_exposed_provenance_mut(pointer.addr());
        // SAFETY: the caller's promise; the provenance was exposed when the pointer was made, and it is not null.
        Self::of(unsafe { PinnedArc::from_value(NonNull::new_unchecked(pointer)) })
    }

    /// A reference to the same array.
    fn array(&self) -> PinnedArc<Array> {
        PinnedArc::clone(&self.0)
    }

    fn into_array(self) -> PinnedArc<Array> {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: it is taken once, here, and not dropped there.
        unsafe { ManuallyDrop::take(&mut this.0) }
    }

    /// Element type.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.0.shape.dtype()
    }

    /// Dimensions, outermost first; none for a scalar; upper bounds where they are dynamic.
    #[must_use]
    pub fn dims(&self) -> &[i64] {
        self.0.shape.dims()
    }

    /// Element type and dimensions.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.0.shape
    }

    /// In which order the elements stand.
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.0.layout.as_deref().cloned().unwrap_or_else(|| Layout::row_major(self.0.shape.rank()))
    }

    /// The same where it is not row-major, without a copy.
    #[must_use]
    pub fn special_layout(&self) -> Option<&Layout> {
        self.0.layout.as_deref()
    }

    /// A number that all references to this array have, and no other array that exists has.
    #[must_use]
    pub fn identity(&self) -> usize {
        std::ptr::from_ref::<Array>(&self.0).addr()
    }

    /// Whether it ever had memory: false if it failed before.
    #[must_use]
    pub fn has_memory(&self) -> bool {
        self.0.state.has_memory()
    }

    /// Bytes on the device: `shape().on_device_size_bytes()`.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.0.shape.on_device_size_bytes()
    }

    /// Where it is.
    #[must_use]
    pub fn memory_space(&self) -> MemorySpace {
        MemorySpace::clone(&self.0.memory_space)
    }

    /// Whether that is `memory_space`.
    #[must_use]
    pub fn is_in(&self, memory_space: &MemorySpace) -> bool {
        *self.0.memory_space == *memory_space
    }

    /// The device of [`memory_space`](Self::memory_space).
    #[must_use]
    pub fn device(&self) -> Device {
        self.0.memory_space.device()
    }

    /// Happens when the bytes are there; fails with why they will never be. Stays valid when the buffer ends.
    ///
    /// ```
    /// use purlin::Buffer;
    /// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
    /// # let space = client.devices()[0].default_memory_space();
    ///
    /// let buffer = Buffer::from_slice(&[1_i32, 2], &[2], &space)?;
    /// buffer.ready_event().wait()?;
    /// # Ok::<(), purlin::Error>(())
    /// ```
    #[must_use]
    pub fn ready_event(&self) -> Event {
        self.0.ready.clone()
    }

    /// The bytes themselves, for code that computes on them: read them only after [`ready_event`](Self::ready_event).
    /// Nothing keeps the buffer from being donated meanwhile, unlike [`usage_hold`](Self::usage_hold).
    ///
    /// # Errors
    /// As [`usage_hold`](Self::usage_hold).
    pub fn raw_alias(&self) -> purlin_base::StatusOr<RawBuffer> {
        Ok(self.usage_hold()?.memory().clone())
    }

    /// Usage holds and external references that exist now.
    #[must_use]
    pub fn hold_counts(&self) -> (usize, usize) {
        self.0.state.counts()
    }

    /// Gives the memory up, through every reference; work in flight keeps what it needs. Idempotent; never blocks.
    /// Under a donation hold it takes effect if that is given back.
    ///
    /// ```
    /// use purlin::Buffer;
    /// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
    /// # let space = client.devices()[0].default_memory_space();
    ///
    /// let buffer = Buffer::from_slice(&[1_i32, 2], &[2], &space)?;
    /// let other = buffer.clone();
    /// buffer.delete();
    /// assert!(other.is_deleted() && other.to_vec::<i32>().is_err(), "deleted for all its references");
    /// # Ok::<(), purlin::Error>(())
    /// ```
    #[track_caller]
    pub fn delete(&self) {
        if let Some(left) = self.0.state.end(Ending::deleted(SourceLocation::of_call())) {
            self.0.memory_space.keep();
            drop(left);
        }
    }

    /// The memory becomes the caller's, and the buffer is gone for all its references; the event says when the memory
    /// is no longer used, usage holds and what they have started included, and fails as [`DonationHold::free_event`]
    /// does. `None` if it is gone already; if it never had memory, and then it is gone; and if it is being donated, and
    /// then nothing has happened: given back, it is as before. Never blocks.
    ///
    /// ```
    /// use purlin::Buffer;
    /// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
    /// # let space = client.devices()[0].default_memory_space();
    ///
    /// let buffer = Buffer::from_slice(&[1_i32, 2], &[2], &space)?;
    /// let (memory, free) = buffer.release().unwrap();
    /// free.wait()?;
    /// assert_eq!((memory.size_bytes(), buffer.is_deleted()), (8, true));
    /// # Ok::<(), purlin::Error>(())
    /// ```
    #[track_caller]
    pub fn release(&self) -> Option<(RawBuffer, Event)> {
        let mut taken = self.0.state.end(Ending::released(SourceLocation::of_call()))?;
        self.0.memory_space.keep();
        taken.uses.push(self.0.ready.clone());
        let free = self.0.memory_space.until_end_of_use(&after_all(&taken.uses));
        Some((RawBuffer::whole(taken.memory), free))
    }

    /// As [`release`](Self::release), the memory only. If it `waits`, blocks until the memory is no longer used.
    ///
    /// # Errors
    /// Only if it waits, and the memory is then released: the buffer's own, in PJRT's words ("Error Execute: "), if it
    /// has failed; the client's, if that ends first. `FailedPrecondition`, in a callback without whose end the buffer
    /// does not become ready; then it is as it was.
    #[track_caller]
    pub fn release_ownership(&self, waits: bool) -> purlin_base::StatusOr<Option<RawBuffer>> {
        if waits {
            self.0.ready.check_wait()?;
        }
        let Some((memory, free)) = self.release() else { return Ok(None) };
        if waits {
            free.wait_unlent()?;
            self.0.ready.wait_uninterruptible().map_err(|error| in_pjrts_words(&error))?;
        }
        Ok(Some(memory))
    }

    /// True after it was deleted, donated or released.
    #[must_use]
    pub fn is_deleted(&self) -> bool {
        self.0.state.is_gone()
    }
}

/// `error` as PJRT says it; the code and the payloads stay, which PJRT's do not.
fn in_pjrts_words(error: &Error) -> Error {
    let mut told = Error::new(error.code(), format!("Error Execute: {}", error.message()));
    for (type_url, payload) in error.payloads() {
        told.set_payload(type_url, payload);
    }
    told
}

/// `Buffer(f32[2,3] in host:0/device)`
impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} in {})", self.0.shape, self.0.memory_space)
    }
}

#[cfg(all(test, not(purlin_model)))]
const _: () = {
    // With their counts: 120 and 112 bytes, each in a block of 128.
    assert!(size_of::<Array>() <= 104);
    assert!(size_of::<MemoryBlock>() <= 96);
};
