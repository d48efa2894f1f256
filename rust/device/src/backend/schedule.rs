//! When and where a copy runs, for backends whose copies are plain calls.

use std::fmt;
use tracing::trace_span;

use super::operation::{Operation, Owed};
use super::{CopyOperation, Gated, Pending, PromisedCopy};
use purlin_async::event::{Event, when_all};
use purlin_async::task::{AsyncWorkRunner, Task};
use purlin_base::fault::{self, Site};
use purlin_base::status::Status;

/// Copies up to this size run inside the call if nothing is to be waited for: a hop to another thread would cost more.
pub const INLINE_LIMIT_BYTES: usize = 64 << 10;

/// What a copy has to wait for and where it may run.
pub struct CopySchedule<'a> {
    /// The copy begins after all of them; if one fails, it does not happen and its event has that error.
    pub dependencies: &'a [Event],
    /// The client's runner.
    pub(crate) runner: &'a dyn CopyRunner,
    /// The caller waits for the event before it returns to its own caller: a hop to another thread gains nothing.
    pub caller_waits: bool,
}

/// Where a client's operations run, and its accounting of them.
pub(crate) trait CopyRunner: AsyncWorkRunner {
    /// Why nothing new may begin, if that is so.
    fn refusal(&self) -> Option<Status>;

    /// An operation begins; it is in flight until the answer is dropped.
    ///
    /// # Errors
    /// `FailedPrecondition`: the client has shut down.
    fn begin(&self) -> Result<Pending, Status>;

    /// An event that happens with `after`, or fails when the client ends; errors then name `gated` and `waits_for`.
    fn gate(&self, after: &Event, waits_for: &Event, gated: Gated) -> Event;
}

impl fmt::Debug for CopySchedule<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CopySchedule")
            .field("dependencies", &self.dependencies)
            .field("caller_waits", &self.caller_waits)
            .finish_non_exhaustive()
    }
}

impl<'a> CopySchedule<'a> {
    /// This schedule with other dependencies, for backends that wrap others.
    #[must_use]
    pub fn after(&self, dependencies: &'a [Event]) -> Self {
        Self { dependencies, ..*self }
    }

    /// Calls `execute(&operation)` once all dependencies have happened.
    ///
    /// Without unfinished dependencies, and if the caller waits or the copy is of at most `inline_limit_bytes`, that is
    /// inside this call, and an event that costs nothing is returned. Otherwise it is a task of the runner; if the runner
    /// has shut down, the event fails with `Cancelled`; if the client has, with `FailedPrecondition`.
    pub fn run<F>(&self, operation: CopyOperation, inline_limit_bytes: usize, execute: F) -> Event
    where
        F: FnOnce(&CopyOperation) -> Result<(), Status> + Send + 'static,
    {
        let is_small = operation.size_bytes() <= inline_limit_bytes;
        self.start(operation, is_small, |operation| traced(operation, execute))
    }

    /// As [`run`](Self::run), of any operation.
    pub(super) fn start<O, F>(&self, mut operation: O, is_small: bool, execute: F) -> Event
    where
        O: Operation,
        F: FnOnce(&mut O) -> Result<(), Status> + Send + 'static,
    {
        if let Some(refused) = self.refused() {
            return refused;
        }
        let gate = when_all(self.dependencies);
        if gate.is_ready() {
            if !gate.error().ok() {
                return gate;
            }
            if self.caller_waits || is_small {
                return execute(&mut operation).map_or_else(Event::from_error, |()| Event::ready());
            }
        }
        let label = operation.label();
        let (event, mut owed) = match self.owe(operation, gate) {
            Ok(owed) => owed,
            Err(refused) => return Event::from_error(refused),
        };
        let waited_for = [owed.gate().clone()];
        let task = Task::new(label, move || {
            let result = owed.gate().error().into_result().and_then(|()| execute(owed.operation_mut()));
            owed.complete(result);
        });
        // A refused task was dropped, and with it what was owed, which has failed the event.
        let _ = self.runner.schedule_when_ready(&waited_for, task);
        event
    }

    /// The client's runner.
    #[must_use]
    pub fn runner(&self) -> &dyn AsyncWorkRunner {
        self.runner
    }

    /// What a copy is answered if the client has shut down, or is of a process that forked this one.
    #[must_use]
    pub fn refused(&self) -> Option<Event> {
        self.runner.refusal().map(Event::from_error)
    }

    /// A copy that does not happen inside the call begins: its event, and what owes it. `gate` is what the copy waits for; if
    /// the copy is never run because the gate failed, its event has the gate's error. A client that shuts down waits for the copy, and
    /// may let [`PromisedCopy::gate`] fail before `gate` happens. A backend that attaches to the dependencies itself
    /// gives a `gate` that is ready; the copy's event is known to wait for them all the same.
    ///
    /// # Errors
    /// `FailedPrecondition`: the client has shut down.
    pub fn begin(&self, operation: CopyOperation, gate: Event) -> Result<(Event, PromisedCopy), Status> {
        self.owe(operation, gate).map(|(event, owed)| (event, PromisedCopy::new(owed)))
    }

    /// As [`begin`](Self::begin), of any operation.
    fn owe<O: Operation>(&self, operation: O, gate: Event) -> Result<(Event, Owed<O>), Status> {
        let pending = self.runner.begin()?;
        if gate.is_ready() {
            return Ok(Owed::new(operation, gate, self.dependencies, Some(pending)));
        }
        let first = self.dependencies.iter().find(|dependency| !dependency.is_ready());
        let gate = self.runner.gate(&gate, first.unwrap_or(&gate), operation.gated());
        Ok(Owed::new(operation, gate, &[], Some(pending)))
    }

    /// For backends that attach to events themselves: what goes before each of them.
    #[must_use]
    pub fn gate(&self, operation: &CopyOperation) -> CopyGate<'_> {
        CopyGate { runner: self.runner, gated: operation.gated() }
    }
}

/// The gates of one copy, for backends that attach to events themselves.
pub struct CopyGate<'a> {
    runner: &'a dyn CopyRunner,
    gated: Gated,
}

impl fmt::Debug for CopyGate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CopyGate({})", self.gated)
    }
}

impl CopyGate<'_> {
    /// An event that happens with `dependency`, or fails when the client ends: what a copy attaches to where it would attach to
    /// an event that is not the backend's own.
    #[must_use]
    pub fn before(&self, dependency: &Event) -> Event {
        if dependency.is_ready() {
            return dependency.clone();
        }
        self.runner.gate(dependency, dependency, self.gated.clone())
    }
}

/// Runs the copy inside its trace span.
fn traced(operation: &CopyOperation, execute: impl FnOnce(&CopyOperation) -> Result<(), Status>) -> Result<(), Status> {
    let _span = trace_span!(
        target: "purlin",
        "copy",
        bytes = operation.size_bytes(),
        from = %operation.source(),
        to = %operation.destination()
    )
    .entered();
    fault::point(Site::RunCopy)?;
    execute(operation)
}

#[cfg(test)]
mod tests {
    use std::fmt;
    use std::ops::Range;
    use std::sync::Arc;

    use tracing::field::{Field, Visit};
    use tracing::{Metadata, Subscriber, span};

    use super::*;
    use crate::backend::test_operation::operation;
    use crate::instance::{EndReason, InFlight};
    use purlin_async::event::EventPromise;
    use purlin_async::task::{AsyncWorkRunner, Executor};
    use purlin_base::status::StatusCode;
    use purlin_base::sync::Mutex;
    use purlin_base::sync::atomic::{AtomicBool, Ordering};

    const LIMIT_BYTES: usize = 100;

    /// Keeps tasks until the test runs them; refuses them once closed.
    struct ByHand {
        tasks: Mutex<Vec<Task>>,
        closed: bool,
        in_flight: Arc<InFlight>,
    }

    impl Default for ByHand {
        fn default() -> Self {
            Self { tasks: Mutex::new(Vec::new()), closed: false, in_flight: InFlight::new() }
        }
    }

    impl CopyRunner for ByHand {
        fn refusal(&self) -> Option<Status> {
            self.in_flight.refusal()
        }

        fn begin(&self) -> Result<Pending, Status> {
            self.in_flight.begin()
        }

        fn gate(&self, after: &Event, waits_for: &Event, gated: Gated) -> Event {
            self.in_flight.gate(after, waits_for, gated)
        }
    }

    impl ByHand {
        fn waiting(&self) -> usize {
            self.tasks.lock().len()
        }

        fn run_all(&self) {
            let tasks = std::mem::take(&mut *self.tasks.lock());
            tasks.into_iter().for_each(Task::run);
        }
    }

    impl Executor for ByHand {
        fn execute(&self, task: Task) -> Result<(), Status> {
            if self.closed {
                return Err(Status::cancelled("closed"));
            }
            self.tasks.lock().push(task);
            Ok(())
        }
    }

    impl AsyncWorkRunner for ByHand {
        fn schedule_when_ready(&self, _events: &[Event], task: Task) -> Result<(), Status> {
            self.execute(task)
        }

        fn parallel_for(
            &self,
            count: usize,
            _grain: usize,
            body: &(dyn Fn(Range<usize>) -> Result<(), Status> + Sync),
        ) -> Result<(), Status> {
            body(0..count)
        }
    }

    /// A copy of `size_bytes` on `runner`, and whether it was executed.
    fn run(runner: &ByHand, size_bytes: usize, dependencies: &[Event], caller_waits: bool) -> (Event, Arc<AtomicBool>) {
        let executed = Arc::new(AtomicBool::new(false));
        let execute = Arc::clone(&executed);
        let schedule = CopySchedule { dependencies, runner, caller_waits };
        let event = schedule.run(operation(size_bytes, &Arc::new(())), LIMIT_BYTES, move |operation| {
            assert_eq!(operation.size_bytes(), size_bytes);
            assert!(!execute.swap(true, Ordering::Relaxed), "a copy happens once");
            Ok(())
        });
        (event, executed)
    }

    // Relaxed: these tests run on one thread.
    fn was_executed(executed: &AtomicBool) -> bool {
        executed.load(Ordering::Relaxed)
    }

    #[test]
    fn a_small_ready_copy_runs_inside_the_call() {
        let runner = ByHand::default();
        let (event, executed) = run(&runner, LIMIT_BYTES, &[Event::ready()], false);
        assert!(event.is_ready() && was_executed(&executed));
        assert_eq!(runner.waiting(), 0);
    }

    #[test]
    fn a_large_copy_runs_inside_the_call_only_if_the_caller_waits() {
        let runner = ByHand::default();
        let (event, executed) = run(&runner, LIMIT_BYTES + 1, &[], true);
        assert!(event.is_ready() && was_executed(&executed));
        assert_eq!(runner.waiting(), 0);

        let (event, executed) = run(&runner, LIMIT_BYTES + 1, &[], false);
        assert!(!event.is_ready());
        assert_eq!(runner.waiting(), 1);
        runner.run_all();
        assert!(was_executed(&executed));
        assert_eq!(event.wait(), Ok(()));
    }

    #[test]
    fn a_copy_with_unfinished_dependencies_is_a_task_whatever_its_size() {
        let runner = ByHand::default();
        let gate = EventPromise::new(c"gate");
        let (event, executed) = run(&runner, 1, &[Event::ready(), gate.event()], true);
        gate.set_ready();
        assert!(!event.is_ready(), "the runner has not run it");
        runner.run_all();
        assert!(event.is_ready() && was_executed(&executed));
    }

    #[test]
    fn a_failed_dependency_needs_no_runner_and_copies_nothing() {
        let runner = ByHand { closed: true, ..ByHand::default() };
        for size_bytes in [1, LIMIT_BYTES + 1] {
            let failed = Event::from_error(Status::aborted("upstream"));
            let (event, executed) = run(&runner, size_bytes, &[failed], false);
            assert_eq!(event.wait().unwrap_err().message(), "upstream");
            assert!(!was_executed(&executed));
        }
    }

    #[test]
    fn a_refused_copy_is_cancelled() {
        let runner = ByHand { closed: true, ..ByHand::default() };
        let (event, executed) = run(&runner, LIMIT_BYTES + 1, &[], false);
        assert_eq!(event.wait().unwrap_err().code(), StatusCode::Cancelled);
        assert!(!was_executed(&executed));
    }

    #[test]
    fn an_error_of_the_backend_is_the_copys_error() {
        let runner = ByHand::default();
        for size_bytes in [1, LIMIT_BYTES + 1] {
            let schedule = CopySchedule { dependencies: &[], runner: &runner, caller_waits: false };
            let event = schedule.run(operation(size_bytes, &Arc::new(())), LIMIT_BYTES, |_operation| {
                Err(Status::unavailable("the bus is down"))
            });
            runner.run_all();
            assert_eq!(event.wait().unwrap_err().code(), StatusCode::Unavailable);
        }
    }

    #[test]
    fn a_copy_that_waits_when_the_client_ends_is_not_executed_and_says_why() {
        let runner = ByHand::default();
        let (ready, gate) = (Event::ready(), EventPromise::new(c"gradient"));
        let place = format!("{}:{}", file!(), line!() - 1);
        let (event, executed) = run(&runner, LIMIT_BYTES + 1, &[ready, gate.event()], false);
        assert_eq!(runner.in_flight.count(), 1);
        let failed = runner.in_flight.end(&EndReason(Status::deadline_exceeded("ended")));
        let what = format!(
            "the copy of 101 bytes from null:0/device to null:0/device, which waited for 'gradient' (made at {place})"
        );
        assert_eq!(failed, std::slice::from_ref(&what));
        runner.run_all();
        let error = event.wait().unwrap_err();
        assert_eq!((error.code(), error.message()), (StatusCode::DeadlineExceeded, &*format!("ended: {what}")));
        assert!(!was_executed(&executed));
        assert_eq!(runner.in_flight.count(), 0);
        gate.set_ready();
        assert!(!was_executed(&executed));
    }

    #[test]
    fn once_the_client_is_closed_no_copy_begins() {
        let runner = ByHand::default();
        runner.in_flight.close();
        for size_bytes in [1, LIMIT_BYTES + 1] {
            let (event, executed) = run(&runner, size_bytes, &[], false);
            assert_eq!(event.wait().unwrap_err().code(), StatusCode::FailedPrecondition);
            assert!(!was_executed(&executed));
        }
        assert_eq!(runner.waiting(), 0);
    }

    #[test]
    fn a_copy_is_in_flight_until_its_waiters_have_run() {
        let runner = ByHand::default();
        let (event, _) = run(&runner, LIMIT_BYTES + 1, &[], false);
        let idle = runner.in_flight.idle();
        let seen = idle.clone();
        event.on_ready(move |_status| assert!(!seen.is_ready()));
        runner.run_all();
        assert!(idle.is_ready());
    }

    /// Writes spans down as `name field=value ...`.
    #[derive(Clone, Default)]
    struct Spans(Arc<Mutex<Vec<String>>>);

    impl Subscriber for Spans {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            metadata.target() == "purlin" && metadata.name() == "copy"
        }

        fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
            struct Fields(String);
            impl Visit for Fields {
                fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
                    self.0.push_str(&format!(" {field}={value:?}"));
                }
            }
            let mut fields = Fields(span.metadata().name().to_owned());
            span.record(&mut fields);
            self.0.lock().push(fields.0);
            span::Id::from_u64(1)
        }

        fn record(&self, _span: &span::Id, _values: &span::Record<'_>) {}
        fn record_follows_from(&self, _span: &span::Id, _follows: &span::Id) {}
        fn event(&self, _event: &tracing::Event<'_>) {}
        fn enter(&self, _span: &span::Id) {}
        fn exit(&self, _span: &span::Id) {}
    }

    #[test]
    fn a_copy_that_runs_is_a_span() {
        let spans = Spans::default();
        let runner = ByHand::default();
        tracing::subscriber::with_default(spans.clone(), || {
            run(&runner, 7, &[], false).0.wait().unwrap();
            let _failed = run(&runner, 8, &[Event::from_error(Status::aborted("upstream"))], false);
        });
        assert_eq!(*spans.0.lock(), ["copy bytes=7 from=null:0/device to=null:0/device"]);
    }
}
