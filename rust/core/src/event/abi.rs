//! The memory that C++ and Rust both touch. The C++ side is `include/purlin/internal/abi.h`, which inlines what needs no
//! call: one load, one compare-and-swap. Layout is asserted on both sides and compared by `tests/cpp/layout_test.cc`.

use std::ffi::{CStr, c_char};

use crate::label::Label;
use crate::status::{SourceLocation, StatusRep};
use crate::sync::UnsafeCell;
use crate::sync::atomic::{AtomicU32, AtomicUsize};

/// What an event's kind knows to do. Readers check `abi_size` before they use a later slot.
#[repr(C)]
pub struct EventVTable {
    /// `size_of::<EventVTable>()` of whoever made it.
    pub abi_size: usize,
    /// Frees the event when its last reference is gone.
    pub free: unsafe extern "C" fn(event: *mut EventHeader),
}

/// A node in an event's list of waiters, embedded as the first field of whatever the attacher allocated.
#[repr(C)]
pub struct Waiter {
    /// The waiter that was attached before this one; the list's owner writes it.
    pub next: *mut Waiter,
    /// Called exactly once, under no lock, after `event` became terminal. Owns and frees the node. Must not unwind.
    pub invoke: unsafe extern "C" fn(waiter: *mut Waiter, event: *const EventHeader),
}

/// The event cell: 32 bytes. `state.rs` has the rules for `word`, `refs` and `error`.
#[repr(C)]
pub struct EventHeader {
    /// Bits 0-1 the state, bit 2 "a thread is parked", the rest the newest waiter.
    pub(super) word: AtomicUsize,
    /// References; at or above [`REFS_SATURATED`] the event is never freed.
    pub(super) refs: AtomicU32,
    /// Reserved for the kinds of events to come.
    pub(super) flags: u16,
    /// Where the payload of an event with a value begins; none yet.
    pub(super) payload_offset: u16,
    pub(super) vtable: &'static EventVTable,
    /// The error, owned; written once by whoever moved the state to claimed, before it becomes error.
    pub(super) error: UnsafeCell<*const StatusRep>,
}

/// Neither ready nor in error.
pub const STATE_PENDING: usize = 0;
/// Somebody has won the right to set an error and is writing it.
pub const STATE_CLAIMED: usize = 1;
/// Happened.
pub const STATE_READY: usize = 2;
/// Failed.
pub const STATE_ERROR: usize = 3;
/// The bits of the state.
pub const STATE_MASK: usize = 3;
/// Set in the terminal states and only there.
pub const TERMINAL_BIT: usize = 2;
/// A thread sleeps in `park.rs` until the event is terminal.
pub const PARKED_BIT: usize = 4;
/// The bits of the waiter's address.
pub const WAITER_MASK: usize = !7;
/// A reference count that reaches this stays there: the event is never freed, and nothing aborts.
pub const REFS_SATURATED: u32 = 0x8000_0000;

/// A plain event as Rust allocates it: the header, then what reports say about it.
#[repr(C)]
pub(super) struct EventCell {
    pub(super) header: EventHeader,
    /// Static, ends with a NUL.
    pub(super) label: *const c_char,
    pub(super) location: SourceLocation,
}

impl EventCell {
    /// What the event was named when it was made.
    pub(super) fn label(&self) -> Label {
        // SAFETY: whoever made the cell promised a static string that ends with a NUL.
        Label::new(unsafe { CStr::from_ptr(self.label) })
    }
}

#[cfg(not(any(loom, shuttle)))]
const _: () = {
    use std::mem::offset_of;
    assert!(size_of::<EventHeader>() == 32 && align_of::<EventHeader>() == 8);
    assert!(offset_of!(EventHeader, word) == 0);
    assert!(offset_of!(EventHeader, refs) == 8);
    assert!(offset_of!(EventHeader, flags) == 12);
    assert!(offset_of!(EventHeader, payload_offset) == 14);
    assert!(offset_of!(EventHeader, vtable) == 16);
    assert!(offset_of!(EventHeader, error) == 24);
    assert!(size_of::<Waiter>() == 16 && align_of::<Waiter>() == 8);
    assert!(offset_of!(Waiter, next) == 0 && offset_of!(Waiter, invoke) == 8);
    assert!(offset_of!(EventCell, header) == 0);
};

/// This side's layout as `name=value` lines, for the test that compares both sides.
#[cfg(not(loom))]
#[must_use]
pub fn layout() -> String {
    use std::mem::offset_of;
    format!(
        "EventHeader.size={}\nEventHeader.align={}\nEventHeader.word={}\nEventHeader.refs={}\nEventHeader.flags={}\n\
         EventHeader.payload_offset={}\nEventHeader.vtable={}\nEventHeader.error={}\nEventVTable.size={}\n\
         EventVTable.abi_size={}\nEventVTable.free={}\nWaiter.size={}\nWaiter.next={}\nWaiter.invoke={}\n",
        size_of::<EventHeader>(),
        align_of::<EventHeader>(),
        offset_of!(EventHeader, word),
        offset_of!(EventHeader, refs),
        offset_of!(EventHeader, flags),
        offset_of!(EventHeader, payload_offset),
        offset_of!(EventHeader, vtable),
        offset_of!(EventHeader, error),
        size_of::<EventVTable>(),
        offset_of!(EventVTable, abi_size),
        offset_of!(EventVTable, free),
        size_of::<Waiter>(),
        offset_of!(Waiter, next),
        offset_of!(Waiter, invoke),
    )
}
