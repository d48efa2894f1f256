//! The name of an event or a task, as it appears in errors, reports and traces.

use std::borrow::Cow;
use std::ffi::CStr;
use std::fmt;

use crate::static_text::StaticText;

/// A static string, such as `c"gradient"`. One pointer; never copied or freed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Label(StaticText);

impl Label {
    /// Wraps `text`.
    #[must_use]
    pub const fn new(text: &'static CStr) -> Self {
        Self(StaticText::new(text))
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
