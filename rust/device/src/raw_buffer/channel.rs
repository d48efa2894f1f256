//! Buffers whose memory is provided later, once: a channel for memory.
//!
//! States: open, then there (fulfilled with memory of another buffer, or allocated) or failed, by the one
//! [`RawBufferPromise`]; dropping that fails the buffer, so a waiter for the memory is notified in any case.

use std::fmt;

use super::RawBuffer;
use crate::memory::{AllocOptions, MemoryBlock, MemorySpace, OomPolicy, Tag};
use purlin_async::event::raw::OwedBy;
use purlin_async::event::{Event, EventPromise};
use purlin_base::label::Label;
use purlin_base::status::{Error, SourceLocation};
use purlin_base::sync::PinnedArc;

/// The right and the duty to provide the memory of a buffer from [`RawBuffer::channel`]. Dropping it fails the buffer.
///
/// ```
/// use purlin::{AllocOptions, RawBuffer};
/// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
/// # let space = client.devices()[0].default_memory_space();
///
/// let (memory, promise) = RawBuffer::channel(&space, 64, &AllocOptions::default());
/// assert!(!memory.allocation_event().is_ready());
/// promise.fulfil(&RawBuffer::allocate(&space, 64)?).map_err(|(error, _promise)| error)?;
/// memory.allocation_event().wait()?;
/// # Ok::<(), purlin::Error>(())
/// ```
#[must_use = "dropping it fails the buffer"]
pub struct RawBufferPromise {
    block: PinnedArc<MemoryBlock>,
    promise: EventPromise,
}

impl RawBuffer {
    /// A buffer of `size_bytes` in `memory_space` without memory, and the promise to provide it: by another buffer, or
    /// by allocating it at the time of need, as an execution does for its outputs. `options.label` names it in reports;
    /// of `options`, nothing else counts here.
    ///
    /// Slices may be made and copies asked for at once; they wait for [`allocation_event`](Self::allocation_event).
    /// That fails, as a copy would, if the client ends before the promise is kept.
    #[track_caller]
    pub fn channel(memory_space: &MemorySpace, size_bytes: usize, options: &AllocOptions) -> (Self, RawBufferPromise) {
        let place = SourceLocation::of_call();
        let promise = EventPromise::owed_by(OwedBy::User, c"memory", place);
        let allocated = memory_space.until_end(&promise.event(), Label::new(c"memory of a channel"));
        let (tag, allocated) = (Tag::new(options.label, place), allocated.unwrap_or_else(Event::from_error));
        let block = MemoryBlock::with_event(memory_space.clone(), size_bytes, true, tag, allocated);
        (Self::whole(block.clone()), RawBufferPromise { block, promise })
    }
}

impl RawBufferPromise {
    /// The buffer gets the memory of `memory`, which it shares and keeps from now on; that may itself be there later.
    ///
    /// # Errors
    /// `InvalidArgument`, with the promise back: `memory` has another size, lies in another memory space, or is what
    /// this promise is to provide.
    pub fn fulfil(self, memory: &RawBuffer) -> Result<(), (Error, Self)> {
        let wanted = (self.block.size_bytes(), self.block.memory_space());
        if (memory.size_bytes(), memory.space()) != wanted {
            let error = Error::invalid_argument(format!(
                "{memory:?} cannot be the memory of a buffer of {} bytes in {}",
                wanted.0, self.block
            ));
            return Err((error, self));
        }
        let (target, offset_bytes) = (memory.block.clone(), memory.range.offset_bytes());
        if let Some(error) = target.allocated().error() {
            self.promise.set_error(error);
            return Ok(());
        }
        // SAFETY: the promise is ours.
        let Ok(allocated) = (unsafe { self.block.provide_part_of(target, offset_bytes) }) else {
            // It would wait for itself.
            let error = Error::invalid_argument(format!("{memory:?} cannot become its own memory"));
            return Err((error, self));
        };
        let Self { block, promise } = self;
        if allocated.is_ready() {
            promise.set(allocated.error().map_or(Ok(()), Err));
            return Ok(());
        }
        // Where the blocks make no circle, events may.
        if let Err(cycle) = promise.follow(&allocated) {
            promise.set_error(cycle);
            return Ok(());
        }
        // The block stays until then, so that its promise is not kept for a block without holders.
        allocated.on_ready(move |outcome| {
            block.shorten();
            promise.set(outcome.clone());
            drop(block);
        });
        Ok(())
    }

    /// The buffer gets new memory; with [`OomPolicy::Wait`] perhaps later than this returns.
    ///
    /// # Errors
    /// `ResourceExhausted`: there is not so much. The buffer has failed with that too.
    pub fn allocate(self, oom: OomPolicy) -> Result<(), Error> {
        let Self { block, promise } = self;
        let space = block.memory_space();
        space.fill_or_wait(&block, 1, oom, promise)
    }

    /// The buffer has failed with `error`, and so do copies that wait for it.
    pub fn fail(self, error: Error) {
        self.promise.set_error(error);
    }
}

impl fmt::Debug for RawBufferPromise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RawBufferPromise({} bytes in {})", self.block.size_bytes(), self.block)
    }
}
