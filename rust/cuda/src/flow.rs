//! Launches whose steps depend on bytes of the GPU: loops and branches of programs.
//!
//! Lists of commands are enqueued one after the other on one stream, each as a graph where that is worth it, up to a
//! choice. The bytes that choose are copied into pinned memory behind them. When that copy is over, a task of the
//! client's runner reads them and enqueues what they have chosen: so no thread waits, and the GPU waits for the host
//! once for each choice. All of it is one operation, with one event. What waits for it on streams waits until its last
//! step is enqueued.

#![allow(unsafe_code, reason = "the driver starts kernels and copies by address")]

use std::convert::identity;
use std::sync::Arc;
use std::{mem, slice};

use purlin_base::{Error, StatusOr};
use purlin_device::backend::{Choice, CommandFlow, CommandList, FlowStep, Launch, Operation, OperationRunner, Work};

use crate::Unit;
use crate::gpu::Gpu;
use crate::graph;
use crate::in_flight::{Enqueuing, InFlight};
use crate::launch::{Addresses, Refused, check, perform_all};
use crate::memory::Keepers;
use crate::operation_name::OperationName;
use crate::parts::Parts;
use crate::staging::{Chunk, SLAB_BYTES};
use crate::stream::{Content, EndedOn, Order, Role, Stream, SyncPoint};

/// A launch whose last step is not enqueued yet. One thread at a time has it.
struct Run {
    unit: Arc<Unit>,
    runner: OperationRunner,
    keepers: Arc<Keepers>,
    name: OperationName,
    launch: Arc<dyn Launch>,
    device: u16,
    role: Role,
    addresses: Addresses,
    /// The bytes that choose, where the host reads them.
    chosen: Chunk,
    /// Those that are enqueued, and one while steps are left.
    parts: Arc<Parts>,
    /// The next step.
    at: usize,
    /// What the first submission waits for.
    points: Vec<SyncPoint>,
    /// The last submission of commands, behind which nothing was asked for.
    last: Option<SyncPoint>,
    enqueuing: Enqueuing,
}

/// Begins at the first step, behind `points`. The context is current.
pub(crate) fn start(in_flight: Box<InFlight>, launch: Arc<dyn Launch>, addresses: Addresses, points: &[SyncPoint]) {
    let Work::Launch { device, .. } = in_flight.operation().work() else {
        unreachable!("launch::device_of() has seen that it is a launch")
    };
    let device = *device;
    if let Err(error) = check_flow(flow_of(&launch, device), &in_flight.unit.gpu, in_flight.operation(), &addresses) {
        return in_flight.end(Err(error), EndedOn::Poller);
    }
    let (staging, points) = (Arc::clone(&in_flight.unit.staging), points.to_vec());
    match staging.take(SLAB_BYTES) {
        Ok(Some(chosen)) => begin(in_flight, launch, addresses, points, chosen),
        Ok(None) => staging.wait_on(in_flight.runner(), SLAB_BYTES, move |chosen| match chosen {
            Ok(chosen) => begin(in_flight, launch, addresses, points, chosen),
            Err(error) => in_flight.end(Err(error), EndedOn::Poller),
        }),
        Err(error) => in_flight.end(Err(error), EndedOn::Poller),
    }
}

/// The context is current.
fn begin(
    mut in_flight: Box<InFlight>,
    launch: Arc<dyn Launch>,
    addresses: Addresses,
    points: Vec<SyncPoint>,
    chosen: Chunk,
) {
    let Work::Launch { device, stream, .. } = in_flight.operation().work() else {
        unreachable!("launch::device_of() has seen that it is a launch")
    };
    let (device, role) = (*device, Role::of_launches(*stream));
    let run = Box::new(Run {
        unit: Arc::clone(&in_flight.unit),
        runner: in_flight.runner(),
        keepers: Arc::clone(&in_flight.shared().keepers),
        name: in_flight.name(),
        launch,
        device,
        role,
        addresses,
        chosen,
        at: 0,
        points,
        last: None,
        enqueuing: in_flight.enqueuing(),
        parts: Parts::of(in_flight),
    });
    run.go_on();
}

fn flow_of(launch: &Arc<dyn Launch>, device: u16) -> &CommandFlow {
    launch.flow(device).unwrap_or_else(|| unreachable!("launch::start() has seen that there is a flow"))
}

/// That the GPU can do all steps on these ranges.
///
/// # Errors
/// As [`check`]; `InvalidArgument` also: a choice by memory of the host.
fn check_flow(flow: &CommandFlow, gpu: &Gpu, operation: &Operation, addresses: &[u64]) -> Result<(), Error> {
    flow.lists().try_for_each(|list| check(list, gpu, operation, addresses))?;
    let kinds: Vec<_> = operation.ranges().map(|(_, range)| range.memory_kind()).collect();
    match flow.choices().find(|choice| kinds.get(choice.place().range) != Some(&"device")) {
        Some(choice) => {
            Err(Error::invalid_argument(format!("{operation:?}: {choice:?} is no memory of a GPU, which chooses")))
        }
        None => Ok(()),
    }
}

impl Run {
    /// Enqueues steps up to a choice, or to the end. The context is current.
    fn go_on(mut self: Box<Self>) {
        let launch = Arc::clone(&self.launch);
        while let Some(step) = flow_of(&launch, self.device).steps().get(self.at) {
            match step {
                FlowStep::GoTo(target) => self.at = *target,
                FlowStep::Choose { by, .. } => return self.ask(*by),
                FlowStep::Commands(list) => {
                    self.at += 1;
                    if let Err(error) = self.enqueue(list) {
                        return self.ended(Err(error));
                    }
                }
                step => {
                    let error = Error::unimplemented(format!("{}: no {step:?} on a GPU", self.name));
                    return self.ended(Err(error));
                }
            }
        }
        self.ended(Ok(()));
    }

    /// No step is left, or one was refused.
    fn ended(mut self: Box<Self>, outcome: Result<(), Error>) {
        let last = self.last.take();
        let point = outcome.and_then(|()| last.map_or_else(|| self.enqueue_nothing(), Ok));
        let Self { enqueuing, parts, unit, .. } = *self;
        enqueuing.done(&point);
        parts.enqueued(point.as_ref());
        unit.poller.wake();
    }

    /// A submission behind all that was asked for, or that the launch waits for.
    fn enqueue_nothing(&self) -> StatusOr<SyncPoint> {
        let end = self.parts.submission(identity);
        Stream::submit(&self.unit.gpu, order(self.role, &self.points, &self.name, Content::Nothing), |_stream| 0, end)
    }

    /// Enqueues a list. The context is current.
    fn enqueue(&mut self, list: &CommandList) -> Result<(), Error> {
        let (gpu, refused) = (&self.unit.gpu, Refused::of(list));
        // SAFETY: as below. The driver may take its time, so no stream is locked.
        let prepared = unsafe { graph::prepare(list, gpu, &self.keepers, &self.addresses) };
        let named = refused.clone();
        let end = self.parts.submission(move |outcome| outcome.map_err(|error| named.name(error)));
        // SAFETY: the operation keeps the ranges, which are as large as the commands need, until its event; the
        // launch's caller promises what its kernels do with them. The context is current.
        let work = |stream| unsafe { perform_all(gpu, list, prepared, &self.addresses, &refused, stream) };
        let points = mem::take(&mut self.points);
        self.last =
            Some(Stream::submit(gpu, order(self.role, &points, &self.name, Content::Commands(list)), work, end)?);
        Ok(())
    }

    /// Has the bytes that choose copied, and goes on when they are there. The context is current.
    fn ask(mut self: Box<Self>, by: Choice) {
        let (unit, name, role) = (Arc::clone(&self.unit), self.name.clone(), self.role);
        let from = self.addresses[by.place().range] + by.place().offset_bytes as u64;
        let (to, bytes, points) = (self.chosen.address().cast(), by.size_bytes(), mem::take(&mut self.points));
        self.last = None;
        // SAFETY: the operation keeps the bytes until its event, and this run the slab, which is larger than they are.
        // The context is current.
        let work = |stream| unsafe { (unit.gpu.api().base.copy_to_host)(to, from, bytes, stream) };
        // Told on the poller's thread, which runs no code of callers; also what the driver refuses.
        let end = Box::new(move |outcome: Result<(), Error>, _: EndedOn| {
            self.runner.clone().run(move || self.chosen(outcome));
        });
        if Stream::submit(&unit.gpu, order(role, &points, &name, Content::Bytes(bytes)), work, end).is_ok() {
            unit.poller.wake();
        }
    }

    /// Goes on where the bytes say, which are there, or are not.
    fn chosen(mut self: Box<Self>, outcome: Result<(), Error>) {
        let unit = Arc::clone(&self.unit);
        match outcome.and_then(|()| unit.gpu.enter()) {
            Err(error) => self.ended(Err(error)),
            Ok(_current) => {
                self.at = self.choose();
                self.go_on();
            }
        }
    }

    /// The number of the step that the bytes have chosen.
    fn choose(&self) -> usize {
        let Some(FlowStep::Choose { by, targets }) = flow_of(&self.launch, self.device).steps().get(self.at) else {
            unreachable!("a choice was asked for")
        };
        // SAFETY: the copy has written so many bytes, and nothing writes them until the next choice is asked for.
        let bytes = unsafe { slice::from_raw_parts(self.chosen.address(), by.size_bytes()) };
        targets[by.of(bytes, targets.len())]
    }
}

fn order<'a>(role: Role, waits: &'a [SyncPoint], name: &'a OperationName, content: Content<'a>) -> Order<'a> {
    Order { role, waits, name, other: None, content }
}
