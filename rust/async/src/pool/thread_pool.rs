//! A fixed number of named threads. A task scheduled by a worker goes to that worker, which runs the newest first; one
//! from outside goes to a queue for all, which workers empty in order, in small batches; idle workers steal. With one
//! worker, tasks from outside start in exactly the order in which they were scheduled.
//!
//! # Shutdown
//! 1. The queue for all is closed, then the pool: from here on each new task, also of a running task, is refused with
//!    `Cancelled` and dropped.
//! 2. All workers and resting spares are woken. They run what is queued, or, if it is to be cancelled, drop it, and end
//!    when nothing is left. What a dropped task owed completes with an error.
//! 3. The thread that shuts down waits until all have ended, at most for the timeout. After that, what has not
//!    begun is cancelled, and whatever still runs a moment later ([`GRACE`]) is reported by label and left to end on
//!    its own.
//! 4. It joins the threads and checks that no task is left.
//!
//! Tasks that still wait for events belong to those events; they are refused when their events complete. The last
//! handle shuts the pool down, without a timeout. If it is dropped on a worker of this pool (a task held it), or after
//! a shutdown that took longer than its timeout, the threads end on their own after step 2.
//!
//! In a child made by `fork` the threads are not there: tasks are refused, nothing is waited for, and a thread that
//! returns from the task in which it forked ends.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::parallelism::Parallelism;
use super::relief::Relief;
use super::submitter::PoolSubmitter;
use super::threads;
use super::threads::Starter;
use super::worker::{PoolShared, Spares};
use super::{fork_join, parallel_for};
use crate::event::{Event, when_all};
use crate::task::shutdown::{ShutdownMode, ShutdownOptions, by_own_task, is_late, late, refused};
use crate::task::{AsyncWorkRunner, Executor, Priority, Task, TaskOptions, census, fork};
use purlin_base::fault::{self, Site};
use purlin_base::label::Label;
use purlin_base::status::{Error, StatusOr};
use purlin_base::sync::atomic::AtomicBool;
use purlin_base::sync::atomic::Ordering::Relaxed;

/// The most threads that one pool may have.
pub const MAX_THREADS: usize = 4096;
/// The most spare threads that a pool may start for workers whose tasks wait. The system refuses further ones at about
/// 30 000, because of the stacks; the difference is left for the rest of the process.
pub const MAX_SPARES: usize = 16384;
/// The fewest and the most spare threads that rest when they are not needed any more; in between, as many as the pool
/// has threads.
const AT_REST: (usize, usize) = (8, 64);
/// How long threads may take to notice that they are to end.
const GRACE: Duration = Duration::from_millis(50);

/// How to make a pool.
///
/// ```
/// use purlin::{StatusCode, ThreadPool, ThreadPoolOptions};
///
/// let options = ThreadPoolOptions { thread_count: 2, name: "decode".to_owned() };
/// assert_eq!(ThreadPool::new(&options)?.num_threads(), 2);
/// let options = ThreadPoolOptions { thread_count: 5000, ..options };
/// assert_eq!(ThreadPool::new(&options).unwrap_err().code(), StatusCode::InvalidArgument);
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ThreadPoolOptions {
    /// Threads; 0 takes what [`Parallelism::detect`] grants. At most [`MAX_THREADS`].
    pub thread_count: usize,
    /// Threads are named `name/0`, `name/1`, ...; the kernel keeps 15 bytes.
    pub name: String,
}

impl Default for ThreadPoolOptions {
    fn default() -> Self {
        Self { thread_count: 0, name: "purlin".to_owned() }
    }
}

/// A handle to a pool; clones share it, and the last one to be dropped shuts it down.
///
/// ```
/// use purlin::{EventPromise, ThreadPool, ThreadPoolOptions};
///
/// let pool = ThreadPool::new(&ThreadPoolOptions { thread_count: 2, ..Default::default() })?;
/// let promise = EventPromise::new(c"answer");
/// let event = promise.event();
/// pool.schedule(c"compute", move || _ = promise.set_ready())?;
/// event.wait()?;
/// pool.shutdown()?;
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ThreadPool(Arc<Handle>);

/// What the handles share. The workers hold `shared` only, so that this is dropped with the last handle.
#[derive(Debug)]
struct Handle {
    shared: Arc<PoolShared>,
    /// A shutdown has passed its timeout.
    gave_up: AtomicBool,
    name: String,
    reason: String,
}

impl ThreadPool {
    /// Starts the threads.
    ///
    /// # Errors
    /// [`InvalidArgument`](purlin_base::StatusCode::InvalidArgument): more than [`MAX_THREADS`], or a name that is
    /// empty or has a NUL. [`ResourceExhausted`](purlin_base::StatusCode::ResourceExhausted): the system refused a
    /// thread; none is left running.
    pub fn new(options: &ThreadPoolOptions) -> StatusOr<Self> {
        Self::with_starter(options, threads::of_the_system())
    }

    pub(super) fn with_starter(options: &ThreadPoolOptions, starter: Starter) -> StatusOr<Self> {
        Self::with_parts(options, starter, Relief::of_the_system())
    }

    pub(super) fn with_parts(options: &ThreadPoolOptions, starter: Starter, relief: Relief) -> StatusOr<Self> {
        let ThreadPoolOptions { thread_count, ref name } = *options;
        if thread_count > MAX_THREADS {
            return Err(Error::invalid_argument(format!(
                "thread_count is {thread_count}; a pool has at most {MAX_THREADS} threads"
            )));
        }
        if name.is_empty() || name.contains('\0') {
            return Err(Error::invalid_argument(format!("{name:?} is no name for threads: it is empty or has a NUL")));
        }
        let (thread_count, reason) = match thread_count {
            0 => {
                let granted = Parallelism::detect();
                (granted.threads.clamp(1, MAX_THREADS), granted.reason)
            }
            _ => (thread_count, format!("{thread_count} threads: chosen by the caller")),
        };
        let spares = Spares { most: MAX_SPARES, at_rest: thread_count.clamp(AT_REST.0, AT_REST.1) };
        let shared = PoolShared::new(name, thread_count, spares, starter, relief);
        let pool = Self(Arc::new(Handle { shared, gave_up: AtomicBool::new(false), name: name.clone(), reason }));
        let shared = &pool.0.shared;
        census::enlist(Arc::downgrade(&(Arc::clone(shared) as Arc<dyn census::Occupied>)));
        // On an error the pool is dropped, which stops and joins the threads that did start.
        let started = (0..thread_count).try_for_each(|index| {
            fault::spawn(Site::SpawnWorker).and_then(|()| shared.start(index)).map_err(|error| {
                Error::resource_exhausted(format!(
                    "could not start thread {index} of the {thread_count} of pool '{name}': {error}"
                ))
            })
        });
        shared.left();
        started.map(|()| pool)
    }

    /// Number of threads.
    #[must_use]
    pub fn num_threads(&self) -> usize {
        self.0.shared.thread_count()
    }

    /// Which of this pool's threads this is, from 0; spare threads (see the module of pools) are numbered from
    /// [`num_threads`](Self::num_threads). `None` on every other thread. While a task runs, its thread does not change.
    #[must_use]
    pub fn current_thread(&self) -> Option<usize> {
        self.0.shared.current_seat()
    }

    /// Schedules on this pool without keeping it.
    #[must_use]
    pub fn submitter(&self) -> PoolSubmitter {
        PoolSubmitter::new(&self.0.shared)
    }

    /// One line: how many threads, and which limit decided that.
    #[must_use]
    pub fn describe(&self) -> String {
        format!("pool '{}': {}", self.0.name, self.0.reason)
    }

    /// [`Executor::execute`], with a closure and its label.
    ///
    /// # Errors
    /// As [`Executor::execute`].
    pub fn schedule(&self, label: impl Into<Label>, closure: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        self.execute(Task::new(label, closure))
    }

    /// Workers that sleep or search.
    #[cfg(all(test, not(purlin_model)))]
    pub(super) fn idle_count(&self) -> usize {
        self.0.shared.idle_count()
    }

    #[cfg(all(test, not(purlin_model)))]
    pub(super) fn asleep(&self) -> usize {
        self.0.shared.idle.asleep()
    }

    /// Whether workers may be kept from cores.
    #[cfg(all(test, target_os = "linux", not(purlin_model)))]
    pub(super) fn may_part(&self) -> bool {
        self.0.shared.idle.may_part()
    }

    /// Which threads work, wait and rest, in words.
    #[cfg(test)]
    pub(super) fn describe_roles(&self) -> String {
        self.0.shared.roles.describe()
    }

    fn submit(&self, task: Task, priority: Priority) -> Result<(), Error> {
        if !self.0.shared.is_here() {
            return Err(refused(task, self.0.refusal_of_child()));
        }
        if let Err(error) = fault::point(Site::Submit) {
            return Err(refused(task, error));
        }
        self.0.shared.submit(task, priority).map_err(|task| late(format_args!("pool '{}'", self.0.name), task))
    }

    /// Calls `a` and `b`, perhaps at the same time, and returns when both have returned. A task of this pool calls `a`
    /// itself and lends `b` to a worker that is idle; it works for others while it waits. On another thread, the pool
    /// does both and this blocks. After shutdown both are called here. Allocates nothing on a thread of the pool.
    ///
    /// # Panics
    /// If `a` or `b` panics, with the payload of `a`, or else of `b`, after both have ended; `b` may then not have
    /// begun. With an [`Error`], past the panic hook, where [`try_join`](Self::try_join) is an error.
    ///
    /// # Examples
    /// ```
    /// use purlin::{ThreadPool, ThreadPoolOptions};
    ///
    /// fn sum(pool: &ThreadPool, values: &[u64]) -> u64 {
    ///     if values.len() <= 2 {
    ///         return values.iter().sum();
    ///     }
    ///     let (left, right) = values.split_at(values.len() / 2);
    ///     let (left, right) = pool.join(|| sum(pool, left), || sum(pool, right));
    ///     left + right
    /// }
    ///
    /// let pool = ThreadPool::new(&ThreadPoolOptions { thread_count: 2, ..Default::default() })?;
    /// assert_eq!(sum(&pool, &[1, 2, 3, 4, 5, 6, 7]), 28);
    /// # Ok::<(), purlin::Error>(())
    /// ```
    #[inline]
    pub fn join<A, B, RA, RB>(&self, a: A, b: B) -> (RA, RB)
    where
        A: FnOnce() -> RA + Send,
        B: FnOnce() -> RB + Send,
        RA: Send,
        RB: Send,
    {
        self.try_join(a, b).unwrap_or_else(|lost| std::panic::resume_unwind(Box::new(lost)))
    }

    /// As [`join`](Self::join).
    ///
    /// # Errors
    /// [`FailedPrecondition`](purlin_base::StatusCode::FailedPrecondition), in a child that `a` made by `fork` after
    /// another thread had begun `b`: that thread exists in the parent only. The result of `a` is dropped; what `b`
    /// holds is not dropped.
    ///
    /// # Panics
    /// If `a` or `b` does, as `join`.
    #[inline]
    pub fn try_join<A, B, RA, RB>(&self, a: A, b: B) -> StatusOr<(RA, RB)>
    where
        A: FnOnce() -> RA + Send,
        B: FnOnce() -> RB + Send,
        RA: Send,
        RB: Send,
    {
        if !self.0.shared.is_here() {
            return Ok((a(), b()));
        }
        fork_join::join(&self.0.shared, a, b).ok_or_else(|| self.0.refusal_of_child())
    }

    /// [`shutdown_with`](Self::shutdown_with), which drains and has no timeout.
    ///
    /// # Errors
    /// As there.
    pub fn shutdown(&self) -> Result<(), Error> {
        self.shutdown_with(ShutdownOptions::default())
    }

    /// Shuts the pool down as the module says, and blocks until that is done; a second call waits for the first.
    ///
    /// # Errors
    /// [`FailedPrecondition`](purlin_base::StatusCode::FailedPrecondition), and nothing happens: on a thread of this
    /// pool, or in a child made by `fork`. [`DeadlineExceeded`](purlin_base::StatusCode::DeadlineExceeded): tasks still
    /// run, named in the message; their threads end after them.
    pub fn shutdown_with(&self, options: ShutdownOptions) -> Result<(), Error> {
        self.check_shutdown()?;
        self.0.stop(options)
    }

    /// Whether this thread may shut the pool down.
    ///
    /// # Errors
    /// `FailedPrecondition`: as [`shutdown_with`](Self::shutdown_with).
    pub fn check_shutdown(&self) -> Result<(), Error> {
        if !self.0.shared.is_here() {
            return Err(self.0.refusal_of_child());
        }
        if self.0.shared.is_current() {
            return Err(by_own_task(format_args!("pool '{}'", self.0.name)));
        }
        Ok(())
    }
}

impl Handle {
    fn refusal_of_child(&self) -> Error {
        fork::refusal(format_args!("pool '{}'", self.name))
    }

    /// Steps 1 to 4, on a thread that is not the pool's.
    fn stop(&self, ShutdownOptions { mode, timeout }: ShutdownOptions) -> Result<(), Error> {
        let shared = &self.shared;
        let began = Instant::now();
        shared.close();
        if mode == ShutdownMode::CancelPending {
            shared.cancel();
        }
        let ended = shared.ended();
        let Some(timeout) = timeout else {
            ended.wait_uninterruptible()?;
            return self.finish();
        };
        if !is_late(&ended.wait_uninterruptible_for(timeout)) {
            return self.finish();
        }
        shared.cancel();
        if !is_late(&ended.wait_uninterruptible_for(GRACE)) {
            return self.finish();
        }
        self.gave_up.store(true, Relaxed);
        let running: Vec<_> = shared.running().iter().map(|label| format!("'{label}'")).collect();
        let (name, running) = (&self.name, running.join(", "));
        Err(Error::deadline_exceeded(format!(
            "pool '{name}' was still running {running} {:?} after its shutdown began, with a timeout of {timeout:?}",
            began.elapsed()
        )))
    }

    /// Step 4.
    fn finish(&self) -> Result<(), Error> {
        self.shared.threads.join();
        debug_assert!(!self.shared.has_work(), "workers end only when no task is left");
        Ok(())
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if !self.shared.is_here() {
            // Its tasks are the parent's, and so are the records of its threads.
            return std::mem::forget(Arc::clone(&self.shared));
        }
        if self.gave_up.load(Relaxed) || self.shared.is_current() {
            self.shared.close();
            return self.shared.threads.let_go();
        }
        // Without a timeout, nothing can fail.
        let _ = self.stop(ShutdownOptions::default());
    }
}

impl Executor for ThreadPool {
    fn execute(&self, task: Task) -> Result<(), Error> {
        self.submit(task, Priority::Normal)
    }

    /// Tasks of high priority go before everything that has not begun; those of low priority when there is nothing
    /// else, but are not starved. A task that may block needs no hint here: a worker that waits is stood in for.
    fn execute_with(&self, task: Task, options: &TaskOptions) -> Result<(), Error> {
        self.submit(options.apply(task)?, options.priority)
    }
}

impl AsyncWorkRunner for ThreadPool {
    fn schedule_when_ready(&self, events: &[Event], task: Task) -> Result<(), Error> {
        let gate = when_all(events);
        if gate.is_ready() {
            return self.execute(task);
        }
        // Not the handle: an event that never completes must not keep the pool.
        let submitter = self.submitter();
        gate.on_ready(move |_either_way| {
            if let Err(error) = submitter.execute(task) {
                tracing::debug!(target: "purlin", %error, "a task could not be scheduled when its events had happened");
            }
        });
        Ok(())
    }

    fn parallel_for(
        &self,
        count: usize,
        grain: usize,
        body: &(dyn Fn(std::ops::Range<usize>) -> Result<(), Error> + Sync),
    ) -> Result<(), Error> {
        if !self.0.shared.is_here() {
            return parallel_for::alone(count, grain, body);
        }
        parallel_for::run(&self.0.shared, count, grain, body)
    }
}
