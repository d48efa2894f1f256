//! The memory of event cells: blocks of the slab. Stall reports read cells while they are made and freed, so every
//! field that they read is written as an atomic, and the word, which says whether the rest means anything, last.

use std::alloc::Layout;
use std::ffi::c_char;
use std::sync::atomic::Ordering::{Relaxed, Release};

use super::abi::{EventCell, EventHeader, EventVTable, FLAG_FAR, STATE_PENDING, STATE_READY, TERMINAL_BIT};
use purlin_base::clock;
use purlin_base::slab::{self, Class};
use purlin_base::status::SourceLocation;
use purlin_base::thread_state;

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
    // SAFETY: a block of a cell's size, ours; and the caller's promises.
    unsafe { fill(slab::allocate(class).cast(), label, location, vtable, flags, payload_offset) }
}

/// As [`new_cell`], for a cell and a payload that together have `layout`: a block if they fit in one.
///
/// # Safety
/// As [`new_cell`]; `layout` is at least that of an [`EventCell`].
#[inline]
pub(super) unsafe fn new_cell_of(
    layout: Layout,
    label: *const c_char,
    location: SourceLocation,
    vtable: *const EventVTable,
    flags: u16,
    payload_offset: u16,
) -> *mut EventHeader {
    let (cell, far) = match class_of(layout) {
        Some(class) => (slab::allocate(class), 0),
        None => (slab::allocate_large(layout.size(), layout.align()), FLAG_FAR),
    };
    // SAFETY: memory of at least a cell's size, ours; and the caller's promises.
    unsafe { fill(cell.cast(), label, location, vtable, flags | far, payload_offset) }
}

/// The class whose blocks hold `layout`.
const fn class_of(layout: Layout) -> Option<Class> {
    match (layout.size(), layout.align()) {
        (_, align_bytes) if align_bytes > 64 => None,
        (size_bytes, _) if size_bytes <= Class::Cell.block_bytes() => Some(Class::Cell),
        (size_bytes, _) if size_bytes <= Class::WideCell.block_bytes() => Some(Class::WideCell),
        _ => None,
    }
}

/// # Safety
/// `cell` is a cell's memory, the caller's own; the rest as [`new_cell`].
#[inline]
unsafe fn fill(
    cell: *mut EventCell,
    label: *const c_char,
    location: SourceLocation,
    vtable: *const EventVTable,
    flags: u16,
    payload_offset: u16,
) -> *mut EventHeader {
    // SAFETY: the caller's promise; fields one by one, because what is there is no EventCell yet. A thread that reads
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
        (*cell).born_ms.store(clock::now_ms(), Relaxed);
        (*cell).context.store(thread_state::with_state(slab::ThreadState::context_id), Relaxed);
        // Release: a report that sees the event pending sees the rest.
        (*header).word.store(STATE_PENDING, Release);
        header
    }
}

/// Gives the memory back; what it held is gone already.
///
/// # Safety
/// `event` came from [`new_cell`] with the same class, and no reference to it remains.
#[inline]
pub(super) unsafe fn free_cell(class: Class, event: *mut EventHeader) {
    // SAFETY: the caller's promises.
    unsafe {
        mark_free(event);
        slab::free(class, event.cast());
    }
}

/// As [`free_cell`], for a cell from [`new_cell_of`].
///
/// # Safety
/// As [`free_cell`], with the same `layout`.
#[inline]
pub(super) unsafe fn free_cell_of(layout: Layout, event: *mut EventHeader) {
    // SAFETY: the caller's promises.
    unsafe {
        mark_free(event);
        match class_of(layout) {
            Some(class) => slab::free(class, event.cast()),
            None => slab::free_large(event.cast(), layout.size(), layout.align()),
        }
    }
}

/// # Safety
/// The caller's own cell.
unsafe fn mark_free(event: *mut EventHeader) {
    // SAFETY: the caller's promise.
    unsafe {
        if (*event).word.load(Relaxed) & TERMINAL_BIT == 0 {
            (*event).word.store(STATE_READY, Relaxed);
        }
    }
}
