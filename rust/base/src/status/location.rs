//! Where something was made: the place of a caller in Rust or in C++.

#![allow(unsafe_code, reason = "C++ gives places as pointers to static text")]

use std::borrow::Cow;
use std::cell::Cell;
use std::ffi::{CStr, c_char};
use std::fmt;
use std::panic::Location;

use crate::static_text::StaticText;
use crate::sync::per_thread;

// Nothing in it needs a destructor, so it can be used until the thread is gone.
per_thread!(static STATED: Cell<Option<SourceLocation>> = Cell::new(None));

/// A file and a line, of Rust or of C++.
///
/// ```
/// use purlin::SourceLocation;
///
/// let here = SourceLocation::from_static(c"model/layer.cc", 12);
/// assert_eq!(here.to_string(), "model/layer.cc:12");
/// assert_eq!((here.file().as_ref(), here.line()), ("model/layer.cc", 12));
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SourceLocation {
    file: StaticText,
    line: u32,
}

impl SourceLocation {
    /// No place: file `""`, line 0.
    pub const UNKNOWN: Self = Self::from_static(c"", 0);

    /// The place of the caller.
    ///
    /// ```
    /// use purlin::SourceLocation;
    ///
    /// #[track_caller]
    /// fn asked_from() -> SourceLocation {
    ///     SourceLocation::caller()
    /// }
    ///
    /// assert_eq!(asked_from().line(), line!());
    /// ```
    #[must_use]
    #[track_caller]
    pub const fn caller() -> Self {
        Self::of(Location::caller())
    }

    /// A place in Rust.
    #[doc(hidden)]
    #[inline]
    #[must_use]
    pub const fn of(here: &'static Location<'static>) -> Self {
        Self::from_static(here.file_as_c_str(), here.line())
    }

    /// As [`caller`](Self::caller); inside of [`called_from`], the place that is stated there. For functions that
    /// foreign code calls too.
    #[doc(hidden)]
    #[inline]
    #[must_use]
    #[track_caller]
    pub fn of_call() -> Self {
        Self::stated().unwrap_or(Self::caller())
    }

    /// The place that the innermost [`called_from`] around this states.
    #[doc(hidden)]
    #[inline]
    #[must_use]
    pub fn stated() -> Option<Self> {
        STATED.with(Cell::get)
    }

    /// A place in foreign code: the path, which need not be UTF-8, and the line.
    #[must_use]
    pub const fn from_static(file: &'static CStr, line: u32) -> Self {
        Self { file: StaticText::new(file), line }
    }

    /// As [`from_static`](Self::from_static), of a path whose length is looked for when it is read.
    ///
    /// # Safety
    /// `file` points to a string that ends with NUL, lives for ever and is never written.
    #[must_use]
    pub const unsafe fn from_ptr(file: *const c_char, line: u32) -> Self {
        // SAFETY: the caller's promise.
        Self { file: unsafe { StaticText::from_ptr(file) }, line }
    }

    /// In two words, and back: for what is kept by the thousand.
    #[must_use]
    pub const fn into_parts(self) -> (StaticText, u32) {
        (self.file, self.line)
    }

    /// See [`into_parts`](Self::into_parts).
    #[must_use]
    pub const fn from_parts(file: StaticText, line: u32) -> Self {
        Self { file, line }
    }

    /// The path as the compiler was given it; bytes that are not UTF-8 are replaced.
    #[must_use]
    pub fn file(self) -> Cow<'static, str> {
        self.file_as_c_str().to_string_lossy()
    }

    /// The path as C reads it.
    #[must_use]
    pub const fn file_as_c_str(self) -> &'static CStr {
        self.file.get()
    }

    /// Line from 1; 0 when unknown.
    #[must_use]
    pub const fn line(self) -> u32 {
        self.line
    }
}

/// Calls `call` for foreign code at `place`: what is made in there, on this thread, by functions that ask for
/// `SourceLocation::of_call` is known by `place`, and not by the line of Rust that calls them. Inside of another such
/// call, the inner place counts until the inner call ends.
///
/// What a pool's thread does while it waits has no part in it, and neither has a client's out-of-memory hook. Other
/// callbacks, waiters and tasks that run inside of `call` have: they are called too often to be told apart. Those in
/// C++ state places of their own; what those in Rust make is known by `place`.
#[inline]
pub fn called_from<R>(place: SourceLocation, call: impl FnOnce() -> R) -> R {
    let _outer = Outer(STATED.with(|stated| stated.replace(Some(place))));
    call()
}

/// Calls `call` as if no [`called_from`] were around it.
pub fn without_place<R>(call: impl FnOnce() -> R) -> R {
    let _outer = Outer(STATED.with(Cell::take));
    call()
}

/// What was stated before; it is again when this is dropped, also by a panic.
struct Outer(Option<SourceLocation>);

impl Drop for Outer {
    #[inline]
    fn drop(&mut self) {
        STATED.with(|stated| stated.set(self.0));
    }
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file(), self.line)
    }
}

impl fmt::Debug for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(all(test, not(purlin_model)))]
mod tests {
    use std::thread;

    use super::*;
    use crate::panics;

    const LAYER: SourceLocation = SourceLocation::from_static(c"model/layer.cc", 12);
    const HEAD: SourceLocation = SourceLocation::from_static(c"model/head.cc", 34);

    #[track_caller]
    fn made() -> SourceLocation {
        SourceLocation::of_call()
    }

    #[test]
    fn without_a_stated_place_it_is_the_callers() {
        assert_eq!((made().file().as_ref(), made().line()), (file!(), line!()));
    }

    #[test]
    fn the_innermost_stated_place_counts_until_its_call_ends() {
        let inside = called_from(LAYER, || [made(), called_from(HEAD, made), made()]);
        assert_eq!(inside, [LAYER, HEAD, LAYER]);
        assert_eq!(made().file(), file!());
    }

    #[test]
    fn a_panic_ends_the_call_too() {
        let ended = called_from(LAYER, || {
            let panicked = panics::caught(|| called_from(HEAD, || panic!("expected by a test")));
            assert_eq!(panicked, Err::<(), _>("expected by a test".to_owned()));
            made()
        });
        assert_eq!(ended, LAYER);
        assert!(panics::caught(|| called_from(HEAD, || panic!("expected by a test"))).is_err());
        assert_eq!(made().file(), file!());
    }

    #[test]
    fn it_counts_on_its_thread_alone() {
        let other = || thread::scope(|scope| scope.spawn(made).join().unwrap());
        assert_ne!(called_from(LAYER, other), LAYER);
    }

    #[test]
    fn what_is_called_without_a_place_has_no_part_in_it() {
        let (inside, after) = called_from(LAYER, || {
            assert!(panics::caught(|| without_place(|| panic!("expected by a test"))).is_err());
            (without_place(|| [made(), called_from(HEAD, made), made()]), made())
        });
        assert_eq!((inside[0].line(), inside[1], inside[2].line(), after), (line!() - 2, HEAD, line!() - 2, LAYER));
    }
}
