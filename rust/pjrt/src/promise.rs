//! `PJRT_DeviceEventPromise`: a counted object that begins with the table of its functions.
//!
//! Ours has an event from the beginning. The first of `set`, `set_error` and `set_ready` decides what becomes of it;
//! later ones only release what they were given. When the last reference is dropped and none of these was called, the
//! event fails with `Internal`, as that of every promise of Purlin does. A promise of theirs is completed by
//! `set_ready` or `set_error` only: their `set` expects events of their own kind.

use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::AcqRel};

use purlin_async::{Event, EventPromise};
use purlin_base::Error;
use purlin_ffi::handle::{release, retain, share};
use purlin_ffi::panic::contain;
use purlin_ffi::words::not_ok;

use super::abi::{DeviceEvent, DeviceEventPromise, DeviceEventPromiseTable, DeviceEventTable, PjrtError, slot};
use super::{device_event, error};

/// The table of every promise that is given.
pub static TABLE: DeviceEventPromiseTable = DeviceEventPromiseTable {
    struct_size: size_of::<DeviceEventPromiseTable>(),
    instance_size: size_of::<DeviceEventPromise>(),
    extension_start: ptr::null_mut(),
    inc_ref: Some(inc_ref),
    dec_ref: Some(dec_ref),
    event: Some(event),
    set: Some(set),
    set_error: Some(set_error),
    set_ready: Some(set_ready),
};

/// A promise of ours, in an `Arc`.
#[repr(C)]
struct Ours {
    visible: DeviceEventPromise,
    event: Event,
    /// A caller has decided, or is about to. Decides only which caller; the event orders all else.
    decided: AtomicBool,
}

// SAFETY: the table is static; all else is.
unsafe impl Send for Ours {}
// SAFETY: as above.
unsafe impl Sync for Ours {}

impl Ours {
    /// The right to complete the event, once.
    fn decide(&self) -> Option<EventPromise> {
        // SAFETY: the event came from a promise; the reference is new, and only one promise is made of it.
        (!self.decided.swap(true, AcqRel)).then(|| unsafe { EventPromise::from_raw(self.event.clone().into_raw()) })
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        // If it is still owed, the promise says that it was abandoned.
        drop(self.decide());
    }
}

/// One reference to a promise of `event`, which is pending and has no other promise.
pub fn give(event: Event) -> *mut DeviceEventPromise {
    let ours = Ours { visible: DeviceEventPromise { table: &TABLE }, event, decided: AtomicBool::new(false) };
    share(ours).cast_mut().cast()
}

/// # Safety
/// `promise` is null or one of ours, alive.
unsafe fn ours<'a>(promise: *mut DeviceEventPromise) -> Option<&'a Ours> {
    // SAFETY: the caller's promise.
    unsafe { promise.cast::<Ours>().as_ref() }
}

/// One reference to a promise of any library, which is called once with how something ended.
pub(crate) struct Taken {
    promise: *mut DeviceEventPromise,
    set_error: unsafe extern "C" fn(promise: *mut DeviceEventPromise, error: *mut PjrtError),
    set_ready: unsafe extern "C" fn(promise: *mut DeviceEventPromise),
    dec_ref: unsafe extern "C" fn(promise: *mut DeviceEventPromise),
    told: bool,
}

// SAFETY: their functions may be called from every thread.
unsafe impl Send for Taken {}

impl Taken {
    /// # Errors
    /// `InvalidArgument`: there is no promise, or its table lacks a function; the reference is gone where that can be
    /// said.
    ///
    /// # Safety
    /// `promise` is null or the caller's reference, which it gives up.
    pub(crate) unsafe fn new(promise: *mut DeviceEventPromise) -> Result<Self, Error> {
        if promise.is_null() {
            return Err(Error::invalid_argument("a PJRT_DeviceEventPromise is null"));
        }
        // SAFETY: a promise begins with the pointer to its table.
        let table = unsafe { (*promise).table };
        if table.is_null() {
            return Err(Error::invalid_argument("a PJRT_DeviceEventPromise without a table"));
        }
        // SAFETY: alive, and its table says what it has.
        unsafe {
            let dec_ref = slot!(table, DeviceEventPromiseTable, dec_ref);
            let set_error = slot!(table, DeviceEventPromiseTable, set_error);
            let set_ready = slot!(table, DeviceEventPromiseTable, set_ready);
            if let (Some(dec_ref), Some(set_error), Some(set_ready)) = (dec_ref, set_error, set_ready) {
                return Ok(Self { promise, set_error, set_ready, dec_ref, told: false });
            }
            if let Some(dec_ref) = dec_ref {
                dec_ref(promise);
            }
            Err(Error::invalid_argument(format!(
                "the table of a PJRT_DeviceEventPromise (struct_size {}) has no dec_ref, set_error or set_ready",
                table.cast::<usize>().read()
            )))
        }
    }

    pub(crate) fn tell(mut self, outcome: &Result<(), Error>) {
        self.told = true;
        // SAFETY: alive by our reference.
        unsafe {
            match outcome {
                Ok(()) => (self.set_ready)(self.promise),
                Err(error) => (self.set_error)(self.promise, error::give(error.clone())),
            }
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if !self.told {
            let given_up = Error::internal("what a PJRT_DeviceEventPromise was to follow has been given up");
            // SAFETY: alive by our reference.
            unsafe { (self.set_error)(self.promise, error::give(given_up)) };
        }
        // SAFETY: our reference, which ends here.
        unsafe { (self.dec_ref)(self.promise) };
    }
}

/// Makes `promise` follow `event`.
///
/// # Errors
/// As [`Taken::new`].
///
/// # Safety
/// As [`Taken::new`].
pub unsafe fn forward(promise: *mut DeviceEventPromise, event: &Event) -> Result<(), Error> {
    // SAFETY: null, or the caller's reference, and a promise begins with the pointer to its table.
    unsafe {
        if promise.as_ref().is_some_and(|promise| ptr::eq(promise.table, &raw const TABLE)) {
            // One of ours: its event follows, so that reports and cycles are seen.
            if let Some(owed) = ours(promise).and_then(Ours::decide) {
                owed.forward(event);
            }
            dec_ref(promise);
            return Ok(());
        }
    }
    // SAFETY: the caller's promise.
    let taken = unsafe { Taken::new(promise) }?;
    event.on_ready(move |outcome| taken.tell(outcome));
    Ok(())
}

/// The event of a promise of any library. `InvalidArgument`: there is none, or its tables lack what it takes.
///
/// # Safety
/// `promise` is null or alive.
pub unsafe fn event_of(promise: *mut DeviceEventPromise) -> Event {
    // SAFETY: a promise begins with the pointer to its table, an event's table likewise says what it has; the reference
    // that is taken is the one that is made here.
    let event = unsafe {
        let table = promise.as_ref().map(|promise| promise.table).filter(|table| !table.is_null());
        let lent = table.and_then(|table| slot!(table, DeviceEventPromiseTable, event)).map(|event| event(promise));
        lent.filter(|lent| !lent.table.is_null() && !lent.event.is_null()).and_then(|lent| {
            slot!(lent.table, DeviceEventTable, inc_ref)?(lent.event);
            Some(device_event::take(lent))
        })
    };
    event.unwrap_or_else(|| {
        Event::from_error(Error::invalid_argument("a PJRT_DeviceEventPromise is null, or its event cannot be had"))
    })
}

unsafe extern "C" fn inc_ref(promise: *mut DeviceEventPromise) {
    if !promise.is_null() {
        // SAFETY: alive.
        unsafe { retain(promise.cast::<Ours>().cast_const()) };
    }
}

unsafe extern "C" fn dec_ref(promise: *mut DeviceEventPromise) {
    contain("PJRT dec_ref", (), || {
        if !promise.is_null() {
            // SAFETY: the caller's reference.
            unsafe { release(promise.cast::<Ours>().cast_const()) };
        }
    })
}

unsafe extern "C" fn event(promise: *mut DeviceEventPromise) -> DeviceEvent {
    contain("PJRT event", DeviceEvent { table: ptr::null(), event: ptr::null_mut() }, || {
        // SAFETY: null or alive; the event lives as long as its promise.
        unsafe { ours(promise) }
            .map_or(DeviceEvent { table: ptr::null(), event: ptr::null_mut() }, |ours| device_event::lend(&ours.event))
    })
}

unsafe extern "C" fn set(promise: *mut DeviceEventPromise, event: DeviceEvent) {
    contain("PJRT set", (), || {
        // SAFETY: the caller gives up a reference to the event, whether or not the promise is still owed.
        let event = unsafe { device_event::take(event) };
        // SAFETY: null or alive. The promise may go while waiters run; nothing of it is touched after.
        if let Some(promise) = unsafe { ours(promise) }.and_then(Ours::decide) {
            promise.forward(&event);
        }
    })
}

unsafe extern "C" fn set_error(promise: *mut DeviceEventPromise, error: *mut PjrtError) {
    contain("PJRT set_error", (), || {
        // SAFETY: the caller gives up the error, whether or not the promise is still owed.
        let error = unsafe { error::take(error) };
        // SAFETY: as in set().
        if let Some(promise) = unsafe { ours(promise) }.and_then(Ours::decide) {
            promise.set_error(not_ok(error, "set_error of a PJRT_DeviceEventPromise"));
        }
    })
}

unsafe extern "C" fn set_ready(promise: *mut DeviceEventPromise) {
    contain("PJRT set_ready", (), || {
        // SAFETY: as in set().
        if let Some(promise) = unsafe { ours(promise) }.and_then(Ours::decide) {
            promise.set_ready();
        }
    })
}
