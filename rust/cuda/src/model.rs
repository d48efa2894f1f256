//! A driver for models (`rust/model`): an event is over when a model says so, and all else is done at once.

#![allow(unsafe_code, reason = "handles are addresses of what models made")]

use std::ffi::c_uint;
use std::sync::Arc;

use cudarc::driver::sys::{CUevent, CUstream};
use loom::sync::Arc as Watched;
use purlin_base::sync::UnsafeCell;
use purlin_base::sync::atomic::{AtomicBool, Ordering};

use crate::api::{Api, Base, ResultCode};
use crate::driver::Driver;
use crate::err;
use crate::gpu::Gpu;
use crate::memory::Keepers;

/// Behind the handle of an event. loom fails a model that destroys none or one twice.
pub(crate) struct Flag {
    is_over: AtomicBool,
    user: Output,
}

impl Flag {
    /// That of a handle.
    pub(crate) fn of(event: CUevent) -> Watched<Self> {
        // SAFETY: create() made it, and the caller has the event.
        unsafe { (*event.cast::<Watched<Self>>()).clone() }
    }

    /// The device has come so far.
    pub(crate) fn end(&self) {
        // Release: pairs with query(), as the driver's answer says that all before is visible.
        self.is_over.store(true, Ordering::Release);
    }

    /// Its one user does something with it.
    pub(crate) fn touch(&self) {
        self.user.write();
    }
}

/// Memory that loom watches: it must not be reached by two at once.
pub(crate) struct Output(UnsafeCell<u32>);

// SAFETY: what the models are about.
unsafe impl Send for Output {}
// SAFETY: as above.
unsafe impl Sync for Output {}

impl Output {
    pub(crate) fn new() -> Self {
        Self(UnsafeCell::new(0))
    }

    pub(crate) fn write(&self) {
        // SAFETY: loom fails the model if another one reaches it meanwhile.
        self.0.with_mut(|word| unsafe { *word += 1 });
    }

    pub(crate) fn read(&self) -> u32 {
        // SAFETY: as above.
        self.0.with(|word| unsafe { *word })
    }
}

unsafe extern "C" fn create(event: *mut CUevent, _flags: c_uint) -> ResultCode {
    let flag = Flag { is_over: AtomicBool::new(false), user: Output::new() };
    // SAFETY: the caller wants a handle there.
    unsafe { *event = Box::into_raw(Box::new(Watched::new(flag))).cast() };
    0
}

unsafe extern "C" fn destroy(event: CUevent) -> ResultCode {
    // SAFETY: create() made it, and it is destroyed once.
    drop(unsafe { Box::from_raw(event.cast::<Watched<Flag>>()) });
    0
}

unsafe extern "C" fn record(event: CUevent, _stream: CUstream) -> ResultCode {
    // Relaxed: nobody asks before it is recorded, and that is under a lock.
    Flag::of(event).is_over.store(false, Ordering::Relaxed);
    0
}

unsafe extern "C" fn query(event: CUevent) -> ResultCode {
    // Acquire: pairs with end().
    if Flag::of(event).is_over.load(Ordering::Acquire) { 0 } else { err::NOT_READY }
}

/// One for each execution of a model.
pub(crate) fn driver() -> &'static Driver {
    let mut base = Base::idle();
    (base.create_event, base.destroy_event) = (create, destroy);
    (base.record_event, base.query_event) = (record, query);
    Box::leak(Box::new(Driver::of(Api { base, pools: None, peers: None, parameters: None, graphs: None, times: None })))
}

/// On such a driver.
pub(crate) fn gpu() -> Arc<Gpu> {
    Gpu::open(driver(), 0).unwrap_or_else(|error| unreachable!("the driver refuses nothing: {error}"))
}

/// Of a backend on such a driver.
pub(crate) fn keepers() -> Arc<Keepers> {
    Arc::new(Keepers::new(driver()))
}
