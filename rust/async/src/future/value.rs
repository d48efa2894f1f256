//! The two sides of a value: [`Promise`] sets it, [`Future`] reads it.

#![allow(unsafe_code, reason = "a promise can be taken apart without its destructor")]

use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use crate::event::{AsyncValue, Event};
use purlin_base::label::Label;
use purlin_base::status::Error;

/// A value that will be there, or an error. One word; clones read the same value by reference.
///
/// ```
/// use purlin::{Future, Promise};
///
/// let promise = Promise::new(c"rows");
/// let rows: Future<u32> = promise.future();
/// let cells = rows.map(|rows| rows * 3);
/// promise.set(Ok(4)).unwrap();
/// assert_eq!(cells.wait(), Ok(&12));
/// ```
pub struct Future<T: Send + Sync + 'static>(pub(super) AsyncValue<T>);

/// The side that sets a [`Future`]. Dropping it unset completes the future with
/// [`Internal`](purlin_base::StatusCode::Internal), naming label and place.
///
/// ```
/// use purlin::Promise;
///
/// let promise = Promise::<u32>::new(c"answer");
/// let future = promise.future();
/// drop(promise);
/// let error = future.wait().unwrap_err();
/// assert!(error.message().contains("answer"), "a lost promise is an error that names it: {error}");
/// ```
pub struct Promise<T: Send + Sync + 'static>(pub(super) AsyncValue<T>);

/// A [`Promise`] for several: the first set wins; dropping the last clone unset completes the future with an error.
///
/// ```
/// use purlin::SharedPromise;
///
/// let fastest = SharedPromise::new(c"fastest");
/// let replicas = [fastest.clone(), fastest.clone()];
/// assert!(replicas[0].set(Ok("replica 0")).is_ok());
/// assert!(replicas[1].set(Ok("replica 1")).is_err());
/// assert_eq!(fastest.future().get(), Some(&"replica 0"));
/// ```
pub struct SharedPromise<T: Send + Sync + 'static>(Arc<Promise<T>>);

/// A promise was set for the second time. Nothing has changed; this holds the value that was too late.
///
/// ```
/// use purlin::Promise;
///
/// let promise = Promise::new(c"answer");
/// promise.set(Ok(1)).unwrap();
/// let late = promise.set(Ok(2)).unwrap_err();
/// assert!(late.to_string().contains("answer"));
/// assert_eq!(late.into_rejected(), Ok(2), "the value is not lost");
/// ```
pub struct AlreadySet<T> {
    label: Label,
    rejected: Result<T, Error>,
}

impl<T: Send + Sync + 'static> Promise<T> {
    /// A promise whose future is known by `label` and by the place of the caller.
    #[must_use]
    #[track_caller]
    pub fn new(label: impl Into<Label>) -> Self {
        Self(AsyncValue::new_unconstructed(label))
    }

    /// A promise that can be [forwarded](Self::forward).
    #[must_use]
    #[track_caller]
    pub fn linked(label: impl Into<Label>) -> Self {
        Self(AsyncValue::indirect(label))
    }

    /// As [`new`](Self::new), for a future that no promise of the user's owes: a watchdog does not poison it.
    #[must_use]
    #[track_caller]
    pub(crate) fn derived(label: impl Into<Label>) -> Self {
        Self(AsyncValue::derived(label))
    }

    /// As [`linked`](Self::linked), likewise.
    #[must_use]
    #[track_caller]
    pub(crate) fn derived_linked(label: impl Into<Label>) -> Self {
        Self(AsyncValue::derived_indirect(label))
    }

    /// A future of this promise.
    #[must_use]
    pub fn future(&self) -> Future<T> {
        Future(self.0.clone())
    }

    /// Completes the future and runs its waiters on this thread.
    ///
    /// # Errors
    /// What it was given, if it was set before.
    ///
    /// # Examples
    /// ```
    /// use purlin::{Promise, Error};
    ///
    /// let promise = Promise::<u32>::new(c"answer");
    /// let future = promise.future();
    /// promise.set(Err(Error::unavailable("no worker"))).unwrap();
    /// assert_eq!(future.error(), Some(Error::unavailable("no worker")));
    /// ```
    #[track_caller]
    pub fn set(&self, result: Result<T, Error>) -> Result<(), AlreadySet<T>> {
        self.0.set(result).map_err(|rejected| AlreadySet { label: self.0.as_event().label(), rejected })
    }

    /// Makes the future of a [linked](Self::linked) promise follow `other`: the same value, not a copy, or the same
    /// error, on the thread that completes it. Where that is impossible (the promise is not linked, or `other` waits
    /// for this one), the future fails and says so.
    ///
    /// ```
    /// use purlin::Promise;
    ///
    /// let (outer, inner) = (Promise::linked(c"outer"), Promise::new(c"inner"));
    /// let future = outer.future();
    /// outer.forward(&inner.future());
    /// inner.set(Ok(5)).unwrap();
    /// assert_eq!(future.wait(), Ok(&5));
    /// ```
    #[track_caller]
    pub fn forward(self, other: &Future<T>) {
        match self.0.forward(&other.0) {
            // The code that completes `other` owes it from now on.
            Ok(()) => drop(self.released()),
            Err(error) => _ = self.0.set_error(error),
        }
    }

    /// Releases the promise without completing it: its completion is owed elsewhere from now on.
    pub(super) fn released(self) -> AsyncValue<T> {
        let this = ManuallyDrop::new(self);
        // SAFETY: read once, from what is never dropped.
        unsafe { ptr::read(&raw const this.0) }
    }

    /// True if a future is held or there is a waiter. False is final: only this promise can give out a future any more.
    #[must_use]
    pub fn is_observed(&self) -> bool {
        self.0.is_observed()
    }

    /// For several threads that may set it.
    #[must_use]
    pub fn into_shared(self) -> SharedPromise<T> {
        SharedPromise(Arc::new(self))
    }
}

impl<T: Send + Sync + 'static> Drop for Promise<T> {
    fn drop(&mut self) {
        if self.is_observed() {
            self.0.abandon();
        }
    }
}

impl<T: Send + Sync + 'static> SharedPromise<T> {
    /// As [`Promise::new`].
    #[must_use]
    #[track_caller]
    pub fn new(label: impl Into<Label>) -> Self {
        Promise::new(label).into_shared()
    }

    /// A future of this promise.
    #[must_use]
    pub fn future(&self) -> Future<T> {
        self.0.future()
    }

    /// As [`Promise::set`]. Sets may race, and waiters may set again: the first wins and no set blocks.
    ///
    /// # Errors
    /// What it was given, if it was set before.
    #[track_caller]
    pub fn set(&self, result: Result<T, Error>) -> Result<(), AlreadySet<T>> {
        self.0.set(result)
    }
}

impl<T: Send + Sync + 'static> Future<T> {
    /// A value that is there.
    #[must_use]
    #[track_caller]
    pub fn ready(value: T) -> Self {
        Self(AsyncValue::new_available(value))
    }

    /// A failure.
    #[must_use]
    #[track_caller]
    pub fn from_error(error: Error) -> Self {
        Self(AsyncValue::new_error(error))
    }

    /// [`ready`](Self::ready) or [`from_error`](Self::from_error).
    ///
    /// ```
    /// use purlin::{Future, StatusOr};
    ///
    /// let parsed: StatusOr<i32> = Ok(12);
    /// assert_eq!(Future::from_result(parsed).get(), Some(&12));
    /// ```
    #[must_use]
    #[track_caller]
    pub fn from_result(result: Result<T, Error>) -> Self {
        match result {
            Ok(value) => Self::ready(value),
            Err(error) => Self::from_error(error),
        }
    }

    /// True once there is a value or an error; one load. Never blocks.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.0.is_ready()
    }

    /// The value, if it is there. Never blocks.
    #[must_use]
    pub fn get(&self) -> Option<&T> {
        self.0.get()
    }

    /// The error if it has failed. Never blocks.
    #[must_use]
    pub fn error(&self) -> Option<Error> {
        self.0.error()
    }

    /// Blocks until there is a value or an error. In a task, do not wait for what needs a task of the same pool.
    ///
    /// # Errors
    /// The future's.
    pub fn wait(&self) -> Result<&T, Error> {
        self.0.wait()
    }

    /// [`wait`](Self::wait), under the name that C++ has for it.
    ///
    /// # Errors
    /// The future's.
    pub fn await_result(&self) -> Result<&T, Error> {
        self.wait()
    }

    /// As [`wait`](Self::wait), for at most `timeout` of the monotonic clock.
    ///
    /// # Errors
    /// The future's error, or [`DeadlineExceeded`](purlin_base::StatusCode::DeadlineExceeded); the future stays
    /// pending.
    pub fn wait_for(&self, timeout: Duration) -> Result<&T, Error> {
        self.0.wait_for(timeout)
    }

    /// Calls `f` once: on the thread that completes the future, or inside this call if it is complete. It borrows that
    /// thread, so it must not block for long. A panic is reported and swallowed.
    ///
    /// ```
    /// use std::sync::mpsc;
    ///
    /// use purlin::Promise;
    ///
    /// let (promise, (sender, receiver)) = (Promise::new(c"answer"), mpsc::channel());
    /// promise.future().on_ready(move |result| sender.send(result.ok().copied()).unwrap());
    /// promise.set(Ok(42)).unwrap();
    /// assert_eq!(receiver.try_recv(), Ok(Some(42)));
    /// ```
    pub fn on_ready(&self, f: impl FnOnce(Result<&T, &Error>) + Send + 'static) {
        self.0.and_then(f);
    }

    /// An event that completes with the future. The same cell: it costs nothing, and keeps the value alive.
    ///
    /// ```
    /// use purlin::{Promise, when_all};
    ///
    /// let (left, right) = (Promise::new(c"left"), Promise::new(c"right"));
    /// let both = when_all(&[left.future().ready_event(), right.future().ready_event()]);
    /// left.set(Ok(1)).unwrap();
    /// right.set(Ok("text")).unwrap();
    /// both.wait()?;
    /// # Ok::<(), purlin::Error>(())
    /// ```
    #[must_use]
    pub fn ready_event(&self) -> Event {
        self.0.as_event().clone()
    }

    /// The future behind an event that [`ready_event`](Self::ready_event) or
    /// [`AsyncValue::as_event`] gave.
    ///
    /// # Errors
    /// The event itself, if it stands for no value or one of another type.
    pub fn from_event(event: Event) -> Result<Self, Event> {
        AsyncValue::from_event(event).map(Self)
    }

    /// Takes the value out of the only reference.
    ///
    /// # Errors
    /// Returns the future itself, if there are other references (an unset or living promise is one), if it is not
    /// ready, or if the value is another future's (forwarded, detached).
    pub fn into_inner(self) -> Result<T, Self> {
        self.0.into_inner().map_err(Self)
    }
}

impl<T: Send + Sync + 'static> Clone for Future<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Send + Sync + 'static> Clone for SharedPromise<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Send + Sync + 'static> From<AsyncValue<T>> for Future<T> {
    /// The same cell. The holder of the [`AsyncValue`] may still set it.
    fn from(value: AsyncValue<T>) -> Self {
        Self(value)
    }
}

impl From<Event> for Future<()> {
    /// A future that completes with the event.
    #[track_caller]
    fn from(event: Event) -> Self {
        if event.is_ready() {
            return Self::from_result(event.error().map_or(Ok(()), Err));
        }
        let promise = Promise::derived(c"FutureOfEvent");
        promise.0.owes_to(&event);
        let future = promise.future();
        // No other thread sets it.
        event.on_ready(move |outcome| _ = promise.set(outcome.clone()));
        future
    }
}

impl<T> AlreadySet<T> {
    /// The value that was too late.
    ///
    /// # Errors
    /// The error, if it was one that was too late.
    pub fn into_rejected(self) -> Result<T, Error> {
        self.rejected
    }
}

impl<T> From<AlreadySet<T>> for Error {
    fn from(late: AlreadySet<T>) -> Self {
        Self::failed_precondition(late.to_string())
    }
}

impl<T> fmt::Display for AlreadySet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.rejected.is_ok() { "value" } else { "error" };
        write!(f, "the promise '{}' was set before; a second {what} changes nothing", self.label)
    }
}

impl<T> fmt::Debug for AlreadySet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AlreadySet({:?})", self.label)
    }
}

impl<T> std::error::Error for AlreadySet<T> {}

impl<T: Send + Sync + 'static> fmt::Debug for Future<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Future({:?}, {:?})", self.0.as_event().label(), self.0.as_event().state())
    }
}

impl<T: Send + Sync + 'static> fmt::Debug for Promise<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Promise({:?}, {:?})", self.0.as_event().label(), self.0.as_event().state())
    }
}

impl<T: Send + Sync + 'static> fmt::Debug for SharedPromise<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shared{:?}", self.0)
    }
}
