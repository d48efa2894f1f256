//! Calling strangers: a panic in a callback is reported, with the name of what was called, and goes no further.

use std::any::Any;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::fault;
use crate::label::Label;

/// Calls `f`; false if it panicked. The panic hook has then told the place and the message; this tells whose code it was,
/// on stderr and to whoever listens to `tracing`.
pub(crate) fn contained(what: &str, label: impl FnOnce() -> Label, f: impl FnOnce()) -> bool {
    // Unwind safety: what `f` borrows is either given up by the caller or left as a panic of its owner left it.
    let called = catch_unwind(AssertUnwindSafe(|| {
        fault::callback(what);
        f();
    }));
    let Err(payload) = called else { return true };
    let (label, message) = (label(), message(&*payload));
    tracing::error!(target: "purlin", %label, message, "a {what} panicked");
    // A closed stderr is no reason to fail.
    let _ = writeln!(io::stderr(), "purlin: panic in {what} '{label}': {message}");
    // The payload is a stranger's too: its destructor may panic in turn.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(payload)));
    false
}

/// What `panic!` was given: text, unless somebody threw a value of their own.
fn message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a value that is not text")
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn says_whether_it_panicked_and_swallows_it() {
        assert!(contained("task", || Label::new(c"fine"), || ()));
        assert!(!contained("task", || Label::new(c"broken"), || panic!("expected by a test")));
    }

    #[test]
    fn a_payload_whose_destructor_panics_stays_inside_too() {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("expected by a test, from a destructor");
            }
        }
        assert!(!contained("task", Label::default, || std::panic::panic_any(Bomb)));
    }
}
