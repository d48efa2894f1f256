//! The memory that C++ and Rust both touch. The C++ side is `include/purlin/internal/abi.h`, which inlines what needs
//! no call: one load, one compare-and-swap. Layout is asserted on both sides and compared by
//! `tests/cpp/layout_test.cc`.

use std::ffi::{c_char, c_void};
use std::fmt;
// Not purlin_base::sync: what reports say about an event is published with it and takes no part in any protocol.
use std::sync::atomic::{AtomicPtr as PlainPtr, AtomicU32 as PlainU32, AtomicU64 as PlainU64, Ordering::Relaxed};

use purlin_base::label::Label;
use purlin_base::status::SourceLocation;
use purlin_base::sync::atomic::{AtomicPtr, AtomicU16, AtomicU32, AtomicUsize};

/// What an event's kind knows to do. Readers check `abi_size` before they use a later slot.
#[derive(Debug)]
#[repr(C)]
pub struct EventVTable {
    /// `size_of::<EventVTable>()` of the module that made it.
    pub abi_size: usize,
    /// Frees the event when its last reference is gone.
    pub free: unsafe extern "C" fn(event: *mut EventHeader),
    /// Identifies the payload's type: equal for equal types. Null for an event without a payload.
    pub payload_type: *const c_void,
}

// SAFETY: a constant; the pointer in it is only compared.
unsafe impl Sync for EventVTable {}

/// A node in an event's list of waiters, embedded as the first field of the attacher's allocation.
#[derive(Debug)]
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
    pub(crate) word: AtomicUsize,
    /// References; at or above [`REFS_SATURATED`] the event is never freed.
    pub(super) refs: AtomicU32,
    /// What the payload is: `FLAG_*`.
    pub(super) flags: AtomicU16,
    /// Where the payload begins, from the header's address; 0 without one.
    pub(super) payload_offset: u16,
    /// Null in a plain event, which has no payload.
    pub(super) vtable: *const EventVTable,
    /// In state error, the error, owned. While pending, what it waits for, if that is known ([`DEBT_KIND`]).
    pub(crate) error: AtomicPtr<c_void>,
}

impl fmt::Debug for EventHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventHeader").finish_non_exhaustive()
    }
}

/// Neither ready nor in error.
pub const STATE_PENDING: usize = 0;
/// A thread has won the right to set an error and is writing it.
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

/// The payload is constructed, whatever the state.
pub const FLAG_CONSTRUCTED: u16 = 1;
/// The payload is a pointer to the value and something that keeps the value alive.
pub const FLAG_INDIRECT: u16 = 2;
/// The cell's memory may be freed: it is the caller's, or too large for the slab. The same bit as [`DEBT_FAR`].
pub const FLAG_FAR: u16 = 4;
/// The payload is a [`DefinitionStream`].
pub const FLAG_STREAM: u16 = 8;
/// A thread is giving the task that completes this event to an executor, and will look at [`FLAG_UNCALLED`] afterwards.
pub const FLAG_SUBMITTING: u16 = 16;
/// The task that was to complete this event has been dropped uncalled.
pub const FLAG_UNCALLED: u16 = 32;
/// A user's promise owes it, so a watchdog may make it fail. All other events guard something or follow others.
pub const FLAG_POISONABLE: u16 = 64;
/// Another event has noted that it waits for this one.
pub const FLAG_FOLLOWED: u16 = 128;
/// An error does not destroy the payload.
pub const FLAG_KEEP_ON_ERROR: u16 = 256;
/// Memory is kept until it, whatever owes it: it is not poisoned, and neither are the events that it waits for.
pub const FLAG_KEEPS_MEMORY: u16 = 512;
/// The library owes it, and no memory or stack is lent until it: units of a semaphore, a time, a cancellation, memory.
pub const FLAG_LENDS_NOTHING: u16 = 1024;
/// Something is lent until it, also while it waits for other events.
pub const FLAG_LENDS_THROUGHOUT: u16 = 2048;
/// It completes as soon as what it waits for has completed, and nothing else is done before.
pub const FLAG_OF_OTHERS: u16 = 4096;
/// It succeeds also if what it waits for fails. With [`FLAG_OF_OTHERS`].
pub const FLAG_IGNORES_ERRORS: u16 = 8192;
/// Something that it waited for has failed, so it will. With [`FLAG_OF_OTHERS`].
pub const FLAG_PART_FAILED: u16 = 16384;

/// The low bits of `error` while the event is pending: the kind of debt, and [`DEBT_FAR`]. `debt.rs` says when the rest
/// may be followed.
pub const DEBT_MASK: usize = 7;
/// The bits of the kind; 0 for the promise's owner.
pub const DEBT_KIND: usize = 3;
/// The event completes when another event does: the address is that event's.
pub const DEBT_EVENT: usize = 1;
/// The event completes when a task runs: the address is the task node's.
pub const DEBT_TASK: usize = 2;
/// The event completes when several others do, which `several.rs` lists by this event's address.
pub const DEBT_SEVERAL: usize = 3;
/// The event that it waits for has [`FLAG_FAR`].
pub const DEBT_FAR: usize = 4;

/// Every event: the header, then what reports say about it, then the payload, if there is one. 64 bytes. Stall reports
/// read cells that others make and free at the same time, so all that they read is atomic.
#[repr(C)]
pub struct EventCell {
    pub(crate) header: EventHeader,
    /// Static, ends with a NUL.
    pub(super) label: PlainPtr<c_char>,
    /// Static, ends with a NUL.
    pub(super) file: PlainPtr<c_char>,
    pub(super) line: PlainU32,
    /// The coarse clock's time when the event was made, in ms.
    pub(crate) born_ms: PlainU32,
    /// The number of the user context in which it was made; 0 for none.
    pub(crate) context: PlainU64,
}

impl fmt::Debug for EventCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventCell").finish_non_exhaustive()
    }
}

/// Where work is ordered: the producer's stream and the position in it.
///
/// ```
/// use purlin::{DefinitionStream, Event, EventPromise};
///
/// let definition = DefinitionStream { stream: 0x51, sequence_number: 1 };
/// let promise = EventPromise::with_definition_stream(c"kernel", definition);
/// assert_eq!(promise.event().definition_stream().map(|known| known.stream), Some(0x51));
/// assert_eq!(Event::ready().definition_stream(), None);
/// # promise.set_ready();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct DefinitionStream {
    /// Identifies the stream to users of the platform: the platform's handle. Not 0.
    pub stream: usize,
    /// Grows along the stream; from 1.
    pub sequence_number: u64,
}

impl EventCell {
    /// What the event was named when it was made.
    pub(crate) fn label(&self) -> Label {
        // SAFETY: the cell's maker promised a static string that ends with a NUL.
        unsafe { Label::from_ptr(self.label.load(Relaxed)) }
    }

    /// Where the event was made.
    pub(crate) fn location(&self) -> SourceLocation {
        // SAFETY: as above.
        unsafe { SourceLocation::from_ptr(self.file.load(Relaxed), self.line.load(Relaxed)) }
    }
}

#[cfg(not(purlin_model))]
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
    assert!(size_of::<EventCell>() == 64 && offset_of!(EventCell, header) == 0);
    assert!(offset_of!(EventCell, label) == 32 && offset_of!(EventCell, file) == 40);
    assert!(offset_of!(EventCell, line) == 48 && offset_of!(EventCell, born_ms) == 52);
    assert!(offset_of!(EventCell, context) == 56);
    assert!(offset_of!(EventHeader, error) == purlin_base::slab::LINK_OFFSET, "a free cell's link is in `error`");
    assert!(FLAG_FAR as usize == DEBT_FAR, "C++ puts the flag into the debt");
    assert!(STATE_READY == purlin_base::slab::FREE_WORD, "a free cell is in a terminal state");
    assert!(
        TERMINAL_BIT == purlin_base::slab::TERMINAL_BIT && STATE_ERROR == purlin_base::slab::ERROR_WORD,
        "what a fork writes"
    );
};

/// This side's layout as `name=value` lines, for the test that compares both sides.
#[cfg(not(loom))]
#[must_use]
pub fn layout() -> String {
    use std::mem::offset_of;
    format!(
        "EventHeader.size={}\nEventHeader.align={}\nEventHeader.word={}\nEventHeader.refs={}\nEventHeader.flags={}\n\
         EventHeader.payload_offset={}\nEventHeader.vtable={}\nEventHeader.error={}\nEventVTable.size={}\n\
         EventVTable.abi_size={}\nEventVTable.free={}\nEventVTable.payload_type={}\nEventCell.size={}\n\
         EventCell.label={}\nEventCell.file={}\nEventCell.line={}\nEventCell.born_ms={}\nEventCell.context={}\n\
         Waiter.size={}\nWaiter.next={}\nWaiter.invoke={}\n",
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
        offset_of!(EventVTable, payload_type),
        size_of::<EventCell>(),
        offset_of!(EventCell, label),
        offset_of!(EventCell, file),
        offset_of!(EventCell, line),
        offset_of!(EventCell, born_ms),
        offset_of!(EventCell, context),
        size_of::<Waiter>(),
        offset_of!(Waiter, next),
        offset_of!(Waiter, invoke),
    )
}
