//! One GPU: its primary context, its streams, and what broke it.
//!
//! The primary context is shared with whatever else uses the GPU in this process, and is never made or destroyed, only
//! retained and released. A thread that calls the driver has it current meanwhile, and its own back afterwards.
//!
//! Some of the driver's errors stay for the rest of the process. The first of them is kept: all that is pending on the
//! GPU fails with it, and so does what is asked for later. Other GPUs go on.

#![allow(unsafe_code, reason = "the driver is called")]

use std::ffi::{CStr, c_int};
use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::{CUcontext, CUdevice};
use purlin_base::sync::Mutex;
use purlin_base::sync::atomic::{AtomicBool, Ordering};
use purlin_base::{Error, StatusOr};

use crate::api::{Api, Code};
use crate::driver::Driver;
use crate::err;
use crate::event_pool::EventPool;
use crate::stream::{Role, Stream};

/// See the module.
pub(crate) struct Gpu {
    pub(crate) driver: &'static Driver,
    pub(crate) ordinal: usize,
    device: CUdevice,
    context: CUcontext,
    pub(crate) events: Arc<EventPool>,
    streams: Vec<Stream>,
    is_broken: AtomicBool,
    why_broken: Mutex<Option<Error>>,
}

// SAFETY: handles of the driver may be used from any thread.
unsafe impl Send for Gpu {}
// SAFETY: as above; what changes is behind locks.
unsafe impl Sync for Gpu {}

impl Gpu {
    /// The GPU of that number, which is less than the driver's count.
    ///
    /// # Errors
    /// What the driver says.
    pub(crate) fn open(driver: &'static Driver, ordinal: usize) -> StatusOr<Arc<Self>> {
        let (api, mut device, mut context) = (&driver.api, 0, ptr::null_mut());
        let what = |what: &'static str| move || format!("{what} GPU {ordinal}");
        // SAFETY: the driver writes a handle, and the number is in its range.
        err::check(api, unsafe { (api.base.device)(&mut device, ordinal as c_int) }, what("finding"))?;
        // SAFETY: as above; released in drop().
        err::check(api, unsafe { (api.base.retain_context)(&mut context, device) }, what("opening a context on"))?;
        let mut gpu = Self {
            driver,
            ordinal,
            device,
            context,
            events: Arc::new(EventPool::new(driver)),
            streams: Vec::new(),
            is_broken: AtomicBool::new(false),
            why_broken: Mutex::new(None),
        };
        {
            let current = Current::of(driver, context);
            let streams: Result<_, _> = Role::ALL.iter().map(|_| Stream::new(api)).collect();
            drop(current);
            gpu.streams = streams?;
        }
        Ok(Arc::new(gpu))
    }

    pub(crate) fn api(&self) -> &'static Api {
        &self.driver.api
    }

    pub(crate) fn context(&self) -> CUcontext {
        self.context
    }

    /// The stream for that.
    pub(crate) fn stream(&self, role: Role) -> &Stream {
        &self.streams[role as usize]
    }

    pub(crate) fn streams(&self) -> &[Stream] {
        &self.streams
    }

    /// Makes the context current on this thread, until the answer is dropped.
    pub(crate) fn enter(&self) -> Current {
        Current::of(self.driver, self.context)
    }

    /// # Errors
    /// What broke it.
    #[inline]
    pub(crate) fn check_whole(&self) -> Result<(), Error> {
        // Acquire: the reason was written before.
        if self.is_broken.load(Ordering::Acquire) { self.broken() } else { Ok(()) }
    }

    #[cold]
    fn broken(&self) -> Result<(), Error> {
        self.why_broken.lock().clone().map_or(Ok(()), Err)
    }

    /// The error of a call about `what`. A code that stays breaks the GPU; the first that does is the reason from then
    /// on.
    #[cold]
    pub(crate) fn failed(&self, code: Code, what: &str) -> Error {
        let error = err::error(self.api(), code, what);
        if !err::is_sticky(code) {
            return error;
        }
        let mut why = self.why_broken.lock();
        if why.is_none() {
            *why = Some(Error::new(
                error.code(),
                format!("GPU {} is broken until this process ends: {}", self.ordinal, error.message()),
            ));
            self.is_broken.store(true, Ordering::Release);
        }
        why.clone().unwrap_or(error)
    }

    /// As [`failed`](Self::failed), unless the code is 0.
    #[inline]
    pub(crate) fn check(&self, code: Code, what: impl FnOnce() -> String) -> Result<(), Error> {
        if code == 0 { Ok(()) } else { Err(self.failed(code, &what())) }
    }

    /// The model.
    pub(crate) fn name(&self) -> String {
        let mut name = [0; 256];
        // SAFETY: the driver writes at most so many bytes, the last of them a null.
        let code = unsafe { (self.api().base.device_name)(name.as_mut_ptr(), name.len() as c_int, self.device) };
        if code != 0 {
            return "NVIDIA GPU".to_owned();
        }
        // SAFETY: as above.
        unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned()
    }

    /// The place on the bus, such as `0000:01:00.0`.
    pub(crate) fn bus_id(&self) -> Option<String> {
        let mut id = [0; 32];
        // SAFETY: as in name().
        let code = unsafe { (self.api().base.device_bus_id)(id.as_mut_ptr(), id.len() as c_int, self.device) };
        // SAFETY: as in name().
        (code == 0).then(|| unsafe { CStr::from_ptr(id.as_ptr()) }.to_string_lossy().into_owned())
    }

    /// An attribute, by the driver's number for it.
    pub(crate) fn attribute(&self, number: u32) -> Option<i64> {
        let mut value = 0;
        // SAFETY: the driver writes a number.
        let code = unsafe { (self.api().base.device_attribute)(&mut value, number, self.device) };
        (code == 0).then_some(i64::from(value))
    }

    /// All bytes of its memory.
    pub(crate) fn total_bytes(&self) -> Option<usize> {
        let mut bytes = 0;
        // SAFETY: as above.
        (unsafe { (self.api().base.device_total_bytes)(&mut bytes, self.device) } == 0).then_some(bytes)
    }

    /// The bytes that are free, whoever has the others. The context is current.
    pub(crate) fn free_bytes(&self) -> Option<(usize, usize)> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: as above.
        (unsafe { (self.api().base.memory_info)(&mut free, &mut total) } == 0).then_some((free, total))
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        if !self.driver.is_here() {
            return;
        }
        let current = self.enter();
        for stream in std::mem::take(&mut self.streams) {
            stream.destroy(self.api());
        }
        self.events.destroy();
        drop(current);
        // SAFETY: retained in open(). What fails here has nobody to be told.
        unsafe { (self.api().base.release_context)(self.device) };
    }
}

/// A context is current on this thread. The thread's own is back when this is dropped.
pub(crate) struct Current {
    driver: &'static Driver,
    /// `None`: it was this one.
    before: Option<CUcontext>,
}

impl Current {
    fn of(driver: &'static Driver, context: CUcontext) -> Self {
        let mut before = ptr::null_mut();
        // SAFETY: the driver writes a handle; the context is retained.
        unsafe {
            (driver.api.base.current_context)(&mut before);
            if before == context {
                return Self { driver, before: None };
            }
            (driver.api.base.set_current_context)(context);
        }
        Self { driver, before: Some(before) }
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // SAFETY: it was current on this thread, or is null.
            unsafe { (self.driver.api.base.set_current_context)(before) };
        }
    }
}
