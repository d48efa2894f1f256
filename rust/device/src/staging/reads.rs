//! The reads of a copier, and the thread whose turn it is to serve them.
//!
//! A read is cut into pieces of a lease each. A piece is *waiting*, until it has a lease; *begun*, until its copy is
//! over; then it is reported, when all before it have been. Reads begin in the order in which they were asked for, and
//! so do their pieces; copies end in any order.
//!
//! Two turns (base's `turns.rs`): to begin pieces, and to report them. A thread that changes something looks for work
//! afterwards, unless another thread has the turn. Looks are made under the lock. So nothing is left undone, callbacks
//! are called one at a time and under no lock, and the stack stays flat.
//!
//! A read ends once: after its last piece, or with the first error in the order of pieces, which is reported in its
//! place; what was begun behind it is still copied, and its leases are given back unreported. Its event completes with
//! the last reference to it, so when no piece of it waits or is begun: the source is no longer used. A read is begun
//! and reported in the user context in which it was asked for, whichever thread has the turn.

#![allow(unsafe_code, reason = "device memory is read by address")]

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::{iter, mem};

use super::copier::StagedPiece;
use super::pool::{StagingLease, StagingPool};
use crate::buffer::UsageHold;
use crate::raw_buffer::RawBuffer;
use purlin_async::event::raw::OwedBy;
use purlin_async::event::{Awaited, Event, EventPromise, owed_after, when_all};
use purlin_async::task::cancel::CancelSource;
use purlin_async::user_context::{self, UserContext, UserContextScope};
use purlin_base::fault;
use purlin_base::label::Label;
use purlin_base::panics::{answered, contained};
use purlin_base::status::{Error, SourceLocation, StatusOr};
use purlin_base::sync::Mutex;
use purlin_base::turns::Turn;

/// What fail points and reports call `on_piece`.
const CALLBACK: &str = "callback of a staged read";

/// Called with each piece of a read, in order, on any thread, one call at a time for all reads of a copier. An error is
/// its last call, and so is the piece with [`is_last`](StagedPiece::is_last). Its wait for a read of the copier fails.
/// Its error ends the read; a panic does so with `Internal`.
pub(super) type OnPiece = Box<dyn FnMut(StatusOr<StagedPiece>) -> Result<(), Error> + Send>;

/// What a copier and the copies that it has begun share.
pub(super) struct ReadsShared {
    pool: StagingPool,
    state: Mutex<ReadsState>,
    /// Cancelled when the copier is dropped.
    going: CancelSource,
}

#[derive(Default)]
struct ReadsState {
    /// Reads with pieces that wait, oldest first, each with the offset of the next.
    waiting: VecDeque<(Arc<Read>, usize)>,
    lease: Lease,
    /// Oldest first; the first has this number, the next one more.
    begun: VecDeque<Piece>,
    first_number: u64,
    begins: Turn,
    tells: Turn,
}

/// The lease for the next piece.
#[derive(Default)]
enum Lease {
    #[default]
    None,
    Asked,
    Here(StagingLease),
    Refused(Error),
}

struct Read {
    source: RawBuffer,
    dependencies: Vec<Event>,
    /// Taken while it is called, and when the read ends.
    on_piece: Mutex<Option<OnPiece>>,
    /// Where it was asked for.
    context: Option<UserContext>,
    /// Keeps the source from being donated.
    _hold: Option<UsageHold>,
    /// Dropped last: the source is free before the event says so.
    end: End,
}

/// What the event becomes when this is dropped.
struct End {
    outcome: Mutex<Result<(), Error>>,
    /// What its pieces wait for.
    awaited: Option<Awaited>,
    promise: Option<EventPromise>,
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

impl ReadsShared {
    pub(super) fn new(pool: &StagingPool) -> Self {
        Self { pool: pool.clone(), state: Mutex::default(), going: CancelSource::new(c"staging copier") }
    }

    /// Pieces that wait for a lease, and those of later reads, are cancelled.
    pub(super) fn close(self: &Arc<Self>) {
        self.going.cancel(Error::cancelled("the staging copier went away"));
        self.advance();
    }

    pub(super) fn read(
        self: &Arc<Self>,
        source: RawBuffer,
        dependencies: Vec<Event>,
        hold: Option<UsageHold>,
        place: SourceLocation,
        on_piece: OnPiece,
    ) -> Event {
        let promise = EventPromise::owed_by(OwedBy::Library, c"staged read", place);
        let awaited = promise.waits_for_all(&[&dependencies[..], &[source.allocation_event()]].concat());
        let event = promise.event();
        let outcome = Mutex::new(Err(Error::internal("a staged read was given up")));
        let read = Read {
            source,
            dependencies,
            on_piece: Mutex::new(Some(on_piece)),
            context: UserContext::current(),
            _hold: hold,
            end: End { outcome, awaited, promise: Some(promise) },
        };
        let read = Arc::new(read);
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
        if !self.state.lock().begins.take() {
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
            state.begins.end();
            let is_asked = matches!(state.lease, Lease::Asked);
            // Others may need it.
            return Look::Over((!is_asked).then(|| mem::take(&mut state.lease)));
        };
        let (offset_bytes, all_bytes) = (*next_bytes, read.source.size_bytes());
        let size_bytes = (all_bytes - offset_bytes).min(self.pool.lease_bytes());
        let is_last = offset_bytes + size_bytes == all_bytes;
        let lease = if let Err(error) = self.going.token().check() {
            Err(error)
        } else if size_bytes == 0 {
            Ok(None)
        } else {
            match mem::take(&mut state.lease) {
                Lease::Here(lease) => Ok(Some(lease)),
                Lease::Refused(error) => Err(error),
                Lease::None => {
                    state.lease = Lease::Asked;
                    return Look::Ask;
                }
                Lease::Asked => {
                    state.lease = Lease::Asked;
                    state.begins.end();
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
            Err(error) => {
                piece.outcome = Some(Err(error));
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
                Err(error) => Lease::Refused(error),
            };
            shared.advance();
        });
    }

    fn begin(self: &Arc<Self>, begin: Begin) {
        let Begin { number, read, offset_bytes, size_bytes, lease } = begin;
        let scope = read.scope();
        let copied = match &lease {
            // SAFETY: the caller of the read promises that the source stays; the lease's bytes have no other owner, and
            // the lease is kept until the copy is over.
            Some(lease) => unsafe {
                read.source.copy_range_to(offset_bytes, lease.memory(), 0, size_bytes, &read.dependencies)
            },
            None => when_all(&read.dependencies),
        };
        drop(scope);
        drop(read);
        if copied.is_ready() {
            return self.end(number, lease, copied.error().map_or(Ok(()), Err));
        }
        let shared = Arc::clone(self);
        copied.on_ready(move |outcome| {
            shared.end(number, lease, outcome.clone());
            shared.advance();
        });
    }

    /// The copy of a piece is over.
    fn end(&self, number: u64, lease: Option<StagingLease>, copied: Result<(), Error>) {
        let (outcome, unused) = match copied {
            Ok(()) => (Ok(lease), None),
            Err(error) => (Err(error), lease),
        };
        let mut state = self.state.lock();
        let index = number - state.first_number;
        state.begun[usize::try_from(index).expect("a piece is told of once its copy is over")].outcome = Some(outcome);
        drop(state);
        drop(unused);
    }

    fn tell_pieces(self: &Arc<Self>) {
        if !self.state.lock().tells.take() {
            return;
        }
        loop {
            let mut state = self.state.lock();
            let Some(outcome) = state.begun.front_mut().and_then(|piece| piece.outcome.take()) else {
                state.tells.end();
                return;
            };
            let piece = state.begun.pop_front().expect("it was just looked at");
            state.first_number += 1;
            drop(state);
            self.tell(piece, outcome);
        }
    }

    fn tell(&self, piece: Piece, outcome: StatusOr<Option<StagingLease>>) {
        let Piece { read, offset_bytes, size_bytes, is_last, .. } = piece;
        let taken = read.on_piece.lock().take();
        let Some(mut on_piece) = taken else {
            // The memory is free before the event, which may complete here, says so.
            drop(outcome);
            return;
        };
        let (told, mut error) = match outcome {
            Ok(None) => (None, None),
            Ok(Some(lease)) => (Some(Ok(StagedPiece { offset_bytes, size_bytes, is_last, lease })), None),
            Err(error) => (Some(Err(error.clone())), Some(error)),
        };
        let scope = read.scope();
        let owes = |address| self.owes(&read, address);
        if let Some(told) = told {
            let mut answer = Ok(());
            let called = || {
                fault::callback(CALLBACK);
                on_piece(told)
            };
            owed_after(&owes, || answer = answered(|| format!("the {CALLBACK}"), called));
            // The first error stays.
            error = error.or(answer.err());
        }
        if error.is_none() && !is_last {
            *read.on_piece.lock() = Some(on_piece);
            return;
        }
        owed_after(&owes, || _ = contained(CALLBACK, Label::default, move || drop(on_piece)));
        drop(scope);
        *read.end.outcome.lock() = error.map_or(Ok(()), Err);
        drop(self.forget(&read));
    }

    /// Whether the event there is that of `told` or of another read that has pieces: such pieces are reported after
    /// this one, by the same thread.
    fn owes(&self, told: &Read, event: usize) -> bool {
        let state = self.state.lock();
        let waiting = state.waiting.iter().map(|(read, _)| &**read);
        let begun = state.begun.iter().map(|piece| &*piece.read);
        iter::once(told).chain(waiting).chain(begun).any(|read| read.end.is_at(event))
    }

    /// A read that has ended, taken out of those whose pieces wait; none, if none of its pieces does.
    fn forget(&self, read: &Arc<Read>) -> Option<(Arc<Read>, usize)> {
        let waiting = &mut self.state.lock().waiting;
        let index = waiting.iter().position(|(waiting, _)| Arc::ptr_eq(waiting, read))?;
        waiting.remove(index)
    }
}

impl End {
    fn is_at(&self, event: usize) -> bool {
        self.promise.as_ref().is_some_and(|promise| promise.event().as_raw().addr() == event)
    }
}

impl Drop for End {
    fn drop(&mut self) {
        let outcome = mem::replace(&mut *self.outcome.lock(), Ok(()));
        drop(self.awaited.take());
        if let Some(promise) = self.promise.take() {
            promise.set(outcome);
        }
    }
}

impl Read {
    /// Makes its context current, or none.
    fn scope(&self) -> Option<UserContextScope> {
        self.context.clone().map(UserContextScope::new).or_else(user_context::cleared)
    }
}

impl fmt::Debug for ReadsShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        let (waiting, begun) = (state.waiting.len(), state.begun.len());
        write!(f, "StagingCopier({waiting} reads wait, {begun} pieces are begun, {:?})", self.pool)
    }
}
