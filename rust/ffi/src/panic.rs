//! A panic is a value: it leaves the bridge as a status that says what and where.

use purlin_base::Error;
use purlin_base::panics::{answered, caught, note_places, report};
use purlin_base::status::called_from;

use crate::words::Location;

/// Calls `f`; a panic inside becomes [`Internal`](purlin_base::StatusCode::Internal) "a call into Purlin panicked:
/// TEXT", with the place of the panic. The report that Rust prints is printed as well: a panic is a bug.
///
/// # Errors
/// That of `f`, or `Internal` for a panic.
pub fn guard<T>(f: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    note_places();
    answered(|| "a call into Purlin", f)
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

/// Calls `f`, the whole of the function named `entry`, which has no error to give: a panic inside is reported, on
/// stderr and through `tracing`, and the answer is `nothing`.
pub fn contain<T>(entry: &'static str, nothing: T, f: impl FnOnce() -> T) -> T {
    caught(f).unwrap_or_else(|message| {
        report(entry, &message);
        nothing
    })
}

#[cfg(test)]
mod tests {
    use purlin_base::SourceLocation;

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
        assert_eq!(text, Error::internal("a call into Purlin panicked: plain"));
        assert_eq!((text.location().file().as_ref(), text.location().line()), (file!(), line));
        let formatted = guard(|| -> Result<(), Error> { panic!("number {}", 7) }).unwrap_err();
        assert_eq!(formatted.message(), "a call into Purlin panicked: number 7");
    }

    #[test]
    fn a_value_without_text_is_a_panic_too() {
        let thrown = guard(|| -> Result<(), Error> { std::panic::panic_any(7) }).unwrap_err();
        assert_eq!(thrown.message(), "a call into Purlin panicked: a value that is not text");
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
        assert_eq!(thrown.message(), "a call into Purlin panicked: a value that is not text");
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
        assert_eq!(resumed.message(), "a call into Purlin panicked: resumed");
        assert_eq!(resumed.location(), SourceLocation::UNKNOWN);
    }
}
