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
use purlin_device::backend::CommandList;

use crate::api::{Api, ResultCode};
use crate::err;
use crate::event_pool::Recorded;
use crate::gpu::Gpu;
use crate::known::{Known, Place};
pub(crate) use crate::line::{Line, Role};
use crate::operation_name::OperationName;
use crate::side_streams::SideStream;
use crate::trace::Times;
use crate::uses::Point;

/// `CU_STREAM_NON_BLOCKING`: no order with the legacy default stream.
pub(crate) const NON_BLOCKING: u32 = 1;

/// A submission, for those that wait for it.
#[derive(Clone)]
pub(crate) struct SyncPoint {
    gpu: Arc<Gpu>,
    of: Of,
    submitted: Arc<Submitted>,
}

/// What does not change about a submission.
struct Submitted {
    number: u64,
    /// Among those of all streams of the GPU.
    number_of_gpu: u64,
    /// Recorded behind it.
    event: Recorded,
    /// What its stream was behind.
    known: Known,
}

/// A stream of a GPU.
#[derive(Clone)]
pub(crate) enum Of {
    Role(Role),
    Side(Arc<SideStream>),
}

impl Of {
    fn line(&self) -> Line {
        match self {
            Self::Role(role) => Line::Own(*role),
            Self::Side(side_stream) => Line::Import(side_stream.number()),
        }
    }
}

impl SyncPoint {
    /// Its number on its stream.
    pub(crate) fn number(&self) -> u64 {
        self.submitted.number
    }

    /// Its stream, by its name, and the number of its device.
    fn place(&self) -> Place {
        (self.gpu.index, self.of.line())
    }

    fn stream(&self) -> &Stream {
        match &self.of {
            Of::Role(role) => self.gpu.stream(*role),
            Of::Side(side_stream) => side_stream.stream(),
        }
    }

    /// Returns when it is over, or its GPU broken.
    pub(crate) fn wait(&self) {
        self.stream().drain(&self.gpu);
    }

    /// Has a stream of others come behind it, unless it is over. The context of that stream's GPU is current.
    ///
    /// # Errors
    /// The driver's code.
    pub(crate) fn come_before(&self, theirs: CUstream) -> Result<(), ResultCode> {
        if self.is_over() {
            return Ok(());
        }
        // SAFETY: the event stays while this point does, and the caller's promise is that the stream is there.
        match unsafe { (self.gpu.api().base.wait_event)(theirs, self.submitted.event.handle(), 0) } {
            0 => Ok(()),
            code => Err(code),
        }
    }

    /// Its GPU.
    pub(crate) fn gpu(&self) -> &Gpu {
        &self.gpu
    }
}

impl Point for SyncPoint {
    fn is_over(&self) -> bool {
        self.stream().is_over(self.number())
    }

    fn covers(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.gpu, &other.gpu) && self.of.line() == other.of.line() && self.number() >= other.number()
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
    /// For traces.
    pub(crate) content: Content<'a>,
}

/// What a submission does, as traces tell it.
#[derive(Clone, Copy)]
pub(crate) enum Content<'a> {
    /// Copies so many bytes.
    Bytes(usize),
    /// All commands of a list.
    Commands(&'a CommandList),
    /// Nothing but to be behind others.
    Nothing,
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

/// What is to be submitted, with an event that is recorded behind it.
struct Submission {
    name: OperationName,
    event: Recorded,
    end: End,
    /// If a trace wants it.
    traced: Option<Traced>,
}

/// What a trace says of a submission, besides its name.
struct Traced {
    times: Times,
    role: Role,
}

struct Record {
    submitted: Arc<Submitted>,
    name: OperationName,
    end: End,
    traced: Option<Traced>,
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
            Ok(event) => event,
            Err(code) => return refuse(gpu.failed(code, &order.name.to_string()), end),
        };
        let role = order.role;
        let traced = gpu.tracer.times(order.content).map(|times| Traced { times, role });
        let submission = Submission { name: order.name.clone(), event, end, traced };
        match stream.enqueue(gpu, Of::Role(role), order.waits, submission, work) {
            Ok(point) => Ok(point),
            Err((Refused { code, with }, end)) => {
                refuse(gpu.failed_with(with.or(order.other), code, &order.name.to_string()), end)
            }
        }
    }

    /// As [`submit`](Self::submit), on a side stream, which nothing else is on. If it fails, a part of the work may go
    /// on there.
    ///
    /// # Errors
    /// What the driver says, as `error` puts it. `end` is dropped.
    pub(crate) fn submit_alone(
        gpu: &Arc<Gpu>,
        side_stream: &Arc<SideStream>,
        name: &OperationName,
        work: impl FnOnce(CUstream) -> ResultCode,
        error: impl Fn(ResultCode) -> Error,
        end: End,
    ) -> StatusOr<SyncPoint> {
        let event = gpu.events.take().map_err(&error)?;
        let submission = Submission { name: name.clone(), event, end, traced: None };
        let submitted = side_stream.stream().enqueue(gpu, Of::Side(Arc::clone(side_stream)), &[], submission, work);
        submitted.map_err(|(refused, _end)| error(refused.code))
    }

    /// The locked part of a submission: waits, work, record.
    fn enqueue<'a>(
        &self,
        gpu: &Arc<Gpu>,
        of: Of,
        waits: &'a [SyncPoint],
        submission: Submission,
        work: impl FnOnce(CUstream) -> ResultCode,
    ) -> Result<SyncPoint, (Refused<'a>, End)> {
        let mut queue = self.queue.lock();
        if let Err(refused) = self.come_after(&mut queue, gpu, of.line(), waits) {
            return Err((refused, submission.end));
        }
        let Submission { name, event, end, traced } = submission;
        let traced = traced.filter(|traced| traced.times.begin(gpu, self.stream));
        let mut code = work(self.stream);
        let traced = traced.filter(|traced| traced.times.end(gpu, self.stream));
        if code == 0 {
            // SAFETY: both handles are the driver's, and stay while this point and this GPU do.
            code = unsafe { (gpu.api().base.record_event)(event.handle(), self.stream) };
        }
        if code != 0 {
            return Err((Refused { code, with: None }, end));
        }
        queue.last += 1;
        let (number, number_of_gpu, known) = (queue.last, gpu.next_submission(), queue.known.clone());
        let submitted = Arc::new(Submitted { number, number_of_gpu, event, known });
        queue.records.push_back(Record { submitted: Arc::clone(&submitted), name, end, traced });
        Ok(SyncPoint { gpu: Arc::clone(gpu), of, submitted })
    }

    /// Has what is enqueued from now on come after `waits`. The stream is `line`, and its lock is held.
    fn come_after<'a>(
        &self,
        queue: &mut Queue,
        gpu: &Arc<Gpu>,
        line: Line,
        waits: &'a [SyncPoint],
    ) -> Result<(), Refused<'a>> {
        let is_here = |wait: &SyncPoint| Arc::ptr_eq(&wait.gpu, gpu) && wait.of.line() == line;
        let mut waits: Vec<&SyncPoint> = waits.iter().filter(|wait| !is_here(wait)).collect();
        // The youngest first, which may be behind older ones.
        waits.sort_unstable_by_key(|wait| Reverse(wait.submitted.number_of_gpu));
        for wait in waits {
            let other = wait.place();
            if wait.is_over() || queue.known.has(other, wait.number()) {
                continue;
            }
            // SAFETY: both handles are the driver's, and stay while this point and this GPU do.
            let code = unsafe { (gpu.api().base.wait_event)(self.stream, wait.submitted.event.handle(), 0) };
            if code != 0 {
                return Err(Refused { code, with: Some(&wait.gpu) });
            }
            queue.known.learn(other, wait.number(), &wait.submitted.known);
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
        if let Err(Refused { code, with }) = stream.come_after(&mut queue, gpu, Line::Own(Role::Free), waits) {
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

    /// Waits until nothing of the stream goes on, or the driver refuses that.
    pub(crate) fn settle(&self, gpu: &Gpu) {
        // SAFETY: the handle is the driver's, and this stream keeps it until destroy().
        unsafe { (gpu.api().base.synchronize_stream)(self.stream) };
    }

    /// What is in flight here; `None` if nothing is.
    pub(crate) fn pending(&self) -> Option<Pending> {
        let queue = self.queue.lock();
        let Record { submitted, name, .. } = queue.records.front()?;
        let (number, known) = (submitted.number, submitted.known.clone());
        Some(Pending { number, name: name.clone(), known, count: queue.records.len() })
    }

    /// What is oldest in flight here, and its number among the submissions of the GPU.
    pub(crate) fn oldest(&self) -> Option<(u64, OperationName)> {
        self.queue.lock().records.front().map(|record| (record.submitted.number_of_gpu, record.name.clone()))
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
        let number = oldest.submitted.number;
        let mut outcome = gpu.check_whole();
        if outcome.is_ok() {
            // SAFETY: the handle is the driver's, and the record keeps it.
            match unsafe { (gpu.api().base.query_event)(oldest.submitted.event.handle()) } {
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
                    if queue.records.front().is_none_or(|oldest| oldest.submitted.number != number) {
                        // Another thread has ended it meanwhile.
                        return true;
                    }
                }
            }
        }
        let Some(Record { submitted, name, end, traced }) = queue.records.pop_front() else { return false };
        if outcome.is_ok() {
            // Release: see is_over().
            self.completed.store(number, Ordering::Release);
        }
        drop(queue);
        if let Some(Traced { times, role }) = traced.filter(|_| outcome.is_ok()) {
            gpu.tracer.tell(gpu, role, &name, times);
        }
        drop((submitted, name));
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
