//! A panic is a value: it leaves the bridge as a status that says what and where.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use purlin::Status;

thread_local! {
    /// Where this thread last panicked. The payload that catch_unwind gives back does not know.
    static PLACE: Cell<Option<String>> = const { Cell::new(None) };
}

/// Calls `f`; a panic inside becomes [`Internal`](purlin::StatusCode::Internal) "panic: MESSAGE at FILE:LINE". The report
/// that Rust prints is printed as well: a panic is a bug.
pub(crate) fn guard<T>(f: impl FnOnce() -> Result<T, Status>) -> Result<T, Status> {
    remember_places();
    // Unwind safety: what `f` borrows is either read-only or handed back to C++ only on success.
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|payload| {
        let place = PLACE.take().unwrap_or_else(|| "an unknown place".to_owned());
        Err(Status::internal(format!("panic: {} at {place}", message(&*payload))))
    })
}

/// Puts a hook that notes the place in front of the one that was there, once.
fn remember_places() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let previous = take_hook();
        set_hook(Box::new(move |panic| {
            PLACE.set(panic.location().map(|place| format!("{}:{}", place.file(), place.line())));
            previous(panic);
        }));
    });
}

/// What `panic!` was given: text, unless somebody threw a value of their own.
fn message(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| payload.downcast_ref::<&str>().copied())
        .unwrap_or("a value that is not text")
}

#[cfg(test)]
mod tests {
    use purlin::StatusCode;

    use super::*;

    #[test]
    fn values_and_errors_pass() {
        assert_eq!(guard(|| Ok(7)), Ok(7));
        assert_eq!(guard(|| Err::<(), _>(Status::aborted("x"))), Err(Status::aborted("x")));
    }

    #[test]
    fn a_panic_says_what_and_where() {
        let line = line!() + 1;
        let text = guard(|| -> Result<(), Status> { panic!("plain") }).unwrap_err();
        assert_eq!(text.code(), StatusCode::Internal);
        assert_eq!(text.message(), format!("panic: plain at {}:{line}", file!()));
        let formatted = guard(|| -> Result<(), Status> { panic!("number {}", 7) }).unwrap_err();
        assert!(formatted.message().starts_with("panic: number 7 at "), "{formatted}");
    }

    #[test]
    fn a_value_without_text_is_a_panic_too() {
        let thrown = guard(|| -> Result<(), Status> { std::panic::panic_any(7) }).unwrap_err();
        assert!(thrown.message().starts_with("panic: a value that is not text at "), "{thrown}");
    }

    #[test]
    fn a_place_belongs_to_one_panic_only() {
        let _ = guard(|| -> Result<(), Status> { panic!("first") });
        // resume_unwind passes the hook by, so nobody knows the place.
        let resumed = guard(|| -> Result<(), Status> { std::panic::resume_unwind(Box::new("resumed")) }).unwrap_err();
        assert_eq!(resumed.message(), "panic: resumed at an unknown place");
    }
}
