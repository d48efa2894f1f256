//! A stream: work of the GPU in one order, and numbers that say how far it is.
//!
//! Each submission gets the next number, and an event is recorded behind it. `completed` is the number of the last that
//! is known to be over, so to ask whether one is over is one load. Waits between streams name a submission
//! ([`SyncPoint`]); one that is over, or that an earlier wait covers, of this stream or of what it waits for, is left
//! out.
//!
//! One lock covers the waits, the work and the record of a submission, because threads that enqueue on one stream
//! interleave call by call. No other code runs under it.

#![allow(unsafe_code, reason = "the driver is called")]

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::CUstream;
use purlin_base::sync::Mutex;
use purlin_base::sync::atomic::{AtomicU64, Ordering};
use purlin_base::{Error, StatusOr};

use crate::api::{Api, ResultCode};
use crate::err;
use crate::event_pool::Recorded;
use crate::gpu::Gpu;
use crate::known::Known;
use crate::operation_name::OperationName;
use crate::trace::Times;
use crate::uses::Point;

/// `CU_STREAM_NON_BLOCKING`: no order with the legacy default stream.
pub(crate) const NON_BLOCKING: u32 = 1;

/// What a stream of a GPU is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    ToDevice,
    ToHost,
    /// Copies to the host through chunks, which may be long: small ones to pinned memory go on beside them.
    ToHostToo,
    Within,
    WithinToo,
    /// Launches.
    Compute,
    /// Launches that may go on beside those.
    Compute1,
    Compute2,
    Compute3,
    /// Allocations, each of which is waited for.
    Memory,
    /// What frees memory behind the work that used it.
    Free,
}

impl Role {
    pub(crate) const ALL: [Self; 11] = [
        Self::ToDevice,
        Self::ToHost,
        Self::ToHostToo,
        Self::Within,
        Self::WithinToo,
        Self::Compute,
        Self::Compute1,
        Self::Compute2,
        Self::Compute3,
        Self::Memory,
        Self::Free,
    ];

    /// As traces name it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ToDevice => "host to device",
            Self::ToHost => "device to host",
            Self::ToHostToo => "device to host, by chunks",
            Self::Within => "within the device",
            Self::WithinToo => "to other devices",
            Self::Compute => "launches",
            Self::Compute1 => "launches, stream 1",
            Self::Compute2 => "launches, stream 2",
            Self::Compute3 => "launches, stream 3",
            Self::Memory => "allocations",
            Self::Free => "frees",
        }
    }

    /// The stream for launches of that number; the first, if there is none.
    pub(crate) fn of_launches(number: u8) -> Self {
        match number {
            1 => Self::Compute1,
            2 => Self::Compute2,
            3 => Self::Compute3,
            _ => Self::Compute,
        }
    }
}

/// A submission, for those that wait for it.
#[derive(Clone)]
pub(crate) struct SyncPoint {
    gpu: Arc<Gpu>,
    role: Role,
    number: u64,
    /// Among those of all streams of the GPU.
    submission: u64,
    event: Arc<Recorded>,
    /// What its stream was behind.
    known: Known,
}

impl SyncPoint {
    /// Its number on its stream.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Returns when it is over, or its GPU broken.
    pub(crate) fn wait(&self) {
        self.gpu.stream(self.role).drain(&self.gpu);
    }
}

impl Point for SyncPoint {
    fn is_over(&self) -> bool {
        self.gpu.stream(self.role).is_over(self.number)
    }

    fn covers(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.gpu, &other.gpu) && self.role == other.role && self.number >= other.number
    }
}

/// Where the end of a submission is learnt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndedOn {
    /// On the poller's thread, which runs no code but the backend's.
    Poller,
    /// On the thread of a caller that waits for it.
    Caller,
}

/// Which stream of a GPU gets work, and which work.
#[derive(Clone, Copy)]
pub(crate) struct Order<'a> {
    pub(crate) role: Role,
    /// What it comes after.
    pub(crate) waits: &'a [SyncPoint],
    /// As errors name it.
    pub(crate) name: &'a OperationName,
    /// The other GPU whose memory it touches.
    pub(crate) other: Option<&'a Gpu>,
    /// How many bytes it copies, for traces.
    pub(crate) bytes: usize,
}

/// What happens at the end of a submission.
pub(crate) type End = Box<dyn FnOnce(Result<(), Error>, EndedOn) + Send>;

/// Why a submission was refused.
struct Refused<'a> {
    code: ResultCode,
    /// The other GPU that the call was about.
    with: Option<&'a Gpu>,
}

/// What a stream has in flight.
pub(crate) struct Pending {
    /// The oldest: its number, its name, and what it is behind.
    pub(crate) number: u64,
    pub(crate) name: OperationName,
    pub(crate) known: Known,
    pub(crate) count: usize,
}

/// What is recorded with a submission.
struct Events {
    /// Behind it.
    event: Arc<Recorded>,
    /// Around it, if a trace wants that.
    times: Option<Times>,
}

struct Record {
    number: u64,
    /// Among those of all streams of the GPU.
    submission: u64,
    name: OperationName,
    event: Arc<Recorded>,
    end: End,
    /// What it is behind.
    known: Known,
    /// If a trace wants it.
    traced: Option<Traced>,
}

/// What a trace says of a submission, besides its name.
struct Traced {
    times: Times,
    role: Role,
    bytes: usize,
}

/// See the module.
pub(crate) struct Stream {
    stream: CUstream,
    /// Released after what it says is over was seen by the driver's answer.
    completed: AtomicU64,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    last: u64,
    /// How often in a row the driver did not say whether the oldest is over.
    refusals: u32,
    records: VecDeque<Record>,
    /// What it waits for already.
    known: Known,
}

// SAFETY: handles of the driver may be used from any thread.
unsafe impl Send for Stream {}
// SAFETY: as above; what changes is behind the lock.
unsafe impl Sync for Stream {}

impl Stream {
    /// The context is current.
    ///
    /// # Errors
    /// What the driver says.
    pub(crate) fn new(api: &Api) -> StatusOr<Self> {
        let mut stream = ptr::null_mut();
        // SAFETY: the driver writes a handle, which destroy() destroys.
        let code = unsafe { (api.base.create_stream)(&mut stream, NON_BLOCKING) };
        err::check(api, code, || "making a stream".to_owned())?;
        Ok(Self { stream, completed: AtomicU64::new(0), queue: Mutex::default() })
    }

    /// The context is current.
    pub(crate) fn destroy(self, api: &Api) {
        // SAFETY: it is ours, and nothing has it any more. What fails here has nobody to be told.
        unsafe { (api.base.destroy_stream)(self.stream) };
    }

    /// Whether the submission of that number is known to be over.
    pub(crate) fn is_over(&self, number: u64) -> bool {
        // Acquire: pairs with the release in look(), so what the submission wrote is visible.
        self.completed.load(Ordering::Acquire) >= number
    }

    /// Enqueues `work` on `gpu`, whose context is current. `end` is called once, when it is over or cannot become so
    /// any more.
    ///
    /// # Errors
    /// What the driver says, with which `end` is called, too. Nothing of the work goes on then, nor of what the stream
    /// had before.
    pub(crate) fn submit(
        gpu: &Arc<Gpu>,
        order: Order<'_>,
        work: impl FnOnce(CUstream) -> ResultCode,
        end: End,
    ) -> StatusOr<SyncPoint> {
        let stream = gpu.stream(order.role);
        let refuse = |error: Error, end: End| {
            stream.drain(gpu);
            end(Err(error.clone()), EndedOn::Poller);
            Err(error)
        };
        if let Err(error) = gpu.check_whole() {
            return refuse(error, end);
        }
        let event = match gpu.events.take() {
            Ok(event) => Arc::new(event),
            Err(code) => return refuse(gpu.failed(code, &order.name.to_string()), end),
        };
        let times = gpu.tracer.times();
        match stream.enqueue(gpu, order, Events { event, times }, work, end) {
            Ok(point) => Ok(point),
            Err((refused, end)) => refuse(gpu.failed_with(refused.with, refused.code, &order.name.to_string()), end),
        }
    }

    /// The locked part of a submission: waits, work, record.
    fn enqueue<'a>(
        &self,
        gpu: &Arc<Gpu>,
        order: Order<'a>,
        events: Events,
        work: impl FnOnce(CUstream) -> ResultCode,
        end: End,
    ) -> Result<SyncPoint, (Refused<'a>, End)> {
        let Events { event, times } = events;
        let mut queue = self.queue.lock();
        if let Err(refused) = self.come_after(&mut queue, gpu, order.role, order.waits) {
            return Err((refused, end));
        }
        let times = times.filter(|times| times.begin(gpu, self.stream));
        let mut code = work(self.stream);
        let times = times.filter(|times| times.end(gpu, self.stream));
        if code == 0 {
            // SAFETY: both handles are the driver's, and stay while this point and this GPU do.
            code = unsafe { (gpu.api().base.record_event)(event.handle(), self.stream) };
        }
        if code != 0 {
            return Err((Refused { code, with: order.other }, end));
        }
        queue.last += 1;
        let (number, submission, name) = (queue.last, gpu.next_submission(), order.name.clone());
        let traced = times.map(|times| Traced { times, role: order.role, bytes: order.bytes });
        let known = queue.known.clone();
        let record = Record { number, submission, name, event: Arc::clone(&event), end, known: known.clone(), traced };
        queue.records.push_back(record);
        Ok(SyncPoint { gpu: Arc::clone(gpu), role: order.role, number, submission, event, known })
    }

    /// Has what is enqueued from now on come after `waits`. The stream is that of `role`, and its lock is held.
    fn come_after<'a>(
        &self,
        queue: &mut Queue,
        gpu: &Arc<Gpu>,
        role: Role,
        waits: &'a [SyncPoint],
    ) -> Result<(), Refused<'a>> {
        let is_here = |wait: &SyncPoint| Arc::ptr_eq(&wait.gpu, gpu) && wait.role == role;
        let mut waits: Vec<&SyncPoint> = waits.iter().filter(|wait| !is_here(wait)).collect();
        // The youngest first, which may be behind older ones.
        waits.sort_unstable_by_key(|wait| Reverse(wait.submission));
        for wait in waits {
            let other = (wait.gpu.index, wait.role);
            if wait.is_over() || queue.known.has(other, wait.number) {
                continue;
            }
            // SAFETY: both handles are the driver's, and stay while this point and this GPU do.
            let code = unsafe { (gpu.api().base.wait_event)(self.stream, wait.event.handle(), 0) };
            if code != 0 {
                return Err(Refused { code, with: Some(&wait.gpu) });
            }
            queue.known.learn(other, wait.number, &wait.known);
        }
        Ok(())
    }

    /// Frees memory by `free` behind `waits`, the last that use it. The context is current. What fails in `free` has
    /// nobody to be told.
    ///
    /// # Errors
    /// What the driver says: it cannot wait, and nothing is freed.
    pub(crate) fn free_after(
        gpu: &Arc<Gpu>,
        waits: &[SyncPoint],
        free: impl FnOnce(CUstream) -> ResultCode,
    ) -> Result<(), Error> {
        let stream = gpu.stream(Role::Free);
        let mut queue = stream.queue.lock();
        if let Err(Refused { code, with }) = stream.come_after(&mut queue, gpu, Role::Free, waits) {
            drop(queue);
            return Err(gpu.failed_with(with, code, "waiting to free memory"));
        }
        free(stream.stream);
        Ok(())
    }

    /// Waits until nothing of the stream goes on: a part of the work may have been enqueued, without anything that
    /// tells when it is over. If that cannot be waited for, the GPU is given up, and its memory is not told to be free.
    pub(crate) fn drain(&self, gpu: &Gpu) {
        /// How often the driver is asked.
        const TRIES: usize = 3;
        let what = "waiting for a stream";
        for left in (0..TRIES).rev() {
            if gpu.check_whole().is_err() {
                return;
            }
            // SAFETY: the handle is the driver's, and this stream keeps it until destroy().
            match unsafe { (gpu.api().base.synchronize_stream)(self.stream) } {
                0 => return,
                code if left == 0 => _ = gpu.give_up(code, what),
                code => _ = gpu.failed(code, what),
            }
        }
    }

    /// What is in flight here; `None` if nothing is.
    pub(crate) fn pending(&self) -> Option<Pending> {
        let queue = self.queue.lock();
        let Record { number, name, known, .. } = queue.records.front()?;
        let (number, name, known) = (*number, name.clone(), known.clone());
        Some(Pending { number, name, known, count: queue.records.len() })
    }

    /// What is oldest in flight here, and its number among the submissions of the GPU.
    pub(crate) fn oldest(&self) -> Option<(u64, OperationName)> {
        self.queue.lock().records.front().map(|record| (record.submission, record.name.clone()))
    }

    /// The driver's handle, for what needs no number.
    pub(crate) fn handle(&self) -> CUstream {
        self.stream
    }

    /// Whether something is pending.
    pub(crate) fn is_busy(&self) -> bool {
        !self.queue.lock().records.is_empty()
    }

    /// Asks the driver for the oldest submission, and ends it if it is over: on the thread of a caller that waits for
    /// the submission `own`, if it is that one. False: it is not, or there is none.
    pub(crate) fn look(&self, gpu: &Gpu, own: Option<u64>) -> bool {
        let mut queue = self.queue.lock();
        let Some(oldest) = queue.records.front() else { return false };
        let number = oldest.number;
        let mut outcome = gpu.check_whole();
        if outcome.is_ok() {
            // SAFETY: the handle is the driver's, and the record keeps it.
            match unsafe { (gpu.api().base.query_event)(oldest.event.handle()) } {
                0 => queue.refusals = 0,
                err::NOT_READY => return false,
                code => {
                    queue.refusals += 1;
                    let refusals = queue.refusals;
                    drop(queue);
                    match self.unasked(gpu, code, refusals) {
                        Ok(false) => return false,
                        Ok(true) => {}
                        Err(error) => outcome = Err(error),
                    }
                    queue = self.queue.lock();
                    if queue.records.front().is_none_or(|oldest| oldest.number != number) {
                        // Another thread has ended it meanwhile.
                        return true;
                    }
                }
            }
        }
        let Some(Record { number, event, end, name, traced, .. }) = queue.records.pop_front() else { return false };
        if outcome.is_ok() {
            // Release: see is_over().
            self.completed.store(number, Ordering::Release);
        }
        drop(queue);
        if let Some(Traced { times, role, bytes }) = traced.filter(|_| outcome.is_ok()) {
            gpu.tracer.tell(gpu, role, &name, bytes, &times);
        }
        drop((event, name));
        end(outcome, if own == Some(number) { EndedOn::Caller } else { EndedOn::Poller });
        true
    }

    /// The driver did not say whether the oldest submission is over. True: it is.
    ///
    /// # Errors
    /// What broke the GPU.
    #[cold]
    fn unasked(&self, gpu: &Gpu, code: ResultCode, refusals: u32) -> StatusOr<bool> {
        /// So often the question is repeated; then the stream is waited for.
        const QUESTIONS: u32 = 8;
        _ = gpu.failed(code, &format!("asking what is over on GPU {}", gpu.ordinal));
        gpu.check_whole()?;
        if refusals < QUESTIONS {
            return Ok(false);
        }
        self.drain(gpu);
        gpu.check_whole().map(|()| true)
    }
}

#[cfg(all(test, loom))]
mod loom_model;
