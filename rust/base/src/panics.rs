//! Panics of callbacks, contained: the only place that catches any (`.ci/check/guards`).
//!
//! Only the text of a panic is kept. Its payload is not, and the payload's destructor, which may panic in turn, runs in
//! here.

use std::any::Any;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::fault;
use crate::label::Label;
use crate::status::Status;
use crate::stderr;

/// Calls `f`; if it panics, what it said.
///
/// # Errors
/// The text that `panic!` was given, or that it was none.
#[inline]
pub fn caught<R>(f: impl FnOnce() -> R) -> Result<R, String> {
    // Unwind safety: what `f` borrows is either given up by the caller or left as a panic of its owner left it.
    catch_unwind(AssertUnwindSafe(f)).map_err(text_of)
}

#[cold]
fn text_of(payload: Box<dyn Any + Send>) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text =
        text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a value that is not text").to_owned();
    discard(payload);
    text
}

/// Drops what a panic was thrown with. A panic of its destructor is swallowed, and what that was thrown with is leaked.
pub fn discard(payload: Box<dyn Any + Send>) {
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        mem::forget(second);
    }
}

/// Calls `f`; false if it panicked. The panic hook has then printed the place and the message; this reports whose code
/// it was, on stderr and by `tracing`.
pub fn contained(what: &str, label: impl FnOnce() -> Label, f: impl FnOnce()) -> bool {
    let called = caught(|| {
        fault::callback(what);
        f();
    });
    let Err(message) = called else { return true };
    let label = label();
    tracing::error!(target: "purlin", %label, message, "a {what} panicked");
    stderr::tell(&format!("purlin: panic in {what} '{label}': {message}\n"));
    false
}

/// What `f` answers; a panic, once the panic hook has printed it, is an error.
///
/// # Errors
/// Those of `f`. `Internal`: it panicked.
pub fn answered<R>(what: impl FnOnce() -> String, f: impl FnOnce() -> Result<R, Status>) -> Result<R, Status> {
    caught(f).unwrap_or_else(|message| Err(Status::internal(format!("{} panicked: {message}", what()))))
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::panic::panic_any;

    use super::*;

    /// What a panic may be thrown with, to the harm of the code that drops it: its destructor panics with another such.
    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic_any(Self);
        }
    }

    #[test]
    fn a_value_passes_and_a_panic_is_its_text() {
        assert_eq!(caught(|| 7), Ok(7));
        assert_eq!(caught(|| panic!("plain")), Err::<(), _>("plain".to_owned()));
        assert_eq!(caught(|| panic!("number {}", 7)), Err::<(), _>("number 7".to_owned()));
        assert_eq!(caught(|| panic_any(7)), Err::<(), _>("a value that is not text".to_owned()));
    }

    #[test]
    fn a_payload_whose_destructor_panics_goes_no_further() {
        assert_eq!(caught(|| panic_any(Bomb)), Err::<(), _>("a value that is not text".to_owned()));
    }

    #[test]
    fn says_whether_it_panicked_and_swallows_it() {
        assert!(contained("task", || Label::new(c"fine"), || ()));
        assert!(!contained("task", || Label::new(c"broken"), || panic!("expected by a test")));
    }

    #[test]
    fn a_payload_whose_destructor_panics_is_contained_too() {
        assert!(!contained("task", Label::default, || panic_any(Bomb)));
    }
}
