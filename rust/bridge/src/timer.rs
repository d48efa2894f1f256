//! `purlin/timer.h`. Times cross as nanoseconds from now: C++ and Rust read the same monotonic clock.
//!
//! In the safety sections, "alive" means that C++ holds a reference for the length of the call.

use std::ffi::c_char;
use std::ptr;
use std::time::Duration;

use purlin_async::event::abi::EventHeader;
use purlin_async::{Event, Timer, Timers};
use purlin_ffi::panic::contain;
use purlin_ffi::words::give_event;

use crate::cancel::label;

/// What a `purlin::Timer` points to: a box.
pub struct TimerRep(Timer);

/// A length of time from C++; negative counts as none.
pub(crate) fn duration(nanoseconds: i64) -> Duration {
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(0))
}

/// A timer, C++'s.
///
/// # Safety
/// `name` is static and ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_timer_new(delay_ns: i64, name: *const c_char) -> *mut TimerRep {
    contain("purlin_timer_new", ptr::null_mut(), || {
        // SAFETY: the caller's promise.
        let timer = Timers::shared().event_after(duration(delay_ns), unsafe { label(name) });
        Box::into_raw(Box::new(TimerRep(timer)))
    })
}

/// The event, with one reference, C++'s.
///
/// # Safety
/// `timer` is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_timer_event(timer: *const TimerRep) -> *mut EventHeader {
    give_event(|| {
        Ok({
            // SAFETY: alive.
            unsafe { (*timer).0.event() }.clone()
        })
    })
}

/// Cancels; false if it was too late.
///
/// # Safety
/// The caller owns the timer and gives it up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_timer_cancel(timer: *mut TimerRep) -> bool {
    contain("purlin_timer_cancel", false, || {
        // SAFETY: the caller's promise.
        unsafe { Box::from_raw(timer) }.0.cancel()
    })
}

/// Lets it run without an owner.
///
/// # Safety
/// The caller owns the timer and gives it up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_timer_detach(timer: *mut TimerRep) {
    contain("purlin_timer_detach", (), || {
        // SAFETY: the caller's promise.
        unsafe { Box::from_raw(timer) }.0.detach();
    })
}

/// An event with one reference, C++'s, that completes as `event` or fails after `delay_ns`.
///
/// # Safety
/// `event` is null or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_event_with_deadline(event: *mut EventHeader, delay_ns: i64) -> *mut EventHeader {
    give_event(|| {
        Ok({
            // SAFETY: null or alive.
            let event = unsafe { Event::from_borrowed_raw(event) };
            let timers = Timers::shared();
            timers.with_deadline(&event, timers.after(duration(delay_ns)))
        })
    })
}
