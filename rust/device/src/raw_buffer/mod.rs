//! Untyped bytes in a memory space.
//!
//! A [`RawBuffer`] is a range of a block of memory; clones and slices share the block, and the last of them, or the
//! last copy in flight, frees it. Copies (`copies.rs`) are asynchronous and return an [`Event`]. A copy begins after
//! all of its dependencies, and when the memory at both ends is there; if one of these fails, nothing is copied and the
//! event has that error. Copies that touch the same bytes are not ordered among themselves: say so with dependencies. A
//! copy of 0 bytes copies nothing and completes when its dependencies have.
//!
//! Memory may be there later than its buffer: [`RawBuffer::allocate_with`] can wait, and [`RawBuffer::channel`] leaves
//! it to other code (`channel.rs`). It may be foreign (`foreign.rs`). Other work than copies is a launch (`launch.rs`).

#![allow(unsafe_code, reason = "copies read and write host memory by address")]

mod channel;
mod copies;
mod foreign;
mod launch;

use std::fmt;
use std::ptr::NonNull;

use crate::backend::ByteRange;
use crate::memory::{AllocOptions, MemoryBlock, MemorySpace};
use purlin_async::event::Event;
use purlin_base::label::Label;
use purlin_base::status::{Error, SourceLocation, StatusOr};
use purlin_base::sync::PinnedArc;

pub use channel::RawBufferPromise;
pub(crate) use copies::CopyOrder;
pub use foreign::Mutability;
pub use launch::LaunchOptions;

/// A reference to a range of device memory; it keeps the memory and the client alive.
///
/// Its bytes are reached through events and raw addresses only, never as a Rust reference; so code that writes them
/// promises that nothing else uses them meanwhile. That is what the `unsafe` methods ask for.
///
/// ```
/// use purlin::RawBuffer;
/// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
/// # let space = client.devices()[0].default_memory_space();
///
/// let memory = RawBuffer::allocate(&space, 4)?;
/// let mut back = [0_u8; 2];
/// // SAFETY: the arrays are as long as the copies, and both are waited for.
/// unsafe {
///     let written = memory.copy_from_host([1, 2, 3, 4].as_ptr(), 0, 4, &[]);
///     memory.slice(1, 2)?.copy_to_host(back.as_mut_ptr(), 0, 2, &[written]).wait()?;
/// }
/// assert_eq!(back, [2, 3]);
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone)]
pub struct RawBuffer {
    block: PinnedArc<MemoryBlock>,
    range: ByteRange,
}

impl RawBuffer {
    /// New memory of `size_bytes` (0 is allowed), aligned to [`MemorySpace::alignment_bytes`], contents unspecified.
    ///
    /// # Errors
    /// `ResourceExhausted`, with a report of the memory's holders: there is not so much.
    ///
    /// # Examples
    /// ```
    /// use purlin::{RawBuffer, StatusCode};
    /// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
    /// # let space = client.devices()[0].default_memory_space();
    ///
    /// assert_eq!(RawBuffer::allocate(&space, 1000)?.size_bytes(), 1000);
    /// let error = RawBuffer::allocate(&space, usize::MAX / 2).unwrap_err();
    /// assert_eq!(error.code(), StatusCode::ResourceExhausted);
    /// # Ok::<(), purlin::Error>(())
    /// ```
    #[track_caller]
    pub fn allocate(memory_space: &MemorySpace, size_bytes: usize) -> StatusOr<Self> {
        Self::allocate_with(memory_space, size_bytes, &AllocOptions::default())
    }

    /// New memory, as `options` say. It may be there later than this call returns: see
    /// [`allocation_event`](Self::allocation_event). Never blocks.
    ///
    /// # Errors
    /// `ResourceExhausted`, as [`allocate`](Self::allocate), unless it waits; `InvalidArgument`: an alignment that is
    /// no power of two up to 1 GiB; what `options.after` has failed with.
    #[track_caller]
    pub fn allocate_with(memory_space: &MemorySpace, size_bytes: usize, options: &AllocOptions) -> StatusOr<Self> {
        Self::allocate_from(memory_space, size_bytes, options, SourceLocation::of_call())
    }

    /// New memory of each of these sizes, all or none, labelled with `label`: given one after the other, in that order.
    /// It costs less than as many calls of [`allocate`](Self::allocate).
    ///
    /// ```
    /// use purlin::RawBuffer;
    /// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
    /// # let space = client.devices()[0].default_memory_space();
    ///
    /// let mut layers = Vec::new();
    /// RawBuffer::allocate_all(&space, &[100, 200], c"layer", |memory| layers.push(memory))?;
    /// assert_eq!((layers[1].size_bytes(), space.stats().bytes_in_use), (200, 300));
    /// # Ok::<(), purlin::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`allocate`](Self::allocate), for the first that there is no memory for.
    #[track_caller]
    pub fn allocate_all(
        memory_space: &MemorySpace,
        sizes_bytes: &[usize],
        label: impl Into<Label>,
        mut give: impl FnMut(Self),
    ) -> Result<(), Error> {
        let place = SourceLocation::of_call();
        memory_space.allocate_all(sizes_bytes, label.into(), place, |block| give(Self::whole(block)))
    }

    /// As [`allocate_with`](Self::allocate_with), from `place`: for closures, which cannot ask for it.
    ///
    /// # Errors
    /// As there.
    #[inline(always)]
    pub(crate) fn allocate_from(
        memory_space: &MemorySpace,
        size_bytes: usize,
        options: &AllocOptions,
        place: SourceLocation,
    ) -> StatusOr<Self> {
        Ok(Self::whole(memory_space.allocate(size_bytes, options, place)?))
    }

    /// All of `block`.
    #[inline(always)]
    pub(crate) fn whole(block: PinnedArc<MemoryBlock>) -> Self {
        let range = ByteRange::all(block.size_bytes());
        Self { block, range }
    }

    /// A block of which this is the whole: its own, or one that stands for its range of that.
    pub(crate) fn into_block(self) -> PinnedArc<MemoryBlock> {
        let Self { block, range } = self;
        if range == ByteRange::all(block.size_bytes()) {
            return block;
        }
        MemoryBlock::part(block, range.offset_bytes(), range.size_bytes())
    }

    /// Size of this range in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.range.size_bytes()
    }

    /// Where it is.
    #[must_use]
    pub fn memory_space(&self) -> MemorySpace {
        self.space().clone()
    }

    pub(crate) fn space(&self) -> &MemorySpace {
        self.block.memory_space()
    }

    /// Happens when the memory is there; fails with why it will never be. Ready at once for most.
    #[must_use]
    pub fn allocation_event(&self) -> Event {
        self.block.allocated().clone()
    }

    /// Whether the memory is there, or will never be: [`allocation_event`](Self::allocation_event) is not pending.
    #[must_use]
    pub fn is_allocation_over(&self) -> bool {
        self.block.allocated().is_ready()
    }

    /// Whether its bytes may be written. Memory that was imported read-only may not, nor may slices of it; also while
    /// the memory of a [`channel`](Self::channel) is not there yet, the answer is that it may.
    #[must_use]
    pub fn is_mutable(&self) -> bool {
        self.block.is_mutable()
    }

    /// Address of the first byte if the host can reach the memory, and it is there. Valid while a reference to the
    /// memory lives; reading and writing through it is ordered by events only.
    #[must_use]
    pub fn host_pointer(&self) -> Option<NonNull<u8>> {
        let (extent, offset_bytes) = self.block.place_if_there()?;
        let base = extent.host_address()?;
        NonNull::new(base.as_ptr().wrapping_add(offset_bytes + self.range.offset_bytes()))
    }

    /// Address of the first byte as the device sees it. Valid while a reference to the memory lives.
    ///
    /// # Errors
    /// `FailedPrecondition`: the memory is not there yet; see [`allocation_event`](Self::allocation_event). What it
    /// failed with.
    pub fn device_pointer(&self) -> StatusOr<usize> {
        if let Some((extent, offset_bytes)) = self.block.place_if_there() {
            return Ok(extent.address() + offset_bytes + self.range.offset_bytes());
        }
        if let Some(error) = self.block.allocated().error() {
            return Err(error);
        }
        Err(Error::failed_precondition(format!(
            "the memory of {self:?} is not there yet: wait for its allocation event"
        )))
    }

    /// The bytes `[offset_bytes, offset_bytes + size_bytes)` of this range, sharing the memory.
    ///
    /// # Errors
    /// `OutOfRange`, naming the three numbers, unless `offset_bytes + size_bytes <= self.size_bytes()`.
    ///
    /// # Examples
    /// ```
    /// use purlin::{RawBuffer, StatusCode};
    /// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
    /// # let space = client.devices()[0].default_memory_space();
    ///
    /// let memory = RawBuffer::allocate(&space, 1000)?;
    /// assert_eq!(memory.slice(100, 200)?.device_pointer()?, memory.device_pointer()? + 100);
    /// assert_eq!(memory.slice(900, 200).unwrap_err().code(), StatusCode::OutOfRange);
    /// # Ok::<(), purlin::Error>(())
    /// ```
    pub fn slice(&self, offset_bytes: usize, size_bytes: usize) -> StatusOr<Self> {
        let range = self.range.slice(offset_bytes, size_bytes).map_err(|error| self.named(&error))?;
        Ok(Self { block: self.block.clone(), range })
    }

    /// A [`slice`](Self::slice) per `(offset_bytes, size_bytes)`, in that order; they may overlap. All or none.
    ///
    /// # Errors
    /// As [`slice`](Self::slice), for the first that does not lie within.
    pub fn slices(&self, ranges: &[(usize, usize)]) -> StatusOr<Vec<Self>> {
        ranges.iter().map(|&(offset_bytes, size_bytes)| self.slice(offset_bytes, size_bytes)).collect()
    }

    /// Keeps the memory at least until `event` is terminal, without a handle: for work that Purlin does not see. A
    /// watchdog poisons neither `event` nor what that waits for.
    pub fn retain_until(&self, event: &Event) {
        if event.is_ready() {
            return;
        }
        event.keeps_memory();
        let kept = self.whole_range();
        event.on_ready(move |_outcome| drop(kept));
    }

    /// `error`, with this buffer's place in front.
    fn named(&self, error: &Error) -> Error {
        Error::new(error.code(), format!("in {}: {}", self.block, error.message()))
    }
}

/// `RawBuffer([4, 12) in host:0/device)`
impl fmt::Debug for RawBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RawBuffer({:?} in {})", self.range, self.block)
    }
}
