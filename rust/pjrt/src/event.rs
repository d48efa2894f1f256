//! `PJRT_Event`: an opaque object of a plugin, reached through the plugin's `PJRT_Api`. It becomes an [`Event`] by its
//! `OnReady`.
//!
//! The plugin's event, if it is ours, is destroyed after both its callback has run and the call that left the callback
//! has returned, by whichever of the two is later: so it is destroyed neither while a plugin still looks at it nor
//! before its callback has run.

use std::ffi::c_void;
use std::sync::Arc;

use purlin_async::{Event, EventPromise};
use purlin_base::Error;
use purlin_ffi::panic::contain;
use purlin_pjrt_abi::{EventDestroyArgs, EventErrorArgs, EventIsReadyArgs, EventOnReadyArgs};

use super::abi::{Api, PjrtError, arguments};
use super::foreign::Plugin;
use super::label;

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
pub unsafe fn take(api: *const Api, event: *mut c_void, is_ours: bool) -> Event {
    if event.is_null() {
        return Event::from_error(Error::invalid_argument("a PJRT_Event is null"));
    }
    // SAFETY: the caller's promise.
    let plugin = match unsafe { Plugin::new(api) } {
        Ok(plugin) => plugin,
        Err(error) => return Event::from_error(error),
    };
    if plugin.function::<EventDestroyArgs>().is_none() || plugin.function::<EventOnReadyArgs>().is_none() {
        return Event::from_error(Error::invalid_argument(format!(
            "a PJRT_Api (struct_size {}) has no PJRT_Event_Destroy or PJRT_Event_OnReady",
            plugin.version().0
        )));
    }
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
    if let Err(error) = unsafe { theirs.plugin.call(&mut on_ready) } {
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

impl Theirs {
    /// Whether it is known to be terminal.
    fn is_ready(&self) -> bool {
        let mut args = EventIsReadyArgs { event: self.event, ..arguments() };
        // SAFETY: the event is alive. Without `Event_Error` it is not asked.
        self.plugin.function::<EventErrorArgs>().is_some()
            && unsafe { self.plugin.call(&mut args) }.is_ok()
            && args.is_ready != 0
    }

    /// Why it has failed, if it has.
    fn error(&self) -> Option<Error> {
        let mut args = EventErrorArgs { event: self.event, ..arguments() };
        // SAFETY: the event is alive and terminal.
        unsafe { self.plugin.call(&mut args) }.err()
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        if !self.is_ours {
            return;
        }
        // SAFETY: ours, and ends here.
        unsafe { self.plugin.end(EventDestroyArgs { event: self.event, ..arguments() }) };
    }
}
