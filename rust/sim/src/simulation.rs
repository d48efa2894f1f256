//! The simulation: the queue behind its one lock, and everything that must happen outside that lock.
//!
//! Any thread asks for copies; a driver (a thread of the backend's, a test, or several at once) takes one step after
//! the other. Under the lock only the state is updated: bytes are moved, copies completed and dropped outside, because
//! that runs user code, which may ask for copies.

#![allow(unsafe_code, reason = "bytes are moved by address")]

use std::sync::Arc;
use std::time::Duration;

use purlin_async::Event;
use purlin_base::Error;
use purlin_base::sync::{Condvar, Mutex};
use purlin_device::backend::{Operation, OperationPromise, Schedule};

use crate::SimOptions;
use crate::queue::{Number, Queue, Queued, Step};
use crate::report::SimReport;
use crate::shadow::Span;
use crate::touched;

/// How often the driver's thread looks whether a thread waits.
const LOOK_EVERY: Duration = Duration::from_micros(50);
/// After so many looks without a new copy it continues although no thread waits.
const PATIENCE_LOOKS: u32 = 20;

/// See the module.
pub(crate) struct Simulation {
    options: SimOptions,
    /// Whether a test drives, and waiters run in its steps.
    steps_by_hand: bool,
    queue: Mutex<Queue>,
    /// There is something new for the driver's thread.
    changed: Condvar,
}

/// What the driver's thread remembers between two steps.
#[derive(Default)]
pub(crate) struct Drive {
    /// It continues until this copy is over.
    wanted: Option<Number>,
    /// No copy was asked for for a while: everything is to be done.
    draining: bool,
}

impl Simulation {
    pub(crate) fn new(options: SimOptions, steps_by_hand: bool) -> Arc<Self> {
        let queue = Mutex::new(Queue::new(&options));
        Arc::new(Self { queue, options, steps_by_hand, changed: Condvar::default() })
    }

    pub(crate) fn options(&self) -> &SimOptions {
        &self.options
    }

    /// An operation as the schedule says.
    pub(crate) fn run(self: &Arc<Self>, operation: Operation, schedule: &Schedule<'_>) -> Event {
        let (dependencies, caller_waits) = (schedule.dependencies, schedule.caller_waits);
        if let Some(refused) = schedule.refused() {
            return refused;
        }
        if dependencies.iter().all(Event::is_ready) {
            // What is wrong from the start is reported at once.
            if let Some(failed) = dependencies.iter().find(|dependency| dependency.error().is_some()) {
                return failed.clone();
            }
        }
        let gate = schedule.gate(&operation);
        let (event, promise) = match schedule.begin(operation) {
            Ok(begun) => begun,
            Err(refused) => return Event::from_error(refused),
        };
        let mut queue = self.queue.lock();
        if queue.closed {
            drop(queue);
            let cancelled = cancelled(promise.operation());
            promise.complete(Err(cancelled));
            return event;
        }
        let (number, foreign) = queue.add(event.clone(), promise, dependencies, caller_waits);
        drop(queue);
        for (index, dependency) in foreign {
            let simulation = Arc::clone(self);
            gate.when_ready(&dependency, move |outcome| {
                simulation.arrived(number, outcome.as_ref().err().map(|error| (index, error.clone())));
            });
        }
        // The one that stood for the loop above.
        self.arrived(number, None);
        event
    }

    fn arrived(&self, number: Number, failure: Option<(usize, Error)>) {
        self.queue.lock().arrived(number, failure);
        self.changed.notify_all();
    }

    /// One thing happens: a copy begins, ends, or fails. False if nothing can.
    pub(crate) fn step(&self) -> bool {
        let Some(step) = self.queue.lock().next() else { return false };
        match step {
            Step::Begin(number, touched) => {
                // SAFETY: the copy's dependencies have happened, and only its end, which is another step, completes it.
                unsafe { touched.spoil() };
                self.queue.lock().begun(number);
                self.changed.notify_all();
            }
            Step::End(number, mut promise) => {
                // SAFETY: as above; it is completed below.
                let result = unsafe { touched::perform(promise.operation_mut()) };
                let caller_waits = self.queue.lock().ended(number, &result);
                self.changed.notify_all();
                self.complete(*promise, result, caller_waits);
            }
            Step::Fail(copy, error) => self.complete_queued(*copy, error),
        }
        true
    }

    /// Steps until `event` is terminal, or nothing can happen. What cannot happen because another thread takes a step
    /// just now may be next after that.
    pub(crate) fn step_until(&self, event: &Event) {
        while !event.is_ready() {
            if self.step() {
                continue;
            }
            let queue = self.queue.lock();
            if !queue.can_step() {
                if !queue.is_busy() {
                    return;
                }
                drop(self.changed.wait(queue));
            }
        }
    }

    /// Ends the simulation: copies that are not over, and those that are asked for later, fail with `Cancelled`.
    pub(crate) fn close(&self) {
        let cancelled_copies = self.queue.lock().close();
        self.changed.notify_all();
        for copy in cancelled_copies {
            if let Some(error) = copy.promise.as_ref().map(|promise| cancelled(promise.operation())) {
                self.complete_queued(copy, error);
            }
        }
    }

    fn complete_queued(&self, copy: Queued, error: Error) {
        if let Some(promise) = copy.promise {
            self.complete(promise, Err(error), copy.caller_waits);
        }
    }

    /// Reports how an operation has ended, which runs user code: on the client's runner, unless a test steps.
    fn complete(&self, promise: OperationPromise, result: Result<(), Error>, caller_waits: bool) {
        if self.steps_by_hand || caller_waits {
            promise.complete(result);
        } else {
            promise.complete_on_runner(result);
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.queue.lock().closed
    }

    /// Blocks until it is time for a step (true) or the simulation is closed (false). A step is put off until a thread
    /// waits for a copy, so that a missing wait has every chance to be seen, but not for ever: its caller may only
    /// look.
    pub(crate) fn wait_for_step(&self, drive: &mut Drive) -> bool {
        let mut queue = self.queue.lock();
        let (mut looks, mut known) = (0, queue.len());
        loop {
            if queue.closed {
                return false;
            }
            if !queue.can_step() {
                drive.draining = false;
                queue = self.changed.wait(queue);
                continue;
            }
            if drive.wanted.is_some_and(|number| queue.is_over(number)) {
                drive.wanted = None;
            }
            if drive.wanted.is_none() {
                drive.wanted = queue.demanded();
            }
            if drive.draining || drive.wanted.is_some() {
                return true;
            }
            if queue.len() != known {
                (looks, known) = (0, queue.len());
            }
            if looks == PATIENCE_LOOKS {
                drive.draining = true;
                return true;
            }
            looks += 1;
            queue = self.changed.wait_for(queue, LOOK_EVERY);
        }
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.queue.lock().now_ns
    }

    pub(crate) fn reports(&self) -> (Vec<SimReport>, usize) {
        let queue = self.queue.lock();
        (queue.detector.reports().to_vec(), queue.detector.left_out())
    }

    pub(crate) fn handed_out(&self, span: Span, is_watched: bool) {
        let mut queue = self.queue.lock();
        let now_ns = queue.now_ns;
        queue.detector.handed_out(span, is_watched, now_ns);
    }

    pub(crate) fn given_back(&self, span: Span) {
        let mut queue = self.queue.lock();
        let now_ns = queue.now_ns;
        let in_use = queue
            .in_use()
            .flat_map(|(number, copy, touched)| {
                let reads = touched.reads().map(|read| (read, false));
                reads.chain(touched.writes().map(|written| (written, true))).filter_map(move |(touched, writes)| {
                    Some((touched.intersection(span)?, copy.party(number, writes)))
                })
            })
            .collect();
        queue.detector.given_back(span, now_ns, in_use);
    }

    pub(crate) fn unmapped(&self, span: Span) {
        self.queue.lock().detector.unmapped(span);
    }
}

fn cancelled(operation: &Operation) -> Error {
    Error::cancelled(format!("the {operation:?} was not run: the simulation has ended"))
}
