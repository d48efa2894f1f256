//! `purlin/internal/thread_state.h` and `mutex.h`: what they do not do inline.

use std::ffi::c_void;
use std::ptr;

use purlin_base::slab::{self, Class};
use purlin_base::sync;
use purlin_base::thread_state::ThreadState;

/// This thread's state, valid on this thread until it ends.
#[unsafe(no_mangle)]
pub extern "C" fn purlin_thread_state() -> *mut ThreadState {
    slab::thread_state().cast_mut()
}

/// A block when the thread's list is empty; the caller's. Null: there is no such class.
#[unsafe(no_mangle)]
pub extern "C" fn purlin_block_allocate(class: u32) -> *mut c_void {
    Class::from_raw(class).map_or(ptr::null_mut(), |class| slab::allocate_slowly(class).cast())
}

/// Takes a block for which the thread's list has no room. Nothing happens if there is no such class.
///
/// # Safety
/// `block` is of `class`, the caller's, and is no longer used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_block_free(class: u32, block: *mut c_void) {
    if let Some(class) = Class::from_raw(class) {
        // SAFETY: the caller's promise.
        unsafe { slab::free_slowly(class, block.cast()) };
    }
}

/// Memory for an event cell that fits no class; the caller's.
#[unsafe(no_mangle)]
pub extern "C" fn purlin_large_cell_allocate(size_bytes: usize, align_bytes: usize) -> *mut c_void {
    slab::allocate_large(size_bytes, align_bytes).cast()
}

/// Gives it back.
///
/// # Safety
/// `cell` came from [`purlin_large_cell_allocate`] with the same numbers, and is no longer used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_large_cell_free(cell: *mut c_void, size_bytes: usize, align_bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { slab::free_large(cell.cast(), size_bytes, align_bytes) };
}

/// From here until [`purlin_lock_leave`], on this thread, a fork by another thread waits.
#[unsafe(no_mangle)]
pub extern "C" fn purlin_lock_enter() -> *const c_void {
    sync::foreign::enter()
}

/// See [`purlin_lock_enter`].
///
/// # Safety
/// `place` came from it, on this thread, once per call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_lock_leave(place: *const c_void) {
    // SAFETY: the caller's promise.
    unsafe { sync::foreign::leave(place) };
}
