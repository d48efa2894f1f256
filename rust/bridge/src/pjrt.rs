//! `purlin/adapters/pjrt_tables.h`: what `purlin_pjrt` does, by names for C++.

use std::ffi::{c_char, c_void};
use std::ptr;

use purlin_async::Event;
use purlin_async::event::abi::EventHeader;
use purlin_base::status::StatusRep;
use purlin_ffi::handle::give;
use purlin_ffi::panic::{contain, guard};
use purlin_ffi::words::{Location, borrowed, give_event};
use purlin_pjrt::{abi, device_event, error, event, promise, raw_buffer, vector};

use crate::raw_buffer::RawBufferRep;

/// A raw buffer of PJRT's with one reference, C's, which answers `memory` when it is asked where it is.
///
/// # Safety
/// `buffer` is alive; `memory` is whatever the user knows it to be, and is not looked into.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_pjrt_give_raw_buffer(
    buffer: &RawBufferRep,
    memory: *mut c_void,
) -> *mut abi::RawBuffer {
    contain("purlin_pjrt_give_raw_buffer", ptr::null_mut(), || raw_buffer::give(buffer.0.clone(), memory))
}

/// A device event of ours with one reference, C's.
///
/// # Safety
/// `event` is null or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_pjrt_give_event(event: *mut EventHeader) -> abi::DeviceEvent {
    contain("purlin_pjrt_give_event", abi::DeviceEvent { table: ptr::null(), event: ptr::null_mut() }, || {
        // SAFETY: the caller's promise.
        device_event::give(unsafe { Event::from_borrowed_raw(event) })
    })
}

/// The event that follows `event`, whose reference is taken; C++'s.
///
/// # Safety
/// `event` is what the struct says, and the caller gives one reference up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_pjrt_take_event(event: abi::DeviceEvent) -> *mut EventHeader {
    give_event(|| {
        Ok({
            // SAFETY: the caller's promise.
            unsafe { device_event::take(event) }
        })
    })
}

/// An error of ours, C's; null for OK.
///
/// # Safety
/// `status` is null or owned by the caller, which gives it up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_pjrt_give_error(status: *const StatusRep) -> *mut abi::PjrtError {
    contain("purlin_pjrt_give_error", ptr::null_mut(), || {
        // SAFETY: the caller's promise.
        unsafe { purlin_base::Error::from_raw(status) }.map_or(ptr::null_mut(), error::give)
    })
}

/// The status that `error` says, C++'s. `error` is destroyed.
///
/// # Safety
/// `error` is null or the caller's, which gives it up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_pjrt_take_error(error: *mut abi::PjrtError) -> *const StatusRep {
    // SAFETY: the caller's promise.
    give(guard(|| unsafe { error::take(error) }.map_or(Ok(()), Err)))
}

/// A vector with a reference to each of `events`, C's.
///
/// # Safety
/// `events` points to `count` words, each null or an alive event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_pjrt_give_events(
    events: *const *mut EventHeader,
    count: usize,
) -> abi::DeviceEventVector {
    contain(
        "purlin_pjrt_give_events",
        abi::DeviceEventVector { data: ptr::null_mut(), size: 0, capacity: 0, destroy: None },
        || {
            // SAFETY: the caller's promise.
            vector::give(unsafe { borrowed(events, count) })
        },
    )
}

/// How many events [`purlin_pjrt_take_events`] will write.
///
/// # Safety
/// `events` is null or a vector.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_pjrt_count_events(events: *const abi::DeviceEventVector) -> usize {
    // SAFETY: the caller's promise.
    unsafe { vector::count(events) }
}

/// Moves the events out of `events`, which is empty then.
///
/// # Safety
/// `events` is null or a vector, whose elements the caller gives up; `out` has room for what
/// [`purlin_pjrt_count_events`] says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_pjrt_take_events(events: *mut abi::DeviceEventVector, out: *mut *mut EventHeader) {
    contain("purlin_pjrt_take_events", (), || {
        // SAFETY: the caller's promises.
        for (index, event) in unsafe { vector::take(events) }.into_iter().enumerate() {
            // SAFETY: there is room for as many.
            unsafe { out.add(index).write(event.into_raw()) };
        }
    })
}

/// A promise of ours with one reference, C's.
///
/// # Safety
/// `label` is static and ends with a NUL; `location` is what its struct says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_pjrt_new_promise(
    label: *const c_char,
    location: Location,
) -> *mut abi::DeviceEventPromise {
    contain("purlin_pjrt_new_promise", ptr::null_mut(), || {
        // SAFETY: the caller's promises; the new event's one reference becomes the promise's.
        promise::give(unsafe {
            Event::from_raw(purlin_async::event::raw::new(
                label,
                location.get(),
                purlin_async::event::raw::OwedBy::User,
            ))
        })
    })
}

/// The event of `promise`, C++'s.
///
/// # Safety
/// `promise` is null or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_pjrt_event_of(promise: *mut abi::DeviceEventPromise) -> *mut EventHeader {
    give_event(|| {
        Ok({
            // SAFETY: the caller's promise.
            unsafe { promise::event_of(promise) }
        })
    })
}

/// Makes `promise`, a reference to which is taken, follow `event`. Null, or an error, C++'s: the promise cannot be set.
///
/// # Safety
/// `promise` is null or the caller's reference, which it gives up; `event` is null or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_pjrt_forward(
    promise: *mut abi::DeviceEventPromise,
    event: *mut EventHeader,
) -> *const StatusRep {
    // SAFETY: the caller's promises.
    give(guard(|| unsafe { promise::forward(promise, &Event::from_borrowed_raw(event)) }))
}

/// The event that follows an event of a plugin, which is destroyed when it has completed if `is_ours`; C++'s.
///
/// # Safety
/// `api` is null or a plugin's table of functions, which lives until the event has completed; `event` is null or alive,
/// and the caller gives it up if `is_ours`, or else keeps it until it has completed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_pjrt_take_plugin_event(
    api: *const abi::Api,
    event: *mut c_void,
    is_ours: bool,
) -> *mut EventHeader {
    give_event(|| {
        Ok({
            // SAFETY: the caller's promises.
            unsafe { event::take(api, event, is_ours) }
        })
    })
}

/// The table of every device event that is given.
#[unsafe(no_mangle)]
pub extern "C" fn purlin_pjrt_device_event_table() -> *const abi::DeviceEventTable {
    device_event::TABLE
}

/// The table of every promise that is given.
#[unsafe(no_mangle)]
pub extern "C" fn purlin_pjrt_promise_table() -> *const abi::DeviceEventPromiseTable {
    &promise::TABLE
}

/// The table of every raw buffer that is given.
#[unsafe(no_mangle)]
pub extern "C" fn purlin_pjrt_raw_buffer_table() -> *const abi::RawBufferTable {
    &raw_buffer::TABLE
}

/// The table of every error that is given.
#[unsafe(no_mangle)]
pub extern "C" fn purlin_pjrt_error_table() -> *const abi::ErrorTable {
    &error::TABLE
}
