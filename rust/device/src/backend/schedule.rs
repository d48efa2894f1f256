//! When and where an operation runs.

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::panic::Location;

use tracing::level_filters::LevelFilter;
use tracing::trace_span;

use super::{Gated, IdleWorkers, Operation, OperationPromise, Pending, Share, Work};
use purlin_async::event::{Event, EventState, when_all};
use purlin_async::task::{AsyncWorkRunner, Task};
use purlin_base::fault;
use purlin_base::status::{Error, SourceLocation};

/// Operations on up to so many bytes run inside the call if nothing is to be waited for: a hop to another thread would
/// cost more.
pub const INLINE_LIMIT_BYTES: usize = 64 << 10;

/// What an operation has to wait for and where it may run.
///
/// See the example of [`Backend`](super::Backend).
pub struct Schedule<'a> {
    /// The operation begins after all of them; if one fails, it does not happen and its event has that error.
    pub dependencies: &'a [Event],
    /// The client's runner.
    pub(crate) runner: &'a dyn Runner,
    /// The caller waits for the event before it returns to its own caller: a hop to another thread gains nothing.
    pub caller_waits: bool,
    /// Where the operation was asked for in Rust.
    pub(crate) location: &'static Location<'static>,
    /// What the operation keeps until it is over.
    pub(crate) kept: Option<&'a Keep>,
}

/// Something that an operation keeps until it is over: it is dropped before the operation's event happens. Taken by the
/// operation if that is not over when the call is; else its owner drops it.
pub(crate) struct Keep(Cell<Kept>);

/// See [`Keep`].
pub(super) type Kept = Option<Box<dyn Any + Send + Sync>>;

impl Keep {
    pub(crate) fn new(kept: Box<dyn Any + Send + Sync>) -> Self {
        Self(Cell::new(Some(kept)))
    }
}

/// Where a client's operations run, and its accounting of them.
pub(crate) trait Runner: AsyncWorkRunner + Share {
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
    pub fn run<F>(&self, operation: Operation, inline_limit_bytes: usize, execute: F) -> Event
    where
        F: FnOnce(&mut Operation) -> Result<(), Error> + Send + 'static,
    {
        self.run_in_pieces(operation, inline_limit_bytes, |operation, _idle| execute(operation))
    }

    /// As [`run`](Self::run); `execute` may let the client's idle workers do pieces of the operation.
    pub fn run_in_pieces<F>(&self, mut operation: Operation, inline_limit_bytes: usize, execute: F) -> Event
    where
        F: FnOnce(&mut Operation, IdleWorkers<'_>) -> Result<(), Error> + Send + 'static,
    {
        if let Some(refused) = self.refused() {
            return refused;
        }
        let after = self.all_dependencies();
        let state = after.state();
        match state {
            EventState::Error => return after,
            EventState::Ready if self.caller_waits || operation.size_bytes() <= inline_limit_bytes => {
                let idle = IdleWorkers::of(self.runner);
                return traced(&mut operation, idle, execute).map_or_else(Event::from_error, |()| Event::ready());
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
        F: FnOnce(&mut Operation, IdleWorkers<'_>) -> Result<(), Error> + Send + 'static,
    {
        let pending = match self.runner.begin() {
            Ok(pending) => pending,
            Err(refused) => return Event::from_error(refused),
        };
        // A dependency that has failed since run() looked is held below, and fails the operation there.
        if after.state() == EventState::Ready {
            let (event, mut promise) = OperationPromise::new(operation, self.place(), after, &[], Some(pending));
            promise.keep(self.kept());
            Box::new(Job { promise, execute }).schedule();
            return event;
        }
        let gated = operation.gated();
        let (event, mut promise) = OperationPromise::new(operation, self.place(), after.clone(), &[], Some(pending));
        promise.keep(self.kept());
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

    /// What the operation keeps, for its promise.
    fn kept(&self) -> Kept {
        self.kept.and_then(|kept| kept.0.take())
    }

    /// Where the operation was asked for. Inside of the call that asks for it only.
    #[inline]
    fn place(&self) -> SourceLocation {
        SourceLocation::stated().unwrap_or(SourceLocation::of(self.location))
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
    /// is known to wait for the dependencies; its label is the operation's, and its place where that was asked for. A
    /// client that shuts down waits for the operation.
    ///
    /// # Errors
    /// `FailedPrecondition`: the client has shut down.
    pub fn begin(&self, operation: Operation) -> Result<(Event, OperationPromise), Error> {
        let pending = self.runner.begin()?;
        let (event, mut promise) =
            OperationPromise::new(operation, self.place(), Event::ready(), self.dependencies, Some(pending));
        promise.keep(self.kept());
        Ok((event, promise))
    }

    /// How a backend that attends to dependencies by itself waits for those that are not its own.
    #[must_use]
    pub fn gate(&self, operation: &Operation) -> Gate<'_> {
        Gate { runner: self.runner, gated: operation.gated() }
    }
}

/// How one operation waits for events that are not its backend's own.
///
/// See the example of [`Backend`](super::Backend).
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

    /// As [`when_ready`](Self::when_ready), of all `dependencies`: with the error of the first that fails, by index.
    pub fn when_all_ready(&self, dependencies: &[Event], then: impl FnOnce(&Result<(), Error>) + Send + 'static) {
        match dependencies {
            [only] => self.when_ready(only, then),
            _ => {
                let all = when_all(dependencies);
                match dependencies.iter().find(|dependency| !dependency.is_ready()) {
                    Some(first) if !all.is_ready() => {
                        self.runner.hold(&all, first, self.gated.clone(), Box::new(then));
                    }
                    _ => self.when_ready(&all, then),
                }
            }
        }
    }
}

/// An operation that waits or is queued.
struct Job<F> {
    promise: OperationPromise,
    execute: F,
}

impl<F> Job<F>
where
    F: FnOnce(&mut Operation, IdleWorkers<'_>) -> Result<(), Error> + Send + 'static,
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
        let (operation, idle) = promise.operation_and_idle();
        let result = traced(operation, idle, execute);
        promise.complete(result);
    }
}

impl<F> Held for Job<F>
where
    F: FnOnce(&mut Operation, IdleWorkers<'_>) -> Result<(), Error> + Send + 'static,
{
    fn proceed(self: Box<Self>, outcome: &Result<(), Error>) {
        match outcome {
            Ok(()) => self.schedule(),
            Err(error) => self.promise.complete(Err(error.clone())),
        }
    }
}

/// Executes the operation, inside a trace span if it moves bytes and a subscriber may look. Launches have spans of
/// their own.
#[inline]
fn traced<F>(operation: &mut Operation, idle: IdleWorkers<'_>, execute: F) -> Result<(), Error>
where
    F: FnOnce(&mut Operation, IdleWorkers<'_>) -> Result<(), Error>,
{
    let moves_bytes = !matches!(operation.work(), Work::Call(..) | Work::Called(_) | Work::Launch { .. });
    if LevelFilter::current() >= LevelFilter::TRACE && moves_bytes {
        return inside_span(operation, idle, execute);
    }
    fault::point(operation.fault_site())?;
    execute(operation, idle)
}

#[cold]
#[inline(never)]
fn inside_span<F>(operation: &mut Operation, idle: IdleWorkers<'_>, execute: F) -> Result<(), Error>
where
    F: FnOnce(&mut Operation, IdleWorkers<'_>) -> Result<(), Error>,
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
    execute(operation, idle)
}

#[cfg(test)]
mod tests;
