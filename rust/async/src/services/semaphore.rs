//! A number of units, taken and given back: how many launches may be in flight, how many bytes may be in transfer.
//!
//! States of an acquisition: waiting, then granted, withdrawn (given up, timed out, cancelled) or refused (closed);
//! each leaves the queue once, under the lock, and the thread that took it out completes its event, under no lock. The
//! order is first come, first served: an acquisition that could be granted still waits behind an earlier, larger one,
//! so large ones do not starve. When the one in front leaves without its units, those behind it are looked at again.
//! No thread has a turn here (base's `turns.rs`): whether units suffice is decided under the lock, so each thread that
//! gives some back takes out, in one step, all that they suffice for.
//!
//! In a child made by `fork`, threads that hold units or wait for them may not be there: an acquisition that would have
//! to wait is refused.
//!
//! Units return only by dropping their [`Permit`], which an acquisition made, so there are never more than the
//! capacity.

use std::collections::BTreeMap;
use std::fmt;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use crate::event::raw::OwedBy;
use crate::event::{Event, EventPromise};
use crate::task::cancel::{CancelRegistration, CancelToken};
use crate::task::fork;
use purlin_base::label::Label;
use purlin_base::status::{Error, SourceLocation, StatusOr};
use purlin_base::sync::{Mutex, Process};

/// A handle; clones share the units.
///
/// ```
/// use purlin::{Semaphore, StatusCode};
///
/// let downloads = Semaphore::new(c"downloads", 2);
/// let both = downloads.acquire(2)?;
/// assert_eq!(downloads.try_acquire(1).unwrap_err().code(), StatusCode::Unavailable);
/// drop(both);
/// assert_eq!(downloads.available(), 2);
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone)]
pub struct Semaphore(Arc<SemaphoreShared>);

struct SemaphoreShared {
    capacity: usize,
    label: Label,
    /// Where the holders and the waiting are.
    process: Process,
    state: Mutex<SemaphoreState>,
}

struct SemaphoreState {
    available: usize,
    /// Why nothing is granted any more.
    closed: Option<Error>,
    next_id: u64,
    /// By arrival.
    waiting: BTreeMap<u64, Waiting>,
}

struct Waiting {
    amount: usize,
    slot: Arc<Slot>,
    promise: EventPromise,
}

/// Where the permit of an acquisition is put before its event happens.
type Slot = Mutex<Option<Permit>>;

/// Units that were granted. Dropping it gives them back, which may grant units to waiters on this thread.
///
/// ```
/// use purlin::Semaphore;
///
/// let memory = Semaphore::new(c"bytes", 1 << 20);
/// let permit = memory.acquire(4096)?;
/// assert_eq!((permit.amount(), memory.available()), (4096, (1 << 20) - 4096));
/// drop(permit);
/// assert_eq!(memory.available(), 1 << 20);
/// # Ok::<(), purlin::Error>(())
/// ```
#[must_use = "the units are given back when this is dropped"]
pub struct Permit {
    semaphore: Arc<SemaphoreShared>,
    amount: usize,
}

/// An acquisition under way. Dropping it gives up the place in the queue, or the units.
///
/// ```
/// use purlin::{CancelToken, Semaphore};
///
/// let semaphore = Semaphore::new(c"streams", 1);
/// let first = semaphore.acquire(1)?;
/// let mut second = semaphore.acquire_async(1, &CancelToken::default());
/// assert!(!second.event().is_ready());
/// drop(first);
/// second.event().wait()?;
/// assert_eq!(second.take()?.amount(), 1);
/// # Ok::<(), purlin::Error>(())
/// ```
#[must_use = "the acquisition is given up when this is dropped"]
pub struct PendingPermit {
    semaphore: Arc<SemaphoreShared>,
    /// The key in the queue; `None` if it never waited.
    id: Option<u64>,
    slot: Arc<Slot>,
    event: Event,
    /// The place in the token's list.
    cancel: CancelRegistration,
}

impl Semaphore {
    /// `capacity` units, all available. 0 grants nothing but acquisitions of 0.
    #[must_use]
    pub fn new(label: impl Into<Label>, capacity: usize) -> Self {
        let state = SemaphoreState { available: capacity, closed: None, next_id: 0, waiting: BTreeMap::new() };
        Self(Arc::new(SemaphoreShared {
            capacity,
            label: label.into(),
            process: Process::this(),
            state: Mutex::new(state),
        }))
    }

    /// All units, taken or not.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.0.capacity
    }

    /// Units that are not held now; another thread may take them before you.
    #[must_use]
    pub fn available(&self) -> usize {
        self.0.state.lock().available
    }

    /// Acquisitions in the queue now.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.0.state.lock().waiting.len()
    }

    /// Takes `amount` units now.
    ///
    /// # Errors
    /// [`Unavailable`](purlin_base::StatusCode::Unavailable): there are too few, or an acquisition waits already;
    /// [`InvalidArgument`](purlin_base::StatusCode::InvalidArgument): more than the capacity;
    /// [`Cancelled`](purlin_base::StatusCode::Cancelled): closed.
    pub fn try_acquire(&self, amount: usize) -> StatusOr<Permit> {
        let mut state = self.0.state.lock();
        if self.0.grant_now(&mut state, amount)? {
            drop(state);
            return Ok(self.0.permit(amount));
        }
        let (available, ahead) = (state.available, state.waiting.len());
        drop(state);
        let SemaphoreShared { label, capacity, .. } = &*self.0;
        Err(Error::unavailable(format!(
            "semaphore '{label}' has {available} of {capacity} units free and {ahead} waiting; {amount} were wanted"
        )))
    }

    /// Takes `amount` units, and blocks until it has them.
    ///
    /// # Errors
    /// As [`acquire_for`](Self::acquire_for), but for the time limit.
    pub fn acquire(&self, amount: usize) -> StatusOr<Permit> {
        self.acquire_with(amount, None, &CancelToken::default())
    }

    /// As [`acquire`](Self::acquire), for at most `timeout` of the monotonic clock.
    ///
    /// # Errors
    /// [`DeadlineExceeded`](purlin_base::StatusCode::DeadlineExceeded);
    /// [`InvalidArgument`](purlin_base::StatusCode::InvalidArgument): more than the capacity;
    /// [`Cancelled`](purlin_base::StatusCode::Cancelled): closed, before or while this waited.
    pub fn acquire_for(&self, amount: usize, timeout: Duration) -> StatusOr<Permit> {
        self.acquire_with(amount, Some(timeout), &CancelToken::default())
    }

    /// As [`acquire_for`](Self::acquire_for), until `cancel` is cancelled; no `timeout` waits for ever.
    ///
    /// # Errors
    /// As [`acquire_for`](Self::acquire_for); [`Cancelled`](purlin_base::StatusCode::Cancelled), with the token's
    /// reason in the message, if the token ended the wait.
    pub fn acquire_with(&self, amount: usize, timeout: Option<Duration>, cancel: &CancelToken) -> StatusOr<Permit> {
        let mut pending = self.acquire_async(amount, cancel);
        let waited = match timeout {
            Some(timeout) => pending.event.wait_for(timeout),
            None => pending.event.wait(),
        };
        match waited {
            Ok(()) => pending.take(),
            Err(error) => {
                // Another thread may grant it just now: then it is ours, or goes back with `pending`.
                let late = pending.slot.lock().take();
                late.ok_or_else(|| self.0.explain(amount, timeout, &error, &pending.event))
            }
        }
    }

    /// Joins the queue for `amount` units. Never blocks. The event of the result happens when the units are granted and
    /// fails as [`acquire_for`](Self::acquire_for) does; it runs its waiters on the thread that gave the units back.
    #[track_caller]
    pub fn acquire_async(&self, amount: usize, cancel: &CancelToken) -> PendingPermit {
        let shared = &self.0;
        let pending = |id, slot, event| PendingPermit {
            semaphore: Arc::clone(shared),
            id,
            slot,
            event,
            cancel: CancelRegistration::default(),
        };
        let refused = |error| pending(None, Arc::default(), Event::from_error(error));
        if let Err(reason) = cancel.check() {
            return refused(shared.cancelled(amount, &reason));
        }
        // Made before the lock is taken: they allocate.
        let promise = EventPromise::owed_by(OwedBy::Service, shared.label, SourceLocation::caller());
        let slot = Arc::<Slot>::default();
        let event = promise.event();
        let mut state = shared.state.lock();
        match shared.grant_now(&mut state, amount) {
            Err(error) => {
                drop(state);
                refused(error)
            }
            Ok(true) => {
                drop(state);
                promise.set_ready();
                *slot.lock() = Some(shared.permit(amount));
                pending(None, slot, event)
            }
            Ok(false) if !shared.process.is_this() => {
                drop(state);
                refused(fork::refusal(format_args!(
                    "semaphore '{}', whose units others hold or wait for,",
                    shared.label
                )))
            }
            Ok(false) => {
                let id = state.next_id;
                state.next_id += 1;
                state.waiting.insert(id, Waiting { amount, slot: Arc::clone(&slot), promise });
                drop(state);
                let mut pending = pending(Some(id), slot, event);
                let weak = Arc::downgrade(shared);
                pending.cancel = cancel.on_cancel(move |reason| {
                    if let Some(shared) = weak.upgrade() {
                        shared.withdraw(id, || shared.cancelled(amount, reason));
                    }
                });
                pending
            }
        }
    }

    /// As [`acquire_async`](Self::acquire_async), with a callback instead of an event. It is called exactly once, on
    /// the thread that decides the outcome, which may be this one before this returns. Nesting is bounded as for
    /// events.
    ///
    /// ```
    /// use std::sync::mpsc;
    ///
    /// use purlin::{CancelToken, Semaphore};
    ///
    /// let (semaphore, (sender, receiver)) = (Semaphore::new(c"streams", 1), mpsc::channel());
    /// let first = semaphore.acquire(1)?;
    /// semaphore.acquire_then(1, &CancelToken::default(), move |permit| sender.send(permit.is_ok()).unwrap());
    /// assert!(receiver.try_recv().is_err(), "it waits");
    /// drop(first);
    /// assert_eq!(receiver.try_recv(), Ok(true));
    /// # Ok::<(), purlin::Error>(())
    /// ```
    pub fn acquire_then(
        &self,
        amount: usize,
        cancel: &CancelToken,
        callback: impl FnOnce(StatusOr<Permit>) + Send + 'static,
    ) {
        let mut pending = self.acquire_async(amount, cancel);
        let event = pending.event.clone();
        event.on_ready(move |_either_way| {
            let answer = pending.take();
            drop(pending);
            callback(answer);
        });
    }

    /// Refuses acquisitions that wait and all later ones, with [`Cancelled`](purlin_base::StatusCode::Cancelled).
    /// Permits stay valid. Again: nothing happens.
    pub fn close(&self) {
        let error = Error::cancelled(format!("semaphore '{}' was closed", self.0.label));
        let refused = {
            let mut state = self.0.state.lock();
            if state.closed.is_some() {
                return;
            }
            state.closed = Some(error.clone());
            mem::take(&mut state.waiting)
        };
        for waiting in refused.into_values() {
            waiting.promise.set_error(error.clone());
        }
    }
}

impl Permit {
    /// How many units it stands for.
    #[must_use]
    pub fn amount(&self) -> usize {
        self.amount
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.semaphore.give_back(self.amount);
    }
}

impl PendingPermit {
    /// Happens when the units are granted, fails when they will not be.
    #[must_use]
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// The units, once the event has happened; they are the caller's then.
    ///
    /// # Errors
    /// The event's error; [`Unavailable`](purlin_base::StatusCode::Unavailable) while it is pending;
    /// [`FailedPrecondition`](purlin_base::StatusCode::FailedPrecondition): the units were taken already.
    pub fn take(&mut self) -> StatusOr<Permit> {
        if let Some(permit) = self.slot.lock().take() {
            return Ok(permit);
        }
        let label = self.semaphore.label;
        if !self.event.is_ready() {
            return Err(Error::unavailable(format!("semaphore '{label}' has not granted this acquisition yet")));
        }
        self.event.error().map_or(Ok(()), Err)?;
        Err(Error::failed_precondition(format!("the units of semaphore '{label}' were taken from this already")))
    }
}

impl Drop for PendingPermit {
    fn drop(&mut self) {
        let semaphore = &self.semaphore;
        if let Some(id) = self.id {
            semaphore.withdraw(id, || {
                Error::cancelled(format!("an acquisition of semaphore '{}' was given up", semaphore.label))
            });
        }
    }
}

impl SemaphoreShared {
    fn permit(self: &Arc<Self>, amount: usize) -> Permit {
        Permit { semaphore: Arc::clone(self), amount }
    }

    /// True if the units were taken, false if the caller must wait. Overtakes no acquisition that waits.
    fn grant_now(&self, state: &mut SemaphoreState, amount: usize) -> StatusOr<bool> {
        if amount > self.capacity {
            let Self { label, capacity, .. } = self;
            return Err(Error::invalid_argument(format!(
                "semaphore '{label}' has {capacity} units; {amount} were wanted"
            )));
        }
        state.closed.clone().map_or(Ok(()), Err)?;
        if !state.waiting.is_empty() || amount > state.available {
            return Ok(false);
        }
        state.available -= amount;
        Ok(true)
    }

    fn give_back(self: &Arc<Self>, amount: usize) {
        let granted = {
            let mut state = self.state.lock();
            state.available += amount;
            debug_assert!(state.available <= self.capacity, "units come from permits only");
            grant_waiting(&mut state)
        };
        self.deliver(granted);
    }

    /// Fails a waiting acquisition, if it still waits; then those behind it may be served.
    fn withdraw(self: &Arc<Self>, id: u64, why: impl FnOnce() -> Error) {
        let (waiting, granted) = {
            let mut state = self.state.lock();
            let Some(waiting) = state.waiting.remove(&id) else { return };
            (waiting, grant_waiting(&mut state))
        };
        waiting.promise.set_error(why());
        self.deliver(granted);
    }

    /// The permits exist from here on; dropping one takes the lock.
    fn deliver(self: &Arc<Self>, granted: Vec<Waiting>) {
        // All have their units before any user code runs, and lose none of them if it panics.
        for waiting in &granted {
            *waiting.slot.lock() = Some(self.permit(waiting.amount));
        }
        for waiting in granted {
            waiting.promise.set_ready();
        }
    }

    fn cancelled(&self, amount: usize, reason: &Error) -> Error {
        Error::cancelled(format!("acquiring {amount} units of semaphore '{}' was cancelled: {reason}", self.label))
    }

    /// The error of a blocking acquisition: the event's own, or that time ran out.
    fn explain(&self, amount: usize, timeout: Option<Duration>, error: &Error, event: &Event) -> Error {
        match timeout {
            Some(timeout) if event.error().is_none() => {
                let Self { label, capacity, .. } = self;
                let available = self.state.lock().available;
                Error::deadline_exceeded(format!(
                    "semaphore '{label}' did not grant {amount} units within {timeout:?}; {available} of {capacity} are free"
                ))
            }
            _ => error.clone(),
        }
    }
}

/// Takes out of the queue, from the front, the acquisitions that can have their units.
fn grant_waiting(state: &mut SemaphoreState) -> Vec<Waiting> {
    let mut granted = Vec::new();
    while let Some(first) = state.waiting.first_entry() {
        if first.get().amount > state.available {
            break;
        }
        let waiting = first.remove();
        state.available -= waiting.amount;
        granted.push(waiting);
    }
    granted
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SemaphoreShared { label, capacity, .. } = &*self.0;
        write!(f, "Semaphore({label:?}, {} of {capacity} free, {} waiting)", self.available(), self.waiting())
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Permit({} of {:?})", self.amount, self.semaphore.label)
    }
}

impl fmt::Debug for PendingPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PendingPermit({:?})", self.event)
    }
}

#[cfg(all(test, not(purlin_model)))]
mod tests;
