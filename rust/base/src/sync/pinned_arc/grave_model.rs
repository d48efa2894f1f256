//! The beginning and the end of a value's memory, in models: it stays, so that a use of it afterwards is found.

#![allow(unsafe_code, reason = "as the ordinary one")]

use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Inner;

/// Whether the memory has gone.
pub(super) struct Grave(AtomicBool);

impl Grave {
    pub(super) fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// The memory is there.
    pub(super) fn check(&self) {
        assert!(!self.0.load(Ordering::Relaxed), "memory that has gone is used");
    }

    /// As the ordinary one.
    pub(super) fn dig<T>() -> NonNull<Inner<T>> {
        NonNull::from(Box::leak(Box::<Inner<T>>::new_uninit())).cast()
    }

    /// The memory counts as gone.
    ///
    /// # Safety
    /// As the ordinary one.
    pub(super) unsafe fn bury<T: ?Sized>(inner: NonNull<Inner<T>>) {
        // SAFETY: it is there for ever.
        let grave = unsafe { &inner.as_ref().grave };
        assert!(!grave.0.swap(true, Ordering::Relaxed), "memory goes once");
    }
}
