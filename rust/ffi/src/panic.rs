//! A panic is a value: it leaves the bridge as a status that says what and where.

use std::cell::Cell;
use std::panic::{set_hook, take_hook};

use purlin_base::Error;
use purlin_base::panics::{caught, report};
use purlin_base::status::called_from;
use purlin_base::sync::OnceLock;

use crate::words::Location;

thread_local! {
    /// Where this thread last panicked. What was thrown does not know.
    static PLACE: Cell<Option<String>> = const { Cell::new(None) };
}

/// Calls `f`; a panic inside becomes [`Internal`](purlin_base::StatusCode::Internal) "panic: MESSAGE at FILE:LINE". The
/// report that Rust prints is printed as well: a panic is a bug.
///
/// # Errors
/// That of `f`, or `Internal` for a panic.
pub fn guard<T>(f: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    remember_places();
    caught(f).unwrap_or_else(|message| Err(error_of(&message)))
}

/// As [`guard`], for a caller at `location`: what `f` makes is known by that.
///
/// # Errors
/// As [`guard`].
///
/// # Safety
/// `location` is what its struct says.
pub unsafe fn guard_at<T>(location: Location, f: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    // SAFETY: the caller's promise.
    let place = unsafe { location.get() };
    guard(|| called_from(place, f))
}

#[cold]
#[inline(never)]
fn error_of(message: &str) -> Error {
    let place = PLACE.take().unwrap_or_else(|| "an unknown place".to_owned());
    Error::internal(format!("panic: {message} at {place}"))
}

/// Calls `f`, the whole of the function named `entry`, which has no error to give: a panic inside is reported, on
/// stderr and through `tracing`, and the answer is `nothing`.
pub fn contain<T>(entry: &'static str, nothing: T, f: impl FnOnce() -> T) -> T {
    caught(f).unwrap_or_else(|message| {
        report(entry, &message);
        nothing
    })
}

/// Puts a hook that notes the place in front of the one that was there, once.
fn remember_places() {
    static INSTALLED: OnceLock<()> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        let previous = take_hook();
        set_hook(Box::new(move |panic| {
            PLACE.set(panic.location().map(|place| format!("{}:{}", place.file(), place.line())));
            previous(panic);
        }));
    });
}

#[cfg(test)]
mod tests {
    use purlin_base::StatusCode;

    use super::*;

    #[test]
    fn values_and_errors_pass() {
        assert_eq!(guard(|| Ok(7)), Ok(7));
        assert_eq!(guard(|| Err::<(), _>(Error::aborted("x"))), Err(Error::aborted("x")));
    }

    #[test]
    fn a_panic_says_what_and_where() {
        let line = line!() + 1;
        let text = guard(|| -> Result<(), Error> { panic!("plain") }).unwrap_err();
        assert_eq!(text.code(), StatusCode::Internal);
        assert_eq!(text.message(), format!("panic: plain at {}:{line}", file!()));
        let formatted = guard(|| -> Result<(), Error> { panic!("number {}", 7) }).unwrap_err();
        assert!(formatted.message().starts_with("panic: number 7 at "), "{formatted}");
    }

    #[test]
    fn a_value_without_text_is_a_panic_too() {
        let thrown = guard(|| -> Result<(), Error> { std::panic::panic_any(7) }).unwrap_err();
        assert!(thrown.message().starts_with("panic: a value that is not text at "), "{thrown}");
    }

    #[test]
    fn a_payload_whose_destructor_panics_goes_no_further() {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                std::panic::panic_any(Self);
            }
        }
        let thrown = guard(|| -> Result<(), Error> { std::panic::panic_any(Bomb) }).unwrap_err();
        assert!(thrown.message().starts_with("panic: a value that is not text at "), "{thrown}");
        assert_eq!(contain("a test", 7, || std::panic::panic_any(Bomb)), 7);
    }

    #[test]
    fn what_has_no_error_to_give_answers_nothing() {
        assert_eq!(contain("a test", 0, || 7), 7);
        assert_eq!(contain("a test", 0, || panic!("expected by a test")), 0);
    }

    #[test]
    fn a_place_belongs_to_one_panic_only() {
        let _ = guard(|| -> Result<(), Error> { panic!("first") });
        // resume_unwind bypasses the hook, so the place is not known.
        let resumed = guard(|| -> Result<(), Error> { std::panic::resume_unwind(Box::new("resumed")) }).unwrap_err();
        assert_eq!(resumed.message(), "panic: resumed at an unknown place");
    }
}
