//! `purlin/stall.h`: reports of what is stuck, and the watchdog, whose start is a plain function.

use std::ffi::{c_char, c_void};
use std::pin::Pin;

use cxx::CxxString;
use purlin_async::stall::{Watchdog, WatchdogAction, WatchdogOptions, dump_stalls};
use purlin_base::status::StatusRep;
use purlin_ffi::handle::{give_owned, owned};
use purlin_ffi::number::known;
use purlin_ffi::panic::{contain, guard};

use crate::timer::duration;

/// What a `purlin::Watchdog` points to: C++'s alone, whose end stops it.
pub struct WatchdogRep(#[expect(dead_code, reason = "it is kept to be dropped")] Watchdog);

#[cxx::bridge(namespace = "purlin::ffi")]
pub(crate) mod ffi {
    extern "Rust" {
        #[namespace = "purlin::v0::internal"]
        type WatchdogRep;

        /// Appends a report; a negative age counts as zero.
        fn dump_stalls_to(older_than_ns: i64, text: Pin<&mut CxxString>);
        /// Stops a watchdog: blocks until its thread has ended.
        unsafe fn watchdog_stop(watchdog: *mut WatchdogRep);
    }
}

/// Takes `size_bytes` bytes of text, UTF-8. Does not unwind.
type TakeText = unsafe extern "C" fn(data: *mut c_void, text: *const c_char, size_bytes: usize);

/// A C++ function that is called with stall reports.
#[repr(C)]
pub struct StallSink {
    /// What `call` and `destroy` take; null: there is no function, and reports go to stderr.
    data: *mut c_void,
    call: TakeText,
    destroy: unsafe extern "C" fn(data: *mut c_void),
}

// SAFETY: purlin/stall.h's contract: the function is called on the watchdog's thread, one call at a time.
unsafe impl Send for StallSink {}
// SAFETY: as above.
unsafe impl Sync for StallSink {}

impl StallSink {
    fn tell(&self, text: &str) {
        // SAFETY: C++ gave the function together with the data that it takes, which lives until drop().
        unsafe { (self.call)(self.data, text.as_ptr().cast(), text.len()) };
    }
}

impl Drop for StallSink {
    fn drop(&mut self) {
        if !self.data.is_null() {
            // SAFETY: as above; it is no longer called.
            unsafe { (self.destroy)(self.data) };
        }
    }
}

fn dump_stalls_to(older_than_ns: i64, text: Pin<&mut CxxString>) {
    contain("dump_stalls_to", (), || {
        let report = guard(|| Ok(dump_stalls(duration(older_than_ns))));
        text.push_str(&report.unwrap_or_else(|error| error.to_string()));
    })
}

/// A watchdog, C++'s, or null and an error. Takes over `sink` either way.
#[unsafe(no_mangle)]
pub extern "C" fn purlin_watchdog_start(
    older_than_ns: i64,
    action: i32,
    sink: StallSink,
    error: &mut *const StatusRep,
) -> *mut WatchdogRep {
    let started = guard(|| {
        let actions = [
            ("kReport", WatchdogAction::Report),
            ("kPoison", WatchdogAction::Poison),
            ("kAbort", WatchdogAction::Abort),
        ];
        let action = known("WatchdogAction", action, &actions)?;
        let mut options = WatchdogOptions { older_than: duration(older_than_ns), action, sink: None };
        if !sink.data.is_null() {
            options.sink = Some(Box::new(move |report| sink.tell(&report.to_string())));
        }
        Watchdog::start(options)
    });
    give_owned(started.map(WatchdogRep), error)
}

/// # Safety
/// C++ gives the watchdog up.
unsafe fn watchdog_stop(watchdog: *mut WatchdogRep) {
    contain("watchdog_stop", (), || {
        // SAFETY: the caller's promise.
        drop(unsafe { owned(watchdog) });
    })
}
