//! Panics of callbacks, contained: the only file that catches any (`clippy.toml`).
//!
//! What was thrown is a text: what `panic!` was given, or "a value that is not text". In an error and in a report that
//! reads "WHAT panicked: TEXT". Only the text is kept, unless the panic is to be [carried on](kept). The payload, whose
//! destructor may panic in turn, is dropped in here.
//!
//! Where it panicked, only a panic hook learns. [`note_places`] installs one, for errors that name the place; C and C++
//! call it, whose callers cannot set hooks. A Rust program's hook is its own, so no other code here installs any.

#![allow(unsafe_code, reason = "the file of a panic's place is read as C's text")]

use std::any::Any;
use std::cell::Cell;
use std::fmt::Display;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind, set_hook, take_hook};

use crate::fault;
use crate::label::Label;
use crate::status::{Error, SourceLocation, StatusCode};
use crate::stderr;
use crate::sync::OnceLock;

thread_local! {
    /// Where this thread last panicked, until the panic is caught.
    static PLACE: Cell<SourceLocation> = const { Cell::new(SourceLocation::UNKNOWN) };
}

/// From now on, errors made of panics have the places of the panics. A hook that notes the place is put in front of the
/// one that was there, once.
pub fn note_places() {
    static INSTALLED: OnceLock<()> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        let previous = take_hook();
        set_hook(Box::new(move |panic| {
            if let Some(place) = panic.location() {
                // SAFETY: only the compiler makes places, of string literals; their type says less than that, because
                // the hook borrows them.
                let place = unsafe { SourceLocation::from_ptr(place.file_as_c_str().as_ptr(), place.line()) };
                PLACE.set(place);
            }
            previous(panic);
        }));
    });
}

/// What a panic was thrown with. A panic of its destructor is swallowed.
#[derive(Debug)]
pub struct Thrown(Option<Box<dyn Any + Send>>);

impl Thrown {
    /// The panic goes on, on this thread.
    #[cold]
    pub fn resume(mut self) -> ! {
        resume_unwind(self.0.take().expect("only this and the destructor take it"))
    }

    /// What it says.
    fn text(&self) -> String {
        let payload = self.0.as_deref();
        let text = payload.and_then(|payload| payload.downcast_ref::<String>()).map(String::as_str);
        let text = text.or_else(|| payload.and_then(|payload| payload.downcast_ref::<&str>()).copied());
        text.unwrap_or("a value that is not text").to_owned()
    }
}

impl Drop for Thrown {
    fn drop(&mut self) {
        if let Some(payload) = self.0.take() {
            discard(payload);
        }
    }
}

/// What a panic of the destructor was thrown with is leaked.
#[cold]
fn discard(payload: Box<dyn Any + Send>) {
    if let Err(second) = try_call(|| drop(payload)) {
        mem::forget(second);
    }
}

/// The one call.
#[inline]
#[expect(clippy::disallowed_methods, reason = "this is where panics are caught")]
fn try_call<R>(f: impl FnOnce() -> R) -> std::thread::Result<R> {
    // Unwind safety: what `f` borrows is either given up by the caller or left as a panic of its owner left it.
    catch_unwind(AssertUnwindSafe(f))
}

/// Calls `f`; if it panics, what carries the panic on, to this thread or to another.
///
/// # Errors
/// What it panicked with.
#[inline]
pub fn kept<R>(f: impl FnOnce() -> R) -> Result<R, Thrown> {
    try_call(f).map_err(|payload| Thrown(Some(payload)))
}

/// Calls `f`; if it panics, what it said.
///
/// # Errors
/// The text that `panic!` was given, or that it was none.
#[inline]
pub fn caught<R>(f: impl FnOnce() -> R) -> Result<R, String> {
    try_call(f).map_err(|payload| text_of(payload).0)
}

/// The text, and the place if it was noted: of this panic only, as it is taken.
#[cold]
fn text_of(payload: Box<dyn Any + Send>) -> (String, SourceLocation) {
    let place = PLACE.replace(SourceLocation::UNKNOWN);
    (Thrown(Some(payload)).text(), place)
}

/// Calls `f`; false if it panicked, which has then been [reported](report) as a panic of `what`.
#[inline]
pub fn reported<W: Display>(what: impl FnOnce() -> W, f: impl FnOnce()) -> bool {
    let Err(message) = caught(f) else { return true };
    report(what(), &message);
    false
}

/// As [`reported`], for a callback of the user's: a fail point, known by its label.
pub fn contained(what: &str, label: impl FnOnce() -> Label, f: impl FnOnce()) -> bool {
    let called = || {
        fault::callback(what);
        f();
    };
    reported(|| format!("{what} '{}'", label()), called)
}

/// What `f` answers; a panic, once the panic hook has printed it, is an error, with the place of the panic where
/// [places are noted](note_places).
///
/// # Errors
/// Those of `f`. `Internal`: it panicked.
#[inline]
pub fn answered<W: Display, R>(what: impl FnOnce() -> W, f: impl FnOnce() -> Result<R, Error>) -> Result<R, Error> {
    try_call(f).unwrap_or_else(|payload| Err(error_of(what(), payload)))
}

#[cold]
#[inline(never)]
fn error_of(what: impl Display, payload: Box<dyn Any + Send>) -> Error {
    let (message, place) = text_of(payload);
    Error::with_location(StatusCode::Internal, said(what, &message), place)
}

/// Says on stderr and through `tracing` that `what` panicked, and that this was swallowed. The panic hook has printed
/// the place.
#[cold]
#[inline(never)]
pub fn report(what: impl Display, message: &str) {
    tracing::error!(target: "purlin", message, "{what} panicked");
    stderr::tell(&format!("purlin: {}\n", said(what, message)));
}

fn said(what: impl Display, message: &str) -> String {
    format!("{what} panicked: {message}")
}

#[cfg(all(test, not(purlin_model)))]
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
    fn what_is_kept_goes_on_with_its_payload_or_ends_here() {
        let thrown = kept(|| panic_any(7)).unwrap_err();
        let again = try_call(|| thrown.resume()).unwrap_err();
        assert_eq!(again.downcast_ref(), Some(&7));
        drop(kept(|| panic_any(Bomb)).unwrap_err());
        assert_eq!(kept(|| 7).ok(), Some(7));
    }

    #[test]
    fn an_error_says_what_panicked_with_what() {
        assert_eq!(answered(|| "a map", || Ok(7)), Ok(7));
        assert_eq!(answered(|| "a map", || Err::<(), _>(Error::aborted("x"))), Err(Error::aborted("x")));
        let error = answered(|| "a map", || -> Result<(), Error> { panic!("planted") }).unwrap_err();
        assert_eq!(error, Error::internal("a map panicked: planted"));
        let error = answered(|| "a map", || -> Result<(), Error> { panic_any(Bomb) }).unwrap_err();
        assert_eq!(error, Error::internal("a map panicked: a value that is not text"));
    }

    #[test]
    fn an_error_has_the_place_of_its_panic_only_where_it_is_noted() {
        let place = |thrown: fn() -> Result<(), Error>| answered(|| "a map", thrown).unwrap_err().location();
        note_places();
        note_places();
        let line = line!() + 1;
        let here = place(|| panic!("expected by a test"));
        assert_eq!((here.file().as_ref(), here.line()), (file!(), line));
        // A panic that is carried on passes the hook by.
        assert_eq!(place(|| resume_unwind(Box::new("resumed"))), SourceLocation::UNKNOWN);
        let _ = caught(|| panic!("expected by a test"));
        assert_eq!(place(|| resume_unwind(Box::new("resumed"))), SourceLocation::UNKNOWN, "that was another panic's");
    }

    #[test]
    fn says_whether_it_panicked_and_swallows_it() {
        assert!(contained("task", || Label::new(c"fine"), || ()));
        assert!(!contained("task", || Label::new(c"broken"), || panic!("expected by a test")));
        assert!(reported(|| "a waiter", || ()));
        assert!(!reported(|| "a waiter", || panic!("expected by a test")));
    }

    #[test]
    fn a_payload_whose_destructor_panics_is_contained_too() {
        assert!(!contained("task", Label::default, || panic_any(Bomb)));
        assert!(!reported(|| "a waiter", || panic_any(Bomb)));
    }
}
