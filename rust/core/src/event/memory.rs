//! The memory of event cells: blocks of the slab. Stall reports read cells while they are made and freed, so every field
//! that they read is written as an atomic, and the word, which says whether the rest means anything, last.

use std::ffi::c_char;
use std::sync::atomic::Ordering::{Relaxed, Release};

use super::abi::{EventCell, EventHeader, EventVTable, STATE_PENDING, STATE_READY, TERMINAL_BIT};
use crate::slab::{self, Class};
use crate::status::SourceLocation;

/// A pending event with one reference, the caller's.
///
/// # Safety
/// `label` is a static string that ends with a NUL; `vtable` is null (a plain event) or static.
#[inline]
pub(super) unsafe fn new_cell(
    class: Class,
    label: *const c_char,
    location: SourceLocation,
    vtable: *const EventVTable,
    flags: u16,
    payload_offset: u16,
) -> *mut EventHeader {
    let cell = slab::allocate(class).cast::<EventCell>();
    // SAFETY: a block of a cell's size, ours; fields one by one, because what is there is no EventCell yet. Whoever reads
    // it already sees a terminal word.
    unsafe {
        let header = &raw mut (*cell).header;
        (*header).refs.store(1, Relaxed);
        (*header).flags.store(flags, Relaxed);
        (&raw mut (*header).payload_offset).write(payload_offset);
        (&raw mut (*header).vtable).write(vtable);
        (*header).error.store(std::ptr::null_mut(), Relaxed);
        (*cell).label.store(label.cast_mut(), Relaxed);
        (*cell).file.store(location.file_as_c_str().as_ptr().cast_mut(), Relaxed);
        (*cell).line.store(location.line(), Relaxed);
        (*cell).born_ms.store(slab::now_ms(), Relaxed);
        (*cell).context.store(slab::with_state(slab::ThreadState::context_id), Relaxed);
        // Release: a report that sees the event pending sees the rest.
        (*header).word.store(STATE_PENDING, Release);
        header
    }
}

/// Gives the memory back; what it held is gone already.
///
/// # Safety
/// `event` came from [`new_cell`] with the same class, and nobody refers to it any more.
#[inline]
pub(super) unsafe fn free_cell(class: Class, event: *mut EventHeader) {
    // SAFETY: the caller's promises.
    unsafe {
        if (*event).word.load(Relaxed) & TERMINAL_BIT == 0 {
            (*event).word.store(STATE_READY, Relaxed);
        }
        slab::free(class, event.cast());
    }
}
