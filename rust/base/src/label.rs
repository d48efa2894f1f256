//! The name of an event or a task, as it appears in errors, reports and traces.

#![allow(unsafe_code, reason = "C's strings are known by their addresses")]

use std::borrow::Cow;
use std::ffi::{CStr, c_char};
use std::fmt;

use crate::static_text::StaticText;

/// A static string, such as `c"gradient"`. One pointer; never copied or freed.
///
/// ```
/// use purlin::{EventPromise, Label};
///
/// let label = Label::new(c"gradient");
/// assert_eq!(label.to_string(), "gradient");
/// assert_eq!(EventPromise::new(label).event().label(), label);
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Label(StaticText);

impl Label {
    /// Wraps `text`.
    #[must_use]
    pub const fn new(text: &'static CStr) -> Self {
        Self(StaticText::new(text))
    }

    /// The text at `text`, whose length is looked for when it is read.
    ///
    /// # Safety
    /// `text` points to a string that ends with NUL, lives for ever and is never written.
    #[must_use]
    pub const unsafe fn from_ptr(text: *const c_char) -> Self {
        // SAFETY: the caller's promise.
        Self(unsafe { StaticText::from_ptr(text) })
    }

    /// The text with its final NUL.
    #[must_use]
    pub const fn as_cstr(self) -> &'static CStr {
        self.0.get()
    }

    /// The text; bytes that are not UTF-8 are replaced.
    #[must_use]
    pub fn as_str(self) -> Cow<'static, str> {
        self.as_cstr().to_string_lossy()
    }
}

impl Default for Label {
    fn default() -> Self {
        Self::new(c"")
    }
}

impl From<&'static CStr> for Label {
    fn from(text: &'static CStr) -> Self {
        Self::new(text)
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.as_str())
    }
}

impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.as_str(), f)
    }
}
