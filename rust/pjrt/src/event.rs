//! `PJRT_Event`: an opaque object of a plugin, reached through the plugin's `PJRT_Api`. It becomes an [`Event`] by its
//! `OnReady`.
//!
//! The plugin's event, if it is ours, is destroyed after both its callback has run and the call that left the callback
//! has returned, by whichever of the two is later: so it is destroyed neither while a plugin still looks at it nor
//! before its callback has run.

use std::ffi::c_void;
use std::sync::Arc;

use purlin_async::{Event, EventPromise};
use purlin_base::{Error, StatusCode};
use purlin_ffi::panic::contain;

use purlin_pjrt_abi::{
    ErrorDestroyArgs, ErrorForEachPayloadArgs, ErrorGetCodeArgs, ErrorMessageArgs, EventDestroyArgs, EventErrorArgs,
    EventIsReadyArgs, EventOnReadyArgs,
};

use super::abi::{Api, PjrtError, arguments, slot};
use super::{error, label};

/// The functions of a plugin without which its events are of no use.
struct Plugin {
    api: *const Api,
    error_destroy: unsafe extern "C" fn(args: *mut ErrorDestroyArgs),
    event_destroy: unsafe extern "C" fn(args: *mut EventDestroyArgs) -> *mut PjrtError,
    on_ready: unsafe extern "C" fn(args: *mut EventOnReadyArgs) -> *mut PjrtError,
}

/// An event of a plugin; destroys it, if it is ours.
struct Theirs {
    plugin: Plugin,
    event: *mut purlin_pjrt_abi::Event,
    is_ours: bool,
}

// SAFETY: a plugin's functions may be called from every thread.
unsafe impl Send for Theirs {}
// SAFETY: as above.
unsafe impl Sync for Theirs {}

/// What a callback is given.
struct Waiting {
    theirs: Arc<Theirs>,
    promise: EventPromise,
}

/// An event that follows `event`, and destroys it if `is_ours`. `InvalidArgument`: the table lacks a function (then
/// `event` is left as it is), or one of them is null. What the plugin says: it refused.
///
/// # Safety
/// `api` is null or a plugin's table, which lives until the event has completed; `event` is null or alive, and the
/// caller gives it up if `is_ours`, or else keeps it until it has completed.
pub(super) unsafe fn take(api: *const Api, event: *mut c_void, is_ours: bool) -> Event {
    if event.is_null() {
        return Event::from_error(Error::invalid_argument("a PJRT_Event is null"));
    }
    // SAFETY: the caller's promise.
    let plugin = match unsafe { Plugin::new(api) } {
        Ok(plugin) => plugin,
        Err(error) => return Event::from_error(error),
    };
    let theirs = Theirs { plugin, event: event.cast(), is_ours };
    if theirs.is_ready() {
        return theirs.error().map_or_else(Event::ready, Event::from_error);
    }
    let (theirs, promise) = (Arc::new(theirs), EventPromise::guarding(label()));
    let follower = promise.event();
    let waiting = Box::into_raw(Box::new(Waiting { theirs: Arc::clone(&theirs), promise }));
    let mut on_ready =
        EventOnReadyArgs { event: theirs.event, callback: Some(completed), user_arg: waiting.cast(), ..arguments() };
    // SAFETY: the event is alive; what it will call stays valid until then.
    let refused = unsafe { (theirs.plugin.on_ready)(&raw mut on_ready) };
    if let Some(error) = theirs.plugin.taken(refused) {
        // SAFETY: a plugin that refuses does not call back.
        let Waiting { promise, .. } = *unsafe { Box::from_raw(waiting) };
        promise.set_error(error);
    }
    follower
}

/// The plugin's event is terminal; `error` is ours.
unsafe extern "C" fn completed(error: *mut PjrtError, waiting: *mut c_void) {
    contain("PJRT completed", (), || {
        // SAFETY: from take(), and called once, as `OnReady` promises.
        let Waiting { theirs, promise } = *unsafe { Box::from_raw(waiting.cast::<Waiting>()) };
        let error = theirs.plugin.taken(error);
        // Before the waiters run: they may end the plugin's client.
        drop(theirs);
        promise.set(error.map_or(Ok(()), Err));
    })
}

impl Plugin {
    /// # Errors
    /// `InvalidArgument`: there is no table, or not enough of it.
    ///
    /// # Safety
    /// As [`take`].
    unsafe fn new(api: *const Api) -> Result<Self, Error> {
        if api.is_null() {
            return Err(Error::invalid_argument("a PJRT_Api is null"));
        }
        // SAFETY: the table says what it has.
        unsafe {
            let error_destroy = slot!(api, Api, error_destroy);
            let event_destroy = slot!(api, Api, event_destroy);
            let on_ready = slot!(api, Api, event_on_ready);
            if let (Some(error_destroy), Some(event_destroy), Some(on_ready)) = (error_destroy, event_destroy, on_ready)
            {
                return Ok(Self { api, error_destroy, event_destroy, on_ready });
            }
            Err(Error::invalid_argument(format!(
                "a PJRT_Api (struct_size {}) has no PJRT_Error_Destroy, PJRT_Event_Destroy or PJRT_Event_OnReady",
                api.cast::<usize>().read()
            )))
        }
    }

    /// What an error of this plugin says; it is destroyed. `None` for null.
    fn taken(&self, theirs: *mut PjrtError) -> Option<Error> {
        if theirs.is_null() {
            return None;
        }
        // SAFETY: the error is ours until it is destroyed; what its functions write lives as long as it does, and so do
        // the arguments, until the calls have returned.
        unsafe {
            let mut said = ErrorMessageArgs { error: theirs, ..arguments() };
            if let Some(message) = slot!(self.api, Api, error_message) {
                message(&raw mut said);
            }
            let code = StatusCode::Unknown as i32;
            let mut number = ErrorGetCodeArgs { error: theirs, code, ..arguments() };
            if let Some(get_code) = slot!(self.api, Api, error_get_code) {
                self.ignore(get_code(&raw mut number));
            }
            let mut taken = error::from_parts("PJRT_Error", number.code, said.message, said.message_size);
            // Since 0.99; older plugins report no payloads.
            if let Some(for_each_payload) = slot!(self.api, Api, error_for_each_payload) {
                let (visitor, user_arg) = (Some(error::add_payload as _), (&raw mut taken).cast());
                self.ignore(for_each_payload(&mut ErrorForEachPayloadArgs {
                    error: theirs,
                    visitor,
                    user_arg,
                    ..arguments()
                }));
            }
            self.ignore(theirs);
            Some(taken)
        }
    }

    /// Destroys an error, or nothing.
    fn ignore(&self, theirs: *mut PjrtError) {
        if !theirs.is_null() {
            // SAFETY: ours, and ends here.
            unsafe { (self.error_destroy)(&mut ErrorDestroyArgs { error: theirs, ..arguments() }) };
        }
    }
}

impl Theirs {
    /// Whether it is known to be terminal.
    fn is_ready(&self) -> bool {
        // SAFETY: the event is alive; the table says what it has, and without `Event_Error` it is not asked.
        unsafe {
            let is_ready = slot!(self.plugin.api, Api, event_is_ready);
            let error = slot!(self.plugin.api, Api, event_error);
            let (Some(is_ready), Some(_)) = (is_ready, error) else { return false };
            let mut args = EventIsReadyArgs { event: self.event, ..arguments() };
            let refused = is_ready(&raw mut args);
            self.plugin.ignore(refused);
            refused.is_null() && args.is_ready != 0
        }
    }

    /// Why it has failed, if it has.
    fn error(&self) -> Option<Error> {
        let mut args = EventErrorArgs { event: self.event, ..arguments() };
        // SAFETY: the event is alive and terminal.
        let error = unsafe { slot!(self.plugin.api, Api, event_error).map(|error| error(&raw mut args)) };
        error.and_then(|error| self.plugin.taken(error))
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        if !self.is_ours {
            return;
        }
        // SAFETY: ours, and ends here.
        let refused =
            unsafe { (self.plugin.event_destroy)(&mut EventDestroyArgs { event: self.event, ..arguments() }) };
        self.plugin.ignore(refused);
    }
}
