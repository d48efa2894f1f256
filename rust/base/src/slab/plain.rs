//! Blocks straight from the system, for AddressSanitizer, which sees a block's end only if it is really freed. The
//! lists of the threads stay empty, so every allocation is made here.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};

use super::{Class, large};

/// A block.
pub fn allocate_slowly(class: Class) -> *mut u8 {
    if class.is_cell() {
        return large::allocate_large(class.block_bytes(), 64);
    }
    // SAFETY: the layout is not empty.
    let block = unsafe { alloc(node_layout(class)) };
    if block.is_null() {
        handle_alloc_error(node_layout(class));
    }
    block
}

/// Frees a block.
///
/// # Safety
/// `block` came from [`allocate_slowly`] with the same class, and it is no longer used.
pub unsafe fn free_slowly(class: Class, block: *mut u8) {
    // SAFETY: the caller's promises.
    unsafe {
        if class.is_cell() {
            large::free_large(block, class.block_bytes(), 64);
        } else {
            dealloc(block, node_layout(class));
        }
    }
}

fn node_layout(class: Class) -> Layout {
    Layout::from_size_align(class.block_bytes(), 64).expect("a power of two")
}

/// Calls `visit` with every cell in use. They change meanwhile: read atomics only.
pub fn for_each_cell(visit: impl FnMut(*const u8)) {
    large::for_each(visit);
}

/// Calls `look` with the cell at `address`, if there is one. It may be another one than before: read atomics only.
pub fn with_cell<R>(address: usize, _is_far: bool, look: impl FnOnce(*const u8) -> R) -> Option<R> {
    large::with(address, look)
}
