//! An event that happens after a known number of steps, whoever takes them.

use std::fmt;
use std::mem;
use std::sync::Arc;

use super::{Event, EventPromise};
use crate::label::Label;
use crate::status::Status;
use crate::sync::Mutex;
use crate::sync::atomic::AtomicUsize;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

/// Counts steps down to zero; then its event happens, or fails with the error that was reported first in time. Clones
/// count together. If the last clone goes away above zero, the event fails with an error that names it.
#[derive(Clone)]
pub struct CountDown(Arc<State>);

struct State {
    left: AtomicUsize,
    /// The first error. Only moved in and out under the lock.
    error: Mutex<Status>,
    promise: EventPromise,
}

impl CountDown {
    /// A count of `count` steps; of 0, whose event has happened.
    #[must_use]
    #[track_caller]
    pub fn new(label: impl Into<Label>, count: usize) -> Self {
        let promise = EventPromise::new(label);
        if count == 0 {
            promise.set_ready();
        }
        Self(Arc::new(State { left: AtomicUsize::new(count), error: Mutex::new(Status::OK), promise }))
    }

    /// What happens at zero.
    #[must_use]
    pub fn event(&self) -> Event {
        self.0.promise.event()
    }

    /// Steps that are left. Others may change that at any time.
    #[must_use]
    pub fn left(&self) -> usize {
        self.0.left.load(Acquire)
    }

    /// One step. True if it was the last: the event's waiters have then run on this thread. A step too many does nothing.
    pub fn count_down(&self) -> bool {
        self.count_down_with(Status::OK)
    }

    /// One step that has failed, unless `error` is OK; see [`count_down`](Self::count_down).
    pub fn count_down_with(&self, error: Status) -> bool {
        if self.left() == 0 {
            return false;
        }
        if !error.ok() {
            // The lock ends with the statement; an error that came later is dropped after it.
            let _later = {
                let mut first = self.0.error.lock();
                if first.ok() { mem::replace(&mut *first, error) } else { error }
            };
        }
        let mut left = self.0.left.load(Relaxed);
        loop {
            if left == 0 {
                return false;
            }
            // Release: what this step did, and its error, happens before the last step's acquire.
            match self.0.left.compare_exchange_weak(left, left - 1, AcqRel, Relaxed) {
                Ok(_) => break,
                Err(now) => left = now,
            }
        }
        if left != 1 {
            return false;
        }
        let error = mem::take(&mut *self.0.error.lock());
        self.0.promise.set(error)
    }
}

impl fmt::Debug for CountDown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CountDown({:?}, {} left)", self.0.promise.0.label(), self.left())
    }
}
