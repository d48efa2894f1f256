//! Panics of strangers, caught. What is left of one is its text: a payload is its thrower's, and its destructor may panic in
//! turn, so nobody else keeps payloads or drops them. `.ci/check/guards` looks that nobody else catches.

use std::any::Any;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

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

/// Drops what a panic was thrown with. A panic of its destructor goes no further, and what that was thrown with is leaked.
pub(crate) fn discard(payload: Box<dyn Any + Send>) {
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        mem::forget(second);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) mod tests {
    use std::panic::panic_any;

    use super::*;

    /// What a panic may be thrown with, to the harm of the code that drops it: its destructor panics with another such.
    pub(crate) struct Bomb;

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
}
