//! Something that happens once, and the waiters for it.
//!
//! States: pending, then ready or error, which never change again. [`EventPromise`] sets, [`Event`] watches. The first
//! set wins; later ones are refused and report that. A promise that is dropped unset completes its event with an error
//! that names it.
//!
//! Waiters run first in, first out, each exactly once, under no lock, on the thread that completes the event; a waiter
//! that is attached later runs at once on the attaching thread. Nesting is bounded (`waiters.rs`).
//!
//! Memory order: what a thread did before it set an event is visible to every waiter, to every wait that returned, and
//! to every thread that saw the event ready.
//!
//! Files: `abi.rs` the memory shared with C++, `state.rs` the atomic word and its rules, `waiters.rs` running them,
//! `memory.rs` where cells live, `debt.rs` and `several.rs` what completes them, `rescue.rs` how a watchdog gets hold
//! of them, `lent.rs` which waits are not given up, `inherited.rs` which have no end after a fork, `park.rs` blocking,
//! `join.rs` and `count_down.rs` several at once, `parts.rs` what stands for them, `error_policy.rs` with which error,
//! `stream_map.rs` one per stream, `raw.rs` for the bridge; `refusal.rs` why a promise is dropped; `typed.rs` cells
//! with a payload, `value.rs` their safe face; `poll.rs` for Rust's `async`. Models: `loom_model.rs`.

#![allow(unsafe_code, reason = "events are intrusive, counted by hand, and shared with C++")]

#[doc(hidden)]
pub mod abi;
mod count_down;
mod debt;
#[doc(hidden)]
pub mod error_policy;
#[cfg(not(purlin_model))]
mod inherited;
mod join;
mod lent;
#[cfg_attr(purlin_model, path = "memory_model.rs")]
mod memory;
mod owing;
mod park;
mod parts;
#[cfg(not(purlin_model))]
mod pending;
#[cfg(not(purlin_model))]
mod poll;
#[doc(hidden)]
pub mod raw;
#[doc(hidden)]
pub mod refusal;
mod rescue;
#[cfg_attr(purlin_model, path = "several_model.rs")]
mod several;
#[cfg_attr(purlin_model, path = "sleepers_model.rs")]
mod sleepers;
mod state;
mod stream_map;
mod typed;
mod value;
mod waiters;

use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};
use std::time::Duration;

use crate::user_context::current_id;
use abi::{
    DEBT_KIND, EventCell, EventHeader, FLAG_KEEPS_MEMORY, FLAG_LENDS_THROUGHOUT, FLAG_POISONABLE, STATE_ERROR,
    STATE_READY,
};
use park::Patience;
use purlin_base::label::Label;
use purlin_base::status::{Error, SourceLocation};
use purlin_base::sync::atomic::Ordering::Relaxed;
use raw::OwedBy;

pub use abi::DefinitionStream;
pub use count_down::CountDown;
pub use error_policy::{ErrorPolicy, JoinOptions};
pub use join::{after_all, join_events, run_when_ready, when_all, when_all_with};
pub use owing::owed_after;
pub(crate) use park::{Blocked, Waited, has_blocking_hook, set_blocking_hook, sleeping_only};
#[cfg(not(purlin_model))]
pub(crate) use park::{end_wait, sleepers, slept_on};
pub use parts::Part;
#[cfg(not(purlin_model))]
pub(crate) use pending::{Debt, Pending, pending};
#[cfg(not(purlin_model))]
pub use poll::EventFuture;
pub use several::Awaited;
#[cfg(not(purlin_model))]
pub(crate) use sleepers::Sleeper;
pub use stream_map::StreamEventMap;
pub(crate) use value::guarded;
pub use value::{AsyncValue, AsyncValueRef};

/// PJRT's numbers.
///
/// ```
/// use purlin::{EventPromise, EventState, Error};
///
/// let promise = EventPromise::new(c"loaded");
/// let event = promise.event();
/// assert_eq!(event.state(), EventState::Unavailable);
/// promise.set_error(Error::not_found("no such file"));
/// assert_eq!(event.state(), EventState::Error);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum EventState {
    /// Pending.
    Unavailable = 0,
    /// Happened.
    Ready = 1,
    /// Failed; [`Event::error`] says why.
    Error = 2,
}

/// A reference to an event: one word, cheap to clone. `Event::default()` has already happened.
///
/// ```
/// use purlin::{EventPromise, when_all};
///
/// let (left, right) = (EventPromise::new(c"left"), EventPromise::new(c"right"));
/// let both = when_all(&[left.event(), right.event()]);
/// left.set_ready();
/// assert!(!both.is_ready());
/// right.set_ready();
/// both.wait()?;
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Default)]
#[repr(transparent)]
pub struct Event(Option<NonNull<EventHeader>>);

const _: () = assert!(size_of::<Event>() == size_of::<usize>(), "an Event is one word");

// SAFETY: the cell is shared by atomics under the rules of `state.rs`; what it owns (an error) is Send and Sync.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    /// An event that has happened; allocates nothing.
    #[must_use]
    pub const fn ready() -> Self {
        Self(None)
    }

    /// An event that has failed.
    ///
    /// ```
    /// use purlin::{Event, Error};
    ///
    /// let event = Event::from_error(Error::unavailable("no link"));
    /// assert!(event.is_ready());
    /// assert_eq!(event.wait().unwrap_err().message(), "no link");
    /// ```
    #[must_use]
    #[track_caller]
    pub fn from_error(error: Error) -> Self {
        let place = SourceLocation::caller();
        // SAFETY: the new event's one reference.
        unsafe { Self::from_raw(raw::new_error(error, place)) }
    }

    #[inline]
    fn header(&self) -> Option<&EventHeader> {
        // SAFETY: our reference keeps the cell alive.
        self.0.map(|header| unsafe { header.as_ref() })
    }

    /// The cell around the header.
    fn cell(&self) -> Option<&EventCell> {
        // SAFETY: all events are made by `raw::new`, as the first field of an EventCell. The pointer, unlike a
        // reference to the header, may be widened.
        self.0.map(|header| unsafe { header.cast::<EventCell>().as_ref() })
    }

    /// True once the event has happened or failed. Never blocks.
    #[inline]
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.header().is_none_or(EventHeader::is_terminal)
    }

    /// Never blocks.
    #[must_use]
    pub fn state(&self) -> EventState {
        match self.header().map_or(STATE_READY, EventHeader::state) {
            STATE_READY => EventState::Ready,
            STATE_ERROR => EventState::Error,
            _ => EventState::Unavailable,
        }
    }

    /// The error if the event has failed; `None` also while it is pending. Never blocks.
    #[must_use]
    pub fn error(&self) -> Option<Error> {
        self.header().and_then(EventHeader::error)
    }

    /// As [`error`](Self::error), of an event that is terminal.
    fn outcome(&self) -> Result<(), Error> {
        self.error().map_or(Ok(()), Err)
    }

    /// Makes a pending event fail, past its promise: for watchdogs. False, and nothing changes, if it was set before or
    /// may not be poisoned.
    pub(crate) fn poison(&self, error: Error) -> bool {
        // SAFETY: our reference keeps the event alive.
        self.is_poisonable() && unsafe { raw::set_error(self.as_raw(), error) }
    }

    /// Whether it is pending, a promise of the user's owes it and follows nothing, and no memory is kept until it.
    pub(crate) fn is_poisonable(&self) -> bool {
        self.header().is_some_and(|header| {
            let is_the_users = header.flags.load(Relaxed) & (FLAG_POISONABLE | FLAG_KEEPS_MEMORY) == FLAG_POISONABLE;
            is_the_users && !header.is_terminal() && header.error.load(Relaxed).addr() & DEBT_KIND == 0
        })
    }

    /// The pending events that user's promises owe and that this one waits for, as far as they may be poisoned.
    pub(crate) fn roots(&self) -> Vec<Self> {
        rescue::roots(self)
    }

    /// Memory is kept until the event, so a watchdog does not poison it, nor what it waits for.
    pub fn keeps_memory(&self) {
        if let Some(header) = self.header().filter(|header| !header.is_terminal()) {
            header.flags.fetch_or(FLAG_KEEPS_MEMORY, Relaxed);
        }
    }

    /// As [`wait`](Self::wait), but returns only when the event is terminal: for callers that lend memory or a stack
    /// until then, as all waits of the library's own do. No watchdog may end such a wait, so the event must be none
    /// that a user's promise owes.
    ///
    /// # Errors
    /// The event's.
    #[doc(hidden)]
    pub fn wait_uninterruptible(&self) -> Result<(), Error> {
        self.assert_guards();
        if self.header().is_none_or(|header| header.state() == STATE_READY) {
            return Ok(());
        }
        self.wait_slowly(Patience::Endless)
    }

    /// As [`wait_uninterruptible`](Self::wait_uninterruptible), for a caller that lends nothing until this yet.
    ///
    /// # Errors
    /// As there, and as [`check_wait`](Self::check_wait).
    #[doc(hidden)]
    pub fn wait_unlent(&self) -> Result<(), Error> {
        self.check_wait()?;
        self.wait_uninterruptible()
    }

    /// For a call that will wait for this uninterruptibly, before anything is lent until it.
    ///
    /// # Errors
    /// `FailedPrecondition`: the wait would never end; as [`wait`](Self::wait).
    pub fn check_wait(&self) -> Result<(), Error> {
        self.header().and_then(|header| owing::why_never(header, true)).map_or(Ok(()), Err)
    }

    /// As [`wait_uninterruptible`](Self::wait_uninterruptible), for at most `timeout`.
    ///
    /// # Errors
    /// As [`wait_for`](Self::wait_for).
    #[doc(hidden)]
    pub fn wait_uninterruptible_for(&self, timeout: Duration) -> Result<(), Error> {
        self.assert_guards();
        self.wait_for(timeout)
    }

    fn assert_guards(&self) {
        debug_assert!(
            !self.is_poisonable(),
            "the library waits for {self:?} (made at {}), which a watchdog may poison",
            self.location()
        );
    }

    /// What the event was named.
    #[must_use]
    pub fn label(&self) -> Label {
        self.cell().map(EventCell::label).unwrap_or_default()
    }

    /// Where the event was made.
    pub fn location(&self) -> SourceLocation {
        self.cell().map_or(SourceLocation::UNKNOWN, EventCell::location)
    }

    /// The stream that the event belongs to, if its maker said so.
    #[must_use]
    pub fn definition_stream(&self) -> Option<DefinitionStream> {
        // SAFETY: our reference keeps the event alive.
        unsafe { raw::definition_stream(self.as_raw()) }
    }

    /// True while the event has waiters: a closure is attached or a thread sleeps. Other threads may change that at any
    /// time.
    #[must_use]
    pub fn has_waiters(&self) -> bool {
        self.header().is_some_and(EventHeader::has_waiters)
    }

    /// The number of references; 0 for [`Event::ready`], which is not counted. Other threads may change it at any time.
    #[must_use]
    pub fn ref_count(&self) -> usize {
        self.header().map_or(0, |header| header.ref_count() as usize)
    }

    /// Blocks until the event is terminal. In a task of a [`ThreadPool`](crate::ThreadPool), the tasks that this task
    /// has scheduled may run here meanwhile, and a spare thread may take this one's place. So a task may wait for tasks
    /// of the same pool. A task that runs here meanwhile must not wait for what this one does later.
    ///
    /// # Errors
    /// The event's error. In a task of a pool, [`ResourceExhausted`](purlin_base::StatusCode::ResourceExhausted),
    /// naming the pool and the event, which stays pending: all threads of the pool wait while tasks are queued, and for
    /// a second the system has refused a further one (or the pool has 16384 spares already). This does not happen where
    /// memory or a stack may be lent until the event: a wait for a copy, for what [`EventPromise::guarding`] made, or
    /// for what follows such an event returns when that is terminal, and meanwhile runs queued tasks, 32 deep. Where
    /// tasks wait for what they owe each other, [`DeadlineExceeded`](purlin_base::StatusCode::DeadlineExceeded), if a
    /// [`Watchdog`](crate::stall::Watchdog) that poisons ends the wait; the event then stays pending.
    /// [`FailedPrecondition`](purlin_base::StatusCode::FailedPrecondition): it waits for an event that this thread
    /// completes once the callback that calls this has returned, such as that of a copy that releases imported memory,
    /// of a buffer whose `on_done` runs, of the reads of a copier whose `on_piece` runs; or for what a task owes that
    /// this thread runs, itself or further out, and no memory is lent until then.
    ///
    /// # Examples
    /// ```
    /// use purlin::{EventPromise, Error};
    ///
    /// let promise = EventPromise::new(c"bytes");
    /// let event = promise.event();
    /// let thread = std::thread::spawn(move || promise.set_error(Error::data_loss("truncated")));
    /// assert_eq!(event.wait(), Err(Error::data_loss("truncated")));
    /// assert!(thread.join().unwrap(), "it was the first to set the event");
    /// ```
    #[inline]
    pub fn wait(&self) -> Result<(), Error> {
        if self.header().is_none_or(|header| header.state() == STATE_READY) {
            return Ok(());
        }
        self.wait_slowly(Patience::UntilGivenUp)
    }

    /// As [`wait`](Self::wait), for at most `timeout` of the monotonic clock.
    ///
    /// # Errors
    /// The event's error, or [`DeadlineExceeded`](purlin_base::StatusCode::DeadlineExceeded), naming the event, which
    /// stays pending.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    ///
    /// use purlin::{EventPromise, StatusCode};
    ///
    /// let promise = EventPromise::new(c"answer");
    /// let error = promise.event().wait_for(Duration::ZERO).unwrap_err();
    /// assert_eq!(error.code(), StatusCode::DeadlineExceeded);
    /// assert!(!promise.event().is_ready(), "it stays pending");
    /// ```
    #[inline]
    pub fn wait_for(&self, timeout: Duration) -> Result<(), Error> {
        if self.header().is_none_or(|header| header.state() == STATE_READY) {
            return Ok(());
        }
        self.wait_slowly(Patience::Until(timeout))
    }

    #[cold]
    fn wait_slowly(&self, patience: Patience) -> Result<(), Error> {
        let (Some(header), Some(cell)) = (self.header(), self.cell()) else { return Ok(()) };
        if header.is_terminal() {
            return self.outcome();
        }
        refuse_inherited(cell)?;
        let _span =
            tracing::trace_span!(target: "purlin", "wait", label = %cell.label(), context = current_id()).entered();
        match park::wait(header, patience) {
            Waited::Over => return self.outcome(),
            Waited::GivenUp(why) => return Err(why),
            Waited::Late => {}
        }
        let timeout = if let Patience::Until(timeout) = patience { timeout } else { Duration::ZERO };
        let (name, place) = (describe(cell), cell.location());
        Err(Error::deadline_exceeded(format!("{name} (made at {place}) was still pending after {timeout:?}")))
    }

    /// Calls `waiter` with how the event ended, exactly once, when the event is terminal: on the thread that completes
    /// it, or inside this call if it is terminal already. It borrows that thread, so it must not block for long. A
    /// panic is reported and swallowed. It runs in the user context that is current now.
    ///
    /// ```
    /// use std::sync::mpsc;
    ///
    /// use purlin::EventPromise;
    ///
    /// let (sender, receiver) = mpsc::channel();
    /// let promise = EventPromise::new(c"copied");
    /// promise.event().on_ready(move |outcome| sender.send(outcome.clone()).unwrap());
    /// assert!(receiver.try_recv().is_err(), "not yet");
    /// promise.set_ready();
    /// assert_eq!(receiver.try_recv().unwrap(), Ok(()));
    /// ```
    #[inline]
    pub fn on_ready(&self, waiter: impl FnOnce(&Result<(), Error>) + Send + 'static) {
        let state = self.header().map_or(STATE_READY, EventHeader::state);
        if matches!(state, STATE_READY | STATE_ERROR) && waiters::may_nest() {
            let outcome = if state == STATE_READY { Ok(()) } else { self.outcome() };
            return waiters::nested(|| waiters::call(waiter, &outcome));
        }
        let node = waiters::new(waiter);
        // SAFETY: the node is new; the event is alive because we hold it.
        unsafe { raw::attach(self.as_raw(), node) };
    }

    /// The cell, borrowed; null for [`Event::ready`].
    #[must_use]
    pub fn as_raw(&self) -> *mut EventHeader {
        self.0.map_or(ptr::null_mut(), NonNull::as_ptr)
    }

    /// Gives the reference away. Take it back with [`from_raw`](Self::from_raw).
    #[doc(hidden)]
    #[must_use]
    pub fn into_raw(self) -> *mut EventHeader {
        ManuallyDrop::new(self).as_raw()
    }

    /// Takes a reference back; null is [`Event::ready`].
    ///
    /// # Safety
    /// `header` is null or a reference that was given away, once per call.
    #[doc(hidden)]
    #[must_use]
    pub unsafe fn from_raw(header: *mut EventHeader) -> Self {
        Self(NonNull::new(header))
    }

    /// One more reference to an event that the caller holds by another reference; null is [`Event::ready`].
    ///
    /// # Safety
    /// `header` is null or an event that is alive during this call.
    #[doc(hidden)]
    #[must_use]
    pub unsafe fn from_borrowed_raw(header: *mut EventHeader) -> Self {
        // SAFETY: the borrow lasts for this function; the clone counts for itself.
        let borrowed = ManuallyDrop::new(unsafe { Self::from_raw(header) });
        Self::clone(&borrowed)
    }
}

impl Clone for Event {
    #[inline]
    fn clone(&self) -> Self {
        if let Some(header) = self.header() {
            header.retain();
        }
        Self(self.0)
    }
}

impl Drop for Event {
    #[inline]
    fn drop(&mut self) {
        let Some(header) = self.0 else { return };
        // SAFETY: our reference, which ends here.
        unsafe { raw::release(header.as_ptr()) };
    }
}

impl PartialEq for Event {
    /// The same event, not an equal one.
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Event({:?}, {:?})", self.label(), self.state())
    }
}

/// The side that makes an event happen. Sets may race; the first wins.
///
/// ```
/// use purlin::EventPromise;
///
/// let promise = EventPromise::new(c"gradient");
/// let event = promise.event();
/// drop(promise);
/// let error = event.wait().unwrap_err();
/// assert!(error.message().contains("gradient"), "a lost promise is an error that names it: {error}");
/// ```
pub struct EventPromise(Event);

impl EventPromise {
    /// A new pending event, known by `label` and by the place of the caller. A watchdog may
    /// [poison](crate::stall::WatchdogAction::Poison) it; see [`guarding`](Self::guarding).
    #[inline]
    #[must_use]
    #[track_caller]
    pub fn new(label: impl Into<Label>) -> Self {
        Self::owed_by(OwedBy::User, label, SourceLocation::caller())
    }

    /// As [`new`](Self::new), for an event until which other code may still use something: memory, a stack, a thread.
    /// No watchdog poisons it.
    #[inline]
    #[must_use]
    #[track_caller]
    pub fn guarding(label: impl Into<Label>) -> Self {
        Self::owed_by(OwedBy::Library, label, SourceLocation::caller())
    }

    /// A new pending event that `who` owes, known by `label` and by `place`: [`new`](Self::new) is that of a user at
    /// the caller's place, and [`guarding`](Self::guarding) that of the library. Neither looks for a place that is
    /// [stated](purlin_base::status::called_from) around the call.
    #[doc(hidden)]
    #[inline]
    pub fn owed_by(who: OwedBy, label: impl Into<Label>, place: SourceLocation) -> Self {
        // SAFETY: a Label is a static string with a NUL; the new event's one reference becomes ours.
        Self(unsafe { Event::from_raw(raw::new(label.into().as_cstr().as_ptr(), place, who)) })
    }

    /// A new pending event with the label, place and stream of `other`; reports take it to be owed by `other`.
    pub fn in_place_of(other: &Event) -> Self {
        const OF_ANOTHER: OwedBy = OwedBy::Others { ignores_errors: false };
        let (label, place) = (other.label().as_cstr().as_ptr(), other.location());
        // SAFETY: as in new().
        let promise = Self(unsafe {
            Event::from_raw(match other.definition_stream() {
                Some(definition) => raw::new_with_stream(label, place, definition, OF_ANOTHER),
                None => raw::new(label, place, OF_ANOTHER),
            })
        });
        promise.waits_for(other);
        promise
    }

    /// Notes, for reports, that `other` completes the event, which is new.
    pub fn waits_for(&self, other: &Event) {
        if !other.is_ready()
            && let Some(event) = self.0.header()
        {
            // SAFETY: our reference keeps it alive, the caller's the other one.
            debt::note(event, unsafe { debt::to(other.as_raw()) });
        }
    }

    /// As [`waits_for`](Self::waits_for), for several events, to which nothing is attached; something is lent until
    /// this one also while it waits for them. The returned value must be dropped before the event is set.
    #[must_use]
    pub fn waits_for_all(&self, others: &[Event]) -> Option<Awaited> {
        #[cfg_attr(purlin_model, allow(unused_unsafe, reason = "models note nothing"))]
        // SAFETY: our reference keeps it alive; it is new, and the caller drops the answer while it is pending.
        let awaited = self.0.header().and_then(|event| unsafe { Awaited::of(event, others) });
        if awaited.is_some() {
            self.lends_throughout();
        }
        awaited
    }

    /// Notes that something is lent until the event, which is new, also while it waits for others: a wait for it is not
    /// given up.
    #[doc(hidden)]
    pub fn lends_throughout(&self) {
        if let Some(event) = self.0.header() {
            event.flags.store(event.flags.load(Relaxed) | FLAG_LENDS_THROUGHOUT, Relaxed);
        }
    }

    /// Takes back what [`waits_for`](Self::waits_for) has noted: the event waits for something else now.
    pub fn waits_no_more(&self) {
        if let Some(event) = self.0.header() {
            debt::note(event, 0);
        }
    }

    /// As [`waits_for`](Self::waits_for), for an event that others may wait for already.
    ///
    /// # Errors
    /// Internal, naming the cycle, if `other` waits for this one: it must then fail, with that.
    pub fn follow(&self, other: &Event) -> Result<(), Error> {
        // SAFETY: our reference keeps it alive, the caller's the other one.
        if other.is_ready() { Ok(()) } else { unsafe { debt::follow(self.0.as_raw(), other.as_raw()) } }
    }

    /// As [`new`](Self::new), for an event that a stream orders.
    ///
    /// ```
    /// use purlin::{DefinitionStream, EventPromise};
    ///
    /// let definition = DefinitionStream { stream: 0x51, sequence_number: 3 };
    /// let promise = EventPromise::with_definition_stream(c"kernel", definition);
    /// assert_eq!(promise.event().definition_stream(), Some(definition));
    /// # promise.set_ready();
    /// ```
    #[must_use]
    #[track_caller]
    pub fn with_definition_stream(label: impl Into<Label>, definition: DefinitionStream) -> Self {
        let place = SourceLocation::caller();
        // SAFETY: as in new().
        Self(unsafe {
            Event::from_raw(raw::new_with_stream(label.into().as_cstr().as_ptr(), place, definition, OwedBy::User))
        })
    }

    /// Takes over a promise that C++ made.
    ///
    /// # Safety
    /// `event` is not null, and the reference was the promise's, given away.
    #[doc(hidden)]
    #[must_use]
    pub unsafe fn from_raw(event: *mut EventHeader) -> Self {
        // SAFETY: the caller's promise.
        Self(unsafe { Event::from_raw(event) })
    }

    /// Another reference to the event.
    #[inline]
    #[must_use]
    pub fn event(&self) -> Event {
        self.0.clone()
    }

    /// Makes the event happen and runs its waiters on this thread. False, and nothing changes, if it was set before.
    ///
    /// ```
    /// use purlin::{EventPromise, Error};
    ///
    /// let promise = EventPromise::new(c"once");
    /// assert!(promise.set_ready());
    /// assert!(!promise.set_error(Error::internal("too late")));
    /// assert_eq!(promise.event().error(), None);
    /// ```
    #[inline]
    pub fn set_ready(&self) -> bool {
        // SAFETY: our reference keeps the event alive.
        unsafe { raw::set_ready(self.0.as_raw()) }
    }

    /// Makes the event fail and runs its waiters on this thread. False, and nothing changes, if it was set before.
    ///
    /// ```
    /// use purlin::{EventPromise, Error};
    ///
    /// let promise = EventPromise::new(c"download");
    /// assert!(promise.set_error(Error::unavailable("no network")));
    /// assert_eq!(promise.event().error(), Some(Error::unavailable("no network")));
    /// ```
    pub fn set_error(&self, error: Error) -> bool {
        // SAFETY: our reference keeps the event alive.
        unsafe { raw::set_error(self.0.as_raw(), error) }
    }

    /// [`set_ready`](Self::set_ready) or [`set_error`](Self::set_error).
    pub fn set(&self, outcome: Result<(), Error>) -> bool {
        match outcome {
            Ok(()) => self.set_ready(),
            Err(error) => self.set_error(error),
        }
    }

    /// Makes the event follow `other`: it happens or fails as that does, on the thread that completes that. An event
    /// that would follow itself, directly or through forwarded promises, values that are mapped or forwarded, and
    /// joins, fails with [`Internal`](purlin_base::StatusCode::Internal), naming the cycle, instead of never
    /// completing.
    ///
    /// ```
    /// use purlin::EventPromise;
    ///
    /// let (outer, inner) = (EventPromise::new(c"outer"), EventPromise::new(c"inner"));
    /// let event = outer.event();
    /// outer.forward(&inner.event());
    /// assert!(!event.is_ready());
    /// inner.set_ready();
    /// event.wait()?;
    /// # Ok::<(), purlin::Error>(())
    /// ```
    pub fn forward(self, other: &Event) {
        if self.0.is_ready() {
            return;
        }
        if let Err(cycle) = self.follow(other) {
            self.set_error(cycle);
            return;
        }
        other.on_ready(move |outcome| _ = self.set(outcome.clone()));
    }
}

impl Drop for EventPromise {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: our reference keeps the event alive.
        unsafe { raw::abandon(self.0.as_raw()) };
    }
}

impl fmt::Debug for EventPromise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EventPromise({:?}, {:?})", self.0.label(), self.0.state())
    }
}

/// An event in its owner's memory, or one that waits for such an event, which is still pending although a fork has made
/// this process since: no thread completes it.
fn refuse_inherited(cell: &EventCell) -> Result<(), Error> {
    #[cfg(not(purlin_model))]
    if purlin_base::slab::is_child() {
        let (name, place) = (describe(cell), cell.location());
        let forked =
            "was pending when this process was made by fork(), which copies no threads: nobody completes it here";
        if purlin_base::slab::is_inherited(cell.born_ms.load(std::sync::atomic::Ordering::Relaxed)) {
            return Err(Error::failed_precondition(format!("{name} (made at {place}) {forked}")));
        }
        if let Some(source) = inherited::source_of(cell) {
            return Err(Error::failed_precondition(format!(
                "{name} (made at {place}) waits for {source}, which {forked}"
            )));
        }
    }
    let _ = cell;
    Ok(())
}

/// How reports name an event.
fn describe(cell: &EventCell) -> String {
    let label = cell.label();
    if label == Label::default() { "an event without a label".to_owned() } else { format!("event '{label}'") }
}

#[cfg(all(test, loom))]
mod loom_model;
#[cfg(all(test, not(purlin_model)))]
mod tests;
