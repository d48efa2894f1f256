//! Calling strangers: a panic in a callback is reported, with the name of what was called, and goes no further.

use crate::caught::caught;
use crate::fault;
use crate::label::Label;
use crate::status::Status;
use crate::stderr;

/// Calls `f`; false if it panicked. The panic hook has then told the place and the message; this tells whose code it was,
/// on stderr and to whoever listens to `tracing`.
pub(crate) fn contained(what: &str, label: impl FnOnce() -> Label, f: impl FnOnce()) -> bool {
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

/// What `f` answers; a panic, once the panic hook has told it, is an error.
pub(crate) fn answered<R>(what: impl FnOnce() -> String, f: impl FnOnce() -> Result<R, Status>) -> Result<R, Status> {
    caught(f).unwrap_or_else(|message| Err(Status::internal(format!("{} panicked: {message}", what()))))
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
        use crate::caught::tests::Bomb;
        assert!(!contained("task", Label::default, || std::panic::panic_any(Bomb)));
    }
}
