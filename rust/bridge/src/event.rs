//! `purlin/event.h`: what it does not do inline. Plain functions; the events themselves are in `purlin::event`.
//!
//! In the safety sections, "alive" means that C++ holds a reference for the length of the call.

use std::ffi::{c_char, c_void};
use std::ptr;

use purlin_async::event::abi::{EventHeader, Waiter};
use purlin_async::event::error_policy::merge;
use purlin_async::event::raw::{Creditors, OwedBy};
use purlin_async::event::{join_events, raw};
use purlin_async::{DefinitionStream, ErrorPolicy, Event, EventPromise, JoinOptions};
use purlin_base::Error;
use purlin_base::status::StatusRep;
use purlin_ffi::handle::{elements, give};
use purlin_ffi::number::known;
use purlin_ffi::panic::{contain, guard};
use purlin_ffi::words::{Location, borrowed};

use crate::status::given;

/// An event that has failed, with one reference, C++'s.
///
/// # Safety
/// `error` is null or owned by the caller, which gives it up; `location` is what its struct says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_event_new_error(error: *const StatusRep, location: Location) -> *mut EventHeader {
    // SAFETY: the caller's promises.
    unsafe { raw::new_error(given(error, "Event::Error"), location.get()) }
}

/// A pending event of a stream, with one reference, C++'s.
///
/// # Safety
/// `label` is static and ends with a NUL; `location` is what its struct says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_event_new_with_stream(
    label: *const c_char,
    location: Location,
    stream: usize,
    sequence_number: u64,
) -> *mut EventHeader {
    // SAFETY: the caller's promises.
    unsafe { raw::new_with_stream(label, location.get(), DefinitionStream { stream, sequence_number }, OwedBy::User) }
}

/// True, and the outputs are written, if the event belongs to a stream.
///
/// # Safety
/// `event` is null or alive; the outputs are the caller's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_event_definition_stream(
    event: *const EventHeader,
    stream: *mut usize,
    sequence_number: *mut u64,
) -> bool {
    // SAFETY: the caller's promises.
    unsafe {
        let Some(definition) = raw::definition_stream(event) else { return false };
        stream.write(definition.stream);
        sequence_number.write(definition.sequence_number);
    }
    true
}

/// Runs the waiters and wakes the sleepers of an event that C++ has just completed.
///
/// # Safety
/// `event` is alive and terminal; `word` is what its word held before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_event_finish(event: *mut EventHeader, word: usize) {
    // SAFETY: the caller's promises.
    unsafe { raw::finish_word(event, word) };
}

/// Completes `event` as `source` completes.
///
/// # Safety
/// `event` is a promise's reference, which the caller gives up; `source` is null or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_event_forward(event: *mut EventHeader, source: *mut EventHeader) {
    contain("purlin_event_forward", (), || {
        // SAFETY: the caller's promises.
        unsafe { EventPromise::from_raw(event).forward(&Event::from_borrowed_raw(source)) };
    })
}

/// Notes that `event` waits for `source`; null, or an error that names the cycle that this closes, C++'s.
///
/// # Safety
/// Both are alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_event_follow(event: *mut EventHeader, source: *mut EventHeader) -> *const StatusRep {
    // SAFETY: the caller's promise.
    give(guard(|| unsafe { raw::follow(event, source) }))
}

/// Whether a followed event may be freed.
///
/// # Safety
/// As [`raw::may_free_followed`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_event_may_free(event: *mut EventHeader) -> bool {
    // SAFETY: the caller's promise.
    unsafe { raw::may_free_followed(event) }
}

/// Notes that `event` waits for all of `sources` until [`purlin_events_arrived`]; null if there is nothing to note.
///
/// # Safety
/// `event` is new; `sources` as `borrowed`, for this call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_event_owes_several(
    event: *mut EventHeader,
    sources: *const *mut EventHeader,
    count: usize,
) -> *mut c_void {
    // SAFETY: the caller's promises.
    let noted = guard(|| Ok(unsafe { Creditors::of(event, borrowed(sources, count)) }));
    noted.unwrap_or(None).map_or(ptr::null_mut(), |several| Box::into_raw(several).cast())
}

/// One of the sources has arrived.
///
/// # Safety
/// `several` came from [`purlin_event_owes_several`]; this is called in a waiter of that source.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_event_arrived(several: *mut c_void, index: usize) {
    contain("purlin_event_arrived", (), || {
        // SAFETY: alive.
        unsafe { (*several.cast::<Creditors>()).arrived(index) };
    });
}

/// All have.
///
/// # Safety
/// `several` is null or came from [`purlin_event_owes_several`], and the caller gives it up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_events_arrived(several: *mut c_void) {
    if !several.is_null() {
        contain("purlin_events_arrived", (), || {
            // SAFETY: the caller's promise.
            drop(unsafe { Box::from_raw(several.cast::<Creditors>()) });
        });
    }
}

/// Completes the event with an error that names it, if it is pending.
///
/// # Safety
/// `event` is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_event_abandon(event: *mut EventHeader) {
    contain("purlin_event_abandon", (), || {
        // SAFETY: alive.
        unsafe { raw::abandon(event) };
    })
}

/// Blocks until terminal, for `timeout_ns` if that is not negative; null or an error, C++'s.
///
/// # Safety
/// `event` is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_event_wait(event: *mut EventHeader, timeout_ns: i64) -> *const StatusRep {
    // SAFETY: alive.
    let waited = guard(|| unsafe { raw::wait(event, timeout_ns) });
    give(waited)
}

const POLICIES: &[(&str, ErrorPolicy)] = &[
    ("kFirstByIndex", ErrorPolicy::FirstByIndex),
    ("kFirstInTime", ErrorPolicy::FirstInTime),
    ("kLastInTime", ErrorPolicy::LastInTime),
    ("kAll", ErrorPolicy::All),
];
const FAILS_FAST: &[(&str, bool)] = &[("kWait", false), ("kFailFast", true), ("kIgnore", false)];

/// An event with one reference, C++'s, that completes after all of `events`, with the numbers of C++'s `ErrorPolicy`
/// and `JoinRule`.
///
/// # Safety
/// As `borrowed`, for this call; `location` is what its struct says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_event_join(
    events: *const *mut EventHeader,
    count: usize,
    policy: u32,
    rule: u32,
    location: Location,
) -> *mut EventHeader {
    let all = guard(|| {
        // An `int` in C++.
        let policy = known("ErrorPolicy", policy.cast_signed(), POLICIES)?;
        let options = JoinOptions { policy, fail_fast: known("JoinRule", rule, FAILS_FAST)? };
        // SAFETY: the caller's promise.
        let events = unsafe { borrowed(events, count) };
        // SAFETY: the caller's promise.
        Ok(join_events(events, (rule != 2).then_some(options), || unsafe { location.get() }))
    });
    all.unwrap_or_else(Event::from_error).into_raw()
}

/// The error of a join of `total` members, `failed` of which failed, with the number of C++'s `ErrorPolicy`; null if
/// `count` is 0.
///
/// # Safety
/// `errors` points to `count` words, each null or an alive error, and `indices` to as many numbers, unchanged for this
/// call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_join_error(
    policy: u32,
    total: usize,
    failed: usize,
    errors: *const *const StatusRep,
    indices: *const usize,
    count: usize,
) -> *const StatusRep {
    give(guard(|| {
        // An `int` in C++.
        let policy = known("ErrorPolicy", policy.cast_signed(), POLICIES)?;
        // SAFETY: the caller's promises.
        let (reps, indices) = unsafe { (elements(errors, count), elements(indices, count)) };
        // SAFETY: null or alive.
        let errors: Vec<_> = reps.iter().map(|rep| unsafe { Error::from_borrowed_raw(*rep) }).collect();
        let failures = indices.iter().zip(&errors).filter_map(|(index, error)| Some((*index, error.as_ref()?)));
        merge(policy, total, failed, &failures.collect::<Vec<_>>())
    }))
}

/// Queues a waiter of a terminal event until this thread's stack has unwound to its outermost waiter.
///
/// # Safety
/// `event` is null or alive and terminal; `waiter` is valid until it is invoked, and the caller's own until now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_event_defer_waiter(event: *mut EventHeader, waiter: *mut Waiter) {
    // SAFETY: the caller's promises.
    unsafe { raw::defer_waiter(event, waiter) };
}

/// Runs what [`purlin_event_defer_waiter`] queued on this thread.
#[unsafe(no_mangle)]
pub extern "C" fn purlin_event_run_deferred_waiters() {
    raw::run_deferred_waiters();
}
