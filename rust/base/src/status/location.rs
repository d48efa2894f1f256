//! Where something was made: the place of a caller in Rust or in C++.

#![allow(unsafe_code, reason = "C++ gives places as pointers to static text")]

use std::borrow::Cow;
use std::ffi::{CStr, c_char};
use std::fmt;
use std::panic::Location;

use crate::static_text::StaticText;

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
        let here = Location::caller();
        Self::from_static(here.file_as_c_str(), here.line())
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
