//! Why tasks are being dropped on this thread: what a refused task owed then fails with a message that says so.
//!
//! An executor that refuses a task drops it inside [`dropping`]. A destructor that completes something asks for the
//! [`reason`], and completes it outside the reason ([`forgetting`]), because its waiters are another matter.

use std::cell::Cell;
use std::ptr;

use purlin_base::status::Error;
use purlin_base::sync::per_thread;

// What `dropping` borrows, or null.
per_thread!(static REASON: Cell<*const Error> = Cell::new(ptr::null()));

/// Puts back what was there.
struct Restore(*const Error);

impl Drop for Restore {
    fn drop(&mut self) {
        let _ = REASON.try_with(|reason| reason.set(self.0));
    }
}

fn with(reason: *const Error, f: impl FnOnce()) {
    // An ending thread has no place for it; then messages are less exact.
    let _restore = Restore(REASON.try_with(|place| place.replace(reason)).unwrap_or(ptr::null()));
    f();
}

/// Calls `f`, which drops what is refused because of `reason`.
#[cold]
pub(crate) fn dropping(reason: &Error, f: impl FnOnce()) {
    with(reason, f);
}

/// Calls `f`, which has nothing to do with what is being refused.
pub(super) fn forgetting(f: impl FnOnce()) {
    with(ptr::null(), f);
}

/// Why what is dropped here and now is dropped, if an executor refused it.
pub fn reason() -> Option<Error> {
    let reason = REASON.try_with(Cell::get).unwrap_or(ptr::null());
    // SAFETY: dropping() borrows it and takes it out of the place before it returns; the place is this thread's.
    unsafe { reason.as_ref() }.cloned()
}
