//! Copies: where their ends are, and which way they go.
//!
//! - Between a GPU and pinned memory, by the GPU.
//! - Between a GPU and other memory of the host, or an array that is strided or packed there, through pinned chunks:
//!   [`upload`], [`download`].
//! - Within a GPU, and between two; through a chunk where the ends overlap: [`overlapping`].
//! - Within the host, by the host.
//!
//! Launches go their own way: [`launch`].

#![allow(unsafe_code, reason = "the driver copies by address")]

use std::convert::identity;
use std::sync::Arc;

use cudarc::driver::sys::CUstream;
use purlin_base::Error;
use purlin_device::backend::{Access, DeviceRange, IdleWorkers, Operation, Work};

use crate::api::ResultCode;
use crate::gpu::Gpu;
use crate::in_flight::InFlight;
use crate::memory::is_of_gpu;
use crate::parts::Parts;
use crate::pinned::Pinned;
use crate::route::Route;
use crate::stream::{Content, EndedOn, Order, Role, Stream, SyncPoint};
use crate::uses::Point;
use crate::{download, launch, overlapping, upload};

/// The device whose GPU does the operation. `None`: the host does it.
pub(crate) fn device_of(operation: &Operation) -> Option<usize> {
    match operation.work() {
        Work::CopyFromHost(_) | Work::CopyToHost(_) | Work::Copy | Work::Gather(..) | Work::Scatter(..) => {
            operation.ranges().find(|(_, range)| is_of_gpu(range)).map(|(_, range)| range.device())
        }
        _ => launch::device_of(operation),
    }
}

/// Why the host cannot do what it is asked to.
pub(crate) fn check_on_host(operation: &Operation) -> Result<(), Error> {
    match operation.ranges().find(|(_, range)| is_of_gpu(range)) {
        Some((_, range)) => Err(Error::unimplemented(format!(
            "{operation:?} is a function of the host, which does not reach {range}: use memory of the kind \
             'pinned_host'"
        ))),
        None => Ok(()),
    }
}

/// An operation on memory of the host alone.
pub(crate) fn on_host(operation: &mut Operation, idle: IdleWorkers<'_>) -> Result<(), Error> {
    // SAFETY: a schedule calls this after the dependencies and completes the event afterwards. All ranges are memory of
    // the host, by its address.
    unsafe { operation.perform_in_pieces(idle, |range| std::ptr::with_exposed_provenance_mut(address(range))) }
}

/// The first byte of a range. Only after the operation's dependencies.
pub(crate) fn address(range: &DeviceRange) -> usize {
    let (extent, offset_bytes) = range.place();
    extent.address() + offset_bytes
}

/// One end of a copy.
#[derive(Clone, Copy, Debug)]
enum End {
    /// Memory of the GPU of that device.
    Gpu(usize, u64),
    Host(usize),
}

impl End {
    fn of(range: &DeviceRange) -> Self {
        let address = address(range);
        if is_of_gpu(range) { Self::Gpu(range.device(), address as u64) } else { Self::Host(address) }
    }
}

/// Where a copy begins, and where it ends.
fn ends(operation: &Operation) -> [End; 2] {
    let range = |wanted: Access| {
        let found = operation.ranges().find(|(access, _)| *access == wanted);
        found.map(|(_, range)| End::of(range)).unwrap_or_else(|| unreachable!("core guarantees that copies have ends"))
    };
    match operation.work() {
        Work::CopyFromHost(source) | Work::Gather(source, _) => {
            [End::Host(source.address().expose_provenance()), range(Access::Write)]
        }
        Work::CopyToHost(destination) | Work::Scatter(_, destination) => {
            [range(Access::Read), End::Host(destination.address().expose_provenance())]
        }
        _ => [range(Access::Read), range(Access::Write)],
    }
}

/// Enqueues the operation behind `points`. Everything else that it waits for has happened.
pub(crate) fn start(mut in_flight: Box<InFlight>, mut points: Vec<SyncPoint>) {
    in_flight.add_former_uses(&mut points);
    if launch::device_of(in_flight.operation()).is_some() {
        let unit = Arc::clone(&in_flight.unit);
        return match unit.gpu.enter() {
            Ok(_current) => launch::start(in_flight, &points),
            Err(error) => in_flight.end(Err(error), EndedOn::Poller),
        };
    }
    let bytes = in_flight.operation().size_bytes();
    let [from, to] = ends(in_flight.operation());
    let unit = Arc::clone(&in_flight.unit);
    let _current = match unit.gpu.enter() {
        Ok(current) => current,
        Err(error) => {
            // A caller that waits is here, and nobody else has the event.
            let ended_on = if in_flight.caller_waits { EndedOn::Caller } else { EndedOn::Poller };
            return in_flight.end(Err(error), ended_on);
        }
    };
    let api = unit.gpu.api();
    match (from, to) {
        (End::Host(from), End::Gpu(_, to)) => {
            let Some(pinned) = pinned(&in_flight, from, bytes) else {
                let route = Route::of(in_flight.operation(), from, to);
                return upload::start(in_flight, points, route);
            };
            in_flight.pinned = pinned;
            let source = std::ptr::with_exposed_provenance(from);
            // SAFETY: the operation keeps both ends, of so many bytes, until its event, and the source pinned.
            enqueue(
                in_flight,
                (Role::ToDevice, Content::Bytes(bytes)),
                &points,
                identity,
                None,
                move |stream| unsafe { (api.base.copy_to_device)(to, source, bytes, stream) },
            );
        }
        (End::Gpu(_, from), End::Host(to)) => {
            let Some(pinned) = pinned(&in_flight, to, bytes) else {
                let route = Route::of(in_flight.operation(), to, from);
                return download::start(in_flight, points, route);
            };
            in_flight.pinned = pinned;
            let destination = std::ptr::with_exposed_provenance_mut(to);
            // SAFETY: the same, with the destination pinned.
            enqueue(in_flight, (Role::ToHost, Content::Bytes(bytes)), &points, identity, None, move |stream| unsafe {
                (api.base.copy_to_host)(destination, from, bytes, stream)
            });
        }
        (End::Gpu(device, from), End::Gpu(other, to)) if device == other => {
            if (from.abs_diff(to) as usize) < bytes {
                return overlapping::start(in_flight, points, from, to, bytes);
            }
            // SAFETY: the operation keeps both ends, of so many bytes, until its event.
            enqueue(in_flight, (Role::Within, Content::Bytes(bytes)), &points, identity, None, move |stream| unsafe {
                (api.base.copy_within)(to, from, bytes, stream)
            });
        }
        (End::Gpu(_, from), End::Gpu(other, to)) => copy_to_peer(in_flight, &points, from, other, to, bytes),
        (End::Host(_), End::Host(_)) => unreachable!("device_of() has found a device"),
    }
}

/// What keeps the host's end pinned, from and to which the GPU then copies by itself. `None`: nothing does, or the
/// host's bytes are not those of the GPU.
fn pinned(in_flight: &InFlight, address: usize, bytes: usize) -> Option<Pinned> {
    match in_flight.operation().work() {
        Work::Gather(..) | Work::Scatter(..) => None,
        _ => in_flight.shared().keepers.pinned.find(address, bytes),
    }
}

/// Enqueues all of an operation at once. `then` makes the operation's outcome of that of the work, and has what the
/// work needs until it is over.
pub(crate) fn enqueue(
    mut in_flight: Box<InFlight>,
    (role, content): (Role, Content<'_>),
    points: &[SyncPoint],
    then: impl FnOnce(Result<(), Error>) -> Result<(), Error> + Send + 'static,
    other: Option<Arc<Gpu>>,
    work: impl FnOnce(CUstream) -> ResultCode,
) {
    let (enqueuing, unit) = (in_flight.enqueuing(), Arc::clone(&in_flight.unit));
    let (waits, name) = (in_flight.caller_waits, in_flight.name());
    let there = other.clone();
    let parts = Parts::of(in_flight);
    let end = parts.submission(move |outcome| {
        let outcome = then(outcome);
        // A broken GPU drops what others have asked of its memory.
        outcome.and_then(|()| there.map_or(Ok(()), |there| there.check_whole()))
    });
    let order = Order { role, waits: points, name: &name, other: other.as_deref(), content };
    let submitted = Stream::submit(&unit.gpu, order, work, end);
    enqueuing.done(&submitted);
    parts.enqueued(submitted.as_ref());
    if let Ok(point) = submitted {
        finish(&unit, &point, role, waits);
    }
    parts.wait();
}

/// How often a caller that waits looks before it leaves that to the poller.
pub(crate) const LOOKS: usize = 2000;

/// Has the end of a submission learnt: here, if the caller waits, else by the poller.
pub(crate) fn finish(unit: &crate::Unit, point: &SyncPoint, role: Role, caller_waits: bool) {
    if caller_waits {
        let stream = unit.gpu.stream(role);
        for _ in 0..LOOKS {
            if point.is_over() || !stream.is_busy() {
                return;
            }
            if !stream.look(&unit.gpu, Some(point.number())) {
                std::thread::yield_now();
            }
        }
    }
    unit.poller.wake();
}

/// From one GPU to another, on a stream of the first.
fn copy_to_peer(in_flight: Box<InFlight>, points: &[SyncPoint], from: u64, other: usize, to: u64, bytes: usize) {
    let there = in_flight.shared().unit(other).map(|unit| Arc::clone(&unit.gpu));
    let there = match there.and_then(|there| there.check_whole().map(|()| there)) {
        Ok(there) => there,
        Err(error) => return in_flight.end(Err(error), EndedOn::Poller),
    };
    let (here, context, api) = (in_flight.unit.gpu.context(), there.context(), in_flight.unit.gpu.api());
    // SAFETY: both ends have so many bytes until the event, in these contexts, which are retained.
    enqueue(in_flight, (Role::WithinToo, Content::Bytes(bytes)), points, identity, Some(there), move |stream| unsafe {
        if here == context {
            // Virtual devices on one GPU.
            (api.base.copy_within)(to, from, bytes, stream)
        } else {
            (api.base.copy_to_peer)(to, context, from, here, bytes, stream)
        }
    });
}
