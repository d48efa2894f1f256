//! One GPU, as a device of a client has it: its primary context, streams of the device's own, and what broke it.
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

use cudarc::driver::sys::{CUcontext, CUdevice, CUmemoryPool, CUuuid};
use purlin_base::sync::Mutex;
use purlin_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use purlin_base::{Error, StatusOr};

use crate::api::{Api, Pools, ResultCode};
use crate::driver::Driver;
use crate::err;
use crate::event_pool::EventPool;
use crate::line::Line;
use crate::side_streams::{SideStream, SideStreams};
use crate::stall::Listing;
use crate::stream::{Role, Stream};
use crate::trace::Tracer;

/// `CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED`.
const POOLS_SUPPORTED: u32 = 115;

/// See the module.
pub(crate) struct Gpu {
    pub(crate) driver: &'static Driver,
    /// The device's number in its client.
    pub(crate) index: usize,
    /// The GPU's number at the driver, which virtual devices share.
    pub(crate) ordinal: usize,
    device: CUdevice,
    context: CUcontext,
    pub(crate) events: Arc<EventPool>,
    pub(crate) tracer: Tracer,
    streams: Vec<Stream>,
    pub(crate) side_streams: SideStreams,
    /// `None`: the driver has no pools on it.
    pub(crate) pool: Option<Pool>,
    /// How many submissions there were, on all streams.
    submissions: AtomicU64,
    is_broken: AtomicBool,
    why_broken: Mutex<Option<Error>>,
    /// By which stall reports know this; none before it is open.
    listing: Option<Arc<Listing>>,
}

/// The pool that a GPU has from the beginning. Others may make another one current, which other GPUs need not reach, so
/// memory is never allocated from the current one.
#[derive(Clone, Copy)]
pub(crate) struct Pool {
    pub(crate) api: Pools,
    pub(crate) handle: CUmemoryPool,
}

// SAFETY: handles of the driver may be used from any thread.
unsafe impl Send for Gpu {}
// SAFETY: as above; what changes is behind locks.
unsafe impl Sync for Gpu {}

impl Gpu {
    /// The GPU of a client's device of that number. Where a client has more devices than there are GPUs, these are
    /// shared out in turn.
    ///
    /// # Errors
    /// What the driver says.
    pub(crate) fn open(driver: &'static Driver, index: usize) -> StatusOr<Arc<Self>> {
        let ordinal = index % driver.device_count;
        let (api, mut device, mut context) = (&driver.api, 0, ptr::null_mut());
        let what = |what: &'static str| move || format!("{what} GPU {ordinal}");
        // SAFETY: the driver writes a handle, and the number is in its range.
        err::check(api, unsafe { (api.base.device)(&mut device, ordinal as c_int) }, what("finding"))?;
        // SAFETY: as above; released in drop().
        err::check(api, unsafe { (api.base.retain_context)(&mut context, device) }, what("opening a context on"))?;
        let mut gpu = Self {
            driver,
            index,
            ordinal,
            device,
            context,
            events: Arc::new(EventPool::new(driver)),
            tracer: Tracer::new(driver, index),
            streams: Vec::new(),
            side_streams: SideStreams::default(),
            pool: None,
            submissions: AtomicU64::new(0),
            is_broken: AtomicBool::new(false),
            why_broken: Mutex::new(None),
            listing: None,
        };
        let current = gpu.enter()?;
        for _ in Role::ALL {
            // One by one, so that those that were made are destroyed if another cannot be.
            gpu.streams.push(Stream::new(api)?);
        }
        drop(current);
        if let Some(pools) = api.pools.filter(|_| gpu.attribute(POOLS_SUPPORTED) == Some(1)) {
            let mut pool = ptr::null_mut();
            // SAFETY: the driver writes a handle.
            err::check(api, unsafe { (pools.default_of)(&mut pool, device) }, what("asking for the pool of"))?;
            gpu.pool = Some(Pool { api: pools, handle: pool });
        }
        Ok(Arc::new_cyclic(|me| {
            gpu.listing = Some(Listing::new(me));
            gpu
        }))
    }

    pub(crate) fn api(&self) -> &'static Api {
        &self.driver.api
    }

    pub(crate) fn device(&self) -> CUdevice {
        self.device
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

    /// All streams: its own, as far as they are made, and these.
    pub(crate) fn lines<'a>(&'a self, side_streams: &'a [Arc<SideStream>]) -> impl Iterator<Item = (Line, &'a Stream)> {
        let own = Role::ALL.into_iter().map(Line::Own).zip(&self.streams);
        own.chain(side_streams.iter().map(|side| (Line::Import(side.number()), side.stream())))
    }

    /// Makes the context current on this thread, until the answer is dropped. What frees goes on without it: handles
    /// and addresses say which GPU is meant.
    ///
    /// # Errors
    /// What the driver says. Nothing that needs the context may be called: it would be done on another GPU.
    pub(crate) fn enter(&self) -> Result<Current, Error> {
        Current::of(self.driver, self.context)
            .map_err(|code| self.failed(code, &format!("making the context of GPU {} current", self.ordinal)))
    }

    /// The number of a submission, among those of all streams.
    pub(crate) fn next_submission(&self) -> u64 {
        // Relaxed: only the order of the numbers counts.
        self.submissions.fetch_add(1, Ordering::Relaxed)
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

    /// The error of a call about `what`, made under no lock. A code that stays breaks the GPU; the first that does is
    /// the reason from then on. Whether a code stays that no table has, the driver is asked.
    #[cold]
    pub(crate) fn failed(&self, code: ResultCode, what: &str) -> Error {
        if err::is_sticky(code) || self.health() == Some(code) {
            self.give_up(code, what)
        } else {
            err::error(self.api(), code, what)
        }
    }

    /// As [`failed`](Self::failed), of a call that is about this GPU and another. A code that stays is about that one,
    /// if only that one is not well.
    #[cold]
    pub(crate) fn failed_with(&self, other: Option<&Self>, code: ResultCode, what: &str) -> Error {
        match other {
            Some(other) if !ptr::eq(self, other) && self.health().is_none() && other.health().is_some() => {
                other.failed(code, what)
            }
            _ => self.failed(code, what),
        }
    }

    /// What the driver answers to any question about this GPU; `None` if it is well, or says that work goes on.
    fn health(&self) -> Option<ResultCode> {
        let stream = self.streams.first()?;
        // SAFETY: the handle is the driver's, and stays as long as this GPU.
        let code = unsafe { (self.api().base.query_stream)(stream.handle()) };
        (code != 0 && code != err::NOT_READY).then_some(code)
    }

    /// The GPU is not used any more, for that code, unless it is broken already. Called under no lock.
    ///
    /// The error names the operation that was oldest in flight: what broke a GPU shows at some later call, and the
    /// oldest is the first that can have done it.
    #[cold]
    pub(crate) fn give_up(&self, code: ResultCode, what: &str) -> Error {
        let error = err::error(self.api(), code, what);
        let side_streams = self.side_streams.busy();
        let oldest = self.lines(&side_streams).filter_map(|(_, stream)| stream.oldest());
        let oldest = oldest.min_by_key(|(number, _)| *number);
        let oldest = oldest.map_or_else(
            || "nothing was in flight".to_owned(),
            |(_, name)| format!("the oldest operation in flight was the {name}"),
        );
        let message = format!("GPU {} is broken until this process ends: {}; {oldest}", self.ordinal, error.message());
        let mut why = self.why_broken.lock();
        let why = why.get_or_insert_with(|| Error::new(error.code(), message));
        // Release: pairs with check_whole(), which reads the reason afterwards.
        self.is_broken.store(true, Ordering::Release);
        why.clone()
    }

    /// As [`failed`](Self::failed), unless the code is 0.
    #[inline]
    pub(crate) fn check(&self, code: ResultCode, what: impl FnOnce() -> String) -> Result<(), Error> {
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

    /// Sixteen bytes that no other GPU has.
    pub(crate) fn uuid(&self) -> Option<[u8; 16]> {
        let mut uuid = CUuuid { bytes: [0; 16] };
        // SAFETY: the driver writes so many bytes.
        let code = unsafe { (self.api().base.device_uuid)(&mut uuid, self.device) };
        (code == 0).then(|| uuid.bytes.map(|byte| byte as u8))
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
        let current = self.enter().ok();
        for stream in std::mem::take(&mut self.streams) {
            stream.destroy(self.api());
        }
        self.side_streams.destroy();
        self.tracer.destroy(self);
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
    fn of(driver: &'static Driver, context: CUcontext) -> Result<Self, ResultCode> {
        let mut before = ptr::null_mut();
        // SAFETY: the driver writes a handle.
        match unsafe { (driver.api.base.current_context)(&mut before) } {
            0 if before == context => return Ok(Self { driver, before: None }),
            0 => {}
            code => return Err(code),
        }
        // SAFETY: the context is retained.
        match unsafe { (driver.api.base.set_current_context)(context) } {
            0 => Ok(Self { driver, before: Some(before) }),
            code => Err(code),
        }
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
