//! A copy as a backend sees it: two ends of the same, non-zero length, and the event that it owes.
//!
//! An operation owns what it touches: as long as it lives, so does the device memory at its ends. It is made by core
//! only, so its sizes can be trusted.

#![allow(unsafe_code, reason = "host pointers cross threads with their copy")]

use std::fmt;
use std::ptr::NonNull;

use super::operation::{Operation, Owed};
use super::{ByteRange, Extent, Gated};
use purlin_async::event::Event;
use purlin_base::label::Label;
use purlin_base::status::Status;
use purlin_base::sync::{PinnedArc, PinnedInner};

/// Memory as the rooms above keep it: a piece of an extent together with its books. Written as the name of its memory
/// space, such as `host:0/device`.
pub(crate) trait Block: Send + Sync + fmt::Display {
    /// The extent in which it lies, and where it begins there. Only once the memory is there.
    fn place(&self) -> (&dyn Extent, usize);

    /// A copy begins, or ends, to need it.
    fn count_use(&self, begins: bool);
}

/// `block`, of whatever type it is.
pub(crate) fn erased<B: Block + 'static>(block: PinnedArc<B>) -> PinnedArc<dyn Block> {
    let raw: NonNull<PinnedInner<dyn Block>> = PinnedArc::<B>::into_raw(block);
    // SAFETY: the reference that was put aside in the line before.
    unsafe { PinnedArc::from_raw(raw) }
}

/// A range inside a block, which it keeps alive.
pub struct DeviceRange {
    block: PinnedArc<dyn Block>,
    range: ByteRange,
}

impl fmt::Debug for DeviceRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {}", self.range, self.block)
    }
}

impl DeviceRange {
    /// `range` lies inside `block`.
    pub(crate) fn new(block: PinnedArc<dyn Block>, range: ByteRange) -> Self {
        block.count_use(true);
        Self { block, range }
    }

    /// The extent in which the bytes lie, of a type of its own (see [`Extent`]'s `Any`), and where they begin there.
    /// Only after the copy's dependencies: before, the memory may not be there yet.
    #[must_use]
    pub fn place(&self) -> (&dyn Extent, usize) {
        let (extent, offset_bytes) = self.block.place();
        (extent, offset_bytes + self.range.offset_bytes())
    }

    /// How many bytes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.range.size_bytes()
    }
}

impl Drop for DeviceRange {
    fn drop(&mut self) {
        self.block.count_use(false);
    }
}

impl fmt::Display for DeviceRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.block.fmt(f)
    }
}

/// Host memory to read from.
#[derive(Debug)]
pub struct HostSource(*const u8);

// SAFETY: HostSource::new's caller promises that any thread may read there until the copy's event is terminal.
unsafe impl Send for HostSource {}
// SAFETY: as above; a shared reference gives away only the address.
unsafe impl Sync for HostSource {}

impl HostSource {
    /// # Safety
    /// Until the event of the copy is terminal, any thread may read as many bytes at `address` as the copy is long, and
    /// nobody writes them.
    pub(crate) unsafe fn new(address: *const u8) -> Self {
        Self(address)
    }

    /// The first byte; not null. Readable for as many bytes as the copy is long until its event is terminal.
    #[must_use]
    pub fn address(&self) -> *const u8 {
        self.0
    }
}

/// Host memory to write to.
#[derive(Debug)]
pub struct HostDestination(*mut u8);

// SAFETY: HostDestination::new's caller promises that any thread may write there until the copy's event is terminal.
unsafe impl Send for HostDestination {}
// SAFETY: as above; a shared reference gives away only the address.
unsafe impl Sync for HostDestination {}

impl HostDestination {
    /// # Safety
    /// Until the event of the copy is terminal, any thread may write as many bytes at `address` as the copy is long, and
    /// nobody else reads or writes them.
    pub(crate) unsafe fn new(address: *mut u8) -> Self {
        Self(address)
    }

    /// The first byte; not null. Writable for as many bytes as the copy is long until its event is terminal.
    #[must_use]
    pub fn address(&self) -> *mut u8 {
        self.0
    }
}

/// From where to where.
#[derive(Debug)]
pub enum CopyEnds {
    /// Host memory to device memory.
    FromHost(HostSource, DeviceRange),
    /// Device memory to host memory.
    ToHost(DeviceRange, HostDestination),
    /// Device memory to device memory of the same client; the ranges may overlap, as for memmove.
    Between(DeviceRange, DeviceRange),
}

/// What is to be copied. Both ends are [`size_bytes`](Self::size_bytes) long, and that is never 0.
pub struct CopyOperation {
    ends: CopyEnds,
    size_bytes: usize,
}

impl CopyOperation {
    /// The host end, if there is one, is as long as the device end; two device ends are equally long; no end is empty.
    pub(crate) fn new(ends: CopyEnds) -> Self {
        let size_bytes = match &ends {
            CopyEnds::FromHost(_, device) | CopyEnds::ToHost(device, _) => device.size_bytes(),
            CopyEnds::Between(source, destination) => {
                let size_bytes = source.size_bytes();
                assert_eq!(size_bytes, destination.size_bytes(), "RawBuffer::copy_to makes both ends equal");
                size_bytes
            }
        };
        Self { ends, size_bytes }
    }

    /// From where to where.
    #[must_use]
    pub fn ends(&self) -> &CopyEnds {
        &self.ends
    }

    /// How many bytes, at least 1.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    /// Where the bytes come from: `"host"` or the name of a memory space.
    pub(super) fn source(&self) -> &dyn fmt::Display {
        match &self.ends {
            CopyEnds::FromHost(..) => &"host",
            CopyEnds::ToHost(device, _) | CopyEnds::Between(device, _) => device,
        }
    }

    /// Where the bytes go: `"host"` or the name of a memory space.
    pub(super) fn destination(&self) -> &dyn fmt::Display {
        match &self.ends {
            CopyEnds::ToHost(..) => &"host",
            CopyEnds::FromHost(_, device) | CopyEnds::Between(_, device) => device,
        }
    }
}

/// `copy of 4096 bytes from host to host:0/device`
impl fmt::Debug for CopyOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "copy of {} bytes from {} to {}", self.size_bytes, self.source(), self.destination())
    }
}

impl Operation for CopyOperation {
    fn label(&self) -> Label {
        Label::new(c"copy")
    }

    fn gated(&self) -> Gated {
        // Also when the memory is gone.
        let end = |device: &DeviceRange| Some(PinnedArc::downgrade(&device.block));
        let (from, to) = match &self.ends {
            CopyEnds::FromHost(_, device) => (None, end(device)),
            CopyEnds::ToHost(device, _) => (end(device), None),
            CopyEnds::Between(source, destination) => (end(source), end(destination)),
        };
        Gated::Copy { size_bytes: self.size_bytes, from, to }
    }

    fn describe(&self) -> String {
        format!("the {self:?}")
    }
}

/// A copy in flight: its two ends and the event that it owes.
///
/// Dropped before [`complete`](Self::complete) was called, it fails the event: with the gate's error if there is one, with
/// `Internal` while a panic unwinds, else with `Cancelled`, because then the runner has dropped it.
#[must_use = "dropping it fails the copy's event"]
pub struct PromisedCopy(Owed<CopyOperation>);

impl fmt::Debug for PromisedCopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PromisedCopy").field("operation", self.operation()).finish_non_exhaustive()
    }
}

impl PromisedCopy {
    pub(super) fn new(owed: Owed<CopyOperation>) -> Self {
        Self(owed)
    }

    /// What is to be copied.
    pub fn operation(&self) -> &CopyOperation {
        self.0.operation()
    }

    /// What the copy waits for.
    pub fn gate(&self) -> &Event {
        self.0.gate()
    }

    /// Ends the copy: releases the memory at both ends, then completes the event, so that a thread that sees the event does not
    /// find the memory still in use.
    pub fn complete(self, result: Result<(), Status>) {
        self.0.complete(result);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::test_operation::operation;
    use purlin_base::status::StatusCode;
    use std::sync::Arc;

    #[test]
    fn completing_lets_go_of_the_memory_first() {
        let alive = Arc::new(());
        let (event, copy) = Owed::new(operation(8, &alive), Event::ready(), &[], None);
        assert_eq!(Arc::strong_count(&alive), 3);
        let seen = alive.clone();
        event.on_ready(move |status| {
            assert!(status.ok(), "{status}");
            assert_eq!(Arc::strong_count(&seen), 2);
        });
        copy.complete(Ok(()));
        assert_eq!(event.wait(), Ok(()));
    }

    #[test]
    fn a_result_reaches_the_event() {
        let (event, copy) = Owed::new(operation(8, &Arc::new(())), Event::ready(), &[], None);
        copy.complete(Err(Status::data_loss("a bit fell over")));
        assert_eq!(event.wait().unwrap_err().code(), StatusCode::DataLoss);
    }

    #[test]
    fn a_dropped_copy_is_cancelled_and_named() {
        let alive = Arc::new(());
        let (event, copy) = Owed::new(operation(8, &alive), Event::ready(), &[], None);
        drop(copy);
        let error = event.wait().unwrap_err();
        assert_eq!(error.code(), StatusCode::Cancelled);
        assert!(error.message().contains("copy of 8 bytes from null:0/device to null:0/device"), "{error}");
        assert_eq!(Arc::strong_count(&alive), 1);
    }

    #[test]
    fn a_dropped_copy_behind_a_failed_gate_has_the_gates_error() {
        let gate = Event::from_error(Status::aborted("upstream"));
        let (event, copy) = Owed::new(operation(8, &Arc::new(())), gate, &[], None);
        drop(copy);
        assert_eq!(event.wait().unwrap_err().message(), "upstream");
    }

    #[test]
    fn a_panicking_copy_fails_its_event() {
        let (event, copy) = Owed::new(operation(8, &Arc::new(())), Event::ready(), &[], None);
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
            let _owed = copy;
            std::panic::resume_unwind(Box::new("the driver's fault"));
        }));
        assert!(panicked.is_err());
        assert_eq!(event.wait().unwrap_err().code(), StatusCode::Internal);
    }
}
