//! A static string known by one pointer, as C knows it: what errors, events and blocks of memory carry by the thousand.

#![allow(unsafe_code, reason = "the string is found again by its address")]

use std::ffi::{CStr, c_char};
use std::fmt;
use std::ptr::NonNull;

/// A `&'static CStr` of one word; its length is looked for when it is read.
#[derive(Clone, Copy)]
pub struct StaticText(NonNull<c_char>);

impl fmt::Debug for StaticText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.get(), f)
    }
}

// SAFETY: it stands for a shared reference to bytes that are never written.
unsafe impl Send for StaticText {}
// SAFETY: as above.
unsafe impl Sync for StaticText {}

impl StaticText {
    /// Wraps `text`.
    pub const fn new(text: &'static CStr) -> Self {
        // SAFETY: it is such a string.
        unsafe { Self::from_ptr(text.as_ptr()) }
    }

    /// As C knows it; reads nothing.
    ///
    /// # Safety
    /// `text` points to a string that ends with NUL, lives for ever and is never written.
    pub const unsafe fn from_ptr(text: *const c_char) -> Self {
        // SAFETY: the caller's promise: what points to a string is not null.
        Self(unsafe { NonNull::new_unchecked(text.cast_mut()) })
    }

    /// The text with its final NUL.
    pub const fn get(self) -> &'static CStr {
        // SAFETY: it came from such a reference.
        unsafe { CStr::from_ptr(self.0.as_ptr()) }
    }
}

impl PartialEq for StaticText {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0 || self.get() == other.get()
    }
}

impl Eq for StaticText {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_equal_wherever_they_stand() {
        let elsewhere: &'static CStr = Box::leak(CStr::to_owned(c"weights").into_boxed_c_str());
        assert!(StaticText::new(c"weights") == StaticText::new(elsewhere));
        assert!(StaticText::new(c"weights") != StaticText::new(c"weight"));
        assert_eq!(StaticText::new(elsewhere).get(), c"weights");
        assert_eq!(size_of::<StaticText>(), size_of::<usize>());
    }
}
