//! An event that happens after a known number of steps, whichever threads take them.

use std::fmt;
use std::mem;
use std::sync::Arc;

use super::error_policy::{NO_INDEX, merge};
use super::{ErrorPolicy, Event, EventPromise, JoinOptions};
use purlin_base::label::Label;
use purlin_base::status::Error;
use purlin_base::sync::Mutex;
use purlin_base::sync::atomic::AtomicUsize;
use purlin_base::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

/// Counts steps down to zero; then its event happens, or fails with the error that the policy chooses of those that
/// were reported. Clones count together. If the last clone is dropped above zero, the event fails with an error that
/// names it.
///
/// ```
/// use purlin::CountDown;
///
/// let steps = CountDown::new(c"shards", 3);
/// let event = steps.event();
/// assert!(!steps.count_down());
/// assert!(!steps.count_down());
/// assert_eq!((steps.left(), event.is_ready()), (1, false));
/// assert!(steps.count_down(), "the last step completes the event");
/// event.wait()?;
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone)]
pub struct CountDown(Arc<CountDownState>);

struct CountDownState {
    left: AtomicUsize,
    count: usize,
    options: JoinOptions,
    /// Indices and errors, in the order of time. Only moved in and out under the lock.
    errors: Mutex<Vec<(usize, Error)>>,
    promise: EventPromise,
}

impl CountDown {
    /// A count of `count` steps; for 0, one whose event has happened. Of several errors, the event gets the first in
    /// time.
    #[must_use]
    #[track_caller]
    pub fn new(label: impl Into<Label>, count: usize) -> Self {
        Self::with_options(label, count, JoinOptions { policy: ErrorPolicy::FirstInTime, fail_fast: false })
    }

    /// As [`new`](Self::new), with a policy. With `fail_fast` the first error completes the event, whatever the policy;
    /// the other steps are still counted, and change nothing. Steps that are counted [without an
    /// index](Self::count_down_with) are members without one.
    #[must_use]
    #[track_caller]
    pub fn with_options(label: impl Into<Label>, count: usize, options: JoinOptions) -> Self {
        let promise = EventPromise::guarding(label);
        if count == 0 {
            promise.set_ready();
        }
        let errors = Mutex::new(Vec::new());
        Self(Arc::new(CountDownState { left: AtomicUsize::new(count), count, options, errors, promise }))
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

    /// One step. True if it completed the event, whose waiters have then run on this thread. A step too many does
    /// nothing.
    pub fn count_down(&self) -> bool {
        self.count_down_with(Ok(()))
    }

    /// One step that ended so; see [`count_down`](Self::count_down).
    pub fn count_down_with(&self, outcome: Result<(), Error>) -> bool {
        self.count_down_at(NO_INDEX, outcome)
    }

    /// As [`count_down_with`](Self::count_down_with), for the step of that index: for [`ErrorPolicy::FirstByIndex`] and
    /// [`ErrorPolicy::All`].
    ///
    /// ```
    /// use purlin::{CountDown, ErrorPolicy, JoinOptions, Error};
    ///
    /// let options = JoinOptions { policy: ErrorPolicy::FirstByIndex, ..Default::default() };
    /// let steps = CountDown::with_options(c"shards", 2, options);
    /// steps.count_down_at(1, Err(Error::internal("shard 1")));
    /// steps.count_down_at(0, Err(Error::internal("shard 0")));
    /// assert_eq!(steps.event().error().unwrap().message(), "shard 0");
    /// ```
    pub fn count_down_at(&self, index: usize, outcome: Result<(), Error>) -> bool {
        let state = &*self.0;
        if self.left() == 0 {
            return false;
        }
        let fail_fast = state.options.fail_fast;
        let error = outcome.err();
        if let Some(error) = &error {
            // Before the step, so that the last one finds it.
            state.errors.lock().push((index, error.clone()));
        }
        let left = self.step();
        if let (Some(error), true) = (error, fail_fast) {
            return left.is_some() && state.promise.set_error(error);
        }
        if left != Some(0) {
            return false;
        }
        let errors = mem::take(&mut *state.errors.lock());
        let failures: Vec<_> = errors.iter().map(|(index, error)| (*index, error)).collect();
        state.promise.set(merge(state.options.effective_policy(), state.count, failures.len(), &failures))
    }

    /// Takes a step: how many are left then. `None` if there was none left.
    fn step(&self) -> Option<usize> {
        let mut left = self.0.left.load(Relaxed);
        while left > 0 {
            // Release: what this step did, and its error, happens before the last step's acquire.
            match self.0.left.compare_exchange_weak(left, left - 1, AcqRel, Relaxed) {
                Ok(_) => return Some(left - 1),
                Err(now) => left = now,
            }
        }
        None
    }
}

impl fmt::Debug for CountDown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CountDown({:?}, {} left)", self.0.promise.0.label(), self.left())
    }
}
