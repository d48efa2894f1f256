//! Which threads call which entry points, and which events they ask for: written down while a test watches.

#![allow(unsafe_code, reason = "the name of a thread is asked for")]

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::entry::Entry;
use crate::sync::Mutex;

static IS_ON: AtomicBool = AtomicBool::new(false);
static SEEN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Begins anew, with nothing seen, or ends.
pub(crate) fn turn(is_on: bool) {
    let mut seen = SEEN.lock();
    if is_on {
        seen.clear();
    }
    // Relaxed: a call at this moment may be before it or after.
    IS_ON.store(is_on, Ordering::Relaxed);
}

/// What was seen, a line each: `ENTRY HANDLE THREAD`, where the handle is the event's that `cuEventQuery` is about, and
/// else 0.
pub(crate) fn seen() -> String {
    SEEN.lock().iter().map(String::as_str).collect::<Vec<_>>().join("\n")
}

/// This thread calls that.
pub(crate) fn call(entry: Entry) {
    if entry != Entry::cuEventQuery {
        call_about(entry, 0);
    }
}

/// This thread calls that about `handle`.
pub(crate) fn call_about(entry: Entry, handle: usize) {
    if IS_ON.load(Ordering::Relaxed) {
        let mut name = [0; 16];
        // SAFETY: it writes at most 16 bytes, the last of them a null.
        unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
        // SAFETY: as above.
        let thread = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy();
        SEEN.lock().insert(format!("{} {handle} {thread}", entry.name()));
    }
}
