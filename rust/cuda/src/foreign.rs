//! Work of others on the GPU of a device: their streams and events as events of ours, and ours before their streams.
//!
//! What they have becomes a submission of ours on a [side stream](crate::side_streams), which the call makes: a stream
//! of theirs is recorded, an event of theirs is waited for as it is now. So operations find it among the
//! [orders](crate::orders), and their streams wait for it.
//!
//! The event fails when the client ends first. The GPU may wait on, and what was enqueued behind it with it.

#![allow(unsafe_code, reason = "the driver is called")]

use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::{CUevent, CUstream};
use purlin_async::{Event, EventPromise, EventState, after_all};
use purlin_base::Error;
use purlin_device::backend::{ForeignStream, ForeignWork, Operation, Schedule};

use crate::api::ResultCode;
use crate::event_pool::Recorded;
use crate::gpu::Gpu;
use crate::in_flight::{Begun, begin};
use crate::operation_name::OperationName;
use crate::orders::{Known, Order, key};
use crate::side_streams::SideStreams;
use crate::stream::{Stream, SyncPoint};
use crate::{Shared, Unit};

/// `CU_STREAM_CAPTURE_STATUS_NONE`.
const NOT_CAPTURED: u32 = 0;

/// `CUDA_ERROR_CAPTURED_EVENT`.
const CAPTURED_EVENT: ResultCode = 907;

/// See [`Backend::await_foreign`](purlin_device::backend::Backend::await_foreign).
pub(crate) fn import(
    shared: &Arc<Shared>,
    unit: Arc<Unit>,
    work: ForeignWork,
    operation: Operation,
    schedule: &Schedule<'_>,
) -> Event {
    if let Some(refused) = schedule.refused() {
        return refused;
    }
    let Begun { gate, event, promise } = match begin(&unit, operation, schedule) {
        Ok(begun) => begun,
        Err(refused) => return Event::from_error(refused),
    };
    let over = EventPromise::new(c"work of others");
    let (is_over, runner, key) = (over.event(), promise.runner(), key(&event));
    let name = OperationName::foreign(work, event.label(), event.location());
    // Not on the poller's thread: waiters are code of callers.
    let then = move |outcome: Result<(), Error>| runner.run(move || _ = over.set(outcome));
    match submit(&unit.gpu, work, &name, then) {
        Ok(point) => shared.orders.enqueued_at_once(key, point),
        Err(error) => {
            promise.complete(Err(error));
            return event;
        }
    }
    let shared = Arc::clone(shared);
    gate.when_ready(&is_over, move |outcome| {
        shared.orders.remove(key);
        promise.complete(outcome.clone());
    });
    unit.poller.wake();
    event
}

/// Their work as a submission of ours, at whose end `then` is called.
///
/// # Errors
/// What the driver says; `FailedPrecondition`: the work is a part of a capture.
fn submit(
    gpu: &Arc<Gpu>,
    work: ForeignWork,
    name: &OperationName,
    then: impl FnOnce(Result<(), Error>) + Send + 'static,
) -> Result<SyncPoint, Error> {
    let _current = gpu.enter()?;
    let (base, refused) = (&gpu.api().base, |code| refused(gpu, None, code, &name.to_string()));
    // What the side stream waits for; of ours, free again as soon as it does.
    let tail = match work {
        ForeignWork::Event(theirs) => Tail::Theirs(ptr::with_exposed_provenance_mut(theirs.handle())),
        ForeignWork::Stream(theirs) => {
            let (theirs, tail) = (stream(theirs), gpu.events.take().map_err(refused)?);
            check_no_capture(gpu, theirs, || name.to_string())?;
            // SAFETY: both handles are the driver's: an event of ours, and a stream that the caller has promised.
            match unsafe { (base.record_event)(tail.handle(), theirs) } {
                0 => Tail::Ours(tail),
                code => return Err(refused(code)),
            }
        }
    };
    let (side_stream, lease) = SideStreams::take(gpu)?;
    let wait = |ours: CUstream| {
        // SAFETY: both handles are the driver's: a stream of ours, and an event of ours or one that was promised.
        match unsafe { (base.wait_event)(ours, tail.handle(), 0) } {
            0 => captured(gpu, ours),
            code => code,
        }
    };
    let end = Box::new(move |outcome, _ended_on| {
        lease.give_back();
        then(outcome);
    });
    Stream::submit_alone(gpu, &side_stream, name, wait, refused, end)
}

/// [`CAPTURED_EVENT`] if the side stream has got into a capture, because the event of theirs is part of one.
fn captured(gpu: &Gpu, ours: CUstream) -> ResultCode {
    let mut status = 0;
    // SAFETY: the driver writes a number; the stream is ours.
    match unsafe { (gpu.api().base.is_capturing)(ours, &mut status) } {
        0 if status != NOT_CAPTURED => CAPTURED_EVENT,
        code => code,
    }
}

/// An event at the end of what others have enqueued.
enum Tail {
    Ours(Recorded),
    Theirs(CUevent),
}

impl Tail {
    fn handle(&self) -> CUevent {
        match self {
            Self::Ours(event) => event.handle(),
            Self::Theirs(event) => *event,
        }
    }
}

/// See [`Backend::have_stream_wait`](purlin_device::backend::Backend::have_stream_wait).
pub(crate) fn have_stream_wait(
    shared: &Shared,
    unit: &Unit,
    theirs: ForeignStream,
    event: &Event,
) -> Result<(), Error> {
    let Some(points) = points(shared, event)? else { return Ok(()) };
    let gpu = &unit.gpu;
    gpu.check_whole()?;
    let _current = gpu.enter()?;
    let what = || format!("having {theirs} wait for '{}'", event.label());
    check_no_capture(gpu, stream(theirs), what)?;
    for point in points {
        point.come_before(stream(theirs)).map_err(|code| refused(gpu, Some(point.gpu()), code, &what()))?;
    }
    Ok(())
}

/// What the event is behind on GPUs. `None`: it has happened. On the way, waits for what is not enqueued.
///
/// # Errors
/// The event's, or what a wait for it fails with.
fn points(shared: &Shared, event: &Event) -> Result<Option<Vec<SyncPoint>>, Error> {
    loop {
        let orders = match (event.state(), shared.orders.find(event)) {
            (EventState::Ready, _) => return Ok(None),
            (EventState::Error, _) | (_, Known::Foreign) => return event.wait().map(|()| None),
            (_, Known::Order(order)) => vec![order],
            (_, Known::Join(parts)) => parts.into_iter().map(|part| part.known).collect(),
        };
        let (mut points, mut held) = (Vec::new(), Vec::new());
        for order in orders {
            match order {
                Order::Enqueued(point) => points.push(point),
                Order::Held(enqueued) => held.push(enqueued),
            }
        }
        if held.is_empty() {
            return Ok(Some(points));
        }
        after_all(&held).wait()?;
        if held.iter().any(|enqueued| enqueued.error().is_some()) {
            // It never will be: what the event makes of that is its own.
            return event.wait().map(|()| None);
        }
    }
}

/// That no capture would take in what is enqueued on a stream of others: it would be spoilt, and what comes from
/// outside of it refused. The context is current.
///
/// # Errors
/// `FailedPrecondition`: the stream is being captured. What the driver says.
fn check_no_capture(gpu: &Gpu, theirs: CUstream, what: impl Fn() -> String) -> Result<(), Error> {
    let mut status = 0;
    // SAFETY: the driver writes a number; the handle is a stream that the caller has promised.
    match unsafe { (gpu.api().base.is_capturing)(theirs, &mut status) } {
        0 if status == NOT_CAPTURED => Ok(()),
        0 => Err(Error::failed_precondition(format!("{}: the stream is being captured", what()))),
        code => Err(refused(gpu, None, code, &what())),
    }
}

fn stream(theirs: ForeignStream) -> CUstream {
    ptr::with_exposed_provenance_mut(theirs.handle())
}

/// `CUDA_ERROR_INVALID_CONTEXT`, `CUDA_ERROR_INVALID_HANDLE` and `CUDA_ERROR_CONTEXT_IS_DESTROYED`.
fn is_about_handle(code: ResultCode) -> bool {
    matches!(code, 201 | 400 | 709)
}

/// What the driver says to a handle of theirs, whose name `what` has; in a call that is about another GPU, too.
fn refused(gpu: &Gpu, other: Option<&Gpu>, code: ResultCode, what: &str) -> Error {
    let error = gpu.failed_with(other, code, what);
    let is_of_handle = is_about_handle(code) && gpu.check_whole().is_ok();
    if is_of_handle { Error::invalid_argument(error.message().to_owned()) } else { error }
}
