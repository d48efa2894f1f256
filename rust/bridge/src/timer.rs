//! `purlin/timer.h`. Times cross as nanoseconds from now: C++ and Rust read the same monotonic clock.

use std::ffi::c_char;
use std::ptr;
use std::time::Duration;

use purlin_async::{Event, Timer, Timers};
use purlin_base::slab::SlabBox;
use purlin_ffi::handle::{own, owned};
use purlin_ffi::panic::contain;
use purlin_ffi::words::give_event;

use crate::cancel::label;

/// What a `purlin::Timer` points to: C++'s alone.
pub struct TimerRep(Timer);

#[cxx::bridge(namespace = "purlin::ffi")]
pub(crate) mod ffi {
    unsafe extern "C++" {
        include!("purlin/internal/abi.h");

        #[namespace = "purlin::v0::internal"]
        type EventHeader = crate::abi::ffi::EventHeader;
    }

    extern "Rust" {
        #[namespace = "purlin::v0::internal"]
        type TimerRep;

        /// A timer, C++'s.
        unsafe fn timer_new(delay_ns: i64, name: *const c_char) -> *mut TimerRep;
        /// The event, with one reference, C++'s.
        fn timer_event(timer: &TimerRep) -> *mut EventHeader;
        /// Cancels; false if it was too late.
        unsafe fn timer_cancel(timer: *mut TimerRep) -> bool;
        /// Lets it run without an owner.
        unsafe fn timer_detach(timer: *mut TimerRep);
        /// An event with one reference, C++'s, that completes as `event` or fails after `delay_ns`.
        unsafe fn event_with_deadline(event: *mut EventHeader, delay_ns: i64) -> *mut EventHeader;
    }
}

/// A length of time from C++; negative counts as none.
pub(crate) fn duration(nanoseconds: i64) -> Duration {
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(0))
}

/// # Safety
/// `name` is static and ends with a NUL.
unsafe fn timer_new(delay_ns: i64, name: *const c_char) -> *mut TimerRep {
    contain("timer_new", ptr::null_mut(), || {
        // SAFETY: the caller's promise.
        let timer = Timers::shared().event_after(duration(delay_ns), unsafe { label(name) });
        own(TimerRep(timer))
    })
}

fn timer_event(timer: &TimerRep) -> *mut ffi::EventHeader {
    give_event(|| Ok(timer.0.event().clone())).cast()
}

/// # Safety
/// C++ gives the timer up.
unsafe fn timer_cancel(timer: *mut TimerRep) -> bool {
    contain("timer_cancel", false, || {
        // SAFETY: the caller's promise.
        SlabBox::into_inner(unsafe { owned(timer) }).0.cancel()
    })
}

/// # Safety
/// C++ gives the timer up.
unsafe fn timer_detach(timer: *mut TimerRep) {
    contain("timer_detach", (), || {
        // SAFETY: the caller's promise.
        SlabBox::into_inner(unsafe { owned(timer) }).0.detach();
    })
}

/// # Safety
/// `event` is null or alive.
unsafe fn event_with_deadline(event: *mut ffi::EventHeader, delay_ns: i64) -> *mut ffi::EventHeader {
    let bounded = give_event(|| {
        Ok({
            // SAFETY: the caller's promise.
            let event = unsafe { Event::from_borrowed_raw(event.cast()) };
            let timers = Timers::shared();
            timers.with_deadline(&event, timers.after(duration(delay_ns)))
        })
    });
    bounded.cast()
}
