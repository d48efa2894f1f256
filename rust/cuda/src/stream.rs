//! A stream: work of the GPU in one order, and numbers that say how far it is.
//!
//! Each submission gets the next number, and an event is recorded behind it. `completed` is the number of the last that
//! is known to be over, so to ask whether one is over is one load. Waits between streams name a submission
//! ([`SyncPoint`]); one that is over, or that an earlier wait of the same stream covers, is left out.
//!
//! One lock covers the waits, the work and the record of a submission, because threads that enqueue on one stream
//! interleave call by call. No other code runs under it.

#![allow(unsafe_code, reason = "the driver is called")]

use std::collections::{HashMap, VecDeque};
use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::CUstream;
use purlin_base::sync::Mutex;
use purlin_base::sync::atomic::{AtomicU64, Ordering};
use purlin_base::{Error, StatusOr};

use crate::api::{Api, Code};
use crate::err;
use crate::event_pool::Recorded;
use crate::gpu::Gpu;

/// `CU_STREAM_NON_BLOCKING`: no order with the legacy default stream.
const NON_BLOCKING: u32 = 1;

/// What a stream of a GPU is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    ToDevice,
    ToHost,
    ToHostToo,
    Within,
    WithinToo,
    /// Allocations.
    Memory,
}

impl Role {
    pub(crate) const ALL: [Self; 6] =
        [Self::ToDevice, Self::ToHost, Self::ToHostToo, Self::Within, Self::WithinToo, Self::Memory];
}

/// A submission, for those that wait for it.
#[derive(Clone)]
pub(crate) struct SyncPoint {
    gpu: Arc<Gpu>,
    role: Role,
    number: u64,
    event: Arc<Recorded>,
}

impl SyncPoint {
    /// Whether it is over. False may mean that it is, and that nobody has looked.
    pub(crate) fn is_over(&self) -> bool {
        self.gpu.stream(self.role).is_over(self.number)
    }
}

/// Where the end of a submission is learnt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// On the poller's thread, which runs no code but the backend's.
    Poller,
    /// On the thread of a caller that waits for it.
    Caller,
}

/// What happens at the end of a submission.
pub(crate) type End = Box<dyn FnOnce(Result<(), Error>, Place) + Send>;

struct Record {
    number: u64,
    event: Arc<Recorded>,
    end: End,
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
    records: VecDeque<Record>,
    /// For each other stream, the last submission that this one already waits for.
    known: HashMap<(usize, Role), u64>,
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

    fn is_over(&self, number: u64) -> bool {
        // Acquire: pairs with the release in look(), so what the submission wrote is visible.
        self.completed.load(Ordering::Acquire) >= number
    }

    /// Enqueues `work` on `gpu`'s stream `role`, whose context is current, behind `waits`. `end` is called once, when it
    /// is over or cannot become so any more.
    ///
    /// # Errors
    /// What the driver says. The work is then not enqueued, or over already; `end` is called with the error, too.
    pub(crate) fn submit(
        gpu: &Arc<Gpu>,
        role: Role,
        waits: &[SyncPoint],
        what: &dyn Fn() -> String,
        work: impl FnOnce(CUstream) -> Code,
        end: End,
    ) -> StatusOr<SyncPoint> {
        let stream = gpu.stream(role);
        let refused = |code: Code, end: End| {
            let error = gpu.failed(code, &what());
            end(Err(error.clone()), Place::Poller);
            Err(error)
        };
        if let Err(error) = gpu.check_whole() {
            end(Err(error.clone()), Place::Poller);
            return Err(error);
        }
        let event = match gpu.events.take() {
            Ok(event) => Arc::new(event),
            Err(code) => return refused(code, end),
        };
        let base = &gpu.api().base;
        let mut queue = stream.queue.lock();
        for wait in waits {
            let is_here = Arc::ptr_eq(&wait.gpu, gpu) && wait.role == role;
            let other = (wait.gpu.ordinal, wait.role);
            if is_here || wait.is_over() || queue.known.get(&other).is_some_and(|&known| known >= wait.number) {
                continue;
            }
            // SAFETY: both handles are the driver's, and stay while this point and this GPU do.
            let code = unsafe { (base.wait_event)(stream.stream, wait.event.handle(), 0) };
            if code != 0 {
                drop(queue);
                // What the other one has done is not this GPU's fault.
                let error = wait.gpu.failed(code, &what());
                end(Err(error.clone()), Place::Poller);
                return Err(error);
            }
            queue.known.insert(other, wait.number);
        }
        let code = work(stream.stream);
        if code != 0 {
            drop(queue);
            return refused(code, end);
        }
        // SAFETY: as above.
        let code = unsafe { (base.record_event)(event.handle(), stream.stream) };
        if code != 0 {
            // The work is there, and nothing tells when it is over but the end of all that is.
            // SAFETY: as above.
            unsafe { (base.synchronize_stream)(stream.stream) };
            drop(queue);
            return refused(code, end);
        }
        queue.last += 1;
        let number = queue.last;
        queue.records.push_back(Record { number, event: Arc::clone(&event), end });
        drop(queue);
        Ok(SyncPoint { gpu: Arc::clone(gpu), role, number, event })
    }

    /// The driver's handle, for what needs no number.
    pub(crate) fn handle(&self) -> CUstream {
        self.stream
    }

    /// Whether something is pending.
    pub(crate) fn is_busy(&self) -> bool {
        !self.queue.lock().records.is_empty()
    }

    /// Asks the driver for the oldest submission, and ends it if it is over. False: it is not, or there is none. The
    /// context is current.
    pub(crate) fn look(&self, gpu: &Gpu, place: Place) -> bool {
        let mut queue = self.queue.lock();
        let Some(oldest) = queue.records.front() else { return false };
        let mut outcome = gpu.check_whole();
        if outcome.is_ok() {
            // SAFETY: the handle is the driver's, and the record keeps it.
            match unsafe { (gpu.api().base.query_event)(oldest.event.handle()) } {
                err::NOT_READY => return false,
                0 => {}
                code => {
                    outcome = Err(gpu.failed(code, &format!("work on GPU {}", gpu.ordinal)));
                    if gpu.check_whole().is_ok() && code != err::DEINITIALIZED {
                        // The question failed, not the work: it is asked again.
                        return false;
                    }
                }
            }
        }
        let Some(Record { number, event, end }) = queue.records.pop_front() else { return false };
        if outcome.is_ok() {
            // Release: see is_over().
            self.completed.store(number, Ordering::Release);
        }
        drop(queue);
        drop(event);
        end(outcome, place);
        true
    }
}
