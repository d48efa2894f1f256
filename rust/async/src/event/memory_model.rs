//! Event cells as boxes, for models, whose atomics are more than words.

use std::alloc::{Layout, handle_alloc_error};
#[cfg(shuttle)]
use std::alloc::{alloc, dealloc};
use std::ffi::c_char;

// loom fails a model that forgets a cell or frees it twice.
#[cfg(loom)]
use loom::alloc::{alloc, dealloc};

use super::abi::{EventCell, EventHeader, EventVTable, STATE_PENDING};
use purlin_base::slab::{self, Class};
use purlin_base::status::SourceLocation;
use purlin_base::sync::atomic::{AtomicPtr, AtomicU16, AtomicU32, AtomicUsize};
use purlin_base::thread_state;

/// See `memory.rs`.
///
/// # Safety
/// As there.
pub(super) unsafe fn new_cell(
    class: Class,
    label: *const c_char,
    location: SourceLocation,
    vtable: *const EventVTable,
    flags: u16,
    payload_offset: u16,
) -> *mut EventHeader {
    assert_eq!(class, Class::Cell, "models have no streams");
    // SAFETY: the caller's promises.
    unsafe { new_cell_of(Layout::new::<EventCell>(), label, location, vtable, flags, payload_offset) }
}

/// See `memory.rs`.
///
/// # Safety
/// As there.
pub(super) unsafe fn new_cell_of(
    layout: Layout,
    label: *const c_char,
    location: SourceLocation,
    vtable: *const EventVTable,
    flags: u16,
    payload_offset: u16,
) -> *mut EventHeader {
    let header = EventHeader {
        word: AtomicUsize::new(STATE_PENDING),
        refs: AtomicU32::new(1),
        flags: AtomicU16::new(flags),
        payload_offset,
        vtable,
        error: AtomicPtr::new(std::ptr::null_mut()),
    };
    let cell = EventCell {
        header,
        label: label.cast_mut().into(),
        file: location.file_as_c_str().as_ptr().cast_mut().into(),
        line: location.line().into(),
        born_ms: 0.into(),
        context: thread_state::with_state(slab::ThreadState::context_id).into(),
    };
    // SAFETY: the layout is that of a cell at least, so not empty and large enough.
    unsafe {
        let memory = alloc(layout).cast::<EventCell>();
        if memory.is_null() {
            handle_alloc_error(layout);
        }
        memory.write(cell);
        memory.cast()
    }
}

/// See `memory.rs`.
///
/// # Safety
/// As there.
pub(super) unsafe fn free_cell(_class: Class, event: *mut EventHeader) {
    // SAFETY: the caller's promises.
    unsafe { free_cell_of(Layout::new::<EventCell>(), event) };
}

/// See `memory.rs`.
///
/// # Safety
/// As there.
pub(super) unsafe fn free_cell_of(layout: Layout, event: *mut EventHeader) {
    // SAFETY: new_cell_of() wrote the cell with this layout, and the caller was the last to know it.
    unsafe {
        event.cast::<EventCell>().drop_in_place();
        dealloc(event.cast(), layout);
    }
}
