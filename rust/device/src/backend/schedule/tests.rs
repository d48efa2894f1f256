use std::fmt;
use std::ops::Range;
use std::panic::Location;
use std::sync::Arc;

use tracing::field::{Field, Visit};
use tracing::{Metadata, Subscriber, span};

use super::*;
use crate::backend::test_operation::operation;
use crate::backend::{Piece, Share};
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

impl Share for Tasks {
    fn share(&self, count: usize, grain: usize, piece: &Piece<'_>) -> Result<(), Error> {
        (0..count).step_by(grain).try_for_each(|begin| piece(begin..count.min(begin + grain)))
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

impl Share for ByHand {
    fn share(&self, count: usize, grain: usize, piece: &Piece<'_>) -> Result<(), Error> {
        self.in_flight.share(count, grain, piece)
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
    let schedule = Schedule { dependencies, runner, caller_waits, location: Location::caller(), kept: None };
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
        let schedule = Schedule {
            dependencies: &[],
            runner: &runner,
            caller_waits: false,
            location: Location::caller(),
            kept: None,
        };
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

#[test]
fn idle_workers_are_offered_pieces_inside_the_call_and_in_a_task() {
    for caller_waits in [true, false] {
        let runner = ByHand::default();
        let schedule =
            Schedule { dependencies: &[], runner: &runner, caller_waits, location: Location::caller(), kept: None };
        let pieces = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&pieces);
        let event = schedule.run_in_pieces(operation(250, &Arc::new(())), LIMIT_BYTES, move |operation, idle| {
            idle.share(operation.size_bytes(), 100, &|piece| {
                seen.lock().push(piece);
                Ok(())
            })
        });
        runner.run_all();
        assert_eq!(event.wait(), Ok(()));
        assert_eq!(*pieces.lock(), [0..100, 100..200, 200..250]);
    }
}

#[test]
fn a_piece_that_fails_fails_the_operation() {
    let runner = ByHand::default();
    let schedule =
        Schedule { dependencies: &[], runner: &runner, caller_waits: true, location: Location::caller(), kept: None };
    let event = schedule.run_in_pieces(operation(250, &Arc::new(())), LIMIT_BYTES, |operation, idle| {
        idle.share(operation.size_bytes(), 100, &|piece| match piece.start {
            100 => Err(Error::data_loss("the second")),
            _ => Ok(()),
        })
    });
    assert_eq!(event.wait(), Err(Error::data_loss("the second")));
}
