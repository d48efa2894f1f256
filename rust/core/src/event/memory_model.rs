//! Event cells as boxes, for models, whose atomics are more than words.

use std::ffi::c_char;

use super::abi::{EventCell, EventHeader, EventVTable, STATE_PENDING};
use crate::slab::{self, Class};
use crate::status::SourceLocation;
use crate::sync::atomic::{AtomicPtr, AtomicU16, AtomicU32, AtomicUsize};

/// See `memory.rs`. No payload here: models have no use for one.
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
    assert_eq!(class, Class::Cell, "models have plain events only");
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
        context: slab::with_state(slab::ThreadState::context_id).into(),
    };
    Box::into_raw(Box::new(cell)).cast()
}

/// See `memory.rs`.
///
/// # Safety
/// As there.
pub(super) unsafe fn free_cell(_class: Class, event: *mut EventHeader) {
    // SAFETY: new_cell() leaked this box, and the caller was the last to know it.
    drop(unsafe { Box::from_raw(event.cast::<EventCell>()) });
}
