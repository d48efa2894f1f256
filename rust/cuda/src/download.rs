//! Copies from a GPU to memory that nothing has pinned: through pinned chunks, which the host empties while later ones
//! are on their way.

#![allow(unsafe_code, reason = "bytes are copied by address")]

use std::ptr;
use std::sync::Arc;

use purlin_base::Error;
use purlin_device::backend::OperationRunner;

use crate::Unit;
use crate::copy::finish;
use crate::in_flight::InFlight;
use crate::parts::Parts;
use crate::staging::{CHUNK_BYTES, Chunk, SLAB_BYTES};
use crate::stream::{EndedOn, Order, Role, Stream, SyncPoint};

/// A download that is not over.
struct Download {
    unit: Arc<Unit>,
    runner: OperationRunner,
    caller_waits: bool,
    what: Arc<str>,
    /// Those that are enqueued or being emptied, and one while parts are being enqueued.
    parts: Arc<Parts>,
}

/// What is not enqueued yet.
struct Rest {
    points: Vec<SyncPoint>,
    from: u64,
    to: usize,
    bytes: usize,
    /// The last part.
    last: Option<SyncPoint>,
}

/// Copies `bytes` at `from` to `to`. The context is current.
pub(crate) fn start(mut in_flight: InFlight, points: Vec<SyncPoint>, from: u64, to: usize, bytes: usize) {
    in_flight.ends_on_host();
    let download = Arc::new(Download {
        unit: Arc::clone(&in_flight.unit),
        runner: in_flight.runner(),
        caller_waits: in_flight.caller_waits,
        what: in_flight.what(),
        parts: Parts::of(in_flight),
    });
    download.go_on(Rest { points, from, to, bytes, last: None });
}

impl Download {
    /// Enqueues parts until all are, or no chunk is left. The context is current.
    fn go_on(self: Arc<Self>, mut rest: Rest) {
        let staging = &self.unit.staging;
        while rest.bytes > 0 {
            match staging.take(rest.bytes) {
                Ok(Some(chunk)) => {
                    if let Err(error) = self.part(&mut rest, chunk) {
                        return self.parts.enqueued(Err(&error));
                    }
                }
                Ok(None) => {
                    let (download, bytes) = (Arc::clone(&self), rest.bytes);
                    return staging.wait(bytes, move |chunk| {
                        // To enqueue a copy takes little time, so a thread that gives a chunk back can do it.
                        let entered = download.unit.gpu.enter();
                        match entered.as_ref().map_err(Clone::clone).and_then(|_| download.part(&mut rest, chunk)) {
                            Ok(()) => Arc::clone(&download).go_on(rest),
                            Err(error) => download.parts.enqueued(Err(&error)),
                        }
                    });
                }
                Err(error) => return self.parts.enqueued(Err(&error)),
            }
        }
        let last = rest.last.as_ref();
        self.parts.enqueued(Ok(last.unwrap_or_else(|| unreachable!("core guarantees that copies are not empty"))));
    }

    /// Enqueues the next part. The context is current.
    fn part(self: &Arc<Self>, rest: &mut Rest, chunk: Chunk) -> Result<(), Error> {
        let bytes = rest.bytes.min(if rest.bytes <= SLAB_BYTES { SLAB_BYTES } else { CHUNK_BYTES });
        let (api, from, to, address) = (self.unit.gpu.api(), rest.from, rest.to, chunk.address().cast());
        self.parts.one_more();
        let download = Arc::clone(self);
        let end =
            Box::new(move |outcome: Result<(), Error>, ended_on| download.arrived(outcome, ended_on, chunk, to, bytes));
        // SAFETY: the chunk is kept until this part is over, and the source until the event.
        let work = move |stream| unsafe { (api.base.copy_to_host)(address, from, bytes, stream) };
        let points = std::mem::take(&mut rest.points);
        let order = Order { role: Role::ToHost, waits: &points, what: &self.what, other: None };
        let point = Stream::submit(&self.unit.gpu, order, work, end)?;
        (rest.from, rest.to, rest.bytes) = (from + bytes as u64, to + bytes, rest.bytes - bytes);
        finish(&self.unit, &point, Role::ToHost, self.caller_waits);
        rest.last = Some(point);
        Ok(())
    }

    /// The bytes of a part are in the chunk.
    fn arrived(self: Arc<Self>, outcome: Result<(), Error>, ended_on: EndedOn, chunk: Chunk, to: usize, bytes: usize) {
        if outcome.is_err() || self.parts.has_failed() {
            drop(chunk);
            return self.parts.over(outcome, ended_on);
        }
        let runner = self.runner.clone();
        let empty = move |ended_on| {
            // SAFETY: the chunk has so many bytes; the destination is writable for as many until the event, which waits
            // for all parts.
            unsafe { ptr::copy_nonoverlapping(chunk.address(), ptr::with_exposed_provenance_mut(to), bytes) };
            drop(chunk);
            self.parts.over(Ok(()), ended_on);
        };
        match ended_on {
            EndedOn::Caller => empty(ended_on),
            // The task may run the operation's waiters.
            EndedOn::Poller => runner.run(move || empty(EndedOn::Caller)),
        }
    }
}
