//! `PJRT_Event`: one of Purlin's events, and where the caller completes it, its promise.

use std::ffi::c_void;
use std::ptr;

use purlin_async::{Event, EventPromise};
use purlin_base::Error;
use purlin_base::sync::Mutex;
use purlin_pjrt::error;
use purlin_pjrt_abi::{
    self as abi, EventAwaitArgs, EventCreateArgs, EventDestroyArgs, EventErrorArgs, EventIsReadyArgs, EventOnReadyArgs,
    EventSetArgs,
};

use crate::answer::Answer;
use crate::handle::{self, Handle, lent, take};

/// What is behind a `PJRT_Event`.
pub(crate) struct EventObject {
    event: Event,
    /// Of `Event_Create`, until it is set.
    promise: Mutex<Option<EventPromise>>,
}

impl Handle for abi::Event {
    type Object = EventObject;
    const NAME: &'static str = "PJRT_Event";
}

/// `event`, C's.
pub(crate) fn give(event: Event) -> *mut abi::Event {
    handle::give(EventObject { event, promise: Mutex::new(None) })
}

impl Answer for EventDestroyArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { take::<Self, _>(self.event) }.map(drop)
    }
}

impl Answer for EventIsReadyArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        self.is_ready = u8::from(unsafe { lent::<Self, _>(self.event) }?.event.is_ready());
        Ok(())
    }
}

impl Answer for EventErrorArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let event = &unsafe { lent::<Self, _>(self.event) }?.event;
        if !event.is_ready() {
            return Err(Error::failed_precondition(format!(
                "PJRT_Event_Error: the event '{}' is pending; PJRT_Event_IsReady says when it is not",
                event.label()
            )));
        }
        event.error().map_or(Ok(()), Err)
    }
}

impl Answer for EventAwaitArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // The caller may destroy the event meanwhile.
        // SAFETY: the caller's promise.
        let event = unsafe { lent::<Self, _>(self.event) }?.event.clone();
        event.wait()
    }
}

/// A pointer of the caller's, which it uses on the thread that calls back.
struct UserArg(*mut c_void);
// SAFETY: PJRT's contract: callbacks run on any thread.
unsafe impl Send for UserArg {}

impl Answer for EventOnReadyArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let event = unsafe { lent::<Self, _>(self.event) }?.event.clone();
        let callback =
            self.callback.ok_or_else(|| Error::invalid_argument("PJRT_Event_OnReady: the callback is null"))?;
        let user_arg = UserArg(self.user_arg);
        event.on_ready(move |outcome| {
            let UserArg(user_arg) = { user_arg };
            let error = outcome.as_ref().err().map_or(ptr::null_mut(), |why| error::give(why.clone()));
            // SAFETY: the caller's function and argument, called once; it owns the error.
            unsafe { callback(error, user_arg) };
        });
        Ok(())
    }
}

impl Answer for EventCreateArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        let promise = EventPromise::new(c"PJRT_Event_Create");
        self.event = handle::give(EventObject { event: promise.event(), promise: Mutex::new(Some(promise)) });
        Ok(())
    }
}

impl Answer for EventSetArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let event = unsafe { lent::<Self, _>(self.event) }?;
        // SAFETY: the caller's promise.
        let outcome = unsafe { crate::read::outcome(self.error_code, self.error_message, self.error_message_size) };
        let promise = event.promise.lock().take();
        let promise = promise.ok_or_else(|| {
            Error::failed_precondition("PJRT_Event_Set: the event is set already, or is not of PJRT_Event_Create")
        })?;
        promise.set(outcome);
        Ok(())
    }
}
