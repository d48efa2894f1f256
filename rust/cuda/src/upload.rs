//! Copies to a GPU from memory that nothing has pinned: through pinned chunks, which several tasks fill while earlier
//! ones are on their way.

#![allow(unsafe_code, reason = "bytes are copied by address")]

use std::ptr;
use std::sync::Arc;

use purlin_base::Error;
use purlin_base::sync::Mutex;
use purlin_device::backend::OperationRunner;

use crate::Unit;
use crate::copy::finish;
use crate::in_flight::{Enqueuing, InFlight};
use crate::parts::Parts;
use crate::staging::{CHUNK_BYTES, Chunk, SLAB_BYTES};
use crate::stream::{Order, Role, Stream, SyncPoint};

/// How many tasks fill chunks of one upload at most. One does not keep up with the bus.
const FILLERS: usize = 4;

/// An upload that is not over.
struct Upload {
    unit: Arc<Unit>,
    runner: OperationRunner,
    caller_waits: bool,
    what: Arc<str>,
    /// Those that are enqueued, and one while parts are being enqueued.
    parts: Arc<Parts>,
    /// What it waits for.
    points: Vec<SyncPoint>,
    from: usize,
    to: u64,
    bytes: usize,
    progress: Mutex<Progress>,
}

struct Progress {
    /// The bytes that a filler has, or had.
    begun_bytes: usize,
    /// Fillers that have not ended.
    fillers: usize,
    /// The last part, so far.
    last: Option<SyncPoint>,
    failed: Option<Error>,
    /// `None` once all is enqueued.
    enqueuing: Option<Enqueuing>,
}

/// Copies `bytes` at `from` to `to`. A small copy is enqueued here; the host's part of a larger one are tasks of the
/// client's runner, and this thread's work if its caller waits. The context is current.
pub(crate) fn start(mut in_flight: InFlight, points: Vec<SyncPoint>, from: usize, to: u64, bytes: usize) {
    let caller_waits = in_flight.caller_waits;
    let fillers = bytes.div_ceil(CHUNK_BYTES).min(FILLERS);
    let progress =
        Progress { begun_bytes: 0, fillers, last: None, failed: None, enqueuing: Some(in_flight.enqueuing()) };
    let upload = Arc::new(Upload {
        unit: Arc::clone(&in_flight.unit),
        runner: in_flight.runner(),
        caller_waits,
        what: in_flight.what(),
        parts: Parts::of(in_flight),
        points,
        from,
        to,
        bytes,
        progress: Mutex::new(progress),
    });
    let here = bytes <= SLAB_BYTES || caller_waits;
    for _ in usize::from(here)..fillers {
        let filler = Arc::clone(&upload);
        upload.runner.run(move || filler.fill());
    }
    if here {
        upload.fill();
    }
}

impl Upload {
    /// Fills and enqueues parts until none is left, or no chunk.
    fn fill(self: Arc<Self>) {
        match self.unit.gpu.enter() {
            Ok(_current) => Arc::clone(&self).fill_in_context(None),
            Err(error) => self.filler_ends(Err(error)),
        }
    }

    /// As [`fill`](Self::fill). The context is current. `begun`: a part, by where it begins, and its chunk.
    fn fill_in_context(self: Arc<Self>, mut begun: Option<(usize, Chunk)>) {
        loop {
            if let Some((begin, chunk)) = begun.take()
                && let Err(error) = self.part(begin, chunk)
            {
                return self.filler_ends(Err(error));
            }
            let Some(begin) = self.next() else { return self.filler_ends(Ok(())) };
            match self.unit.staging.take(self.bytes) {
                Ok(Some(chunk)) => begun = Some((begin, chunk)),
                Ok(None) => {
                    let unit = Arc::clone(&self.unit);
                    return unit.staging.wait(self.bytes, move |chunk| {
                        let runner = self.runner.clone();
                        runner.run(move || match Arc::clone(&self.unit).gpu.enter() {
                            Ok(_current) => self.fill_in_context(Some((begin, chunk))),
                            Err(error) => self.filler_ends(Err(error)),
                        });
                    });
                }
                Err(error) => return self.filler_ends(Err(error)),
            }
        }
    }

    /// Where the next part begins, which is the caller's from now on.
    fn next(&self) -> Option<usize> {
        let mut progress = self.progress.lock();
        let begin = progress.begun_bytes;
        if begin >= self.bytes || progress.failed.is_some() {
            return None;
        }
        progress.begun_bytes += CHUNK_BYTES;
        Some(begin)
    }

    /// Fills and enqueues the part that begins there. The context is current.
    fn part(&self, begin: usize, chunk: Chunk) -> Result<(), Error> {
        let bytes = (self.bytes - begin).min(CHUNK_BYTES);
        let source = ptr::with_exposed_provenance::<u8>(self.from + begin);
        // SAFETY: the source has so many bytes, readable until the event; the chunk is this part's, and as large.
        unsafe { ptr::copy_nonoverlapping(source, chunk.address(), bytes) };
        let (api, to, address) = (self.unit.gpu.api(), self.to + begin as u64, chunk.address().cast());
        // SAFETY: the chunk is kept until this part is over, and the destination until the event.
        let work = move |stream| unsafe { (api.base.copy_to_device)(to, address, bytes, stream) };
        let end = self.parts.submission(move |outcome| {
            drop(chunk);
            outcome
        });
        let order = Order { role: Role::ToDevice, waits: &self.points, what: &self.what, other: None };
        let point = Stream::submit(&self.unit.gpu, order, work, end)?;
        let mut progress = self.progress.lock();
        if progress.last.as_ref().is_none_or(|last| last.number() < point.number()) {
            progress.last = Some(point);
        }
        drop(progress);
        self.unit.poller.wake();
        Ok(())
    }

    /// The last of them tells that all is enqueued, or why not.
    fn filler_ends(&self, outcome: Result<(), Error>) {
        let mut progress = self.progress.lock();
        progress.fillers -= 1;
        if let Err(error) = outcome {
            progress.failed.get_or_insert(error);
        }
        let enqueuing = if progress.fillers == 0 { progress.enqueuing.take() } else { None };
        let (failed, last) = (progress.failed.clone(), progress.last.clone());
        drop(progress);
        let Some(enqueuing) = enqueuing else { return };
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
        if let Ok(last) = enqueued {
            finish(&self.unit, &last, Role::ToDevice, self.caller_waits);
        }
    }
}
