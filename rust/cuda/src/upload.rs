//! Copies to a GPU from memory that nothing has pinned: through pinned chunks, which several tasks fill while earlier
//! ones are on their way.
//!
//! A task takes a chunk, then the next part, so whatever has begun is on a thread that runs, and a task that never runs
//! holds nothing up. The thread of a caller that waits fills parts, too, until none is left.

#![allow(unsafe_code, reason = "bytes are copied by address")]

use std::sync::Arc;

use purlin_array::{Section, Sections};
use purlin_base::Error;
use purlin_base::sync::Mutex;
use purlin_device::backend::OperationRunner;

use crate::Unit;
use crate::copy::finish;
use crate::in_flight::{Enqueuing, InFlight};
use crate::operation_name::OperationName;
use crate::parts::Parts;
use crate::route::Route;
use crate::staging::{Chunk, SLAB_BYTES};
use crate::stream::{Content, Order, Role, Stream, SyncPoint};

/// How many threads fill chunks of one upload at most. One does not keep up with the bus.
const FILLERS: usize = 4;

/// An upload that is not over.
struct Upload {
    unit: Arc<Unit>,
    runner: OperationRunner,
    caller_waits: bool,
    has_several_parts: bool,
    name: OperationName,
    route: Route,
    /// Those that are enqueued, and one while parts are being enqueued.
    parts: Arc<Parts>,
    /// What it waits for.
    points: Vec<SyncPoint>,
    progress: Mutex<Progress>,
}

struct Progress {
    /// Parts that no thread has begun.
    left: Sections,
    /// How many are being filled.
    filling: usize,
    /// The last part, so far.
    last: Option<SyncPoint>,
    failed: Option<Error>,
    /// `None` once all is enqueued.
    enqueuing: Option<Enqueuing>,
}

/// Copies along `route`. A small copy is enqueued here; the host's part of a larger one are tasks of the client's
/// runner, and this thread's work if its caller waits. The context is current.
pub(crate) fn start(mut in_flight: Box<InFlight>, points: Vec<SyncPoint>, route: Route) {
    let (caller_waits, left) = (in_flight.caller_waits, route.parts());
    let fillers = left.len().min(FILLERS);
    let is_small = route.bytes() <= SLAB_BYTES;
    let enqueuing = Some(in_flight.enqueuing());
    let upload = Arc::new(Upload {
        unit: Arc::clone(&in_flight.unit),
        runner: in_flight.runner(),
        caller_waits,
        has_several_parts: left.len() > 1,
        name: in_flight.name(),
        route,
        parts: Parts::of(in_flight),
        points,
        progress: Mutex::new(Progress { left, filling: 0, last: None, failed: None, enqueuing }),
    });
    let here = is_small || caller_waits;
    for _ in usize::from(here)..fillers {
        let upload = Arc::clone(&upload);
        upload.runner.clone().run(move || match Arc::clone(&upload.unit).gpu.enter() {
            Ok(_current) => upload.fill(),
            Err(error) => upload.fail(error),
        });
    }
    match (caller_waits, here) {
        (true, _) => upload.fill_all(),
        (false, true) => upload.fill(),
        (false, false) => {}
    }
}

impl Upload {
    /// Fills and enqueues parts until none is left, or no chunk. The context is current.
    fn fill(self: Arc<Self>) {
        while self.is_wanted() {
            match self.unit.staging.take(self.route.bytes()) {
                Ok(Some(chunk)) => self.part(chunk),
                // The caller fills the rest.
                Ok(None) if self.caller_waits => return,
                Ok(None) => {
                    let (unit, runner) = (Arc::clone(&self.unit), self.runner.clone());
                    return unit.staging.wait_on(runner, self.route.bytes(), move |chunk| match chunk {
                        Ok(chunk) => {
                            self.part(chunk);
                            self.fill();
                        }
                        Err(error) => self.fail(error),
                    });
                }
                Err(error) => return self.fail(error),
            }
        }
    }

    /// Fills and enqueues what is left, for a caller that waits. The context is current.
    fn fill_all(&self) {
        while self.is_wanted() {
            match self.unit.staging.take(self.route.bytes()) {
                Ok(Some(chunk)) => self.part(chunk),
                // Those of others may come back by threads that wait for this one.
                Ok(None) => match self.unit.staging.make(self.route.bytes()) {
                    Ok(chunk) => self.part_through(&chunk),
                    Err(error) => self.fail(error),
                },
                Err(error) => self.fail(error),
            }
        }
        let last = self.progress.lock().last.clone();
        if let Some(last) = last {
            finish(&self.unit, &last, Role::ToDevice, true);
        }
        self.parts.wait();
    }

    /// Whether there is a part that no thread has begun.
    fn is_wanted(&self) -> bool {
        let progress = self.progress.lock();
        progress.failed.is_none() && progress.left.len() > 0
    }

    /// The next part, which is the caller's from now on.
    fn next(&self) -> Option<Section> {
        let mut progress = self.progress.lock();
        if progress.failed.is_some() {
            return None;
        }
        let part = progress.left.next()?;
        progress.filling += 1;
        Some(part)
    }

    /// Fills and enqueues the next part, if there is one. The context is current.
    fn part(&self, chunk: Chunk) {
        let Some(part) = self.next() else { return };
        self.enqueue(&part, chunk.address(), chunk);
    }

    /// As [`part`](Self::part), and waits until the chunk is used no more.
    fn part_through(&self, chunk: &Chunk) {
        let Some(part) = self.next() else { return };
        if let Some(point) = self.enqueue(&part, chunk.address(), ()) {
            point.wait();
        }
    }

    /// Fills and enqueues a part, which keeps `kept`. The context is current, and the chunk the part's.
    fn enqueue(&self, part: &Section, chunk: *mut u8, kept: impl Send + 'static) -> Option<SyncPoint> {
        // SAFETY: the event has not happened before this part is over, and the chunk is this part's.
        unsafe { self.route.fill(part, chunk) };
        let api = self.unit.gpu.api();
        // SAFETY: the chunk stays as it is until this part is over; the context is current.
        let work = |stream| unsafe { self.route.to_device(part, chunk, &api.base, stream) };
        let end = self.parts.submission(move |outcome| {
            drop(kept);
            outcome
        });
        let (name, content) = (&self.name, Content::Bytes(self.route.part_bytes(part)));
        let order = Order { role: Role::ToDevice, waits: &self.points, name, other: None, content };
        let submitted = Stream::submit(&self.unit.gpu, order, work, end);
        // A caller that waits looks itself; where there are more parts, it is helped to get their chunks back.
        if !self.caller_waits || self.has_several_parts {
            self.unit.poller.wake();
        }
        let point = submitted.as_ref().ok().cloned();
        self.filled(submitted);
        point
    }

    /// A part is enqueued, or was refused.
    fn filled(&self, submitted: Result<SyncPoint, Error>) {
        self.go_on(|progress| {
            progress.filling -= 1;
            match submitted {
                Err(error) => _ = progress.failed.get_or_insert(error),
                Ok(point) if progress.last.as_ref().is_some_and(|last| last.number() > point.number()) => {}
                Ok(point) => progress.last = Some(point),
            }
        });
    }

    /// No more parts are begun.
    fn fail(&self, error: Error) {
        self.go_on(|progress| _ = progress.failed.get_or_insert(error));
    }

    /// Changes the progress. The thread after which nothing is left to enqueue tells that, once.
    fn go_on(&self, change: impl FnOnce(&mut Progress)) {
        let mut progress = self.progress.lock();
        change(&mut progress);
        let is_all = progress.filling == 0 && (progress.left.len() == 0 || progress.failed.is_some());
        let enqueuing = if is_all { progress.enqueuing.take() } else { None };
        let Some(enqueuing) = enqueuing else { return };
        let (failed, last) = (progress.failed.clone(), progress.last.clone());
        drop(progress);
        let enqueued = match (failed, last) {
            (None, Some(last)) => Ok(last),
            (failed, _) => {
                // Parts that are enqueued no longer write to its destination then.
                self.unit.gpu.stream(Role::ToDevice).drain(&self.unit.gpu);
                Err(failed.unwrap_or_else(|| unreachable!("core guarantees that copies are not empty")))
            }
        };
        enqueuing.done(&enqueued);
        self.parts.enqueued(enqueued.as_ref());
    }
}
