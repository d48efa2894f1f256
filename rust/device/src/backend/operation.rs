//! What a schedule runs, and what it owes until then: one way for copies and for work on host memory.

use super::{Gated, Pending};
use purlin_async::event::{Awaited, Event, EventPromise, refusal};
use purlin_base::label::Label;
use purlin_base::status::Status;

/// Something that is done once its dependencies have happened.
pub(crate) trait Operation: Send + 'static {
    /// Of its event and its task.
    fn label(&self) -> Label;
    /// As errors name it while it waits.
    fn gated(&self) -> Gated;
    /// As errors name it when it was not run.
    fn describe(&self) -> String;
}

/// An operation in flight, and the event that it owes.
///
/// Dropped before [`complete`](Self::complete) was called, it fails the event: with the gate's error if there is one, with
/// `Internal` while a panic unwinds, else with the reason of the executor that has dropped it.
pub(crate) struct Owed<O: Operation> {
    /// `None` once it is over.
    operation: Option<O>,
    gate: Event,
    /// Dropped before the event completes.
    awaited: Option<Awaited>,
    promise: EventPromise,
    /// Dropped last: the operation is over when its waiters have run.
    pending: Option<Pending>,
}

impl<O: Operation> Owed<O> {
    /// The event of an operation that does not happen inside the call, and what owes it. `awaited` is what its backend waits for
    /// beside `gate`, which is then ready.
    pub(super) fn new(operation: O, gate: Event, awaited: &[Event], pending: Option<Pending>) -> (Event, Self) {
        let promise = EventPromise::guarding(operation.label());
        promise.waits_for(&gate);
        // Whether it waits, is queued or goes on: the host's memory is lent to it.
        promise.lends_throughout();
        let awaited = promise.waits_for_all(awaited);
        let event = promise.event();
        (event, Self { operation: Some(operation), gate, awaited, promise, pending })
    }

    /// What is to be done.
    pub(super) fn operation(&self) -> &O {
        self.operation.as_ref().expect("only complete() and drop() take it, and they end this value")
    }

    /// As [`operation`](Self::operation).
    pub(super) fn operation_mut(&mut self) -> &mut O {
        self.operation.as_mut().expect("only complete() and drop() take it, and they end this value")
    }

    /// What it waits for.
    pub(super) fn gate(&self) -> &Event {
        &self.gate
    }

    /// Ends the operation: releases what it holds, then completes the event, so that a thread that sees the event does not find the
    /// memory still in use.
    pub(super) fn complete(mut self, result: Result<(), Status>) {
        if let Some(operation) = self.operation.take() {
            self.end(operation, result.err().unwrap_or_default());
        }
    }

    fn end(&mut self, operation: O, status: Status) {
        self.promise.owed_after(|| drop(operation));
        drop(self.awaited.take());
        Pending::notifying_for(self.pending.as_ref(), || self.promise.set(status));
    }
}

impl<O: Operation> Drop for Owed<O> {
    fn drop(&mut self) {
        let Some(operation) = self.operation.take() else { return };
        let status = why_not_run(&operation.describe(), &self.gate);
        self.end(operation, status);
    }
}

/// Why `what`, which was dropped, did not happen: the error of its gate, its panic, or that its executor dropped it.
fn why_not_run(what: &str, gate: &Event) -> Status {
    let gate = gate.error();
    if !gate.ok() {
        gate
    } else if std::thread::panicking() {
        Status::internal(format!("{what} panicked"))
    } else if let Some(reason) = refusal::reason() {
        Status::new(reason.code(), format!("{what} was not run: {}", reason.message()))
    } else {
        Status::cancelled(format!("{what} was not run: the client's runner has shut down"))
    }
}
