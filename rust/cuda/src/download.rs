//! Copies from a GPU to memory that nothing has pinned: through pinned chunks, which the host empties while later ones
//! are on their way. Tasks of the client's runner empty them, or the thread of a caller that waits.

#![allow(unsafe_code, reason = "bytes are copied by address")]

use std::sync::Arc;

use purlin_array::{Section, Sections};
use purlin_base::Error;
use purlin_device::backend::OperationRunner;

use crate::Unit;
use crate::arrivals::{Arrival, Arrivals};
use crate::in_flight::InFlight;
use crate::operation_name::OperationName;
use crate::parts::Parts;
use crate::route::Route;
use crate::staging::Chunk;
use crate::stream::{Content, EndedOn, Order, Role, Stream, SyncPoint};

/// A download that is not over.
struct Download {
    unit: Arc<Unit>,
    runner: OperationRunner,
    name: OperationName,
    route: Route,
    /// Those that are enqueued or being emptied, and one while parts are being enqueued.
    parts: Arc<Parts>,
    /// For a caller that waits.
    arrivals: Option<Arrivals>,
}

/// What is not enqueued yet.
struct Rest {
    points: Vec<SyncPoint>,
    left: Sections,
    /// The last part.
    last: Option<SyncPoint>,
}

impl Rest {
    /// The last part, once all are enqueued.
    fn last(&self) -> &SyncPoint {
        self.last.as_ref().unwrap_or_else(|| unreachable!("core guarantees that copies are not empty"))
    }
}

/// Copies along `route`. Returns when all is over if its caller waits. The context is current.
pub(crate) fn start(mut in_flight: Box<InFlight>, points: Vec<SyncPoint>, route: Route) {
    in_flight.ends_on_host();
    let rest = Rest { points, left: route.parts(), last: None };
    let download = Arc::new(Download {
        unit: Arc::clone(&in_flight.unit),
        runner: in_flight.runner(),
        name: in_flight.name(),
        route,
        arrivals: in_flight.caller_waits.then(Arrivals::default),
        parts: Parts::of(in_flight),
    });
    match &download.arrivals {
        None => download.go_on(rest),
        Some(arrivals) => download.go_through(rest, arrivals),
    }
}

impl Download {
    /// Enqueues parts until all are, or no chunk is left. The context is current.
    fn go_on(self: Arc<Self>, mut rest: Rest) {
        let staging = &self.unit.staging;
        while let Some(part) = rest.left.next() {
            let bytes = self.route.part_bytes(&part);
            match staging.take(bytes) {
                Ok(Some(chunk)) => {
                    if let Err(error) = self.enqueue(&mut rest, part, chunk) {
                        return self.parts.enqueued(Err(&error));
                    }
                }
                Ok(None) => {
                    let download = Arc::clone(&self);
                    return staging.wait_on(self.runner.clone(), bytes, move |chunk| {
                        match chunk.and_then(|chunk| download.enqueue(&mut rest, part, chunk)) {
                            Ok(()) => download.go_on(rest),
                            Err(error) => download.parts.enqueued(Err(&error)),
                        }
                    });
                }
                Err(error) => return self.parts.enqueued(Err(&error)),
            }
        }
        self.parts.enqueued(Ok(rest.last()));
    }

    /// Enqueues all parts and empties them, for a caller that waits: by no thread but this, if no other has time. The
    /// context is current.
    fn go_through(self: &Arc<Self>, mut rest: Rest, arrivals: &Arrivals) {
        match self.enqueue_all(&mut rest, arrivals) {
            Ok(()) => self.parts.enqueued(Ok(rest.last())),
            Err(error) => self.parts.enqueued(Err(&error)),
        }
        while let Some(arrival) = arrivals.wait(&self.unit) {
            self.empty(arrival);
        }
        self.parts.wait();
    }

    /// Enqueues all parts, and empties what arrives meanwhile. The context is current.
    fn enqueue_all(self: &Arc<Self>, rest: &mut Rest, arrivals: &Arrivals) -> Result<(), Error> {
        let staging = &self.unit.staging;
        while let Some(part) = rest.left.next() {
            let bytes = self.route.part_bytes(&part);
            let chunk = loop {
                if let Some(chunk) = staging.take(bytes)? {
                    break chunk;
                }
                // Those of others may come back by threads that wait for this one.
                match arrivals.wait(&self.unit) {
                    Some(arrival) => self.empty(arrival),
                    None => break staging.make(bytes)?,
                }
            };
            self.enqueue(rest, part, chunk)?;
            while let Some(arrival) = arrivals.take() {
                self.empty(arrival);
            }
        }
        Ok(())
    }

    /// Enqueues a part. The context is current.
    fn enqueue(self: &Arc<Self>, rest: &mut Rest, part: Section, chunk: Chunk) -> Result<(), Error> {
        let (api, download, address) = (self.unit.gpu.api(), Arc::clone(self), chunk.address());
        let arrived = part.clone();
        self.parts.one_more();
        if let Some(arrivals) = &self.arrivals {
            arrivals.expect_one();
        }
        let end = Box::new(move |outcome: Result<(), Error>, _: EndedOn| {
            download.arrived(Arrival { part: arrived, chunk, outcome });
        });
        // SAFETY: the chunk is kept until this part is over; the context is current.
        let work = |stream| unsafe { self.route.to_chunk(&part, address, &api.base, stream) };
        let (points, content) = (std::mem::take(&mut rest.points), Content::Bytes(self.route.part_bytes(&part)));
        let order = Order { role: Role::ToHostToo, waits: &points, name: &self.name, other: None, content };
        let point = Stream::submit(&self.unit.gpu, order, work, end)?;
        // A caller that waits looks itself, and lets others help where there are more parts.
        if self.arrivals.is_none() || rest.left.len() > 0 {
            self.unit.poller.wake();
        }
        rest.last = Some(point);
        Ok(())
    }

    /// A part is over.
    fn arrived(self: Arc<Self>, arrival: Arrival) {
        let Some(arrivals) = &self.arrivals else {
            let runner = self.runner.clone();
            return runner.run(move || self.empty(arrival));
        };
        if arrivals.add(arrival) {
            let (runner, download) = (self.runner.clone(), Arc::clone(&self));
            runner.run(move || {
                let arrival = download.arrivals.as_ref().and_then(Arrivals::take);
                arrival.into_iter().for_each(|arrival| download.empty(arrival));
            });
        }
    }

    /// Moves a part out of its chunk, which ends the part. This may run the operation's waiters.
    fn empty(&self, arrival: Arrival) {
        let Arrival { part, chunk, outcome } = arrival;
        if outcome.is_ok() && !self.parts.has_failed() {
            // SAFETY: the copy to the chunk is over, and the event waits for all parts, of which this is one.
            unsafe { self.route.empty(&part, chunk.address()) };
        }
        drop(chunk);
        self.parts.over(outcome, EndedOn::Caller);
    }
}
