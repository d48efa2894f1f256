//! The memory space of an array, for which an array that has memory counts no reference of its own: its memory's
//! reference keeps the space. That leaves out two locked instructions for each buffer.
//!
//! The rule: a reference is counted for the array if and only if its [`BufferState`] has no memory. So a method that
//! takes the memory out of the state calls [`keep`](ArraySpace::keep) before it gives the memory away, and one that
//! puts memory back calls [`let_go`](ArraySpace::let_go) after. Both do so outside of the state's lock. Meanwhile one
//! reference too many is counted, or the memory that was taken out has one; the caller's reference to the array keeps
//! the array's drop from running between.
//!
//! [`BufferState`]: super::state::BufferState

use std::fmt;
use std::mem::{self, ManuallyDrop};
use std::ops::Deref;

use crate::memory::{MemoryBlock, MemorySpace};

/// See the module.
pub(super) struct ArraySpace(ManuallyDrop<MemorySpace>);

impl ArraySpace {
    /// Of an array that has `memory`.
    pub(super) fn of(memory: &MemoryBlock) -> Self {
        // SAFETY: `memory` has a reference to its space's instance while the array's state has `memory`. Before that is
        // given away, keep() puts a reference aside.
        Self(unsafe { memory.memory_space().uncounted() })
    }

    /// Of an array without memory.
    pub(super) fn without_memory(space: MemorySpace) -> Self {
        Self(ManuallyDrop::new(space))
    }

    /// The array's state has its memory no longer. Called before that is given away.
    pub(super) fn keep(&self) {
        mem::forget(MemorySpace::clone(self));
    }

    /// The array's state has memory again, or the array is being dropped without memory.
    ///
    /// # Safety
    /// A reference is put aside for the array: its memory had been taken out, or it never had any. In the array's drop,
    /// the space is not used again.
    pub(super) unsafe fn let_go(&self) {
        // SAFETY: the caller's promise: the reference is there, and this gives it up.
        drop(unsafe { ManuallyDrop::into_inner(self.uncounted()) });
    }
}

impl Deref for ArraySpace {
    type Target = MemorySpace;

    fn deref(&self) -> &MemorySpace {
        &self.0
    }
}

impl fmt::Display for ArraySpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&**self, f)
    }
}
