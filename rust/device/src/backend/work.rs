//! Work on host memory that is no plain copy: what a copy's schedule does, for any closure.

use purlin_async::event::{Event, EventPromise};
use purlin_async::task::Task;
use purlin_base::fault::{self, Site};
use purlin_base::label::Label;
use purlin_base::status::Status;

use super::copy::why_not_run;
use super::{CopySchedule, Pending, What};

impl CopySchedule<'_> {
    /// Calls `work` once all dependencies have happened; the event tells what it answered, or why it was not called.
    ///
    /// Without unfinished dependencies, and if the caller waits or `is_small`, that is inside this call; otherwise it is a task
    /// of the runner. `work` is called at most once, and what it captured is gone before the event happens.
    pub(crate) fn run_work<F>(&self, label: Label, is_small: bool, work: F) -> Event
    where
        F: FnOnce() -> Result<(), Status> + Send + 'static,
    {
        if let Some(refused) = self.refused() {
            return refused;
        }
        let gate = purlin_async::event::when_all(self.dependencies);
        if gate.is_ready() {
            if !gate.error().ok() {
                return gate;
            }
            if self.caller_waits || is_small {
                return fault::point(Site::RunWork)
                    .and_then(|()| work())
                    .map_or_else(Event::from_error, |()| Event::ready());
            }
        }
        let pending = match self.runner.in_flight().begin() {
            Ok(pending) => pending,
            Err(refused) => return Event::from_error(refused),
        };
        let gate = if gate.is_ready() { gate } else { self.enter(&gate, What::Named(label)) };
        let promise = EventPromise::guarding(label);
        promise.waits_for(&gate);
        promise.lends_throughout();
        let event = promise.event();
        let waited_for = [gate.clone()];
        let mut owed = Owed { work: Some(work), gate, promise: Some(promise), label, pending };
        let task = Task::new(label, move || {
            let work = owed.work.take().expect("a task runs once");
            let result =
                owed.gate.error().into_result().and_then(|()| fault::point(Site::RunWork)).and_then(|()| work());
            owed.complete(result);
        });
        // A refused task was dropped, and has failed the event.
        let _ = self.runner.schedule_when_ready(&waited_for, task);
        event
    }
}

/// Work that was not called yet, and the event that it owes.
struct Owed<F> {
    work: Option<F>,
    gate: Event,
    /// `None` once it is kept.
    promise: Option<EventPromise>,
    label: Label,
    /// Let go of last.
    pending: Pending,
}

impl<F> Owed<F> {
    fn complete(mut self, result: Result<(), Status>) {
        if let Some(promise) = self.promise.take() {
            self.pending.telling(|| promise.set(result.err().unwrap_or_default()));
        }
    }
}

impl<F> Drop for Owed<F> {
    fn drop(&mut self) {
        let has_panicked = self.work.take().is_none();
        let Some(promise) = self.promise.take() else { return };
        let why = why_not_run(&format!("'{}'", self.label), &self.gate, has_panicked);
        self.pending.telling(|| promise.set(why));
    }
}
