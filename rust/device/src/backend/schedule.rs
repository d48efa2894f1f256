//! When and where an operation runs.

use std::fmt;

use tracing::level_filters::LevelFilter;
use tracing::trace_span;

use super::{Gated, Operation, OperationPromise, Pending, Work};
use purlin_async::event::{Event, EventState, when_all};
use purlin_async::task::{AsyncWorkRunner, Task};
use purlin_base::fault;
use purlin_base::status::Error;

/// Operations on up to so many bytes run inside the call if nothing is to be waited for: a hop to another thread would
/// cost more.
pub const INLINE_LIMIT_BYTES: usize = 64 << 10;

/// What an operation has to wait for and where it may run.
pub struct Schedule<'a> {
    /// The operation begins after all of them; if one fails, it does not happen and its event has that error.
    pub dependencies: &'a [Event],
    /// The client's runner.
    pub(crate) runner: &'a dyn Runner,
    /// The caller waits for the event before it returns to its own caller: a hop to another thread gains nothing.
    pub caller_waits: bool,
}

/// Where a client's operations run, and its accounting of them.
pub(crate) trait Runner: AsyncWorkRunner {
    /// Why nothing new may begin, if that is so.
    fn refusal(&self) -> Option<Error>;

    /// An operation begins; it is in flight until the answer is dropped.
    ///
    /// # Errors
    /// `FailedPrecondition`: the client has shut down.
    fn begin(&self) -> Result<Pending, Error>;

    /// Continues `held` once, under no lock: with the outcome of `after`, or with an error when the client ends before
    /// that; the error names `gated` and `waits_for`.
    fn hold(&self, after: &Event, waits_for: &Event, gated: Gated, held: Box<dyn Held>);
}

/// What waits for an event of others or for the client's end.
pub(crate) trait Held: Send {
    /// Called once, with the event's outcome or with the error of the client's end.
    fn proceed(self: Box<Self>, outcome: &Result<(), Error>);
}

impl<F: FnOnce(&Result<(), Error>) + Send> Held for F {
    fn proceed(self: Box<Self>, outcome: &Result<(), Error>) {
        self(outcome);
    }
}

impl fmt::Debug for Schedule<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schedule")
            .field("dependencies", &self.dependencies)
            .field("caller_waits", &self.caller_waits)
            .finish_non_exhaustive()
    }
}

impl<'a> Schedule<'a> {
    /// This schedule with other dependencies, for backends that wrap others.
    #[must_use]
    pub fn after(&self, dependencies: &'a [Event]) -> Self {
        Self { dependencies, ..*self }
    }

    /// Calls `execute(&mut operation)` once all dependencies have happened: for backends whose operations are plain
    /// calls.
    ///
    /// Without unfinished dependencies, and if the caller waits or the operation is on at most `inline_limit_bytes`,
    /// that is inside this call, and an event that costs nothing is returned. Otherwise it is a task of the runner; if
    /// the runner has shut down, the event fails with `Cancelled`; if the client has, with `FailedPrecondition`.
    pub fn run<F>(&self, mut operation: Operation, inline_limit_bytes: usize, execute: F) -> Event
    where
        F: FnOnce(&mut Operation) -> Result<(), Error> + Send + 'static,
    {
        if let Some(refused) = self.refused() {
            return refused;
        }
        let after = self.all_dependencies();
        let state = after.state();
        match state {
            EventState::Error => return after,
            EventState::Ready if self.caller_waits || operation.size_bytes() <= inline_limit_bytes => {
                return traced(&mut operation, execute).map_or_else(Event::from_error, |()| Event::ready());
            }
            _ => {}
        }
        self.run_later(operation, after, execute)
    }

    /// As [`run`](Self::run), of an operation that waits for `after` or for a thread of the runner's.
    #[cold]
    #[inline(never)]
    fn run_later<F>(&self, operation: Operation, after: Event, execute: F) -> Event
    where
        F: FnOnce(&mut Operation) -> Result<(), Error> + Send + 'static,
    {
        let pending = match self.runner.begin() {
            Ok(pending) => pending,
            Err(refused) => return Event::from_error(refused),
        };
        // A dependency that has failed since run() looked is held below, and fails the operation there.
        if after.state() == EventState::Ready {
            let (event, promise) = OperationPromise::new(operation, after, &[], Some(pending));
            Box::new(Job { promise, execute }).schedule();
            return event;
        }
        let gated = operation.gated();
        let (event, promise) = OperationPromise::new(operation, after.clone(), &[], Some(pending));
        let waits_for = self.dependencies.iter().find(|dependency| !dependency.is_ready()).unwrap_or(&after);
        self.runner.hold(&after, waits_for, gated, Box::new(Job { promise, execute }));
        event
    }

    /// What happens after all dependencies, with the error of the first that fails by index.
    fn all_dependencies(&self) -> Event {
        let mut others = self.dependencies.iter().filter(|dependency| dependency.state() != EventState::Ready);
        match (others.next(), others.next()) {
            (None, _) => Event::ready(),
            (Some(only), None) => only.clone(),
            _ => when_all(self.dependencies),
        }
    }

    /// The client's runner.
    #[must_use]
    pub fn runner(&self) -> &dyn AsyncWorkRunner {
        self.runner
    }

    /// What an operation is answered if the client has shut down, or is of a process that forked this one.
    #[must_use]
    pub fn refused(&self) -> Option<Event> {
        self.runner.refusal().map(Event::from_error)
    }

    /// An operation begins whose dependencies the backend attends to by itself: its event, and what owes it. The event
    /// is known to wait for the dependencies. A client that shuts down waits for the operation.
    ///
    /// # Errors
    /// `FailedPrecondition`: the client has shut down.
    pub fn begin(&self, operation: Operation) -> Result<(Event, OperationPromise), Error> {
        let pending = self.runner.begin()?;
        Ok(OperationPromise::new(operation, Event::ready(), self.dependencies, Some(pending)))
    }

    /// How a backend that attends to dependencies by itself waits for those that are not its own.
    #[must_use]
    pub fn gate(&self, operation: &Operation) -> Gate<'_> {
        Gate { runner: self.runner, gated: operation.gated() }
    }
}

/// How one operation waits for events that are not its backend's own.
pub struct Gate<'a> {
    runner: &'a dyn Runner,
    gated: Gated,
}

impl fmt::Debug for Gate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gate({})", self.gated)
    }
}

impl Gate<'_> {
    /// Calls `then` once: with the outcome of `dependency`, on the thread that completes it; or with an error that
    /// names the operation, when the client ends before that.
    pub fn when_ready(&self, dependency: &Event, then: impl FnOnce(&Result<(), Error>) + Send + 'static) {
        if dependency.is_ready() {
            return then(&dependency.error().map_or(Ok(()), Err));
        }
        self.runner.hold(dependency, dependency, self.gated.clone(), Box::new(then));
    }
}

/// An operation that waits or is queued.
struct Job<F> {
    promise: OperationPromise,
    execute: F,
}

impl<F> Job<F>
where
    F: FnOnce(&mut Operation) -> Result<(), Error> + Send + 'static,
{
    /// Runs it as a task of the runner.
    fn schedule(self: Box<Self>) {
        let Some(accounting) = self.promise.accounting() else { return };
        let label = self.promise.operation().label();
        // A refused task was dropped, and with it the promise, which has failed the event.
        let _ = accounting.execute(Task::new(label, move || (*self).run()));
    }

    fn run(self) {
        let Self { mut promise, execute } = self;
        let result = traced(promise.operation_mut(), execute);
        promise.complete(result);
    }
}

impl<F> Held for Job<F>
where
    F: FnOnce(&mut Operation) -> Result<(), Error> + Send + 'static,
{
    fn proceed(self: Box<Self>, outcome: &Result<(), Error>) {
        match outcome {
            Ok(()) => self.schedule(),
            Err(error) => self.promise.complete(Err(error.clone())),
        }
    }
}

/// Executes the operation, inside a trace span if it moves bytes and a subscriber may look.
#[inline]
fn traced<F>(operation: &mut Operation, execute: F) -> Result<(), Error>
where
    F: FnOnce(&mut Operation) -> Result<(), Error>,
{
    if LevelFilter::current() >= LevelFilter::TRACE && !matches!(operation.work(), Work::Call(..) | Work::Called(_)) {
        return inside_span(operation, execute);
    }
    fault::point(operation.fault_site())?;
    execute(operation)
}

#[cold]
#[inline(never)]
fn inside_span<F>(operation: &mut Operation, execute: F) -> Result<(), Error>
where
    F: FnOnce(&mut Operation) -> Result<(), Error>,
{
    let _span = trace_span!(
        target: "purlin",
        "copy",
        bytes = operation.size_bytes(),
        from = %operation.source(),
        to = %operation.destination()
    )
    .entered();
    fault::point(operation.fault_site())?;
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
    use crate::in_flight::{EndReason, InFlight};
    use purlin_async::event::EventPromise;
    use purlin_async::task::{AsyncWorkRunner, Executor};
    use purlin_base::status::StatusCode;
    use purlin_base::sync::Mutex;
    use purlin_base::sync::atomic::{AtomicBool, Ordering};

    const LIMIT_BYTES: usize = 100;

    /// Keeps tasks until the test runs them; refuses them once closed.
    #[derive(Clone, Default)]
    struct Tasks {
        queued: Arc<Mutex<Vec<Task>>>,
        is_closed: Arc<AtomicBool>,
    }

    impl Executor for Tasks {
        fn execute(&self, task: Task) -> Result<(), Error> {
            // Relaxed: these tests run on one thread.
            if self.is_closed.load(Ordering::Relaxed) {
                return Err(Error::cancelled("closed"));
            }
            self.queued.lock().push(task);
            Ok(())
        }
    }

    /// A client's runner on such tasks.
    struct ByHand {
        tasks: Tasks,
        in_flight: Arc<InFlight>,
        /// Fails while an operation begins: what another thread may do meanwhile.
        fails_meanwhile: Mutex<Option<EventPromise>>,
    }

    impl Default for ByHand {
        fn default() -> Self {
            let tasks = Tasks::default();
            let in_flight = InFlight::new(Box::new(tasks.clone()));
            Self { tasks, in_flight, fails_meanwhile: Mutex::default() }
        }
    }

    impl Runner for ByHand {
        fn refusal(&self) -> Option<Error> {
            self.in_flight.refusal()
        }

        fn begin(&self) -> Result<Pending, Error> {
            let failing = self.fails_meanwhile.lock().take();
            if let Some(promise) = failing {
                promise.set_error(Error::aborted("meanwhile"));
            }
            self.in_flight.begin()
        }

        fn hold(&self, after: &Event, waits_for: &Event, gated: Gated, held: Box<dyn Held>) {
            self.in_flight.hold(after, waits_for, gated, held);
        }
    }

    impl ByHand {
        /// A runner that has shut down.
        fn closed() -> Self {
            let this = Self::default();
            // Relaxed: as above.
            this.tasks.is_closed.store(true, Ordering::Relaxed);
            this
        }

        fn waiting(&self) -> usize {
            self.tasks.queued.lock().len()
        }

        fn run_all(&self) {
            let tasks = std::mem::take(&mut *self.tasks.queued.lock());
            tasks.into_iter().for_each(Task::run);
        }
    }

    impl Executor for ByHand {
        fn execute(&self, task: Task) -> Result<(), Error> {
            self.tasks.execute(task)
        }
    }

    impl AsyncWorkRunner for ByHand {
        fn schedule_when_ready(&self, _events: &[Event], task: Task) -> Result<(), Error> {
            self.execute(task)
        }

        fn parallel_for(
            &self,
            count: usize,
            _grain: usize,
            body: &(dyn Fn(Range<usize>) -> Result<(), Error> + Sync),
        ) -> Result<(), Error> {
            body(0..count)
        }
    }

    /// A copy of `size_bytes` on `runner`, and whether it was executed.
    fn run(runner: &ByHand, size_bytes: usize, dependencies: &[Event], caller_waits: bool) -> (Event, Arc<AtomicBool>) {
        let executed = Arc::new(AtomicBool::new(false));
        let execute = Arc::clone(&executed);
        let schedule = Schedule { dependencies, runner, caller_waits };
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
        let runner = ByHand::closed();
        for size_bytes in [1, LIMIT_BYTES + 1] {
            let failed = Event::from_error(Error::aborted("upstream"));
            let (event, executed) = run(&runner, size_bytes, &[failed], false);
            assert_eq!(event.wait().unwrap_err().message(), "upstream");
            assert!(!was_executed(&executed));
        }
    }

    #[test]
    fn a_dependency_that_fails_while_the_copy_begins_fails_it() {
        let runner = ByHand::default();
        let promise = EventPromise::new(c"gradient");
        let gradient = promise.event();
        *runner.fails_meanwhile.lock() = Some(promise);
        let (event, executed) = run(&runner, 1, &[gradient], false);
        runner.run_all();
        assert_eq!(event.wait().unwrap_err().message(), "meanwhile");
        assert!(!was_executed(&executed));
    }

    #[test]
    fn a_refused_copy_is_cancelled() {
        let runner = ByHand::closed();
        let (event, executed) = run(&runner, LIMIT_BYTES + 1, &[], false);
        assert_eq!(event.wait().unwrap_err().code(), StatusCode::Cancelled);
        assert!(!was_executed(&executed));
    }

    #[test]
    fn an_error_of_the_backend_is_the_copys_error() {
        let runner = ByHand::default();
        for size_bytes in [1, LIMIT_BYTES + 1] {
            let schedule = Schedule { dependencies: &[], runner: &runner, caller_waits: false };
            let event = schedule.run(operation(size_bytes, &Arc::new(())), LIMIT_BYTES, |_operation| {
                Err(Error::unavailable("the bus is down"))
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
        let failed = runner.in_flight.end(&EndReason(Error::deadline_exceeded("ended")));
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
            let _failed = run(&runner, 8, &[Event::from_error(Error::aborted("upstream"))], false);
        });
        assert_eq!(*spans.0.lock(), ["copy bytes=7 from=null:0/device to=null:0/device"]);
    }
}
