//! Device memory, read into leases, several pieces at a time: what callers see of it. `reads.rs` says how.

#![allow(unsafe_code, reason = "device memory is read by address")]

use std::fmt;
use std::sync::Arc;

use super::pool::{StagingLease, StagingPool};
use super::reads::ReadsShared;
use crate::buffer::Buffer;
use crate::raw_buffer::RawBuffer;
use purlin_async::event::Event;
use purlin_base::status::{Error, SourceLocation, StatusOr};

/// See the module. Dropping it cancels the pieces that wait for a lease, and does not wait; each read's end is reported
/// all the same.
///
/// ```
/// use std::sync::mpsc;
///
/// use purlin::{Buffer, StagedPiece, StagingCopier, StagingOptions, StagingPool, StatusOr};
/// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
/// # let space = client.devices()[0].default_memory_space();
///
/// let options = StagingOptions { lease_bytes: 4, lease_count: 1, ..Default::default() };
/// let pool = StagingPool::new(&client.devices()[0].memory_space("pinned_host")?, &options)?;
/// let (buffer, (sender, receiver)) = (Buffer::from_slice(b"abcdef", &[6], &space)?, mpsc::channel());
/// let send = move |piece: StatusOr<StagedPiece>| sender.send(piece.map(|piece| piece.bytes().to_vec())).unwrap();
/// let copier = StagingCopier::new(&pool);
/// copier.read_buffer(&buffer, send)?.wait()?;
/// assert_eq!(receiver.iter().collect::<StatusOr<Vec<_>>>()?, [b"abcd".to_vec(), b"ef".to_vec()]);
/// # Ok::<(), purlin::Error>(())
/// ```
pub struct StagingCopier(Arc<ReadsShared>);

/// A piece of a read, in a lease.
///
/// ```
/// use std::sync::mpsc;
///
/// use purlin::{Buffer, StagedPiece, StagingCopier, StagingOptions, StagingPool, StatusOr};
/// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
/// # let space = client.devices()[0].default_memory_space();
///
/// let options = StagingOptions { lease_bytes: 4, lease_count: 1, ..Default::default() };
/// let pool = StagingPool::new(&client.devices()[0].memory_space("pinned_host")?, &options)?;
/// let (buffer, (sender, receiver)) = (Buffer::from_slice(b"abcdef", &[6], &space)?, mpsc::channel());
/// let note = move |piece: StatusOr<StagedPiece>| {
///     sender.send(piece.map(|piece| (piece.offset_bytes(), piece.size_bytes(), piece.is_last()))).unwrap();
/// };
/// StagingCopier::new(&pool).read_buffer(&buffer, note)?.wait()?;
/// assert_eq!(receiver.iter().collect::<StatusOr<Vec<_>>>()?, [(0, 4, false), (4, 2, true)]);
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Debug)]
pub struct StagedPiece {
    pub(super) offset_bytes: usize,
    pub(super) size_bytes: usize,
    pub(super) is_last: bool,
    pub(super) lease: StagingLease,
}

impl StagedPiece {
    /// Of its first byte, in what is read.
    #[must_use]
    pub fn offset_bytes(&self) -> usize {
        self.offset_bytes
    }

    /// How many bytes it has.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    /// No piece of the read follows it.
    #[must_use]
    pub fn is_last(&self) -> bool {
        self.is_last
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.lease.bytes()[..self.size_bytes]
    }

    /// The memory alone, whose first bytes are the piece's.
    pub fn into_lease(self) -> StagingLease {
        self.lease
    }
}

impl StagingCopier {
    /// A copier that uses as many leases of `pool` at a time as it can get.
    #[must_use]
    pub fn new(pool: &StagingPool) -> Self {
        Self(Arc::new(ReadsShared::new(pool)))
    }

    /// Reads all bytes of `source`, after `dependencies`. Never blocks; small copies run inside this call, or inside
    /// the drop of a lease.
    ///
    /// `on_piece` is called with each piece in order, and then dropped; the event happens after that, and when no copy
    /// reads the source any more. Both get the same error: what a dependency or a copy has failed with;
    /// `InvalidArgument`: `source` is of another client than the pool; `Cancelled`: the copier was dropped first, or
    /// the client has shut down; `Internal`: `on_piece` panicked. The end of a read of no bytes is reported by the
    /// event only.
    ///
    /// # Safety
    /// From the moment when the dependencies have happened until the event is terminal, nothing writes the bytes of
    /// `source`.
    #[track_caller]
    pub unsafe fn read(
        &self,
        source: &RawBuffer,
        dependencies: &[Event],
        on_piece: impl FnMut(StatusOr<StagedPiece>) + Send + 'static,
    ) -> Event {
        // SAFETY: the caller's promise.
        unsafe { self.read_fallibly(source, dependencies, content(on_piece)) }
    }

    /// As [`read`](Self::read); an error of `on_piece` ends the read, and is the event's.
    ///
    /// # Safety
    /// As [`read`](Self::read).
    #[doc(hidden)]
    #[track_caller]
    pub unsafe fn read_fallibly(
        &self,
        source: &RawBuffer,
        dependencies: &[Event],
        on_piece: impl FnMut(StatusOr<StagedPiece>) -> Result<(), Error> + Send + 'static,
    ) -> Event {
        self.0.read(source.clone(), dependencies.to_vec(), None, SourceLocation::of_call(), Box::new(on_piece))
    }

    /// As [`read`](Self::read), the bytes of `buffer` as they stand on the device, once it is ready. While the read
    /// lasts, the buffer is not donated.
    ///
    /// A client that shuts down fails the copies, not a read that waits for leases: their owners must release them.
    ///
    /// # Errors
    /// As [`Buffer::usage_hold`]; `on_piece` is then dropped uncalled.
    #[track_caller]
    pub fn read_buffer(
        &self,
        buffer: &Buffer,
        on_piece: impl FnMut(StatusOr<StagedPiece>) + Send + 'static,
    ) -> StatusOr<Event> {
        self.read_buffer_fallibly(buffer, content(on_piece))
    }

    /// As [`read_buffer`](Self::read_buffer); an error of `on_piece` ends the read, and is the event's.
    ///
    /// # Errors
    /// As [`read_buffer`](Self::read_buffer).
    #[doc(hidden)]
    #[track_caller]
    pub fn read_buffer_fallibly(
        &self,
        buffer: &Buffer,
        on_piece: impl FnMut(StatusOr<StagedPiece>) -> Result<(), Error> + Send + 'static,
    ) -> StatusOr<Event> {
        let hold = buffer.usage_hold()?;
        let (source, ready) = (hold.memory().clone(), hold.ready_event());
        Ok(self.0.read(source, vec![ready], Some(hold), SourceLocation::of_call(), Box::new(on_piece)))
    }

    /// What dropping it does, for code that shares it: pieces that wait for a lease, and those of later reads, are
    /// cancelled. Again: nothing happens.
    pub fn close(&self) {
        self.0.close();
    }
}

/// `on_piece`, which has no errors.
fn content(
    mut on_piece: impl FnMut(StatusOr<StagedPiece>) + Send + 'static,
) -> impl FnMut(StatusOr<StagedPiece>) -> Result<(), Error> + Send + 'static {
    move |piece| {
        on_piece(piece);
        Ok(())
    }
}

impl Drop for StagingCopier {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for StagingCopier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
