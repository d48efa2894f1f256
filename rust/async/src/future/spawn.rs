//! Rust's `async` on an executor of ours.
//!
//! States: IDLE (a waker is held), SCHEDULED (a task is on its way), RUNNING (a thread polls), NOTIFIED (woken while
//! running: the thread that polls gives the next task), DONE.
//!
//! ```text
//!   IDLE -- wake --> SCHEDULED -- task runs --> RUNNING -- pending --> IDLE
//!                     ^  '-- task dropped --> DONE   |  '-- ready --> DONE
//!                     '---- pending --- NOTIFIED <---' wake
//! ```
//!
//! The thread that moves the state to RUNNING or DONE owns the future inside until the next step, so it is polled by
//! one thread at a time and polled or dropped under no lock. Steps are acquire and release: a poll sees what the one
//! before did. When the last waker is dropped in IDLE, nothing can wake the future any more: it is dropped, and its
//! promise with it.
//!
//! A task that is dropped uncalled fails the promise with the executor's answer, if that is an error, else with
//! [`Cancelled`](purlin_base::StatusCode::Cancelled). As in `on.rs`, the submitter and the dropped task settle by two
//! flags which of them gives up. At most one task is not yet called or dropped; submitters may overlap, as its thread
//! may submit again before the first has returned, and then each may find the flag of the other's task.

use std::future::Future as RustFuture;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use crate::event::{Event, guarded, refusal};
use crate::future::on::dropped;
use crate::future::{Future, Promise};
use crate::task::{Executor, Task};
use crate::user_context::{UserContext, UserContextScope};
use purlin_base::label::Label;
use purlin_base::panics::reported;
use purlin_base::status::Error;
use purlin_base::sync::Mutex;
use purlin_base::sync::atomic::AtomicU8;
use purlin_base::sync::atomic::Ordering::{AcqRel, Acquire, Release};

/// Polls `future` on `executor` until it is complete; `label` names its tasks. A panic in it, and an executor that
/// refuses or drops a task, are errors of the result. Dropping the result does not stop it.
///
/// ```
/// use std::sync::Arc;
///
/// use purlin::{Event, ThreadPool, ThreadPoolOptions, spawn};
///
/// let pool = Arc::new(ThreadPool::new(&ThreadPoolOptions { thread_count: 1, ..Default::default() })?);
/// let answer = spawn(pool, c"answer", async {
///     let waited = Event::ready().await;
///     waited.map_or(0, |()| 42)
/// });
/// assert_eq!(answer.wait(), Ok(&42));
/// # Ok::<(), purlin::Error>(())
/// ```
#[track_caller]
pub fn spawn<T: Send + Sync + 'static>(
    executor: Arc<dyn Executor>,
    label: impl Into<Label>,
    future: impl RustFuture<Output = T> + Send + 'static,
) -> Future<T> {
    spawn_boxed(executor, label.into(), Box::pin(async move { Ok(future.await) }))
}

/// As [`spawn`], for a future that may fail.
///
/// ```
/// use std::sync::Arc;
///
/// use purlin::{EventPromise, InlineExecutor, Error, try_spawn};
///
/// let promise = EventPromise::new(c"bytes");
/// let bytes = promise.event();
/// let length = try_spawn(Arc::new(InlineExecutor), c"measure", async move {
///     bytes.await?;
///     Ok(512)
/// });
/// promise.set_error(Error::unavailable("no link"));
/// assert_eq!(length.wait(), Err(Error::unavailable("no link")));
/// ```
#[track_caller]
pub fn try_spawn<T: Send + Sync + 'static>(
    executor: Arc<dyn Executor>,
    label: impl Into<Label>,
    future: impl RustFuture<Output = Result<T, Error>> + Send + 'static,
) -> Future<T> {
    spawn_boxed(executor, label.into(), Box::pin(future))
}

type Boxed<T> = Pin<Box<dyn RustFuture<Output = Result<T, Error>> + Send>>;

#[track_caller]
fn spawn_boxed<T: Send + Sync + 'static>(executor: Arc<dyn Executor>, label: Label, future: Boxed<T>) -> Future<T> {
    let promise = Promise::derived(label);
    let result = promise.future();
    let work = Work { future, promise };
    let (state, submission) = (AtomicU8::new(SCHEDULED), AtomicU8::new(0));
    let context = UserContext::current();
    Arc::new(Spawned { state, submission, work: Mutex::new(Some(work)), executor, label, context }).submit();
    result
}

/// A thread is in the executor's `execute`.
const SUBMITTING: u8 = 1;
/// The task was dropped uncalled meanwhile.
const UNCALLED: u8 = 2;

const IDLE: u8 = 0;
const SCHEDULED: u8 = 1;
const RUNNING: u8 = 2;
const NOTIFIED: u8 = 3;
const DONE: u8 = 4;

/// What is left to do.
struct Work<T: Send + Sync + 'static> {
    future: Boxed<T>,
    promise: Promise<T>,
}

struct Spawned<T: Send + Sync + 'static> {
    state: AtomicU8,
    /// [`SUBMITTING`] and [`UNCALLED`].
    submission: AtomicU8,
    /// There except while it is polled, and gone in DONE. The state says whose it is; the lock only carries it.
    work: Mutex<Option<Work<T>>>,
    executor: Arc<dyn Executor>,
    label: Label,
    /// Where it was spawned: it is polled there, whichever thread woke it.
    context: Option<UserContext>,
}

impl<T: Send + Sync + 'static> Spawned<T> {
    /// Gives the next task to the executor; the state is SCHEDULED.
    fn submit(self: Arc<Self>) {
        let (executor, label) = (Arc::clone(&self.executor), self.label);
        let spawned = Arc::clone(&self);
        let mut turn = Turn(Some(self));
        spawned.submission.fetch_or(SUBMITTING, AcqRel);
        let answer = guarded("Executor::execute", || executor.execute(Task::new(label, move || turn.take())));
        let uncalled = spawned.submission.fetch_and(!(SUBMITTING | UNCALLED), AcqRel) & UNCALLED != 0;
        match answer {
            // The state says whether the executor has run the task all the same.
            Err(refusal) => spawned.give_up(refusal),
            Ok(()) if uncalled => spawned.give_up(dropped(label)),
            Ok(()) => {}
        }
    }

    /// Polls once; the task is running.
    fn run(self: Arc<Self>) {
        if self.state.compare_exchange(SCHEDULED, RUNNING, AcqRel, Acquire).is_err() {
            // Given up.
            return;
        }
        let Some(mut work) = self.work.lock().take() else { return };
        let waker = Waker::from(Arc::clone(&self));
        let scope = self.context.clone().map_or_else(UserContextScope::none, UserContextScope::new);
        let polled = guarded("spawn", || Ok(work.future.as_mut().poll(&mut Context::from_waker(&waker))));
        drop(scope);
        match polled {
            Ok(Poll::Pending) => {
                *self.work.lock() = Some(work);
                if self.state.compare_exchange(RUNNING, IDLE, AcqRel, Acquire).is_err() {
                    // NOTIFIED: no other thread moves it on.
                    self.state.store(SCHEDULED, Release);
                    // As a waiter, so that an executor that runs tasks inside execute() does not nest without a bound.
                    Event::ready().on_ready(move |_| self.submit());
                }
            }
            Ok(Poll::Ready(result)) => self.finish(work, result),
            Err(panic) => self.finish(work, Err(panic)),
        }
    }

    /// The task was dropped uncalled.
    fn give_up(&self, error: Error) {
        if self.state.compare_exchange(SCHEDULED, DONE, AcqRel, Acquire).is_err() {
            return;
        }
        let work = self.work.lock().take();
        if let Some(work) = work {
            self.finish(work, Err(error));
        }
    }

    fn finish(&self, work: Work<T>, result: Result<T, Error>) {
        self.state.store(DONE, Release);
        let Work { future, promise } = work;
        // What it holds is dropped before its waiters are notified of its end.
        reported(|| "the destructor of a spawned future", || drop(future));
        // No other thread sets it.
        let _ = promise.set(result);
    }
}

impl<T: Send + Sync + 'static> Wake for Spawned<T> {
    fn wake(self: Arc<Self>) {
        let mut state = self.state.load(Acquire);
        loop {
            let next = match state {
                IDLE => SCHEDULED,
                RUNNING => NOTIFIED,
                // On its way already, or over.
                _ => return,
            };
            match self.state.compare_exchange_weak(state, next, AcqRel, Acquire) {
                Ok(IDLE) => return self.submit(),
                Ok(_) => return,
                Err(now) => state = now,
            }
        }
    }
}

/// What a task owes: one run, or giving up.
struct Turn<T: Send + Sync + 'static>(Option<Arc<Spawned<T>>>);

impl<T: Send + Sync + 'static> Turn<T> {
    fn take(&mut self) {
        if let Some(spawned) = mem::take(&mut self.0) {
            spawned.run();
        }
    }
}

impl<T: Send + Sync + 'static> Drop for Turn<T> {
    fn drop(&mut self) {
        if let Some(spawned) = mem::take(&mut self.0) {
            if let Some(reason) = refusal::reason() {
                spawned.give_up(reason);
            } else if spawned.submission.fetch_or(UNCALLED, AcqRel) & SUBMITTING == 0 {
                spawned.give_up(dropped(spawned.label));
            }
        }
    }
}

#[cfg(all(test, not(purlin_model)))]
mod tests;
