//! The beginning and the end of a value's memory. Small values are blocks of the slab, because buffers and their memory
//! are made and dropped as often as events; larger ones are the system's.

#![allow(unsafe_code, reason = "memory begins and ends by a pointer")]

use std::ptr::NonNull;

use super::Inner;
use crate::slab;

/// Says in models whether the memory has gone; otherwise nothing.
pub(super) struct Grave;

impl Grave {
    pub(super) fn new() -> Self {
        Self
    }

    /// The memory is there.
    #[inline(always)]
    pub(super) fn check(&self) {}

    /// Memory for the counts and a value, without contents.
    #[inline]
    pub(super) fn dig<T>() -> NonNull<Inner<T>> {
        slab::allocate_for()
    }

    /// Gives the memory back.
    ///
    /// # Safety
    /// It is [`dig`](Self::dig)'s, it is no longer used, and its value is gone.
    #[inline]
    pub(super) unsafe fn bury<T: ?Sized>(inner: NonNull<Inner<T>>) {
        // SAFETY: the caller's promise.
        unsafe { slab::free_for(inner) };
    }
}
