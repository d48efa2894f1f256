//! Cells that carry a value: an event cell, then a payload of type `P`, which is the value or, in an indirect cell,
//! where the value is and what keeps it there. `value.rs` is the safe face.
//!
//! The threads that may touch the payload, by the event's state (`state.rs`) and `FLAG_CONSTRUCTED`:
//! - before the cell is shared, its maker, which may construct it;
//! - in CLAIMED, the winner, which may construct it; READY publishes it, and from then on every thread may read it;
//! - after ERROR, unless `FLAG_KEEP_ON_ERROR`, the thread that set the error, which destroys it; with the flag it is
//!   never written after it was shared, so every thread may read it in every state;
//! - when the last reference is gone, the thread that frees the cell.

use std::alloc::Layout;
use std::any::TypeId;
use std::mem::{MaybeUninit, offset_of};

use super::abi::{
    EventCell, EventHeader, EventVTable, FLAG_CONSTRUCTED, FLAG_KEEP_ON_ERROR, STATE_PENDING, STATE_READY,
};
use super::{Event, memory, raw, rescue};
use purlin_base::label::Label;
use purlin_base::panics::reported;
use purlin_base::status::{Error, SourceLocation};
use purlin_base::sync::UnsafeCell;
use purlin_base::sync::atomic::Ordering::Relaxed;

/// The memory of a cell with a payload.
#[repr(C)]
struct TypedCell<P> {
    cell: EventCell,
    payload: UnsafeCell<MaybeUninit<P>>,
}

/// The vtable of a cell whose value is a Rust type: `base.payload_type` says that the rest is there.
#[repr(C)]
struct TypedVTable {
    base: EventVTable,
    value_type: TypeId,
}

/// Its address is the `payload_type` of all Rust values.
static RUST_VALUE: u8 = 0;

/// Cells with a payload `P` that stand for a value `T`.
struct Kind<P, T>(P, T);

impl<P: Send + Sync + 'static, T: 'static> Kind<P, T> {
    const LAYOUT: Layout = Layout::new::<TypedCell<P>>();
    #[expect(clippy::cast_possible_truncation, reason = "asserted here")]
    const OFFSET: u16 = {
        assert!(offset_of!(TypedCell<P>, payload) <= u16::MAX as usize, "the value's alignment is beyond all reason");
        offset_of!(TypedCell<P>, payload) as u16
    };
    const VTABLE: &'static TypedVTable = &TypedVTable {
        base: EventVTable {
            abi_size: size_of::<TypedVTable>(),
            free: Self::free,
            payload_type: (&raw const RUST_VALUE).cast(),
        },
        value_type: TypeId::of::<T>(),
    };

    unsafe extern "C" fn free(event: *mut EventHeader) {
        // SAFETY: called for the last reference of an event from new().
        unsafe {
            if (*event).state() == STATE_PENDING && (*event).has_waiters() {
                // No promise is left to set it. The waiters get an error; a reference of our own keeps it alive
                // meanwhile: that which was given up without a decrement, or a new one.
                if (*event).refs.load(Relaxed) == 0 {
                    (*event).refs.store(1, Relaxed);
                }
                raw::abandon(event);
                return raw::release(event);
            }
            if !rescue::may_free(event) {
                return;
            }
            destroy::<P>(event);
            raw::drop_error(event);
            (&raw mut (*event.cast::<TypedCell<P>>()).payload).drop_in_place();
            memory::free_cell_of(Self::LAYOUT, event);
        }
    }
}

/// A pending event with room for a `P`, which stands for a value of type `T`. The one reference is the caller's.
pub(super) fn new<P: Send + Sync + 'static, T: 'static>(label: Label, location: SourceLocation, flags: u16) -> Event {
    let vtable = (&raw const *Kind::<P, T>::VTABLE).cast::<EventVTable>();
    // SAFETY: a Label is static and ends with a NUL; the layout begins with a cell; the payload's memory is inside it
    // and ours, and no other thread knows the event yet.
    unsafe {
        let event = memory::new_cell_of(
            Kind::<P, T>::LAYOUT,
            label.as_cstr().as_ptr(),
            location,
            vtable,
            flags,
            Kind::<P, T>::OFFSET,
        );
        (&raw mut (*event.cast::<TypedCell<P>>()).payload).write(UnsafeCell::new(MaybeUninit::uninit()));
        Event::from_raw(event)
    }
}

/// True if `event` stands for a value of type `T`.
pub(super) fn is_a<T: 'static>(event: &Event) -> bool {
    event.header().is_some_and(|header| {
        // SAFETY: vtables are static.
        let vtable = unsafe { header.vtable.as_ref() };
        // SAFETY: all vtables that name RUST_VALUE are TypedVTables.
        vtable.is_some_and(|vtable| vtable.payload_type == (&raw const RUST_VALUE).cast())
            && unsafe { (*header.vtable.cast::<TypedVTable>()).value_type == TypeId::of::<T>() }
    })
}

/// Where the payload is, for reading.
///
/// # Safety
/// `event` is alive, from [`new`] with this `P`, and the payload is constructed and readable: see the rules above.
pub(super) unsafe fn payload<P>(event: *const EventHeader) -> *const P {
    // SAFETY: the caller's promises.
    unsafe { (*event.cast::<TypedCell<P>>()).payload.with(|payload| payload.cast()) }
}

/// # Safety
/// `event` is alive, from [`new`] with this `P`, and the payload is the caller's to construct.
pub(super) unsafe fn construct<P>(event: *mut EventHeader, value: P) {
    // SAFETY: the caller's promises.
    unsafe {
        (*event.cast::<TypedCell<P>>()).payload.with_mut(|payload| payload.cast::<P>().write(value));
        // Relaxed: published with the payload.
        (*event).flags.fetch_or(FLAG_CONSTRUCTED, Relaxed);
    }
}

/// Makes a pending event ready with a payload; gives it back if another thread was first.
///
/// # Safety
/// `event` is alive, from [`new`] with this `P`, and its payload is not constructed while it is pending.
pub(super) unsafe fn emplace<P>(event: *mut EventHeader, value: P) -> Result<(), P> {
    // SAFETY: the caller's promises; the winner of the claim may construct, and publishes what it has claimed.
    unsafe {
        if !(*event).try_claim() {
            return Err(value);
        }
        construct(event, value);
        raw::finish(event, (*event).publish_ready());
    }
    Ok(())
}

/// Makes a pending event fail; its payload, if there is one and it is not to be kept, is destroyed after the waiters
/// ran. False if another thread was first.
///
/// # Safety
/// The caller holds a reference to `event`, which is from [`new`] with this `P`.
pub(super) unsafe fn fail<P>(event: *mut EventHeader, error: Error) -> bool {
    // SAFETY: the caller's promises; the thread that has set the error may destroy a payload that is not kept.
    unsafe {
        if !raw::set_error(event, error) {
            return false;
        }
        if (*event).flags.load(Relaxed) & FLAG_KEEP_ON_ERROR == 0 {
            destroy::<P>(event);
        }
    }
    true
}

/// Takes the payload out.
///
/// # Safety
/// The caller holds the only reference to `event`, which is from [`new`] with this `P`; the payload is constructed.
pub(super) unsafe fn take<P>(event: *mut EventHeader) -> P {
    // SAFETY: the caller's promises; without the flag no thread destroys what was read.
    unsafe {
        (*event).flags.fetch_and(!FLAG_CONSTRUCTED, Relaxed);
        (*event.cast::<TypedCell<P>>()).payload.with_mut(|payload| payload.cast::<P>().read())
    }
}

/// True if the event is ready, so that its payload may be read; one load.
pub(super) fn is_readable(event: &EventHeader) -> bool {
    event.state() == STATE_READY
}

/// Destroys the payload if it is constructed. A panic of its destructor is reported and swallowed.
///
/// # Safety
/// `event` is from [`new`] with this `P`, and the payload is the caller's to destroy.
unsafe fn destroy<P>(event: *mut EventHeader) {
    // SAFETY: the caller's promises; the flag is cleared first, so that it is destroyed once.
    unsafe {
        if (*event).flags.fetch_and(!FLAG_CONSTRUCTED, Relaxed) & FLAG_CONSTRUCTED == 0 {
            return;
        }
        let payload = (*event.cast::<TypedCell<P>>()).payload.with_mut(|payload| payload.cast::<P>());
        reported(|| "the destructor of a value", || payload.drop_in_place());
    }
}
