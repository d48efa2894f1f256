//! A watchdog that gets hold of a promise, known to it by a chain of debts only, against the owner, which completes and
//! frees it. A model keeps the cell when it is freed, as the slab does, and says that it was.

use std::alloc::Layout;
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::thread;

use super::super::abi::{EventCell, EventHeader, EventVTable, FLAG_POISONABLE};
use super::super::{Event, EventPromise, memory, rescue};
use super::BareCell;
use purlin_base::status::{Error, SourceLocation};
use purlin_base::sync::explore;

/// A promise's cell, and what belongs to its references.
#[repr(C)]
struct Root {
    cell: EventCell,
    bare: BareCell,
    frees: AtomicUsize,
}

static VTABLE: EventVTable =
    EventVTable { abi_size: size_of::<EventVTable>(), free: Root::free, payload_type: std::ptr::null() };

impl Root {
    fn new() -> *mut EventHeader {
        let (label, place) = (c"root".as_ptr(), SourceLocation::UNKNOWN);
        // SAFETY: the label is static; the memory is large enough, and the fields behind the cell are written here.
        unsafe {
            let event = memory::new_cell_of(Layout::new::<Self>(), label, place, &VTABLE, FLAG_POISONABLE, 0);
            let root = event.cast::<Self>();
            (&raw mut (*root).bare).write(BareCell::default());
            (&raw mut (*root).frees).write(AtomicUsize::new(0));
            event.expose_provenance();
            event
        }
    }

    unsafe extern "C" fn free(event: *mut EventHeader) {
        // SAFETY: the last reference is gone, or a watchdog has the last.
        unsafe {
            if rescue::may_free(event) {
                let root = &*event.cast::<Self>();
                root.frees.fetch_add(1, Ordering::Relaxed);
                // SAFETY: loom checks that no other thread looks.
                root.bare.0.with_mut(|place| *place = 1);
            }
        }
    }

    /// What the holder of a reference may do.
    ///
    /// # Safety
    /// The root of a model that continues.
    unsafe fn look(event: *const EventHeader) {
        // SAFETY: the caller's promise; loom checks that no thread has freed it.
        unsafe { assert_eq!((*event.cast::<Self>()).bare.0.with(|place| *place), 0, "freed under a reference") };
    }
}

/// `release` releases the owner's reference.
fn rescued_or_freed(name: &str, release: unsafe fn(*mut EventHeader)) {
    explore(name, Some(3), move || {
        let root = Root::new();
        let follower = EventPromise::new(c"follower");
        let followed_by = follower.event();
        // SAFETY: the root is alive; its one reference becomes the owner's, below.
        follower.forward(&unsafe { Event::from_borrowed_raw(root) });
        let address = root.addr();
        let owner = thread::spawn(move || {
            let root = std::ptr::with_exposed_provenance_mut(address);
            // SAFETY: the owner's reference.
            unsafe {
                super::raw::set_ready(root);
                Root::look(root);
                release(root);
            }
        });
        for rescued in followed_by.roots() {
            assert_eq!(rescued.as_raw().addr(), address);
            // SAFETY: the root, to which this is a reference.
            unsafe { Root::look(rescued.as_raw()) };
            rescued.poison(Error::deadline_exceeded("late"));
        }
        owner.join().unwrap();
        assert!(followed_by.is_ready());
        // SAFETY: no thread refers to the root any more.
        unsafe {
            assert_eq!((*root.cast::<Root>()).frees.load(Ordering::Relaxed), 1, "freed once");
            std::ptr::drop_in_place(&raw mut (*root.cast::<Root>()).bare);
            memory::free_cell_of(Layout::new::<Root>(), root);
        }
    });
}

#[test]
fn a_promise_is_rescued_or_freed() {
    rescued_or_freed("rescue against the last decrement", super::raw::release);
}

/// As every build but loom's releases: a look first. See `a_look_at_the_count_may_stand_for_the_last_decrement`.
#[test]
fn a_promise_is_rescued_or_freed_after_a_look() {
    rescued_or_freed("rescue against a look", |root| {
        // SAFETY: the caller's reference, given up here.
        unsafe {
            if (*root).is_only_reference() || (*root).drop_one_reference() {
                Root::free(root);
            }
        }
    });
}
