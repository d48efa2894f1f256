//! References to the promises that a slept-on event waits for, for watchdogs, which know them by nothing but chains of
//! debts.
//!
//! The last reference to an event is released without a step that other threads see (`state.rs`, rule 6), so no thread
//! may add one to an event that is known only by its address. The rescuer does so here, and an owner that frees an
//! event that a user's promise owes and that is [followed](super::abi::FLAG_FOLLOWED) asks [`may_free`] first:
//!
//! 1. The rescuer takes the lock, says that it is at work, passes a fence, and looks whether the chain stands. If it
//!    does, the event at its end has not completed all its followers, so it has not been freed.
//! 2. The owner has completed them, passes a fence, looks whether a rescuer is at work, waits for the lock if so, and
//!    counts again in any case. One of the two sees the other: either the chain no longer stood, or the owner sees that
//!    the rescuer works or is done, and with that its count. (Between the owner's first look at the count and this one
//!    a rescuer may have taken a reference and released it.)

use super::abi::{EventHeader, FLAG_FAR, FLAG_FOLLOWED, FLAG_KEEPS_MEMORY, FLAG_POISONABLE};
use super::{Event, debt};
use purlin_base::sync::Mutex;
use purlin_base::sync::atomic::AtomicBool;
use purlin_base::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use purlin_base::sync::atomic::fence;

#[cfg(not(loom))]
static AT_WORK: AtomicBool = AtomicBool::new(false);
#[cfg(not(purlin_model))]
static LOCK: Mutex<()> = Mutex::new(());

#[cfg(loom)]
loom::lazy_static! {
    static ref AT_WORK: AtomicBool = AtomicBool::new(false);
    static ref LOCK: Mutex<()> = Mutex::new(());
}

#[cfg(shuttle)]
shuttle::lazy_static! {
    static ref LOCK: Mutex<()> = Mutex::new(());
}

/// While it is held in a child made by `fork`, what is far and followed stays where it is: the thread that ends such an
/// event passes the lock before (`inherited.rs`).
#[cfg(not(purlin_model))]
pub(super) fn lock() -> purlin_base::sync::MutexGuard<'static, ()> {
    LOCK.lock()
}

const RESCUED: u16 = FLAG_POISONABLE | FLAG_FOLLOWED;

/// Whether an event whose last reference is gone may be freed now. If not, a watchdog has a reference to it.
///
/// # Safety
/// The caller has learnt that it gave up the last reference, and frees the event if this says so.
#[inline]
pub(super) unsafe fn may_free(event: *mut EventHeader) -> bool {
    // SAFETY: the caller's own for now; then its promise.
    unsafe { (*event).flags.load(Relaxed) & RESCUED != RESCUED || may_free_followed(event) }
}

/// As [`may_free`], of an event that might be rescued, or is in its owner's memory.
///
/// # Safety
/// As [`may_free`].
#[inline]
pub(super) unsafe fn may_free_followed(event: *mut EventHeader) -> bool {
    // SAFETY: as in may_free().
    let event = unsafe { &*event };
    let flags = event.flags.load(Relaxed);
    if flags & (RESCUED | FLAG_FAR) != RESCUED && is_nobodys(flags) {
        return true;
    }
    fence(SeqCst);
    // Acquire: an owner that reads that a rescuer is done sees what it has counted.
    let was_at_work = AT_WORK.load(Acquire);
    if was_at_work {
        pass_lock();
    }
    // The count is 0 if the last reference was given up by a decrement, and then no thread has added one; else it is
    // still ours, and those of rescuers are added to it.
    event.refs.load(Acquire) <= 1 || is_last(event)
}

/// Whether no rescuer looks for an event with these flags. In a child made by `fork`, waits for the threads that look
/// at one in its owner's memory.
#[cold]
fn is_nobodys(flags: u16) -> bool {
    #[cfg(not(purlin_model))]
    if flags & FLAG_FAR != 0 && purlin_base::slab::is_child() {
        pass_lock();
    }
    flags & RESCUED != RESCUED
}

/// Gives the owner's reference up, beside those of rescuers.
#[cold]
fn is_last(event: &EventHeader) -> bool {
    event.drop_one_reference()
}

/// Waits until the thread that has the lock now has released it.
#[cold]
fn pass_lock() {
    drop(LOCK.lock());
}

/// The pending events that user's promises owe and that `event` waits for, as far as they may be poisoned.
pub(super) fn roots(event: &Event) -> Vec<Event> {
    let _one_at_a_time = LOCK.lock();
    AT_WORK.store(true, Relaxed);
    fence(SeqCst);
    // SAFETY: our reference keeps the event alive.
    let nodes = unsafe { debt::explore(event.as_raw(), |_| false) };
    let is_root =
        |seen: debt::Seen| seen.is_owed_by_a_promise() && seen.flags & (RESCUED | FLAG_KEEPS_MEMORY) == RESCUED;
    let mut roots = Vec::new();
    for index in 1..nodes.len() {
        // SAFETY: the first node is the event; a chain that stands leads to an event that no thread frees while we are
        // at work.
        unsafe {
            if is_root(nodes[index].seen) && debt::stands(&nodes, index) {
                roots.extend(debt::with_cell(nodes[index].link, |cell| retained(&cell.header)).flatten());
            }
        }
    }
    AT_WORK.store(false, Release);
    roots
}

/// # Safety
/// The event is not freed meanwhile.
unsafe fn retained(event: &EventHeader) -> Option<Event> {
    let mut count = event.refs.load(Relaxed);
    while count != 0 {
        match event.refs.compare_exchange_weak(count, count + 1, Relaxed, Relaxed) {
            Ok(_) => {
                // By the cell's address, not by a borrow of its header.
                let header = std::ptr::with_exposed_provenance_mut(std::ptr::from_ref(event).addr());
                // SAFETY: the reference that was just added.
                return Some(unsafe { Event::from_raw(header) });
            }
            Err(now) => count = now,
        }
    }
    None
}
