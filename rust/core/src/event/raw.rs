//! Events as bare pointers: what the safe types are made of, and what the bridge gives to C++.
//!
//! "Alive" in the safety sections means: somebody who does not let go during the call holds a reference. Pointers may be
//! null only where it is said; null is the ready event.

use std::ffi::c_char;

use super::abi::{EventCell, EventHeader, EventVTable, STATE_PENDING, Waiter};
use super::state::Completion;
use super::{Event, describe, park, waiters};
use crate::label::Label;
use crate::status::{SourceLocation, Status};
use crate::sync::UnsafeCell;
use crate::sync::atomic::{AtomicU32, AtomicUsize};

static PLAIN: EventVTable = EventVTable { abi_size: size_of::<EventVTable>(), free };

/// A pending event with one reference, the caller's.
///
/// # Safety
/// `label` is a static string that ends with a NUL.
#[must_use]
pub unsafe fn new(label: *const c_char, location: SourceLocation) -> *mut EventHeader {
    let header = EventHeader {
        word: AtomicUsize::new(STATE_PENDING),
        refs: AtomicU32::new(1),
        flags: 0,
        payload_offset: 0,
        vtable: &PLAIN,
        error: UnsafeCell::new(std::ptr::null()),
    };
    Box::into_raw(Box::new(EventCell { header, label, location })).cast()
}

/// An event that has failed, with one reference, the caller's.
#[must_use]
pub fn new_error(error: Status, location: SourceLocation) -> *mut EventHeader {
    // SAFETY: the label is a static string.
    let event = unsafe { new(Label::default().as_cstr().as_ptr(), location) };
    // SAFETY: the event is new and ours; nobody waits for it.
    unsafe { set_error(event, error) };
    event
}

/// Frees an event whose last reference is gone; the `free` of plain events.
///
/// # Safety
/// `event` came from [`new`] and nobody refers to it any more.
pub unsafe extern "C" fn free(event: *mut EventHeader) {
    // SAFETY: `event` is the first field of the box that new() leaked, and the caller was the last to know it.
    let cell = unsafe { Box::from_raw(event.cast::<EventCell>()) };
    // SAFETY: the event owned its error, if it had one; nobody can read it now.
    drop(cell.header.error.with(|error| unsafe { Status::from_raw(*error) }));
}

/// True if this call made the event happen; its waiters have then run or are queued on this thread.
///
/// # Safety
/// `event` is alive.
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
/// `event` is alive; `error` is not OK.
pub unsafe fn set_error(event: *mut EventHeader, error: Status) -> bool {
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

/// Completes a pending event with an error that names it: its promise is going away.
///
/// # Safety
/// `event` is alive.
pub unsafe fn abandon(event: *mut EventHeader) {
    // SAFETY: alive, and all events are EventCells.
    let cell = unsafe { &*event.cast::<EventCell>() };
    // A claimed event will be completed by whoever claimed it, so only PENDING matters.
    if cell.header.state() != STATE_PENDING {
        return;
    }
    let message = format!("{} was abandoned: its promise was dropped before it was set", describe(cell));
    let error = Status::with_location(crate::StatusCode::Internal, message, cell.location);
    // SAFETY: alive.
    unsafe { set_error(event, error) };
}

/// # Safety
/// `event` is alive and the completion is its own.
unsafe fn finish(event: *mut EventHeader, completion: Completion) {
    if completion.wake {
        // SAFETY: alive.
        park::wake(unsafe { &*event });
    }
    // SAFETY: the completion took the list out of the word, so it is ours; the event is alive and terminal.
    unsafe {
        let oldest = waiters::oldest_first(completion.newest);
        // A waiter may drop the reference that keeps the event alive (a promise, say), and the next one still reads it.
        let several = !oldest.is_null() && !(*oldest).next.is_null();
        let _alive = several.then(|| Event::from_borrowed_raw(event));
        waiters::run(event, oldest);
    }
}

/// Attaches `waiter`, or runs it (here, or queued on this thread) if the event is terminal or null.
///
/// # Safety
/// `event` is null or alive; `waiter` is the caller's own, aligned to 8, valid until it is invoked, and invoked once.
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

/// Blocks until the event is terminal: OK or its error. `timeout_ns` < 0 waits for ever.
///
/// # Safety
/// `event` is null or alive.
#[must_use]
pub unsafe fn wait(event: *mut EventHeader, timeout_ns: i64) -> Status {
    // SAFETY: alive; the clone keeps it so.
    let event = unsafe { Event::from_borrowed_raw(event) };
    let result = match u64::try_from(timeout_ns) {
        Ok(timeout_ns) => event.wait_for(std::time::Duration::from_nanos(timeout_ns)),
        Err(_forever) => event.wait(),
    };
    result.err().unwrap_or_default()
}

/// The label that the event was made with; static, ends with a NUL.
///
/// # Safety
/// `event` is alive.
#[must_use]
pub unsafe fn label(event: *const EventHeader) -> *const c_char {
    // SAFETY: alive, and all events are EventCells.
    unsafe { (*event.cast::<EventCell>()).label }
}
