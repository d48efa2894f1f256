//! `purlin/internal/thread_state.h`: what it does not do inline.

use std::ffi::c_void;

use purlin::slab::{self, Class, ThreadState};

/// This thread's state, valid on this thread until it ends.
#[unsafe(no_mangle)]
pub extern "C" fn purlin_thread_state() -> *const ThreadState {
    slab::thread_state()
}

/// A block when the thread's list is empty; the caller's.
#[unsafe(no_mangle)]
pub extern "C" fn purlin_block_allocate(class: Class) -> *mut c_void {
    slab::allocate_slowly(class).cast()
}

/// Takes a block for which the thread's list has no room.
///
/// # Safety
/// `block` is of `class`, the caller's, and nobody uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_block_free(class: Class, block: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { slab::free_slowly(class, block.cast()) };
}

/// Memory for an event cell that fits no class; the caller's.
#[unsafe(no_mangle)]
pub extern "C" fn purlin_large_cell_allocate(size_bytes: usize, align_bytes: usize) -> *mut c_void {
    slab::allocate_large(size_bytes, align_bytes).cast()
}

/// Gives it back.
///
/// # Safety
/// `cell` came from [`purlin_large_cell_allocate`] with the same numbers, and nobody uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_large_cell_free(cell: *mut c_void, size_bytes: usize, align_bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { slab::free_large(cell.cast(), size_bytes, align_bytes) };
}
