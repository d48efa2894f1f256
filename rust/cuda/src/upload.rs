//! Copies to a GPU from memory that nothing has pinned: through pinned chunks, which the host fills while earlier ones
//! are on their way.

#![allow(unsafe_code, reason = "bytes are copied by address")]

use std::ptr;
use std::sync::Arc;

use purlin_base::Error;

use crate::copy::finish;
use crate::in_flight::{Enqueuing, InFlight};
use crate::parts::Parts;
use crate::staging::{CHUNK_BYTES, Chunk, SLAB_BYTES};
use crate::stream::{EndedOn, Order, Role, Stream, SyncPoint};

/// What is left of an upload.
struct Upload {
    in_flight: InFlight,
    enqueuing: Enqueuing,
    /// What the first part waits for.
    points: Vec<SyncPoint>,
    from: usize,
    to: u64,
    bytes: usize,
}

/// Copies `bytes` at `from` to `to`. A small copy is enqueued here; the host's part of a larger one is a task of the
/// client's runner. The context is current.
pub(crate) fn start(mut in_flight: InFlight, points: Vec<SyncPoint>, from: usize, to: u64, bytes: usize) {
    let enqueuing = in_flight.enqueuing();
    let is_small = bytes <= SLAB_BYTES;
    let here = is_small || in_flight.caller_waits;
    let runner = in_flight.runner();
    let upload = Upload { in_flight, enqueuing, points, from, to, bytes };
    if here { upload.go_on() } else { runner.run(move || upload.go_on()) }
}

impl Upload {
    /// Enqueues parts until all are, or no chunk is left.
    fn go_on(mut self) {
        let unit = Arc::clone(&self.in_flight.unit);
        let _current = match unit.gpu.enter() {
            Ok(current) => current,
            Err(error) => return self.fail(error),
        };
        loop {
            match unit.staging.take(self.bytes) {
                Ok(Some(chunk)) => match self.part(chunk) {
                    Some(rest) => self = rest,
                    None => return,
                },
                Ok(None) => {
                    let (runner, bytes) = (self.in_flight.runner(), self.bytes);
                    return unit.staging.wait(bytes, move |chunk| {
                        runner.run(move || {
                            let unit = Arc::clone(&self.in_flight.unit);
                            let _current = match unit.gpu.enter() {
                                Ok(current) => current,
                                Err(error) => return self.fail(error),
                            };
                            if let Some(rest) = self.part(chunk) {
                                rest.go_on();
                            }
                        });
                    });
                }
                Err(error) => return self.fail(error),
            }
        }
    }

    /// Enqueues the next part; what is left then. The context is current.
    fn part(mut self, chunk: Chunk) -> Option<Self> {
        let bytes = self.bytes.min(if self.bytes <= SLAB_BYTES { SLAB_BYTES } else { CHUNK_BYTES });
        let source = ptr::with_exposed_provenance::<u8>(self.from);
        // SAFETY: the source has so many bytes, readable until the event; the chunk is this copy's, and as large.
        unsafe { ptr::copy_nonoverlapping(source, chunk.address(), bytes) };
        let unit = Arc::clone(&self.in_flight.unit);
        let (api, to, address) = (unit.gpu.api(), self.to, chunk.address().cast());
        let what = self.in_flight.what();
        // SAFETY: the chunk is kept until this part is over, and the destination until the event.
        let work = move |stream| unsafe { (api.base.copy_to_device)(to, address, bytes, stream) };
        if bytes == self.bytes {
            let Self { in_flight, enqueuing, points, .. } = self;
            let waits = in_flight.caller_waits;
            let parts = Parts::of(in_flight);
            let end = parts.submission(move |outcome| {
                drop(chunk);
                outcome
            });
            let order = Order { role: Role::ToDevice, waits: &points, what: &what, other: None };
            let submitted = Stream::submit(&unit.gpu, order, work, end);
            enqueuing.done(&submitted);
            parts.enqueued(submitted.as_ref());
            if let Ok(point) = submitted {
                finish(&unit, &point, Role::ToDevice, waits);
            }
            return None;
        }
        let end = Box::new(move |_outcome, _place| drop(chunk));
        let order = Order { role: Role::ToDevice, waits: &self.points, what: &what, other: None };
        if let Err(error) = Stream::submit(&unit.gpu, order, work, end) {
            self.fail(error);
            return None;
        }
        unit.poller.wake();
        // The parts behind it are on the same stream.
        self.points.clear();
        (self.from, self.to, self.bytes) = (self.from + bytes, self.to + bytes as u64, self.bytes - bytes);
        Some(self)
    }

    /// Ends the copy, once the parts that are enqueued no longer write to its destination.
    fn fail(self, error: Error) {
        let gpu = &self.in_flight.unit.gpu;
        gpu.stream(Role::ToDevice).drain(gpu);
        self.enqueuing.done(&Err(error.clone()));
        self.in_flight.end(Err(error), EndedOn::Poller);
    }
}
