//! Values with an executor in between: closures run there and not on the thread that completes the source.
//!
//! The task holds the promise of what it computes. Uncalled, it completes it with an error:
//! - an executor refuses (`execute` fails): the error is the executor's answer;
//! - it takes the task and drops it later: [`Cancelled`](purlin_base::StatusCode::Cancelled), naming the task.
//!
//! The submitter and the dropped task settle which of the two it is by two flags of the promise's cell: the task says
//! that it was dropped, the submitter that it has looked. Both are read-modify-writes of one word, so one of them is
//! last and completes.

#![allow(unsafe_code, reason = "a task's address is noted in what it completes")]

use std::sync::Arc;

use crate::event::{AsyncValue, guarded};
use crate::future::{Future, Promise};
use crate::task::{Executor, Task};
use purlin_base::label::Label;
use purlin_base::status::Error;

/// A future of what `f` returns on `executor`; `label` names the task. A panic of `f` and a refusal of the executor are
/// its errors.
///
/// ```
/// use purlin::{ThreadPool, ThreadPoolOptions, future_on};
///
/// let pool = ThreadPool::new(&ThreadPoolOptions { thread_count: 2, ..Default::default() })?;
/// let sum = future_on(&pool, c"sum", || Ok((1..=100).sum::<u32>()));
/// assert_eq!(sum.wait(), Ok(&5050));
/// # Ok::<(), purlin::Error>(())
/// ```
#[track_caller]
pub fn future_on<E: Executor + ?Sized, T: Send + Sync + 'static>(
    executor: &E,
    label: impl Into<Label>,
    f: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Future<T> {
    let label = label.into();
    let promise = Promise::derived(label);
    let future = promise.future();
    // No other thread sets it.
    submit(executor, label, promise, move |promise| _ = promise.set(guarded("future_on", f)));
    future
}

/// Runs `work` with `promise` on `executor`, or completes the promise with what prevented it.
pub(super) fn submit<E: Executor + ?Sized, T: Send + Sync + 'static>(
    executor: &E,
    label: Label,
    promise: Promise<T>,
    work: impl FnOnce(Promise<T>) + Send + 'static,
) {
    let value = promise.0.clone();
    value.begin_submission();
    let mut lease = Lease { label, owed: Some((promise, work)) };
    let task = Task::new(label, move || lease.call()).into_raw();
    value.owes_to_task(task);
    // SAFETY: the node that was given away above.
    let task = unsafe { Task::from_raw(task) };
    let answer = guarded("Executor::execute", || executor.execute(task));
    let uncalled = value.end_submission();
    match answer {
        // The first set wins, so an executor that runs the task and refuses it all the same does no harm.
        Err(refusal) => _ = value.set_error(refusal),
        Ok(()) if uncalled => _ = value.set_error(dropped(label)),
        Ok(()) => {}
    }
}

pub(super) fn dropped(label: Label) -> Error {
    Error::cancelled(format!("the task '{label}' was dropped uncalled by its executor"))
}

/// What a task owes. Its destructor is the task's.
struct Lease<T: Send + Sync + 'static, F> {
    label: Label,
    owed: Option<(Promise<T>, F)>,
}

impl<T: Send + Sync + 'static, F: FnOnce(Promise<T>)> Lease<T, F> {
    fn call(&mut self) {
        if let Some((promise, work)) = self.owed.take() {
            work(promise);
        }
    }
}

impl<T: Send + Sync + 'static, F> Drop for Lease<T, F> {
    fn drop(&mut self) {
        let Some((promise, _work)) = self.owed.take() else { return };
        let value = promise.released();
        if !value.note_uncalled() {
            value.set_error(dropped(self.label));
        }
    }
}

/// A closure that is called on an executor with a value that is complete; in its destructor, with an error, if the
/// executor does not.
struct Call<T: Send + Sync + 'static, F: FnOnce(Result<&T, &Error>)> {
    owed: Option<(AsyncValue<T>, F)>,
}

impl<T: Send + Sync + 'static, F: FnOnce(Result<&T, &Error>)> Call<T, F> {
    fn call(&mut self) {
        if let Some((value, f)) = self.owed.take() {
            match value.wait() {
                Ok(value) => f(Ok(value)),
                Err(error) => f(Err(&error)),
            }
        }
    }
}

impl<T: Send + Sync + 'static, F: FnOnce(Result<&T, &Error>)> Drop for Call<T, F> {
    fn drop(&mut self) {
        if let Some((_, f)) = self.owed.take() {
            f(Err(&dropped(Label::new(c"AndThen"))));
        }
    }
}

impl<T: Send + Sync + 'static> AsyncValue<T> {
    /// Calls `f` once with the value or the error, on `executor`, even if the value is complete already. If the
    /// executor refuses or drops the task, `f` is called with [`Cancelled`](purlin_base::StatusCode::Cancelled), on the
    /// thread where that happens.
    pub fn and_then_on<E: Executor + ?Sized + 'static>(
        &self,
        executor: &Arc<E>,
        f: impl FnOnce(Result<&T, &Error>) + Send + 'static,
    ) {
        let executor = Arc::clone(executor);
        self.and_then_owned(move |value| {
            let mut call = Call { owed: Some((value, f)) };
            // A refusal has dropped the task, which has called `f`.
            let _ = executor.execute(Task::new(c"AndThen", move || call.call()));
        });
    }

    /// The value of `f`, which runs on `executor`, even if this is complete already. An error of this one, a panic of
    /// `f` and a refusal of the executor are errors of the result; errors do not pass through the executor.
    #[must_use]
    #[track_caller]
    pub fn map_on<E: Executor + ?Sized + 'static, U: Send + Sync + 'static>(
        &self,
        executor: &Arc<E>,
        f: impl FnOnce(&T) -> U + Send + 'static,
    ) -> AsyncValue<U> {
        self.try_map_on(executor, move |value| Ok(f(value)))
    }

    /// As [`map_on`](Self::map_on), for an `f` that may fail.
    #[must_use]
    #[track_caller]
    pub fn try_map_on<E: Executor + ?Sized + 'static, U: Send + Sync + 'static>(
        &self,
        executor: &Arc<E>,
        f: impl FnOnce(&T) -> Result<U, Error> + Send + 'static,
    ) -> AsyncValue<U> {
        computed_on(self, executor, false, f).0
    }

    /// What the value of `f` becomes; `f` runs as in [`map_on`](Self::map_on).
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use purlin::{AsyncValue, ThreadPool, ThreadPoolOptions};
    ///
    /// let pool = Arc::new(ThreadPool::new(&ThreadPoolOptions { thread_count: 1, ..Default::default() })?);
    /// let row = AsyncValue::new_available(3).flat_map_on(&pool, |size| AsyncValue::new_available(vec![0; *size]));
    /// assert_eq!(row.wait(), Ok(&vec![0, 0, 0]));
    /// # Ok::<(), purlin::Error>(())
    /// ```
    #[must_use]
    #[track_caller]
    pub fn flat_map_on<E: Executor + ?Sized + 'static, U: Send + Sync + 'static>(
        &self,
        executor: &Arc<E>,
        f: impl FnOnce(&T) -> AsyncValue<U> + Send + 'static,
    ) -> AsyncValue<U> {
        flattened_on(self, executor, false, move |value| Future(f(value))).0
    }
}

/// `f` of a value, computed on an executor; not at all if the result is unobserved and it is `skippable`.
#[track_caller]
fn computed_on<E: Executor + ?Sized + 'static, T: Send + Sync + 'static, U: Send + Sync + 'static>(
    source: &AsyncValue<T>,
    executor: &Arc<E>,
    skippable: bool,
    f: impl FnOnce(&T) -> Result<U, Error> + Send + 'static,
) -> Future<U> {
    derived_on(source, executor, skippable, Promise::derived(c"MapOn"), move |value, promise| {
        // It was ready, so this does not block. No other thread sets it.
        let _ = promise.set(value.wait().and_then(|value| guarded("map_on", || f(value))));
    })
}

/// As [`computed_on`], for an `f` that answers with a future.
#[track_caller]
fn flattened_on<E: Executor + ?Sized + 'static, T: Send + Sync + 'static, U: Send + Sync + 'static>(
    source: &AsyncValue<T>,
    executor: &Arc<E>,
    skippable: bool,
    f: impl FnOnce(&T) -> Future<U> + Send + 'static,
) -> Future<U> {
    derived_on(source, executor, skippable, Promise::derived_linked(c"FlatMapOn"), move |value, promise| {
        match value.wait().and_then(|value| guarded("flat_map_on", || Ok(f(value)))) {
            Ok(inner) => promise.forward(&inner),
            // No other thread sets it.
            Err(error) => _ = promise.set(Err(error)),
        }
    })
}

/// The future of `promise`, which `work` completes from a value that is ready, in a task named as the promise. An error
/// of the source passes by the executor.
fn derived_on<E: Executor + ?Sized + 'static, T: Send + Sync + 'static, U: Send + Sync + 'static>(
    source: &AsyncValue<T>,
    executor: &Arc<E>,
    skippable: bool,
    promise: Promise<U>,
    work: impl FnOnce(AsyncValue<T>, Promise<U>) + Send + 'static,
) -> Future<U> {
    promise.0.owes_to(source.as_event());
    let (future, executor) = (promise.future(), Arc::clone(executor));
    source.and_then_owned(move |value| {
        if skippable && !promise.is_observed() {
            return;
        }
        if let Some(error) = value.error() {
            // No other thread sets it.
            let _ = promise.set(Err(error));
            return;
        }
        let label = promise.0.as_event().label();
        submit(&*executor, label, promise, move |promise| work(value, promise));
    });
    future
}

impl<T: Send + Sync + 'static> Future<T> {
    /// Calls `f` once with the value or the error, on `executor`, even if the future is complete already. If the
    /// executor refuses or drops the task, `f` is called with [`Cancelled`](purlin_base::StatusCode::Cancelled), on the
    /// thread where that happens.
    pub fn on_ready_on<E: Executor + ?Sized + 'static>(
        &self,
        executor: &Arc<E>,
        f: impl FnOnce(Result<&T, &Error>) + Send + 'static,
    ) {
        self.0.and_then_on(executor, f);
    }

    /// The value of `f`, which runs on `executor`, even if this is complete already. An error of this one, a panic of
    /// `f` and a refusal of the executor are errors of the result; errors do not pass through the executor. `f` is
    /// **not called**, and the executor not asked, if by then the new future has no holder and no waiter.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use purlin::{Future, ThreadPool, ThreadPoolOptions};
    ///
    /// let pool = Arc::new(ThreadPool::new(&ThreadPoolOptions { thread_count: 1, ..Default::default() })?);
    /// let on = Arc::clone(&pool);
    /// let thread = Future::ready(()).map_on(&pool, move |()| on.current_thread());
    /// assert_eq!(thread.wait(), Ok(&Some(0)), "it ran on the pool's only thread");
    /// # Ok::<(), purlin::Error>(())
    /// ```
    #[must_use = "a map that is not used may not be computed"]
    #[track_caller]
    pub fn map_on<E: Executor + ?Sized + 'static, U: Send + Sync + 'static>(
        &self,
        executor: &Arc<E>,
        f: impl FnOnce(&T) -> U + Send + 'static,
    ) -> Future<U> {
        self.try_map_on(executor, move |value| Ok(f(value)))
    }

    /// As [`map_on`](Self::map_on), for an `f` that may fail.
    #[must_use = "a map that is not used may not be computed"]
    #[track_caller]
    pub fn try_map_on<E: Executor + ?Sized + 'static, U: Send + Sync + 'static>(
        &self,
        executor: &Arc<E>,
        f: impl FnOnce(&T) -> Result<U, Error> + Send + 'static,
    ) -> Future<U> {
        computed_on(&self.0, executor, true, f)
    }

    /// What the future of `f` becomes; `f` is called as in [`map_on`](Self::map_on).
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use purlin::{Future, ThreadPool, ThreadPoolOptions, future_on};
    ///
    /// let pool = Arc::new(ThreadPool::new(&ThreadPoolOptions { thread_count: 1, ..Default::default() })?);
    /// let on = Arc::clone(&pool);
    /// let next = Future::ready(4).flat_map_on(&pool, move |&number| future_on(&*on, c"next", move || Ok(number + 1)));
    /// assert_eq!(next.wait(), Ok(&5));
    /// # Ok::<(), purlin::Error>(())
    /// ```
    #[must_use = "a map that is not used may not be computed"]
    #[track_caller]
    pub fn flat_map_on<E: Executor + ?Sized + 'static, U: Send + Sync + 'static>(
        &self,
        executor: &Arc<E>,
        f: impl FnOnce(&T) -> Future<U> + Send + 'static,
    ) -> Future<U> {
        flattened_on(&self.0, executor, true, f)
    }

    /// The same value or error, completed by a task of `executor`, so that what waits for the new future runs there and
    /// not on the thread that completes this one. This future itself if it is complete. If the new future has no holder
    /// and no waiter by the time that this one completes, the executor is not asked.
    #[must_use]
    #[track_caller]
    pub fn detach<E: Executor + ?Sized + 'static>(&self, executor: &Arc<E>) -> Self {
        if self.is_ready() {
            return self.clone();
        }
        let promise = Promise::derived_linked(c"Detach");
        promise.0.owes_to(self.0.as_event());
        let (detached, executor) = (promise.future(), Arc::clone(executor));
        self.on_ready_owned(move |source| {
            if promise.is_observed() {
                submit(&*executor, Label::new(c"Detach"), promise, move |promise| promise.forward(&source));
            }
        });
        detached
    }
}
