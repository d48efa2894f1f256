//! The beginning and the end of a value's memory. Small values are blocks of the slab, because buffers and their memory
//! are made and dropped as often as events; larger ones are the system's.

#![allow(unsafe_code, reason = "memory begins and ends by a pointer")]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;

use super::Inner;
use crate::slab::{self, Class};

/// Says in models whether the memory has gone; otherwise nothing.
pub(super) struct Grave;

impl Grave {
    pub(super) fn new() -> Self {
        Self
    }

    /// The memory is there.
    #[inline(always)]
    pub(super) fn check(&self) {}

    /// Memory for the counts and a value, without contents. Ends the process when the system has none, as `Box` does.
    #[inline]
    pub(super) fn dig<T>() -> NonNull<Inner<T>> {
        let layout = Layout::new::<Inner<T>>();
        let memory = match class_of(layout) {
            Some(class) => slab::allocate(class),
            // SAFETY: the layout is not empty: it has the counts.
            None => unsafe { alloc(layout) },
        };
        NonNull::new(memory.cast()).unwrap_or_else(|| handle_alloc_error(layout))
    }

    /// Gives the memory back.
    ///
    /// # Safety
    /// It is [`dig`](Self::dig)'s, it is no longer used, and its value is gone.
    #[inline]
    pub(super) unsafe fn bury<T: ?Sized>(inner: NonNull<Inner<T>>) {
        // SAFETY: the caller's promise. The layout is the one that it was made with, also of an unsized value.
        unsafe {
            let layout = Layout::for_value(inner.as_ref());
            match class_of(layout) {
                Some(class) => slab::free(class, inner.as_ptr().cast()),
                None => dealloc(inner.as_ptr().cast(), layout),
            }
        }
    }
}

/// The class of the slab whose blocks hold such a value; `None`: it is too large, or so small that it would waste half
/// of a block.
const fn class_of(layout: Layout) -> Option<Class> {
    match layout.size() {
        _ if layout.align() > 64 => None,
        33..=64 => Some(Class::Node),
        65..=128 => Some(Class::WideNode),
        _ => None,
    }
}
