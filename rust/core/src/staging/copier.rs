//! Device memory, read into leases, several pieces at a time.
//!
//! A read is cut into pieces of a lease each. A piece is *waiting*, until it has a lease; *begun*, until its copy is over; then it
//! is told of, when all before it have been. Reads begin in the order in which they were asked for, and so do their pieces;
//! copies end in any order.
//!
//! Two turns, each taken by one thread at a time, without waiting for it: to begin pieces, and to tell of them. Who changes
//! something looks for work afterwards; if another thread has the turn, that one looks again before it gives the turn up, under
//! the lock. So nothing is left undone, callbacks are called one at a time and under no lock, and the stack stays flat.
//!
//! A read ends once: after its last piece, or with the first error in the order of pieces, which is told of in its place; what
//! was begun behind it is still copied, and goes back untold. A read is begun and told in the user context in which it was
//! asked for, whoever's turn it is.

#![allow(unsafe_code, reason = "device memory is read by address")]

use std::collections::VecDeque;
use std::fmt;
use std::mem;
use std::sync::Arc;

use super::pool::{StagingLease, StagingPool};
use crate::buffer::{Buffer, UsageHold};
use crate::event::{Event, EventPromise, when_all};
use crate::exec::cancel::CancelSource;
use crate::exec::guard::contained;
use crate::label::Label;
use crate::raw_buffer::RawBuffer;
use crate::status::{SourceLocation, Status, StatusOr};
use crate::sync::Mutex;
use crate::sync::atomic::AtomicBool;
use crate::sync::atomic::Ordering::Relaxed;
use crate::user_context::{self, UserContext, UserContextScope};

/// See the module. Dropping it cancels the pieces that wait for a lease, and does not wait; each read is told of its end all
/// the same.
pub struct StagingCopier(Arc<Shared>);

/// A piece of a read, in a lease.
#[derive(Debug)]
pub struct StagedPiece {
    offset_bytes: usize,
    size_bytes: usize,
    is_last: bool,
    lease: StagingLease,
}

/// Told of each piece of a read, in order, on any thread, one call at a time for all reads of a copier. An error is the last that
/// it is told, and so is the piece with [`is_last`](StagedPiece::is_last). It must not wait for the copier. Its error ends the
/// read; a panic does so with `Internal`.
type OnPiece = Box<dyn FnMut(StatusOr<StagedPiece>) -> Result<(), Status> + Send>;

struct Shared {
    pool: StagingPool,
    state: Mutex<State>,
    /// Cancelled when the copier goes.
    going: CancelSource,
}

#[derive(Default)]
struct State {
    /// Reads with pieces that wait, oldest first, each with the offset of the next.
    waiting: VecDeque<(Arc<Read>, usize)>,
    lease: Lease,
    /// Oldest first; the first has this number, the next one more.
    begun: VecDeque<Piece>,
    first_number: u64,
    begins: bool,
    tells: bool,
}

/// The lease for the next piece.
#[derive(Default)]
enum Lease {
    #[default]
    None,
    Asked,
    Here(StagingLease),
    Refused(Status),
}

struct Read {
    source: RawBuffer,
    dependencies: Vec<Event>,
    /// Taken while it is told, and when it ends.
    owed: Mutex<Option<Owed>>,
    /// A hint: pieces that wait are of no use to anybody.
    has_ended: AtomicBool,
    /// Where it was asked for.
    context: Option<UserContext>,
    /// Keeps the source from being donated.
    _hold: Option<UsageHold>,
}

struct Owed {
    on_piece: OnPiece,
    promise: EventPromise,
}

struct Piece {
    read: Arc<Read>,
    offset_bytes: usize,
    size_bytes: usize,
    is_last: bool,
    /// A read of no bytes needs no lease.
    outcome: Option<StatusOr<Option<StagingLease>>>,
}

/// What the thread that begins pieces finds.
enum Look {
    Begin(Begin),
    /// A lease must be asked for.
    Ask,
    /// This read has been taken out.
    Again(Arc<Read>),
    /// Nothing, and a lease that is not needed.
    Over(Option<Lease>),
}

/// A piece that is to be copied.
struct Begin {
    number: u64,
    read: Arc<Read>,
    offset_bytes: usize,
    size_bytes: usize,
    lease: Option<StagingLease>,
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

    /// No piece of the read comes after it.
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
        let shared =
            Shared { pool: pool.clone(), state: Mutex::default(), going: CancelSource::new(c"staging copier") };
        Self(Arc::new(shared))
    }

    /// Reads all bytes of `source`, after `dependencies`. Never blocks; small copies run inside this call, or inside the drop of a
    /// lease.
    ///
    /// `on_piece` is told of each piece in order, and then dropped; the event happens after that. Both are told the same error:
    /// what a dependency or a copy has failed with; `InvalidArgument`: `source` is of another client than the pool; `Cancelled`:
    /// the copier went away first, or the client has shut down; `Internal`: `on_piece` panicked. A read of no bytes is told of by
    /// the event only.
    ///
    /// # Safety
    /// From the moment when the dependencies have happened until the event is terminal, nobody writes the bytes of `source`.
    #[track_caller]
    pub unsafe fn read(
        &self,
        source: &RawBuffer,
        dependencies: &[Event],
        on_piece: impl FnMut(StatusOr<StagedPiece>) + Send + 'static,
    ) -> Event {
        // SAFETY: the caller's promise.
        unsafe { self.read_at(source, dependencies, SourceLocation::caller(), content(on_piece)) }
    }

    /// As [`read`](Self::read), for a caller at `place`. An error of `on_piece` ends the read, and is the event's.
    ///
    /// # Safety
    /// As [`read`](Self::read).
    pub unsafe fn read_at(
        &self,
        source: &RawBuffer,
        dependencies: &[Event],
        place: SourceLocation,
        on_piece: impl FnMut(StatusOr<StagedPiece>) -> Result<(), Status> + Send + 'static,
    ) -> Event {
        self.0.read(source.clone(), dependencies.to_vec(), None, place, Box::new(on_piece))
    }

    /// As [`read`](Self::read), the bytes of `buffer` as they stand on the device, once it is ready. While the read goes on, the
    /// buffer is not donated.
    ///
    /// # Errors
    /// As [`Buffer::usage_hold`]; `on_piece` is then dropped uncalled.
    #[track_caller]
    pub fn read_buffer(
        &self,
        buffer: &Buffer,
        on_piece: impl FnMut(StatusOr<StagedPiece>) + Send + 'static,
    ) -> StatusOr<Event> {
        self.read_buffer_at(buffer, SourceLocation::caller(), content(on_piece))
    }

    /// As [`read_buffer`](Self::read_buffer), for a caller at `place`. An error of `on_piece` ends the read, and is the event's.
    ///
    /// # Errors
    /// As [`read_buffer`](Self::read_buffer).
    pub fn read_buffer_at(
        &self,
        buffer: &Buffer,
        place: SourceLocation,
        on_piece: impl FnMut(StatusOr<StagedPiece>) -> Result<(), Status> + Send + 'static,
    ) -> StatusOr<Event> {
        let hold = buffer.usage_hold()?;
        let (source, ready) = (hold.memory().clone(), hold.ready_event());
        Ok(self.0.read(source, vec![ready], Some(hold), place, Box::new(on_piece)))
    }

    /// What dropping it does, for who shares it: pieces that wait for a lease, and those of reads that come, are cancelled.
    /// Again: nothing happens.
    pub fn close(&self) {
        self.0.going.cancel(Status::cancelled("the staging copier went away"));
        self.0.advance();
    }
}

/// `on_piece`, which has no errors.
fn content(
    mut on_piece: impl FnMut(StatusOr<StagedPiece>) + Send + 'static,
) -> impl FnMut(StatusOr<StagedPiece>) -> Result<(), Status> + Send + 'static {
    move |piece| {
        on_piece(piece);
        Ok(())
    }
}

impl Shared {
    fn read(
        self: &Arc<Self>,
        source: RawBuffer,
        dependencies: Vec<Event>,
        hold: Option<UsageHold>,
        place: SourceLocation,
        on_piece: OnPiece,
    ) -> Event {
        let promise = EventPromise::new_at(c"staged read", place);
        let event = promise.event();
        let owed = Mutex::new(Some(Owed { on_piece, promise }));
        let has_ended = AtomicBool::new(false);
        let context = UserContext::current();
        let read = Arc::new(Read { source, dependencies, owed, has_ended, context, _hold: hold });
        self.state.lock().waiting.push_back((read, 0));
        self.advance();
        event
    }

    /// Does what there is to do, unless another thread does it.
    fn advance(self: &Arc<Self>) {
        self.begin_pieces();
        self.tell_pieces();
    }

    fn begin_pieces(self: &Arc<Self>) {
        if mem::replace(&mut self.state.lock().begins, true) {
            return;
        }
        while let Some(begin) = self.next_to_begin() {
            self.begin(begin);
        }
    }

    /// Without one, the turn is over.
    fn next_to_begin(self: &Arc<Self>) -> Option<Begin> {
        loop {
            match self.look() {
                Look::Begin(begin) => return Some(begin),
                Look::Ask => self.ask(),
                // Dropped under no lock.
                Look::Again(_read) => {}
                Look::Over(_unused) => return None,
            }
        }
    }

    fn look(&self) -> Look {
        let mut state = self.state.lock();
        let state = &mut *state;
        let Some((read, next_bytes)) = state.waiting.front_mut() else {
            state.begins = false;
            let is_asked = matches!(state.lease, Lease::Asked);
            // Others may need it.
            return Look::Over((!is_asked).then(|| mem::take(&mut state.lease)));
        };
        let (offset_bytes, all_bytes) = (*next_bytes, read.source.size_bytes());
        let size_bytes = (all_bytes - offset_bytes).min(self.pool.lease_bytes());
        let is_last = offset_bytes + size_bytes == all_bytes;
        let lease = if read.has_ended.load(Relaxed) {
            return state.waiting.pop_front().map_or(Look::Over(None), |(read, _)| Look::Again(read));
        } else if let Err(status) = self.going.token().check() {
            Err(status)
        } else if size_bytes == 0 {
            Ok(None)
        } else {
            match mem::take(&mut state.lease) {
                Lease::Here(lease) => Ok(Some(lease)),
                Lease::Refused(status) => Err(status),
                Lease::None => {
                    state.lease = Lease::Asked;
                    return Look::Ask;
                }
                Lease::Asked => {
                    state.lease = Lease::Asked;
                    state.begins = false;
                    return Look::Over(None);
                }
            }
        };
        let (number, read) = (state.first_number + state.begun.len() as u64, Arc::clone(read));
        *next_bytes += size_bytes;
        if is_last || lease.is_err() {
            state.waiting.pop_front();
        }
        let mut piece = Piece { read: Arc::clone(&read), offset_bytes, size_bytes, is_last, outcome: None };
        match lease {
            Ok(lease) => {
                state.begun.push_back(piece);
                Look::Begin(Begin { number, read, offset_bytes, size_bytes, lease })
            }
            Err(status) => {
                piece.outcome = Some(Err(status));
                state.begun.push_back(piece);
                Look::Again(read)
            }
        }
    }

    fn ask(self: &Arc<Self>) {
        let shared = Arc::clone(self);
        self.pool.acquire_then(&self.going.token(), move |answer| {
            shared.state.lock().lease = match answer {
                Ok(lease) => Lease::Here(lease),
                Err(status) => Lease::Refused(status),
            };
            shared.advance();
        });
    }

    fn begin(self: &Arc<Self>, begin: Begin) {
        let Begin { number, read, offset_bytes, size_bytes, lease } = begin;
        let scope = read.scope();
        let copied = match &lease {
            // SAFETY: who asked for the read promises that the source stays; the lease's bytes are nobody else's, and the lease
            // is kept until the copy is over.
            Some(lease) => unsafe {
                read.source.copy_range_to(offset_bytes, lease.memory(), 0, size_bytes, &read.dependencies)
            },
            None => when_all(&read.dependencies),
        };
        drop(scope);
        drop(read);
        if copied.is_ready() {
            return self.end(number, lease, copied.error());
        }
        let shared = Arc::clone(self);
        copied.on_ready(move |status| {
            shared.end(number, lease, status.clone());
            shared.advance();
        });
    }

    /// The copy of a piece is over.
    fn end(&self, number: u64, lease: Option<StagingLease>, status: Status) {
        let (outcome, unused) = if status.ok() { (Ok(lease), None) } else { (Err(status), lease) };
        let mut state = self.state.lock();
        let index = number - state.first_number;
        state.begun[usize::try_from(index).expect("a piece is told of once its copy is over")].outcome = Some(outcome);
        drop(state);
        drop(unused);
    }

    fn tell_pieces(self: &Arc<Self>) {
        if mem::replace(&mut self.state.lock().tells, true) {
            return;
        }
        loop {
            let mut state = self.state.lock();
            let Some(outcome) = state.begun.front_mut().and_then(|piece| piece.outcome.take()) else {
                state.tells = false;
                return;
            };
            let piece = state.begun.pop_front().expect("it was just looked at");
            state.first_number += 1;
            drop(state);
            piece.tell(outcome);
        }
    }
}

impl Read {
    /// Makes its context current, or none.
    fn scope(&self) -> Option<UserContextScope> {
        self.context.clone().map(UserContextScope::new).or_else(user_context::cleared)
    }
}

impl Piece {
    fn tell(self, outcome: StatusOr<Option<StagingLease>>) {
        let Self { read, offset_bytes, size_bytes, is_last, .. } = self;
        let Some(mut owed) = read.owed.lock().take() else { return };
        let (told, mut error) = match outcome {
            Ok(None) => (None, Status::OK),
            Ok(Some(lease)) => (Some(Ok(StagedPiece { offset_bytes, size_bytes, is_last, lease })), Status::OK),
            Err(status) => (Some(Err(status.clone())), status),
        };
        let scope = read.scope();
        if let Some(told) = told {
            let mut answer = Err(Status::internal("the callback of a staged read panicked"));
            call(|| answer = (owed.on_piece)(told));
            // The first error stays.
            if let (true, Err(status)) = (error.ok(), answer) {
                error = status;
            }
        }
        if error.ok() && !is_last {
            *read.owed.lock() = Some(owed);
            return;
        }
        read.has_ended.store(true, Relaxed);
        let Owed { on_piece, promise } = owed;
        call(move || drop(on_piece));
        drop(scope);
        // The source may be donated before the event says that it is over.
        drop(read);
        promise.set(error);
    }
}

fn call(stranger: impl FnOnce()) {
    // What it was to answer says whether it did.
    let _ = contained("callback of a staged read", Label::default, stranger);
}

impl Drop for StagingCopier {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for StagingCopier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.0.state.lock();
        let (waiting, begun) = (state.waiting.len(), state.begun.len());
        write!(f, "StagingCopier({waiting} reads wait, {begun} pieces are begun, {:?})", self.0.pool)
    }
}
