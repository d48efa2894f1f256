//! Events as bare pointers: what the safe types are made of, and what the bridge gives to C++.
//!
//! "Alive" in the safety sections means: a reference is held for the whole call. Pointers may be null only where it is
//! said; null is the ready event.

use std::ffi::c_char;
use std::ptr;

use super::abi::{
    DefinitionStream, EventCell, EventHeader, EventVTable, FLAG_IGNORES_ERRORS, FLAG_LENDS_NOTHING, FLAG_OF_OTHERS,
    FLAG_POISONABLE, FLAG_STREAM, STATE_ERROR, STATE_PENDING, Waiter,
};
#[cfg(not(purlin_model))]
pub use super::several::Creditors;
use super::state::Completion;
use super::{Event, debt, describe, memory, park, refusal, rescue, waiters};
use crate::user_context::{annotate_with_id, current_id};
use purlin_base::label::Label;
use purlin_base::slab::Class;
use purlin_base::status::{Error, SourceLocation};
use purlin_base::sync::atomic::Ordering::Relaxed;

static WITH_STREAM: EventVTable =
    EventVTable { abi_size: size_of::<EventVTable>(), free: free_with_stream, payload_type: ptr::null() };

/// What owes an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwedBy {
    /// A promise of the user's, which a watchdog may break.
    User,
    /// The library: the event guards something, or follows others.
    Library,
    /// The library, which does nothing but wait for the events that this one waits for: whatever comes behind them
    /// comes behind this one.
    Others {
        /// Whether this one succeeds if they fail.
        ignores_errors: bool,
    },
    /// The library, and no memory or stack is lent until the event: a wait for it may be given up.
    Service,
}

impl OwedBy {
    pub(super) const fn flags(self) -> u16 {
        match self {
            Self::User => FLAG_POISONABLE,
            Self::Library => 0,
            Self::Others { ignores_errors: false } => FLAG_OF_OTHERS,
            Self::Others { ignores_errors: true } => FLAG_OF_OTHERS | FLAG_IGNORES_ERRORS,
            Self::Service => FLAG_LENDS_NOTHING,
        }
    }
}

/// A pending event with one reference, the caller's.
///
/// # Safety
/// `label` is a static string that ends with a NUL.
#[inline]
#[must_use]
pub unsafe fn new(label: *const c_char, location: SourceLocation, owed_by: OwedBy) -> *mut EventHeader {
    // SAFETY: the caller's promise.
    unsafe { memory::new_cell(Class::Cell, label, location, ptr::null(), owed_by.flags(), 0) }
}

/// As [`new`], for an event of `definition`.
///
/// # Safety
/// As [`new`].
#[must_use]
pub unsafe fn new_with_stream(
    label: *const c_char,
    location: SourceLocation,
    definition: DefinitionStream,
    owed_by: OwedBy,
) -> *mut EventHeader {
    const OFFSET: u16 = size_of::<EventCell>() as u16;
    // SAFETY: the caller's promise; the payload fits behind the cell, and no other thread knows the event yet.
    unsafe {
        let flags = FLAG_STREAM | owed_by.flags();
        let event = memory::new_cell(Class::WideCell, label, location, &WITH_STREAM, flags, OFFSET);
        event.byte_add(usize::from(OFFSET)).cast::<DefinitionStream>().write(definition);
        event
    }
}

/// The stream that the event belongs to, if its maker said so.
///
/// # Safety
/// `event` is null or alive.
#[must_use]
pub unsafe fn definition_stream(event: *const EventHeader) -> Option<DefinitionStream> {
    // SAFETY: alive; the payload of an event with the flag was written before the event was shared.
    unsafe {
        if event.is_null() || (*event).flags.load(Relaxed) & FLAG_STREAM == 0 {
            return None;
        }
        Some(event.byte_add(usize::from((*event).payload_offset)).cast::<DefinitionStream>().read())
    }
}

/// An event that has failed, with one reference, the caller's.
#[must_use]
pub fn new_error(error: Error, location: SourceLocation) -> *mut EventHeader {
    // SAFETY: the label is a static string.
    let event = unsafe { new(Label::default().as_cstr().as_ptr(), location, OwedBy::Library) };
    // SAFETY: the event is new and ours; it has no waiter.
    unsafe { set_error(event, error) };
    event
}

/// Notes, for reports, that `event` waits for `source`, and looks whether `source` waits for `event`.
///
/// # Errors
/// Internal, naming the cycle: `event` must then fail, with that.
///
/// # Safety
/// Both are alive.
pub unsafe fn follow(event: *mut EventHeader, source: *mut EventHeader) -> Result<(), Error> {
    // SAFETY: the caller's promise.
    unsafe { debt::follow(event, source) }
}

/// Asked before a thread frees an event that a watchdog may poison and that is [followed](super::abi::FLAG_FOLLOWED),
/// after its last reference is gone: false if a watchdog has taken one meanwhile; then the watchdog frees it.
///
/// # Safety
/// The caller gave up the last reference, and frees the event if this says so.
#[must_use]
#[inline]
pub unsafe fn may_free_followed(event: *mut EventHeader) -> bool {
    // SAFETY: the caller's promise.
    unsafe { rescue::may_free_followed(event) }
}

/// Releases the error, if there is one.
///
/// # Safety
/// The last reference is gone.
pub(super) unsafe fn drop_error(event: *mut EventHeader) {
    // SAFETY: no other thread can reach the event; in ERROR it owns its error.
    unsafe {
        if (*event).state() == STATE_ERROR {
            drop(Error::from_raw((*event).error.load(Relaxed).cast()));
        }
    }
}

/// Frees a plain event whose last reference is gone.
///
/// # Safety
/// No reference to the event remains.
unsafe fn free(event: *mut EventHeader) {
    // SAFETY: the caller's promise; plain events are of this class.
    unsafe {
        if !rescue::may_free(event) {
            return;
        }
        drop_error(event);
        memory::free_cell(Class::Cell, event);
    }
}

unsafe extern "C" fn free_with_stream(event: *mut EventHeader) {
    // SAFETY: called for the last reference of an event from new_with_stream(); the payload needs no destructor.
    unsafe {
        if !rescue::may_free(event) {
            return;
        }
        drop_error(event);
        memory::free_cell(Class::WideCell, event);
    }
}

/// One reference less; the last frees the event.
///
/// # Safety
/// The caller owns a reference and gives it up.
#[inline]
pub unsafe fn release(event: *mut EventHeader) {
    // SAFETY: alive until release(); if it was the last reference, no other thread can reach the cell.
    unsafe {
        if (*event).release() {
            match (*event).vtable.as_ref() {
                None => free(event),
                Some(vtable) => (vtable.free)(event),
            }
        }
    }
}

/// True if this call made the event happen; its waiters have then run or are queued on this thread.
///
/// # Safety
/// `event` is alive.
#[inline]
pub unsafe fn set_ready(event: *mut EventHeader) -> bool {
    // SAFETY: alive.
    match unsafe { (*event).try_ready() } {
        Some(completion) => {
            // SAFETY: alive, and just completed by us.
            unsafe { finish(event, completion) };
            true
        }
        None => false,
    }
}

/// True if this call made the event fail; its waiters have then run or are queued on this thread.
///
/// # Safety
/// `event` is alive.
pub unsafe fn set_error(event: *mut EventHeader, error: Error) -> bool {
    // SAFETY: alive.
    let error = unsafe { in_context_of(event, error) };
    // SAFETY: alive.
    match unsafe { (*event).try_error(error) } {
        Ok(completion) => {
            // SAFETY: alive, and just completed by us.
            unsafe { finish(event, completion) };
            true
        }
        Err(_unused) => false,
    }
}

/// The error with the number of the user context in which the event was made, or else of the current one.
///
/// # Safety
/// `event` is alive.
#[inline]
unsafe fn in_context_of(event: *mut EventHeader, error: Error) -> Error {
    // SAFETY: alive, and all events are EventCells.
    let made_in = unsafe { (*event.cast::<EventCell>()).context.load(Relaxed) };
    match if made_in == 0 { current_id() } else { Some(made_in) } {
        None => error,
        Some(id) => annotate_with_id(error, id),
    }
}

/// Completes a pending event with an error that names it: its promise is going away.
///
/// # Safety
/// `event` is alive.
#[inline]
pub unsafe fn abandon(event: *mut EventHeader) {
    // A claimed event will be completed by the thread that claimed it, so only PENDING matters.
    // SAFETY: alive.
    unsafe {
        if (*event).state() == STATE_PENDING {
            abandon_pending(event);
        }
    }
}

/// # Safety
/// `event` is alive.
#[cold]
unsafe fn abandon_pending(event: *mut EventHeader) {
    // SAFETY: alive, and all events are EventCells.
    let cell = unsafe { &*event.cast::<EventCell>() };
    let mut message = format!("{} was abandoned: its promise was dropped before it was set", describe(cell));
    if let Some(reason) = refusal::reason() {
        message += &format!(", because {}", reason.message());
    }
    let error = Error::with_location(purlin_base::StatusCode::Internal, message, cell.location());
    // SAFETY: alive.
    refusal::forgetting(|| _ = unsafe { set_error(event, error) });
}

/// Runs the waiters and wakes the sleepers of an event that the caller has just completed.
///
/// # Safety
/// `event` is alive and terminal; `word` is the event's word before the caller's step into that state.
pub unsafe fn finish_word(event: *mut EventHeader, word: usize) {
    // SAFETY: the caller's promises.
    unsafe { finish(event, Completion::of(word)) };
}

/// # Safety
/// `event` is alive and the completion is its own.
#[inline]
pub(super) unsafe fn finish(event: *mut EventHeader, completion: Completion) {
    if completion.wake {
        // SAFETY: alive.
        park::wake(unsafe { &*event });
    }
    if completion.newest.is_null() {
        return;
    }
    // SAFETY: the completion took the list out of the word, so it is ours; the event is alive and terminal.
    unsafe {
        let oldest = waiters::oldest_first(completion.newest);
        // A waiter may drop the reference that keeps the event alive (a promise, say), and the next one still reads it.
        let several = !(*oldest).next.is_null();
        let _alive = several.then(|| Event::from_borrowed_raw(event));
        waiters::run(event, oldest);
    }
}

/// Attaches `waiter`, or runs it (here, or queued on this thread) if the event is terminal or null.
///
/// # Safety
/// `event` is null or alive; `waiter` is the caller's own, aligned to 8, valid until it is invoked, and invoked once.
#[inline]
pub unsafe fn attach(event: *mut EventHeader, waiter: *mut Waiter) {
    // SAFETY: the caller's promises; a waiter that was not pushed is a list of one.
    unsafe {
        if event.is_null() || !(*event).push(waiter) {
            (*waiter).next = std::ptr::null_mut();
            waiters::run(event, waiter);
        }
    }
}

/// Queues a waiter of a terminal (or null) event until this thread's stack has unwound to its outermost waiter.
///
/// # Safety
/// As [`attach`].
pub unsafe fn defer_waiter(event: *mut EventHeader, waiter: *mut Waiter) {
    // SAFETY: the caller's promises.
    unsafe { waiters::defer(event, waiter) };
}

/// Runs what [`defer_waiter`] queued on this thread.
pub fn run_deferred_waiters() {
    waiters::run_deferred();
}

/// Blocks until the event is terminal. `timeout_ns` < 0 waits for ever.
///
/// # Errors
/// As [`Event::wait_for`].
///
/// # Safety
/// `event` is null or alive.
pub unsafe fn wait(event: *mut EventHeader, timeout_ns: i64) -> Result<(), Error> {
    // SAFETY: alive; the clone keeps it so.
    let event = unsafe { Event::from_borrowed_raw(event) };
    match u64::try_from(timeout_ns) {
        Ok(timeout_ns) => event.wait_for(std::time::Duration::from_nanos(timeout_ns)),
        Err(_forever) => event.wait(),
    }
}
