//! Nodes straight from the system, for models, whose runs must not share state. Cells are boxes there
//! (`event/memory_model.rs`), because the atomics of a model are more than words.

use std::alloc::{Layout, handle_alloc_error};

// loom fails a model that forgets a block or frees it twice.
#[cfg(loom)]
use loom::alloc::{alloc, dealloc};
#[cfg(shuttle)]
use std::alloc::{alloc, dealloc};

use super::Class;

/// A block.
pub fn allocate_slowly(class: Class) -> *mut u8 {
    let layout = layout(class);
    // SAFETY: the layout is not empty.
    let block = unsafe { alloc(layout) };
    if block.is_null() {
        handle_alloc_error(layout);
    }
    block
}

/// Frees a block.
///
/// # Safety
/// `block` came from [`allocate_slowly`] with the same class, and it is no longer used.
pub unsafe fn free_slowly(class: Class, block: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { dealloc(block, layout(class)) };
}

fn layout(class: Class) -> Layout {
    Layout::from_size_align(class.block_bytes(), 64).expect("a power of two")
}

/// Calls `look` with the cell at `address`: models keep every cell that a chain may reach.
pub fn with_cell<R>(address: usize, _is_far: bool, look: impl FnOnce(*const u8) -> R) -> Option<R> {
    Some(look(std::ptr::with_exposed_provenance(address)))
}
