//! An operation of this backend, from the call to its event.

use std::sync::Arc;

use purlin_async::event::Part;
use purlin_async::{Event, EventPromise, EventState, after_all, when_all};
use purlin_base::{Error, SourceLocation, StatusOr};
use purlin_device::backend::{Access, DeviceRange, Gate, Operation, OperationPromise, OperationRunner, Schedule};

use crate::operation_name::OperationName;
use crate::orders::{Known, Order, key};
use crate::pinned::Pinned;
use crate::stream::{EndedOn, SyncPoint};
use crate::{Shared, Unit, copy, memory};

/// An operation that is not over. Dropped before, it fails.
pub(crate) struct InFlight {
    shared: Arc<Shared>,
    pub(crate) unit: Arc<Unit>,
    /// By which it is known.
    event: Event,
    /// Where it was asked for.
    place: SourceLocation,
    /// `None` once it is over.
    promise: Option<OperationPromise>,
    /// `None` once it is enqueued.
    enqueued: Option<EventPromise>,
    /// What it waits for on streams, and whose errors it has, too. Empty where one GPU is all: what breaks there breaks
    /// both.
    behind: Vec<Event>,
    /// What keeps the host's end pinned until it is over.
    pub(crate) pinned: Pinned,
    /// Whether its caller does nothing else meanwhile.
    pub(crate) caller_waits: bool,
}

impl InFlight {
    pub(crate) fn operation(&self) -> &Operation {
        self.promise.as_ref().unwrap_or_else(|| unreachable!("end() takes it, and ends this")).operation()
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// As errors name it: what it does, its label, and where it was asked for.
    pub(crate) fn name(&self) -> OperationName {
        OperationName::of(self.operation(), self.place)
    }

    /// For the host's part of it.
    pub(crate) fn runner(&self) -> OperationRunner {
        self.promise.as_ref().unwrap_or_else(|| unreachable!("end() takes it, and ends this")).runner()
    }

    /// What it has to wait for, because earlier holders of its memory may not be over.
    pub(crate) fn add_former_uses(&self, points: &mut Vec<SyncPoint>) {
        for (access, range) in touched(self.operation()) {
            if let Some((uses, bytes)) = memory::uses(range) {
                uses.before(bytes, access, points);
            }
        }
    }

    /// All of it is enqueued before `point`: its memory of GPUs may have other holders, whose work comes behind that.
    pub(crate) fn release_memory(&mut self, point: &SyncPoint) {
        let Some(promise) = &mut self.promise else { return };
        for (access, range) in touched(promise.operation()) {
            if let Some((uses, bytes)) = memory::uses(range) {
                uses.add(bytes, access, point);
            }
        }
        // Imported memory of a GPU is never released.
        promise.release_ranges(memory::is_of_gpu);
    }

    /// What is told when all of it is enqueued.
    pub(crate) fn enqueuing(&mut self) -> Enqueuing {
        Enqueuing { shared: Arc::clone(&self.shared), key: key(&self.event), promise: self.enqueued.take() }
    }

    /// It is over.
    pub(crate) fn end(mut self: Box<Self>, outcome: Result<(), Error>, ended_on: EndedOn) {
        if outcome.is_ok() && !self.behind.is_empty() {
            // A wait for a GPU that breaks ends, too; what comes behind it was done with whatever was there.
            let behind = when_all(&std::mem::take(&mut self.behind));
            if !behind.is_ready() {
                return behind.on_ready(move |outcome| self.end(outcome.clone(), EndedOn::Poller));
            }
            return self.end(behind.error().map_or(Ok(()), Err), ended_on);
        }
        let enqueued = self.enqueued.take();
        if outcome.is_err() || enqueued.is_some() {
            self.shared.orders.remove(key(&self.event));
        }
        // Else it is known until its event has happened, on another thread: what is asked for until then would wait for
        // that on the host, and keep its memory, as would what comes behind it.
        let refused = outcome.as_ref().err().cloned();
        match ended_on {
            EndedOn::Poller => self.runner().run(move || self.complete(outcome)),
            EndedOn::Caller => self.complete(outcome),
        }
        if let Some(enqueued) = enqueued {
            match refused {
                Some(error) => _ = enqueued.set_error(error),
                None => _ = enqueued.set_ready(),
            }
        }
    }

    /// Tells the event, and lets go of all that it had: maybe the last of the backend, whose end frees what that has.
    fn complete(mut self: Box<Self>, outcome: Result<(), Error>) {
        // Before the event: its owner may free the memory afterwards.
        drop(self.pinned.take());
        if let Some(promise) = self.promise.take() {
            promise.complete(outcome);
        }
        let key = key(&self.event);
        if self.event.is_ready() {
            return self.shared.orders.remove(key);
        }
        // It comes after those that it waited for, of which one is on its way.
        let shared = Arc::clone(&self.shared);
        self.event.on_ready(move |_| shared.orders.remove(key));
    }

    /// What waits for it waits for its event alone, because its end is the host's.
    pub(crate) fn ends_on_host(&mut self) {
        self.shared.orders.remove(key(&self.event));
        if let Some(enqueued) = self.enqueued.take() {
            enqueued.set_ready();
        }
    }
}

/// What an operation touches. What is written is not said to be read besides, where few ranges are to be compared.
fn touched(operation: &Operation) -> impl Iterator<Item = (Access, &DeviceRange)> {
    const FEW: usize = 16;
    let are_few = operation.ranges().nth(FEW).is_none();
    operation.ranges().filter(move |(access, range)| {
        let is_written = || operation.ranges().any(|(other, written)| other == Access::Write && written.is_same(range));
        *access == Access::Write || !are_few || !is_written()
    })
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if let Some(promise) = self.promise.take() {
            self.shared.orders.remove(key(&self.event));
            drop(self.pinned.take());
            // First its event, which has the error: those that wait until it is enqueued look there.
            drop(promise);
        }
    }
}

/// What is owed to the operations that wait until another is enqueued.
pub(crate) struct Enqueuing {
    shared: Arc<Shared>,
    key: usize,
    promise: Option<EventPromise>,
}

impl Enqueuing {
    /// All of it is enqueued. Operations that wait for it wait for `point`, unless it is over already. Or it never will
    /// be: then they wait for its event, which this thread may have to end yet.
    ///
    /// The operation is not over before, so that its event, by which it is known, is still its own.
    pub(crate) fn done(self, outcome: &Result<SyncPoint, Error>) {
        match (self.promise, outcome) {
            (None, _) => {}
            (Some(promise), Err(error)) => {
                self.shared.orders.remove(self.key);
                promise.set_error(error.clone());
            }
            (Some(promise), Ok(point)) => {
                self.shared.orders.enqueued(self.key, point.clone());
                promise.set_ready();
            }
        }
    }
}

/// What an operation has to wait for.
#[derive(Default)]
struct Waits {
    /// Operations that are enqueued.
    points: Vec<SyncPoint>,
    /// Their events, if there is more than one GPU.
    behind: Vec<Event>,
    /// Events that must happen before it is enqueued.
    before: Vec<Event>,
    /// Operations of ours that are not enqueued yet, and joins of such.
    held: Vec<Event>,
}

impl Waits {
    fn of(shared: &Shared, dependencies: &[Event]) -> Self {
        let (mut waits, several) = (Self::default(), shared.has_several_units());
        for dependency in dependencies.iter().filter(|dependency| dependency.state() != EventState::Ready) {
            let known = shared.orders.find(dependency);
            if dependency.state() == EventState::Ready {
                // It has happened meanwhile, and may not have been known any more.
                continue;
            }
            match known {
                Known::Order(Order::Enqueued(point)) => {
                    waits.points.push(point);
                    if several {
                        waits.behind.push(dependency.clone());
                    }
                }
                Known::Order(Order::Held(enqueued)) => {
                    waits.before.push(enqueued);
                    waits.held.push(dependency.clone());
                }
                Known::Join(parts) => waits.add_join(dependency, parts, several),
                Known::Foreign => waits.before.push(dependency.clone()),
            }
        }
        waits
    }

    /// What comes behind all parts comes behind the join.
    fn add_join(&mut self, join: &Event, parts: Vec<Part<Order>>, several: bool) {
        let held = parts.iter().filter_map(|part| match &part.known {
            Order::Held(enqueued) => Some(enqueued.clone()),
            Order::Enqueued(_) => None,
        });
        let held: Vec<Event> = held.collect();
        if !held.is_empty() {
            // Of a part that never is enqueued the join has the error, or ignores it.
            self.before.push(after_all(&held));
            return self.held.push(join.clone());
        }
        if several && parts.iter().any(|part| !part.may_fail) {
            self.behind.push(join.clone());
        }
        self.points.extend(parts.into_iter().filter_map(|part| match part.known {
            Order::Enqueued(point) => Some(point),
            Order::Held(_) => None,
        }));
    }
}

/// An operation that has an event.
pub(crate) struct Begun<'a> {
    pub(crate) gate: Gate<'a>,
    pub(crate) event: Event,
    pub(crate) promise: OperationPromise,
}

/// # Errors
/// What broke the GPU; there is no thread for the poller; the client has shut down.
pub(crate) fn begin<'a>(unit: &Unit, operation: Operation, schedule: &'a Schedule<'_>) -> StatusOr<Begun<'a>> {
    unit.gpu.check_whole()?;
    unit.poller.start()?;
    let gate = schedule.gate(&operation);
    let (event, promise) = schedule.begin(operation)?;
    Ok(Begun { gate, event, promise })
}

/// See [`Backend::run`](purlin_device::backend::Backend::run). The operation touches memory of `unit`.
pub(crate) fn run(shared: &Arc<Shared>, unit: Arc<Unit>, operation: Operation, schedule: &Schedule<'_>) -> Event {
    if let Some(refused) = schedule.refused() {
        return refused;
    }
    let has_failed = schedule.dependencies.iter().any(|event| event.state() == EventState::Error);
    if has_failed {
        // With the error of the first by index. Until it is known which that is, the operation keeps its memory.
        let all = when_all(schedule.dependencies);
        if all.state() == EventState::Error {
            return all;
        }
    }
    let Begun { gate, event, promise } = match begin(&unit, operation, schedule) {
        Ok(begun) => begun,
        Err(refused) => return Event::from_error(refused),
    };
    let mut waits = match has_failed {
        false => Waits::of(shared, schedule.dependencies),
        true => Waits { before: schedule.dependencies.to_vec(), ..Waits::default() },
    };
    // Moved as often as it goes on.
    let in_flight = Box::new(InFlight {
        shared: Arc::clone(shared),
        unit,
        event: event.clone(),
        place: event.location(),
        promise: Some(promise),
        enqueued: Some(shared.orders.hold(&event)),
        behind: std::mem::take(&mut waits.behind),
        pinned: None,
        caller_waits: schedule.caller_waits && waits.before.is_empty(),
    });
    if waits.before.is_empty() {
        copy::start(in_flight, waits.points);
        return event;
    }
    let all = schedule.dependencies.to_vec();
    let before = waits.before.clone();
    gate.when_all_ready(&before, move |outcome| proceed(in_flight, waits, &all, outcome));
    event
}

/// What it had to wait for before it could be enqueued has happened, or the client has ended.
fn proceed(mut in_flight: Box<InFlight>, waits: Waits, all: &[Event], outcome: &Result<(), Error>) {
    if let Err(error) = outcome {
        // An event of a dependency that has failed has the error that counts.
        let first = all.iter().find_map(Event::error);
        // Not here: this may be inside a call about another operation, which runs no waiters of this one.
        return in_flight.end(Err(first.unwrap_or_else(|| error.clone())), EndedOn::Poller);
    }
    // Those that were held are enqueued by now, or over.
    let more = Waits::of(in_flight.shared(), &waits.held);
    in_flight.behind.extend(more.behind);
    let points = [waits.points, more.points].concat();
    if more.before.is_empty() {
        return copy::start(in_flight, points);
    }
    // Over, but for its event, which comes; or a join of such a part and of others of ours, which end by themselves.
    let then = when_all(&more.before);
    let waits = Waits { points, held: more.held, ..Waits::default() };
    let all = all.to_vec();
    then.on_ready(move |outcome| proceed(in_flight, waits, &all, &outcome.clone()));
}
