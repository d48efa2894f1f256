//! Device memory that is filled piece by piece.
//!
//! States: *filling*, until every byte has a piece; then it waits for the copies under way, and is *done*. Or *failed*:
//! by [`poison`](StagingSink::poison), by a copy that failed, or because the sink was dropped first; then nothing is
//! written any more except by copies under way, and the event fails when the last of these is over. So a thread that
//! sees the event terminal, however it ended, knows that the memory is no longer written.

use std::fmt;
use std::sync::Arc;

use super::pool::StagingLease;
use super::ranges::Ranges;
use crate::raw_buffer::RawBuffer;
use purlin_async::event::raw::OwedBy;
use purlin_async::event::{Awaited, Event, EventPromise};
use purlin_base::status::{Error, SourceLocation, StatusOr};
use purlin_base::sync::Mutex;

/// See the module. Dropping it fails what is not complete; it does not wait.
///
/// ```
/// use purlin::{RawBuffer, StagingOptions, StagingPool, StagingSink};
/// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
/// # let space = client.devices()[0].default_memory_space();
///
/// let options = StagingOptions { lease_bytes: 4, lease_count: 2, ..Default::default() };
/// let pool = StagingPool::new(&client.devices()[0].memory_space("pinned_host")?, &options)?;
/// let (sink, complete) = StagingSink::new(&RawBuffer::allocate(&space, 6)?);
/// sink.put(4, 2, pool.try_acquire()?)?;
/// assert!(!complete.is_ready(), "four bytes are missing");
/// sink.put(0, 4, pool.try_acquire()?)?;
/// complete.wait()?;
/// assert_eq!(sink.begun_bytes(), 6);
/// # Ok::<(), purlin::Error>(())
/// ```
pub struct StagingSink(Arc<SinkShared>);

struct SinkShared {
    destination: RawBuffer,
    state: Mutex<SinkState>,
}

struct SinkState {
    begun: Ranges,
    under_way: usize,
    error: Option<Error>,
    /// Taken by the code that ends it.
    promise: Option<EventPromise>,
    /// The destination's memory. Taken before.
    awaited: Option<Awaited>,
}

impl StagingSink {
    /// A sink for all bytes of `destination`, and the event that says that they are there. Of no bytes: they are there.
    /// A client that shuts down fails the copies, not a sink that waits for pieces: that is its owner's to end.
    #[track_caller]
    #[must_use]
    pub fn new(destination: &RawBuffer) -> (Self, Event) {
        let promise = EventPromise::owed_by(OwedBy::Library, c"staged bytes", SourceLocation::of_call());
        let awaited = promise.waits_for_all(&[destination.allocation_event()]);
        let event = promise.event();
        let state = SinkState { begun: Ranges::default(), under_way: 0, error: None, promise: Some(promise), awaited };
        let shared = Arc::new(SinkShared { destination: destination.clone(), state: Mutex::new(state) });
        shared.change(|_state| ());
        (Self(shared), event)
    }

    /// Copies the first `size_bytes` bytes of `lease` to `[offset_bytes, offset_bytes + size_bytes)`; the lease is
    /// given back when that is over, or at once if it is refused. Pieces may be put in any order, from any thread.
    /// Never blocks.
    ///
    /// # Errors
    /// `OutOfRange`, naming the numbers: more bytes than the lease has, or not within the destination;
    /// `InvalidArgument`, naming them: bytes that had a piece already. The sink is then as it was. What it has failed
    /// with.
    pub fn put(&self, offset_bytes: usize, size_bytes: usize, lease: StagingLease) -> Result<(), Error> {
        let shared = &self.0;
        let (from, to) = shared.begin(offset_bytes, size_bytes, &lease)?;
        // SAFETY: the ranges of pieces are disjoint, and the sink's maker leaves the destination to it; the lease's
        // bytes have no other owner, and it is kept until the copy is over.
        #[allow(unsafe_code, reason = "device memory is written by address")]
        let copied = unsafe { from.copy_to(&to, &[]) };
        let shared = Arc::clone(shared);
        copied.on_ready(move |outcome| {
            drop(lease);
            shared.change(|state| {
                state.under_way -= 1;
                if let Err(error) = outcome {
                    state.fail(error);
                }
            });
        });
        Ok(())
    }

    /// Nothing is written any more, and the event fails with `error`, unless all bytes are on their way; the first
    /// error stays.
    pub fn poison(&self, error: &Error) {
        self.0.poison(error);
    }

    /// Bytes that have a piece, copied or under way.
    #[must_use]
    pub fn begun_bytes(&self) -> usize {
        self.0.state.lock().begun.size_bytes
    }
}

impl SinkShared {
    /// Counts a piece. Returns the copy's source and destination.
    fn begin(&self, offset_bytes: usize, size_bytes: usize, lease: &StagingLease) -> StatusOr<(RawBuffer, RawBuffer)> {
        let from = lease.memory().slice(0, size_bytes)?;
        let to = self.destination.slice(offset_bytes, size_bytes)?;
        let mut state = self.state.lock();
        state.error.clone().map_or(Ok(()), Err)?;
        let added = state.begun.add(offset_bytes, offset_bytes + size_bytes);
        let Err((first, last)) = added else {
            state.under_way += 1;
            return Ok((from, to));
        };
        drop(state);
        Err(Error::invalid_argument(format!(
            "a piece of [{offset_bytes}, {}) bytes cannot go to {:?}: [{first}, {last}) had one already",
            offset_bytes + size_bytes,
            self.destination
        )))
    }

    fn poison(&self, error: &Error) {
        self.change(|state| {
            if state.begun.size_bytes < self.destination.size_bytes() {
                state.fail(error);
            }
        });
    }

    /// Changes the state and ends the sink if it is over.
    fn change(&self, change: impl FnOnce(&mut SinkState)) {
        let mut state = self.state.lock();
        change(&mut state);
        let is_whole = state.begun.size_bytes == self.destination.size_bytes();
        let is_over = state.under_way == 0 && (is_whole || state.error.is_some());
        let ended = if is_over { state.promise.take() } else { None };
        let awaited = if is_over { state.awaited.take() } else { None };
        let outcome = state.error.clone().map_or(Ok(()), Err);
        drop(state);
        drop(awaited);
        if let Some(promise) = ended {
            promise.set(outcome);
        }
    }
}

impl SinkState {
    /// The first error stays.
    fn fail(&mut self, error: &Error) {
        self.error.get_or_insert_with(|| error.clone());
    }
}

impl Drop for StagingSink {
    fn drop(&mut self) {
        let (begun, all) = (self.begun_bytes(), self.0.destination.size_bytes());
        self.0.poison(&Error::cancelled(format!("the sink went away with {begun} of {all} bytes")));
    }
}

impl fmt::Debug for StagingSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.0.state.lock();
        let (begun, under_way) = (state.begun.size_bytes, state.under_way);
        write!(f, "StagingSink({begun} bytes begun, {under_way} pieces under way, {:?})", self.0.destination)?;
        state.error.as_ref().map_or(Ok(()), |error| write!(f, ", which has failed with {error}"))
    }
}
