//! The driver's events of one GPU, used again.
//!
//! A record captures what its stream has at that moment, and a wait captures the record. So an event may be recorded
//! anew as soon as no wait for the old record can follow: when its last [`Recorded`] is dropped.

#![allow(unsafe_code, reason = "the driver is called")]

use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::CUevent;
use purlin_base::sync::Mutex;

use crate::api::ResultCode;
use crate::driver::Driver;

/// `CU_EVENT_DEFAULT`: it knows its time.
const WITH_TIMES: u32 = 0;
/// `CU_EVENT_DISABLE_TIMING`: cheaper.
const WITHOUT_TIMES: u32 = 2;

/// See the module.
pub(crate) struct EventPool {
    driver: &'static Driver,
    /// Of each event.
    flags: u32,
    idle: Mutex<Idle>,
}

#[derive(Default)]
struct Idle {
    events: Vec<Handle>,
    /// The GPU is gone, and so shall be the events.
    is_over: bool,
}

struct Handle(CUevent);

// SAFETY: handles of the driver may be used from any thread.
unsafe impl Send for Handle {}

/// An event that is recorded, or is about to be.
pub(crate) struct Recorded {
    event: CUevent,
    pool: Arc<EventPool>,
}

// SAFETY: as above.
unsafe impl Send for Recorded {}
// SAFETY: as above; a shared reference gives away only the handle.
unsafe impl Sync for Recorded {}

impl EventPool {
    pub(crate) fn new(driver: &'static Driver) -> Self {
        Self { driver, flags: WITHOUT_TIMES, idle: Mutex::default() }
    }

    /// A pool of events that know their times.
    pub(crate) fn with_times(driver: &'static Driver) -> Self {
        Self { flags: WITH_TIMES, ..Self::new(driver) }
    }

    /// An event to record. The GPU's context is current.
    ///
    /// # Errors
    /// The driver's code: there is none.
    pub(crate) fn take(self: &Arc<Self>) -> Result<Recorded, ResultCode> {
        let idle = self.idle.lock().events.pop();
        let event = match idle {
            Some(handle) => handle.0,
            None => {
                let mut event = ptr::null_mut();
                // SAFETY: the driver writes a handle, which is destroyed by this pool.
                match unsafe { (self.driver.api.base.create_event)(&mut event, self.flags) } {
                    0 => event,
                    code => return Err(code),
                }
            }
        };
        Ok(Recorded { event, pool: Arc::clone(self) })
    }

    /// Destroys what is idle, and from now on whatever comes back. The GPU's context is current.
    pub(crate) fn destroy(&self) {
        let events = {
            let mut idle = self.idle.lock();
            idle.is_over = true;
            std::mem::take(&mut idle.events)
        };
        events.into_iter().for_each(|event| self.destroy_one(event.0));
    }

    fn destroy_one(&self, event: CUevent) {
        // SAFETY: it is ours, and nothing has it any more. What fails here has nobody to be told.
        unsafe { (self.driver.api.base.destroy_event)(event) };
    }
}

impl Recorded {
    pub(crate) fn handle(&self) -> CUevent {
        self.event
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        if !self.pool.driver.is_here() {
            return;
        }
        let mut idle = self.pool.idle.lock();
        if !idle.is_over {
            return idle.events.push(Handle(self.event));
        }
        drop(idle);
        self.pool.destroy_one(self.event);
    }
}

#[cfg(all(test, loom))]
mod loom_model;
