//! An operation in flight, and the event that it owes.

use std::fmt;
use std::sync::Arc;

use super::schedule::Kept;
use super::{Accounting, DeviceRange, IdleWorkers, Operation, Pending, Work};
use purlin_async::event::raw::OwedBy;
use purlin_async::event::{Awaited, Event, EventPromise, refusal, run_when_ready};
use purlin_async::task::Task;
use purlin_base::status::{Error, SourceLocation};

/// An operation in flight, and the event that it owes.
///
/// Dropped before it is completed, it fails the event: with the error of what the operation waited for if there is one,
/// with `Internal` while a panic unwinds, else with the reason of the executor that has dropped it.
///
/// See the example of [`Backend`](super::Backend).
#[must_use = "dropping it fails the operation's event"]
pub struct OperationPromise {
    /// `None` once it is over.
    operation: Option<Operation>,
    /// Dropped with the operation.
    kept: Kept,
    /// What it waits for.
    after: Event,
    /// Dropped before the event completes.
    awaited: Option<Awaited>,
    promise: EventPromise,
    /// Dropped last: the operation is over when its waiters have run.
    pending: Option<Pending>,
}

impl OperationPromise {
    /// The event of an operation that does not happen inside the call, and what owes it: known by the operation's label
    /// and the place where it was asked for. It waits for `after`, or,
    /// where a backend attaches to events by itself, for all of `awaited`, and `after` is ready.
    pub(super) fn new(
        operation: Operation,
        place: SourceLocation,
        after: Event,
        awaited: &[Event],
        pending: Option<Pending>,
    ) -> (Event, Self) {
        let promise = EventPromise::owed_by(OwedBy::Library, operation.label(), place);
        promise.waits_for(&after);
        // Whether it waits, is queued or continues: the host's memory is lent to it.
        promise.lends_throughout();
        let awaited = promise.waits_for_all(awaited);
        let event = promise.event();
        (event, Self { operation: Some(operation), kept: None, after, awaited, promise, pending })
    }

    /// Has the operation keep that until it is over.
    pub(super) fn keep(&mut self, kept: Kept) {
        self.kept = kept;
    }

    /// What is to be done.
    #[must_use]
    pub fn operation(&self) -> &Operation {
        self.operation.as_ref().expect("only complete() and drop() take it, and they end this value")
    }

    /// As [`operation`](Self::operation), to [perform](Operation::perform) it.
    #[must_use]
    pub fn operation_mut(&mut self) -> &mut Operation {
        self.operation.as_mut().expect("only complete() and drop() take it, and they end this value")
    }

    /// As [`operation_mut`](Self::operation_mut), and the workers that may help to perform it.
    pub(super) fn operation_and_idle(&mut self) -> (&mut Operation, IdleWorkers<'_>) {
        let idle = self.pending.as_ref().map_or(IdleWorkers::none(), Pending::idle_workers);
        (self.operation.as_mut().expect("only complete() and drop() take it, and they end this value"), idle)
    }

    /// The backend orders whatever it does with the ranges that `which` says from now on behind this operation, and
    /// keeps their extents usable until then. Their memory is released here, if nothing else has it, and may be
    /// allocated anew before this operation is over; so a program that allocates and frees in step with a stream needs
    /// no more memory than one step. A drop of memory may run code of callers, so no lock may be held. Memory that
    /// somebody else owns, and would be told that nothing uses it, is not released.
    ///
    /// Only ranges that the host does not reach: it would see the memory before the hardware has left it.
    pub fn release_ranges(&mut self, which: impl Fn(&DeviceRange) -> bool) {
        self.operation_mut().release_ranges(which);
    }

    /// Ends the operation: releases what it holds, then completes its event. Waiters run here.
    ///
    /// If it was done, that is once the events that it waited for are terminal, maybe on the thread that completes the
    /// last of them: so a thread that sees the event finds neither the memory in use nor a dependency pending. What
    /// fails may do so before.
    pub fn complete(mut self, result: Result<(), Error>) {
        let dependencies = match (&result, &self.awaited) {
            (Ok(()), Some(awaited)) => awaited.pending(),
            _ => Vec::new(),
        };
        if dependencies.is_empty() {
            self.end(result);
        } else {
            run_when_ready(&dependencies, move || self.end(result));
        }
    }

    /// As [`complete`](Self::complete), as a task of the client's runner: for a backend's own thread, which then runs
    /// no code but the backend's. Once the runner has shut down, the operation ends here.
    pub fn complete_on_runner(self, result: Result<(), Error>) {
        let accounting = self.accounting();
        let done = Done(Some((self, result)));
        if let Some(accounting) = accounting {
            // A refused task is dropped, and what was done with it, which completes it.
            let _ = accounting.execute(Task::new(c"complete", move || drop(done)));
        }
    }

    /// The client's runner, for parts of the operation that the host does.
    #[must_use]
    pub fn runner(&self) -> OperationRunner {
        OperationRunner(self.accounting())
    }

    /// The client's accounting, of which this is an operation.
    pub(super) fn accounting(&self) -> Option<Arc<dyn Accounting>> {
        self.pending.as_ref().map(Pending::accounting)
    }

    fn end(&mut self, result: Result<(), Error>) {
        let Some(operation) = self.operation.take() else { return };
        let kept = self.kept.take();
        self.promise.owed_after(|| drop((operation, kept)));
        drop(self.awaited.take());
        Pending::notifying_for(self.pending.as_ref(), || self.promise.set(result));
    }

    /// Why it was dropped and not completed: the error of what it waited for, its panic, or that its executor dropped
    /// it.
    fn why_not_run(&self) -> Error {
        let what = Described(self.operation());
        if let Some(error) = self.after.error() {
            error
        } else if std::thread::panicking() {
            Error::internal(format!("{what} panicked"))
        } else if let Some(reason) = refusal::reason() {
            Error::new(reason.code(), format!("{what} was not run: {}", reason.message()))
        } else {
            Error::cancelled(format!("{what} was not run: the client's runner has shut down"))
        }
    }
}

impl Drop for OperationPromise {
    fn drop(&mut self) {
        if self.operation.is_some() {
            let why = self.why_not_run();
            self.end(Err(why));
        }
    }
}

/// The runner of an operation's client, for a backend's own threads.
#[derive(Clone)]
pub struct OperationRunner(Option<Arc<dyn Accounting>>);

impl OperationRunner {
    /// Calls `part`, which does a part of an operation, once: as a task of the client's runner, or here, if that has
    /// shut down.
    pub fn run(&self, part: impl FnOnce() + Send + 'static) {
        let part = OnceOrDropped(Some(part));
        match &self.0 {
            // A refused task is dropped, and the part with it, which runs it.
            Some(accounting) => _ = accounting.execute(Task::new(c"part of an operation", move || drop(part))),
            None => drop(part),
        }
    }
}

impl fmt::Debug for OperationRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OperationRunner").finish_non_exhaustive()
    }
}

/// A function that its drop calls.
struct OnceOrDropped<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> Drop for OnceOrDropped<F> {
    fn drop(&mut self) {
        if let Some(function) = self.0.take() {
            function();
        }
    }
}

/// An operation that is over; its drop says so.
struct Done(Option<(OperationPromise, Result<(), Error>)>);

impl Drop for Done {
    fn drop(&mut self) {
        if let Some((promise, result)) = self.0.take() {
            promise.complete(result);
        }
    }
}

impl fmt::Debug for OperationPromise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OperationPromise").field("operation", &self.operation).finish_non_exhaustive()
    }
}

/// An operation, as errors name it when it was not run.
struct Described<'a>(&'a Operation);

impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let article = if matches!(self.0.work(), Work::Call(..) | Work::Called(_)) { "" } else { "the " };
        write!(f, "{article}{:?}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Access;
    use crate::backend::test_operation::{foreign_operation, operation};
    use purlin_base::status::StatusCode;

    const PLACE: SourceLocation = SourceLocation::from_static(c"model.rs", 7);

    fn promised(alive: &Arc<()>) -> (Event, OperationPromise) {
        OperationPromise::new(operation(8, alive), PLACE, Event::ready(), &[], None)
    }

    #[test]
    fn completing_lets_go_of_the_memory_first() {
        let alive = Arc::new(());
        let (event, copy) = promised(&alive);
        assert_eq!(Arc::strong_count(&alive), 3);
        let seen = alive.clone();
        event.on_ready(move |outcome| {
            assert_eq!(*outcome, Ok(()));
            assert_eq!(Arc::strong_count(&seen), 2);
        });
        copy.complete(Ok(()));
        assert_eq!(event.wait(), Ok(()));
    }

    #[test]
    fn the_event_is_known_by_where_it_was_asked_for() {
        let (event, copy) = promised(&Arc::new(()));
        assert_eq!((event.location(), event.label().to_string().as_str()), (PLACE, "copy"));
        copy.complete(Ok(()));
    }

    #[test]
    fn a_result_reaches_the_event() {
        let (event, copy) = promised(&Arc::new(()));
        copy.complete(Err(Error::data_loss("a bit fell over")));
        assert_eq!(event.wait().unwrap_err().code(), StatusCode::DataLoss);
    }

    #[test]
    fn a_dropped_copy_is_cancelled_and_named() {
        let alive = Arc::new(());
        let (event, copy) = promised(&alive);
        drop(copy);
        let error = event.wait().unwrap_err();
        assert_eq!(error.code(), StatusCode::Cancelled);
        assert!(error.message().contains("copy of 8 bytes from null:0/device to null:0/device"), "{error}");
        assert_eq!(Arc::strong_count(&alive), 1);
    }

    #[test]
    fn a_dropped_copy_behind_a_failed_event_has_its_error() {
        let after = Event::from_error(Error::aborted("upstream"));
        let (event, copy) = OperationPromise::new(operation(8, &Arc::new(())), PLACE, after, &[], None);
        drop(copy);
        assert_eq!(event.wait().unwrap_err().message(), "upstream");
    }

    #[test]
    fn a_panicking_copy_fails_its_event() {
        let (event, copy) = promised(&Arc::new(()));
        let panicked = purlin_base::panics::caught(move || {
            let _promised = copy;
            std::panic::resume_unwind(Box::new("the driver's fault"));
        });
        assert!(panicked.is_err());
        assert_eq!(event.wait().unwrap_err().code(), StatusCode::Internal);
    }

    #[test]
    fn an_operation_is_not_over_before_what_it_waited_for() {
        let before = EventPromise::new(c"before");
        let (event, copy) = OperationPromise::new(
            operation(8, &Arc::new(())),
            PLACE,
            Event::ready(),
            &[Event::ready(), before.event()],
            None,
        );
        copy.complete(Ok(()));
        assert!(!event.is_ready());
        before.set_error(Error::aborted("the backend knew that"));
        assert_eq!(event.wait(), Ok(()));
    }

    #[test]
    fn an_operation_that_fails_waits_for_nothing() {
        let before = EventPromise::new(c"before");
        let (event, copy) =
            OperationPromise::new(operation(8, &Arc::new(())), PLACE, Event::ready(), &[before.event()], None);
        copy.complete(Err(Error::cancelled("the stream is gone")));
        assert_eq!(event.wait().unwrap_err().code(), StatusCode::Cancelled);
    }

    #[test]
    fn memory_of_others_is_kept_until_the_operation_is_over() {
        let alive = Arc::new(());
        let operation = foreign_operation(8, &alive);
        let (event, mut copy) = OperationPromise::new(operation, PLACE, Event::ready(), &[], None);
        copy.release_ranges(|_| true);
        assert_eq!((Arc::strong_count(&alive), copy.operation().ranges().count()), (2, 1));
        copy.complete(Ok(()));
        assert_eq!((event.wait(), Arc::strong_count(&alive)), (Ok(()), 1));
    }

    #[test]
    fn released_ranges_free_their_memory_before_the_operation_is_over() {
        let alive = Arc::new(());
        let (event, mut copy) = promised(&alive);
        copy.release_ranges(|_| true);
        assert_eq!((Arc::strong_count(&alive), copy.operation().ranges().count()), (1, 0));
        assert!(!event.is_ready());
        assert_eq!(format!("{:?}", copy.operation()), "copy of 8 bytes");
        copy.complete(Ok(()));
        assert_eq!(event.wait(), Ok(()));
    }

    #[test]
    fn ranges_are_released_one_by_one() {
        let alive = Arc::new(());
        for keeps_first in [false, true] {
            let (_event, mut copy) = promised(&alive);
            let mut seen = std::cell::Cell::new(0);
            copy.release_ranges(|_| (seen.replace(seen.get() + 1) == 0) != keeps_first);
            assert_eq!((*seen.get_mut(), Arc::strong_count(&alive)), (2, 2));
            let left = if keeps_first { Access::Read } else { Access::Write };
            assert!(copy.operation().ranges().map(|(access, _)| access).eq([left]));
            assert_eq!(format!("{:?}", copy.operation()), "copy of 8 bytes");
            copy.release_ranges(|_| false);
            assert_eq!(Arc::strong_count(&alive), 2);
            copy.release_ranges(|_| true);
            assert_eq!(Arc::strong_count(&alive), 1);
        }
    }
}
