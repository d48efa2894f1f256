//! The end of a value's memory: nothing is left of it.

#![allow(unsafe_code, reason = "memory ends by a pointer")]

use std::ptr::NonNull;

use super::Inner;

/// Says in models whether the memory has gone; otherwise nothing.
pub(super) struct Grave;

impl Grave {
    pub(super) fn new() -> Self {
        Self
    }

    /// The memory is there.
    #[inline(always)]
    pub(super) fn check(&self) {}

    /// Gives the memory back.
    ///
    /// # Safety
    /// It is a box's, it is no longer used, and its value is gone.
    pub(super) unsafe fn bury<T: ?Sized>(inner: NonNull<Inner<T>>) {
        // SAFETY: the caller's promise; the value is not dropped again, because ManuallyDrop has its layout.
        unsafe {
            let layout = std::alloc::Layout::for_value(inner.as_ref());
            std::alloc::dealloc(inner.as_ptr().cast(), layout);
        }
    }
}
