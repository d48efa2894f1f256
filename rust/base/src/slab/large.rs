//! Event cells that fit no class: from the system one by one, and known by address.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::collections::BTreeSet;
use std::ptr;

use super::{forked, mark_free};
use crate::sync::Mutex;

static CELLS: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());

fn layout(size_bytes: usize, align_bytes: usize) -> Layout {
    // Sizes and alignments are those of types, so they make a layout.
    Layout::from_size_align(size_bytes, align_bytes).expect("the size and alignment of a type")
}

/// Memory for an event cell and what follows it, marked as free (see `for_each_cell`).
#[must_use]
pub fn allocate_large(size_bytes: usize, align_bytes: usize) -> *mut u8 {
    let layout = layout(size_bytes, align_bytes);
    // SAFETY: not empty: it holds an event cell.
    let cell = unsafe { alloc(layout) };
    if cell.is_null() {
        handle_alloc_error(layout);
    }
    // SAFETY: new memory of at least the size of a cell, aligned.
    unsafe { mark_free(cell) };
    forked::watch();
    CELLS.lock().insert(cell.expose_provenance());
    cell
}

/// Gives it back.
///
/// # Safety
/// `cell` came from [`allocate_large`] with the same numbers, and it is no longer used.
pub unsafe fn free_large(cell: *mut u8, size_bytes: usize, align_bytes: usize) {
    // Readers hold the lock while they read, so the memory is freed after they have finished.
    CELLS.lock().remove(&cell.addr());
    // SAFETY: the caller's promise.
    unsafe { dealloc(cell, layout(size_bytes, align_bytes)) };
}

/// See `for_each_cell`.
pub(super) fn for_each(mut visit: impl FnMut(*const u8)) {
    for &address in CELLS.lock().iter() {
        visit(ptr::with_exposed_provenance(address));
    }
}

/// See `with_cell`.
pub(super) fn with<R>(address: usize, look: impl FnOnce(*const u8) -> R) -> Option<R> {
    let cells = CELLS.lock();
    cells.contains(&address).then(|| look(ptr::with_exposed_provenance(address)))
}
