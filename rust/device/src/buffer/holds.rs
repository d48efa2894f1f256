//! Rights to a buffer's memory, each ended by its drop.

use std::fmt;
use std::ops::Deref;

use super::state::{Ending, Patience, Taken, Uses};
use super::{Array, Buffer};
use crate::memory::MemoryBlock;
use crate::raw_buffer::RawBuffer;
use purlin_array::layout::Layout;
use purlin_array::strided::HostArray;
use purlin_async::event::{Event, EventState, after_all, when_all};
use purlin_async::task::fork;
use purlin_base::label::Label;
use purlin_base::status::{Error, SourceLocation, StatusOr};
use purlin_base::sync::PinnedArc;

/// The right to start work that reads a buffer: while it exists, the buffer is not donated. Short-lived; what it has
/// started is named by [`release_after`](Self::release_after). It keeps a reference to the buffer, or borrows one
/// ([`BorrowedUsageHold`]), which costs less.
///
/// ```
/// use purlin::{Buffer, EventPromise};
/// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
/// # let space = client.devices()[0].default_memory_space();
///
/// let (buffer, kernel) = (Buffer::from_slice(&[1_i32], &[1], &space)?, EventPromise::new(c"kernel"));
/// let hold = buffer.usage_hold()?;
/// assert_eq!((hold.memory().size_bytes(), buffer.hold_counts()), (4, (1, 0)));
/// hold.release_after(kernel.event());
/// let (_memory, free) = buffer.release().unwrap();
/// assert!(!free.is_ready(), "the kernel still uses it");
/// kernel.set_ready();
/// free.wait()?;
/// # Ok::<(), purlin::Error>(())
/// ```
#[must_use = "dropping it lets the buffer be donated"]
pub struct UsageHold<A: Deref<Target = Array> = PinnedArc<Array>> {
    array: A,
    memory: RawBuffer,
    used_until: Event,
}

/// A usage hold of code that has the buffer for as long.
pub type BorrowedUsageHold<'a> = UsageHold<&'a Array>;

impl<A: Deref<Target = Array>> UsageHold<A> {
    /// The memory. Read it only after [`ready_event`](Self::ready_event).
    #[must_use]
    pub fn memory(&self) -> &RawBuffer {
        &self.memory
    }

    /// Happens when the bytes are there.
    #[must_use]
    pub fn ready_event(&self) -> Event {
        self.array.ready.clone()
    }

    /// Whether the bytes are there; false also if the buffer has failed.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.array.ready.state() == EventState::Ready
    }

    /// As [`release_after`](Self::release_after), for a copy or a launch of this memory, which keeps it by itself: then
    /// it is free as soon as the event says so.
    pub fn release_after_operation(mut self, event: &Event) {
        self.used_until = event.clone();
    }

    /// Whether the array's bytes on the device are those of `array` on the host.
    pub(super) fn is_stored_as(&self, array: &HostArray) -> bool {
        let is_dense = match self.array.layout.as_deref() {
            Some(layout) => array.is_dense(layout),
            None => array.is_row_major(),
        };
        is_dense && !self.array.shape.dtype().is_sub_byte()
    }

    pub(super) fn layout(&self) -> Layout {
        let array = &self.array;
        array.layout.as_deref().cloned().unwrap_or_else(|| Layout::row_major(array.shape.rank()))
    }

    /// Ends the hold. The memory stays until `event` is terminal, and a donee waits for that.
    pub fn release_after(mut self, event: Event) {
        self.memory.retain_until(&event);
        self.used_until = event;
    }
}

impl<A: Deref<Target = Array>> Drop for UsageHold<A> {
    fn drop(&mut self) {
        let used_until = std::mem::replace(&mut self.used_until, Event::ready());
        self.array.state.let_go(used_until);
    }
}

/// Code outside Purlin uses a buffer's memory: it stays as long as this exists, also when the buffer is deleted, and
/// cannot be donated.
///
/// ```
/// use purlin::Buffer;
/// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
/// # let space = client.devices()[0].default_memory_space();
///
/// let buffer = Buffer::from_slice(&[1_i32], &[1], &space)?;
/// let reference = buffer.external_reference()?;
/// assert_eq!((reference.memory().size_bytes(), buffer.hold_counts()), (4, (0, 1)));
/// drop(reference);
/// assert_eq!(buffer.hold_counts(), (0, 0));
/// # Ok::<(), purlin::Error>(())
/// ```
#[must_use = "dropping it lets the memory go"]
pub struct ExternalReference {
    array: PinnedArc<Array>,
    memory: RawBuffer,
}

impl ExternalReference {
    /// The memory. Use it only after [`ready_event`](Self::ready_event).
    #[must_use]
    pub fn memory(&self) -> &RawBuffer {
        &self.memory
    }

    /// Happens when the bytes are there.
    #[must_use]
    pub fn ready_event(&self) -> Event {
        self.array.ready.clone()
    }
}

impl Drop for ExternalReference {
    fn drop(&mut self) {
        self.array.state.dereference();
    }
}

/// The right to take a buffer's memory over, which no other code has meanwhile. Dropping it gives the buffer back as it
/// was.
///
/// ```
/// use purlin::Buffer;
/// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
/// # let space = client.devices()[0].default_memory_space();
///
/// let buffer = Buffer::from_slice(&[1_i32], &[1], &space)?;
/// drop(buffer.donate(c"step")?);
/// assert!(!buffer.is_deleted(), "given back");
/// let hold = buffer.donate(c"step")?;
/// hold.free_event().wait()?;
/// let memory = hold.confirm();
/// assert_eq!((memory.size_bytes(), buffer.is_deleted()), (4, true));
/// # Ok::<(), purlin::Error>(())
/// ```
#[must_use = "dropping it gives the buffer back"]
pub struct DonationHold<A: Deref<Target = Array> = PinnedArc<Array>> {
    array: A,
    /// `None` once confirmed.
    taken: Option<Taken<RawBuffer>>,
}

/// A donation hold of code that has the buffer for as long.
pub type BorrowedDonationHold<'a> = DonationHold<&'a Array>;

impl<A: Deref<Target = Array>> DonationHold<A> {
    /// The memory. Write it only after [`free_event`](Self::free_event).
    #[must_use]
    pub fn memory(&self) -> &RawBuffer {
        &self.taken().memory
    }

    /// Happens when the buffer's bytes are there; fails with why they never will be.
    #[must_use]
    pub fn ready_event(&self) -> Event {
        self.array.ready.clone()
    }

    /// Whether the bytes are there; false also if the buffer has failed.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.array.ready.state() == EventState::Ready
    }

    /// Happens when the bytes may be overwritten: the buffer's own producer and all its uses are done, whether they
    /// succeeded or failed. Fails only if the client ends first, with its name: then it is not known when these are
    /// done.
    #[must_use]
    pub fn free_event(&self) -> Event {
        self.array.memory_space.until_end_of_use(&self.free())
    }

    /// As [`free_event`](Self::free_event), whatever becomes of the client: for an operation of the same client's,
    /// which fails with the client.
    #[must_use]
    pub fn free(&self) -> Event {
        if self.taken().uses.is_empty() && self.array.ready.is_ready() {
            return Event::ready();
        }
        let mut events = self.taken().uses.clone();
        events.push(self.array.ready.clone());
        after_all(&events)
    }

    /// The buffer is gone, for all its references; its memory is the caller's, which waits for
    /// [`free_event`](Self::free_event) before writing it.
    #[inline]
    #[must_use]
    pub fn confirm(self) -> RawBuffer {
        self.into_taken().memory
    }

    #[inline]
    pub(super) fn into_taken(mut self) -> Taken<RawBuffer> {
        let taken = self.taken.take().expect("confirmed once, because that takes the hold");
        let _nothing = self.array.state.end_donation(None);
        taken
    }

    fn taken(&self) -> &Taken<RawBuffer> {
        self.taken.as_ref().expect("confirmed once, because that takes the hold")
    }
}

impl<A: Deref<Target = Array>> Drop for DonationHold<A> {
    fn drop(&mut self) {
        if let Some(Taken { memory, uses }) = self.taken.take() {
            drop(uses);
            match self.array.state.end_donation(Some(memory.into_block())) {
                // SAFETY: the memory is back; the donation had counted a reference when it took it out.
                None => unsafe { self.array.memory_space.let_go() },
                Some(left) => drop(left),
            }
        }
    }
}

impl Buffer {
    /// A [`UsageHold`]. Waits for a donation that is under way.
    ///
    /// # Errors
    /// `InvalidArgument`, "Buffer has been deleted or donated." and the place that did so; the buffer's own error if it
    /// never had memory.
    pub fn usage_hold(&self) -> StatusOr<UsageHold> {
        let memory = self.0.state.hold(Patience::Wait(&|| self.may_wait()))?;
        self.hold(memory, || self.array())
    }

    /// As [`usage_hold`](Self::usage_hold), without waiting.
    ///
    /// # Errors
    /// Also `FailedPrecondition`: it is being donated.
    pub fn try_usage_hold(&self) -> StatusOr<UsageHold> {
        let memory = self.0.state.hold(Patience::Fail)?;
        self.hold(memory, || self.array())
    }

    /// As [`usage_hold`](Self::usage_hold), of code that keeps the buffer meanwhile. Without `waits`, as
    /// [`try_usage_hold`](Self::try_usage_hold).
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn borrowed_usage_hold(&self, waits: bool) -> StatusOr<BorrowedUsageHold<'_>> {
        let may_wait = || self.may_wait();
        let memory = self.0.state.hold(if waits { Patience::Wait(&may_wait) } else { Patience::Fail })?;
        self.hold(memory, || &**self.0)
    }

    /// Whether other code may exist that has the holds that are in the way.
    fn may_wait(&self) -> Result<(), Error> {
        if self.0.memory_space.is_here() { Ok(()) } else { Err(fork::refusal("a buffer that others use")) }
    }

    /// The error of an array that never had memory.
    fn why_without_memory(&self) -> Error {
        self.0.ready.error().unwrap_or_else(|| Error::internal(format!("{self:?} has no memory, and has not failed")))
    }

    #[inline]
    fn hold<A: Deref<Target = Array>>(
        &self,
        memory: Option<PinnedArc<MemoryBlock>>,
        array: impl FnOnce() -> A,
    ) -> StatusOr<UsageHold<A>> {
        let Some(memory) = memory else {
            self.0.state.let_go(Event::ready());
            return Err(self.why_without_memory());
        };
        Ok(UsageHold { array: array(), memory: RawBuffer::whole(memory), used_until: Event::ready() })
    }

    /// An [`ExternalReference`]. Waits for a donation that is under way.
    ///
    /// # Errors
    /// As [`usage_hold`](Self::usage_hold).
    pub fn external_reference(&self) -> StatusOr<ExternalReference> {
        let Some(memory) = self.0.state.reference(Patience::Wait(&|| self.may_wait()))? else {
            self.0.state.dereference();
            return Err(self.why_without_memory());
        };
        Ok(ExternalReference { array: self.array(), memory: RawBuffer::whole(memory) })
    }

    /// A [`DonationHold`] for `by`, whose name later errors show. Waits for usage holds and for another donation; these
    /// are short, because they last while work is started, not while it runs.
    ///
    /// # Errors
    /// `InvalidArgument`: "Donation requested for invalid buffer." if it is gone, "Donation requested for buffer with
    /// external reference" if it has one; the buffer's own error if it never had memory.
    #[track_caller]
    pub fn donate(&self, by: impl Into<Label>) -> StatusOr<DonationHold> {
        let (place, patience) = (SourceLocation::of_call(), Patience::Wait(&|| self.may_wait()));
        self.donation_hold(by.into(), place, patience, || self.array())
    }

    /// As [`donate`](Self::donate), without waiting.
    ///
    /// # Errors
    /// Also `FailedPrecondition`: usage holds or another donation are in the way.
    #[inline]
    #[track_caller]
    pub fn try_donate(&self, by: impl Into<Label>) -> StatusOr<DonationHold> {
        self.donation_hold(by.into(), SourceLocation::of_call(), Patience::Fail, || self.array())
    }

    /// As [`donate`](Self::donate), of code that keeps the buffer meanwhile. Without `waits`, as
    /// [`try_donate`](Self::try_donate).
    ///
    /// # Errors
    /// As there.
    #[inline]
    #[track_caller]
    pub fn borrowed_donation_hold(&self, by: impl Into<Label>, waits: bool) -> StatusOr<BorrowedDonationHold<'_>> {
        let may_wait = || self.may_wait();
        let patience = if waits { Patience::Wait(&may_wait) } else { Patience::Fail };
        self.donation_hold(by.into(), SourceLocation::of_call(), patience, || &**self.0)
    }

    #[inline]
    fn donation_hold<A: Deref<Target = Array>>(
        &self,
        by: Label,
        place: SourceLocation,
        patience: Patience<'_>,
        array: impl FnOnce() -> A,
    ) -> StatusOr<DonationHold<A>> {
        let by = Ending::donated(by, place);
        let Taken { memory, uses } = match self.0.state.donate_at_once(&by) {
            Some(memory) => Taken { memory, uses: Uses::new() },
            None if !self.0.state.has_memory() => return Err(self.why_without_memory()),
            None => self.0.state.donate(by, patience)?,
        };
        self.0.memory_space.keep();
        let taken = Taken { memory: RawBuffer::whole(memory), uses };
        Ok(DonationHold { array: array(), taken: Some(taken) })
    }
}

impl<A: Deref<Target = Array>> fmt::Debug for UsageHold<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UsageHold({:?})", self.memory)
    }
}

impl fmt::Debug for ExternalReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExternalReference({:?})", self.memory)
    }
}

impl<A: Deref<Target = Array>> fmt::Debug for DonationHold<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DonationHold({:?})", self.taken.as_ref().map(|taken| &taken.memory))
    }
}

/// What must have happened before anything is computed from a buffer and `event`.
pub(super) fn both(ready: &Event, event: &Event) -> Event {
    when_all(&[ready.clone(), event.clone()])
}
