//! `PJRT_Event`: an opaque object of a plugin, reached through the plugin's `PJRT_Api`. It becomes an [`Event`] by its
//! `OnReady`.
//!
//! The plugin's event, if it is ours, is destroyed after both its callback has run and the call that left the callback
//! has returned, by whichever of the two is later: so it is destroyed neither while a plugin still looks at it nor
//! before its callback has run.

use std::ffi::{c_int, c_void};
use std::mem::offset_of;
use std::ptr;
use std::sync::Arc;

use purlin_async::{Event, EventPromise};
use purlin_base::{Error, StatusCode};
use purlin_ffi::panic::contain;

use super::abi::{Api, Args, Fallible, ForEachPayload, Message, OnReady, slot};
use super::{error, label};

/// The functions of a plugin without which its events are of no use.
struct Plugin {
    api: *const Api,
    error_destroy: unsafe extern "C" fn(args: *mut Args<()>),
    event_destroy: unsafe extern "C" fn(args: *mut Args<()>) -> *mut c_void,
    on_ready: unsafe extern "C" fn(args: *mut Args<OnReady>) -> *mut c_void,
}

/// An event of a plugin; destroys it, if it is ours.
struct Theirs {
    plugin: Plugin,
    event: *mut c_void,
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
    let theirs = Theirs { plugin, event, is_ours };
    if theirs.is_ready() {
        return theirs.error().map_or_else(Event::ready, Event::from_error);
    }
    let (theirs, promise) = (Arc::new(theirs), EventPromise::guarding(label()));
    let follower = promise.event();
    let waiting = Box::into_raw(Box::new(Waiting { theirs: Arc::clone(&theirs), promise }));
    let on_ready = OnReady { callback: Some(completed), user_arg: waiting.cast() };
    // SAFETY: the event is alive; what it will call stays valid until then.
    let refused = unsafe { (theirs.plugin.on_ready)(&mut args(theirs.event, on_ready)) };
    if let Some(error) = theirs.plugin.taken(refused) {
        // SAFETY: a plugin that refuses does not call back.
        let Waiting { promise, .. } = *unsafe { Box::from_raw(waiting) };
        promise.set_error(error);
    }
    follower
}

/// The plugin's event is terminal; `error` is ours.
unsafe extern "C" fn completed(error: *mut c_void, waiting: *mut c_void) {
    contain("PJRT completed", (), || {
        // SAFETY: from take(), and called once, as `OnReady` promises.
        let Waiting { theirs, promise } = *unsafe { Box::from_raw(waiting.cast::<Waiting>()) };
        let error = theirs.plugin.taken(error);
        // Before the waiters run: they may end the plugin's client.
        drop(theirs);
        promise.set(error.map_or(Ok(()), Err));
    })
}

/// Arguments, with the size that the first version of the function knew: up to the end of the last field.
fn args<T>(subject: *mut c_void, rest: T) -> Args<T> {
    let struct_size = offset_of!(Args<T>, rest) + size_of::<T>();
    Args { struct_size, extension_start: ptr::null_mut(), subject, rest }
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
    fn taken(&self, theirs: *mut c_void) -> Option<Error> {
        if theirs.is_null() {
            return None;
        }
        // SAFETY: the error is ours until it is destroyed; what its functions write lives as long as it does, and so do
        // the arguments, until the calls have returned.
        unsafe {
            let mut said = args(theirs, Message { data: ptr::null(), size: 0 });
            if let Some(message) = slot!(self.api, Api, error_message) {
                message(&raw mut said);
            }
            let mut number = args(theirs, StatusCode::Unknown as c_int);
            if let Some(get_code) = slot!(self.api, Api, error_get_code) {
                self.ignore(get_code(&raw mut number));
            }
            let mut taken = error::from_parts("PJRT_Error", number.rest, said.rest.data, said.rest.size);
            if let Some(for_each_payload) = self.for_each_payload() {
                let visit = ForEachPayload { visitor: Some(error::add_payload), user_arg: (&raw mut taken).cast() };
                self.ignore(for_each_payload(&mut args(theirs, visit)));
            }
            self.ignore(theirs);
            Some(taken)
        }
    }

    /// Since 0.111; older plugins report no payloads.
    unsafe fn for_each_payload(&self) -> Option<unsafe extern "C" fn(args: *mut Args<ForEachPayload>) -> *mut c_void> {
        // SAFETY: the table says what it has.
        unsafe { slot!(self.api, Api, error_for_each_payload) }
    }

    /// Destroys an error, or nothing.
    fn ignore(&self, theirs: *mut c_void) {
        if !theirs.is_null() {
            // SAFETY: ours, and ends here.
            unsafe { (self.error_destroy)(&mut args(theirs, ())) };
        }
    }
}

impl Theirs {
    /// Whether it is known to be terminal.
    fn is_ready(&self) -> bool {
        // SAFETY: the event is alive; the table says what it has, and without `Event_Error` it is not asked.
        unsafe {
            let is_ready: Fallible<u8> = slot!(self.plugin.api, Api, event_is_ready);
            let error: Fallible<()> = slot!(self.plugin.api, Api, event_error);
            let (Some(is_ready), Some(_)) = (is_ready, error) else { return false };
            let mut args = args(self.event, 0);
            let refused = is_ready(&raw mut args);
            self.plugin.ignore(refused);
            refused.is_null() && args.rest != 0
        }
    }

    /// Why it has failed, if it has.
    fn error(&self) -> Option<Error> {
        // SAFETY: the event is alive and terminal.
        let error = unsafe { slot!(self.plugin.api, Api, event_error).map(|error| error(&mut args(self.event, ()))) };
        error.and_then(|error| self.plugin.taken(error))
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        if !self.is_ours {
            return;
        }
        // SAFETY: ours, and ends here.
        let refused = unsafe { (self.plugin.event_destroy)(&mut args(self.event, ())) };
        self.plugin.ignore(refused);
    }
}
