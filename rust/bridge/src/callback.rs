//! A C++ closure that is called with how something ended (`purlin/internal/callback.h`): called once or destroyed
//! uncalled.

use std::ffi::c_void;
use std::mem::{ManuallyDrop, offset_of};
use std::ptr;

use purlin_base::Error;
use purlin_base::status::{self, StatusRep};
use purlin_device::buffer::OnDone;

/// `run`: calls the closure with `error` (owned, null for OK) and `value` (owned, what the call promises, or null),
/// then destroys it; else destroys it. Does not unwind.
type Invoke = unsafe extern "C" fn(data: *mut c_void, run: bool, error: *const StatusRep, value: *const c_void);

/// The closure, as `purlin/internal/callback.h` declares it.
#[repr(C)]
pub struct Callback {
    data: *mut c_void,
    invoke: Invoke,
}

const _: () =
    assert!(size_of::<Callback>() == 16 && offset_of!(Callback, data) == 0 && offset_of!(Callback, invoke) == 8);

// SAFETY: the contracts of the headers: callbacks are called on any thread.
unsafe impl Send for Callback {}
// SAFETY: a shared reference can do nothing.
unsafe impl Sync for Callback {}

impl Callback {
    /// Calls it, and gives `value` away.
    pub(crate) fn call(self, outcome: Result<(), Error>, value: *const c_void) {
        let this = ManuallyDrop::new(self);
        // SAFETY: C++ gave the function together with the data that it takes; it is called once, because this is
        // consumed.
        unsafe { (this.invoke)(this.data, true, status::into_raw(outcome), value) };
    }
}

impl Drop for Callback {
    fn drop(&mut self) {
        // SAFETY: as in call(), which does not reach this.
        unsafe { (self.invoke)(self.data, false, ptr::null(), ptr::null()) };
    }
}

/// A callback that is called once, whatever happens.
pub(crate) struct CallbackOnce(Option<Callback>);

impl CallbackOnce {
    /// Takes over what C++ gives up; null is none.
    ///
    /// # Safety
    /// `callback` is null or a callback that the caller gives up.
    pub(crate) unsafe fn take(callback: *const Callback) -> Option<Self> {
        // SAFETY: the caller gives it up, so this is the only one.
        (!callback.is_null()).then(|| Self(Some(unsafe { callback.read() })))
    }

    pub(crate) fn tell(mut self, outcome: Result<(), Error>) {
        if let Some(callback) = self.0.take() {
            callback.call(outcome, ptr::null());
        }
    }

    /// As the core calls it, of a type of its own, which needs no box.
    pub(crate) fn into_closure(self) -> impl FnOnce(Result<(), Error>) + Send + Sync + 'static {
        move |outcome| self.tell(outcome)
    }

    /// As the core calls it.
    pub(crate) fn into_on_done(self) -> OnDone {
        Box::new(self.into_closure())
    }
}

impl Drop for CallbackOnce {
    fn drop(&mut self) {
        if self.0.is_some() {
            Self(self.0.take()).tell(Err(Error::internal("the transfer from host memory was given up")));
        }
    }
}

#[cfg(test)]
impl Callback {
    /// Adds what it is called with to `told`. Adds nothing, if it is destroyed uncalled.
    pub(crate) fn collecting(told: &std::sync::Arc<std::sync::Mutex<Vec<Result<(), Error>>>>) -> Self {
        unsafe extern "C" fn invoke(data: *mut c_void, run: bool, error: *const StatusRep, _value: *const c_void) {
            // SAFETY: the reference from below, given up once.
            let told = unsafe { std::sync::Arc::from_raw(data.cast::<std::sync::Mutex<Vec<Result<(), Error>>>>()) };
            if run {
                // SAFETY: owned, or null for OK.
                told.lock().unwrap().push(unsafe { status::from_raw(error) });
            }
        }
        Self { data: std::sync::Arc::into_raw(std::sync::Arc::clone(told)).cast_mut().cast(), invoke }
    }
}
