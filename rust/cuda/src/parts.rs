//! An operation that is enqueued in parts. The last part that is over ends it.
//!
//! If the caller of a copy waits, and the poller learns of the last end, the copy is ended by the caller: the poller
//! runs no code of callers, and the runner's threads may all wait.
//!
//! To enqueue is a part, too. So the operation stays until its memory has been released by the thread that enqueues,
//! and its event until other operations know what to wait for.

use std::sync::Arc;

use purlin_async::EventPromise;
use purlin_base::Error;
use purlin_base::sync::Mutex;
use purlin_device::backend::Work;

use crate::in_flight::InFlight;
use crate::stream::{End, EndedOn, SyncPoint};

/// See the module.
pub(crate) struct Parts(Mutex<State>);

struct State {
    /// `None` once it has ended, and while its memory is being released.
    in_flight: Option<Box<InFlight>>,
    /// Those that are not over.
    left: usize,
    failed: Option<Error>,
    /// Whether its caller [waits](Parts::wait), and, if it sleeps, what wakes it.
    is_awaited: bool,
    sleeper: Option<EventPromise>,
}

impl Parts {
    /// The operation has one part: to enqueue the others.
    pub(crate) fn of(in_flight: Box<InFlight>) -> Arc<Self> {
        // Others may have the event of a launch.
        let is_awaited = in_flight.caller_waits && !matches!(in_flight.operation().work(), Work::Launch { .. });
        let state = State { in_flight: Some(in_flight), left: 1, failed: None, is_awaited, sleeper: None };
        Arc::new(Self(Mutex::new(state)))
    }

    /// There is one part more, which ends by [`over`](Self::over).
    pub(crate) fn one_more(&self) {
        self.0.lock().left += 1;
    }

    /// One part more, which is a submission, with what `then` makes of its outcome.
    pub(crate) fn submission(
        self: &Arc<Self>,
        then: impl FnOnce(Result<(), Error>) -> Result<(), Error> + Send + 'static,
    ) -> End {
        self.one_more();
        let parts = Arc::clone(self);
        Box::new(move |outcome, ended_on| parts.over(then(outcome), ended_on))
    }

    /// Whether a part has failed, and the operation will.
    pub(crate) fn has_failed(&self) -> bool {
        self.0.lock().failed.is_some()
    }

    /// All other parts are enqueued, the last of them as `point` says, which is behind the others; or one was refused.
    pub(crate) fn enqueued(&self, point: Result<&SyncPoint, &Error>) {
        if let Ok(point) = point {
            // Taken out, because a release of memory may run code of callers.
            let in_flight = self.0.lock().in_flight.take();
            if let Some(mut in_flight) = in_flight {
                in_flight.release_memory(point);
                self.0.lock().in_flight = Some(in_flight);
            }
        }
        self.over(point.map(drop).map_err(Clone::clone), EndedOn::Poller);
    }

    /// A part is over, as it was learnt at `ended_on`.
    pub(crate) fn over(&self, outcome: Result<(), Error>, ended_on: EndedOn) {
        let mut state = self.0.lock();
        state.left -= 1;
        if let Err(error) = outcome {
            state.failed.get_or_insert(error);
        }
        if state.left > 0 {
            return;
        }
        let is_left_to_caller = state.is_awaited && ended_on == EndedOn::Poller;
        let ended = if is_left_to_caller { None } else { state.in_flight.take() };
        let (outcome, sleeper) = (state.outcome(), state.sleeper.take());
        drop(state);
        if let Some(in_flight) = ended {
            in_flight.end(outcome, ended_on);
        }
        if let Some(sleeper) = sleeper {
            sleeper.set_ready();
        }
    }

    /// Returns when all parts are over, and has ended the operation if no other thread has; at once, if it is not to be
    /// waited for. Once, where the operation was asked for.
    pub(crate) fn wait(&self) {
        let mut state = self.0.lock();
        if !state.is_awaited {
            return;
        }
        if state.left > 0 {
            let sleeper = EventPromise::guarding(c"parts of a copy");
            let woken = sleeper.event();
            state.sleeper = Some(sleeper);
            drop(state);
            // It tells nothing but that.
            _ = woken.wait_uninterruptible();
            state = self.0.lock();
        }
        let (ended, outcome) = (state.in_flight.take(), state.outcome());
        drop(state);
        if let Some(in_flight) = ended {
            in_flight.end(outcome, EndedOn::Caller);
        }
    }
}

impl State {
    fn outcome(&self) -> Result<(), Error> {
        self.failed.clone().map_or(Ok(()), Err)
    }
}
