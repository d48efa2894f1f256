//! A fixed number of named threads with a queue each. A task scheduled by a worker goes to that worker's queue, one from
//! outside to the shared queue; idle workers steal. Tasks of one queue start in the order in which they were scheduled.
//!
//! # Shutdown
//! 1. Every queue is closed: from here on each new task, also of a running task, is refused with `Cancelled` and dropped.
//! 2. All workers are woken; they run what is queued and end when all queues are empty.
//! 3. The thread that shuts down joins them, then checks that no task is left.
//!
//! Tasks that still wait for events belong to those events; they are refused when their events complete. The last handle
//! shuts the pool down. If it goes on a worker of this pool (a task held it), that worker cannot join itself: the threads
//! then end on their own after step 2.

use std::sync::Arc;
use std::thread::JoinHandle;

use super::parallelism::Parallelism;
use super::{AsyncWorkRunner, Executor, Task, parallel_for, worker};
use crate::event::{Event, EventPromise, when_all};
use crate::label::Label;
use crate::status::{Status, StatusOr};
use crate::sync::Mutex;

use super::worker::Shared;

/// The most threads that one pool may have.
pub const MAX_THREADS: usize = 4096;

/// How to make a pool.
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

/// A handle to a pool; clones share it, and the last one to go shuts it down.
#[derive(Clone, Debug)]
pub struct ThreadPool(Arc<Handle>);

/// What the handles share. The workers hold `shared` only, so that this goes with the last handle.
#[derive(Debug)]
struct Handle {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Happens when the threads have been joined (or let go).
    stopped: EventPromise,
    name: String,
    reason: String,
}

impl ThreadPool {
    /// Starts the threads.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::StatusCode::InvalidArgument): more than [`MAX_THREADS`], or a name that is empty or has a
    /// NUL. [`ResourceExhausted`](crate::StatusCode::ResourceExhausted): the system refused a thread; none is left running.
    pub fn new(options: &ThreadPoolOptions) -> StatusOr<Self> {
        let ThreadPoolOptions { thread_count, ref name } = *options;
        if thread_count > MAX_THREADS {
            return Err(Status::invalid_argument(format!(
                "thread_count is {thread_count}; a pool has at most {MAX_THREADS} threads"
            )));
        }
        if name.is_empty() || name.contains('\0') {
            return Err(Status::invalid_argument(format!("{name:?} is no name for threads: it is empty or has a NUL")));
        }
        let (thread_count, reason) = match thread_count {
            0 => {
                let granted = Parallelism::detect();
                (granted.threads.clamp(1, MAX_THREADS), granted.reason)
            }
            _ => (thread_count, format!("{thread_count} threads: chosen by the caller")),
        };
        let pool = Self(Arc::new(Handle {
            shared: Arc::new(Shared::new(thread_count)),
            threads: Mutex::new(Vec::with_capacity(thread_count)),
            stopped: EventPromise::new(c"pool stopped"),
            name: name.clone(),
            reason,
        }));
        for index in 0..thread_count {
            // On an error the pool is dropped, which stops and joins the threads that did start.
            let thread = worker::spawn(&pool.0.shared, index, name)?;
            pool.0.threads.lock().push(thread);
        }
        Ok(pool)
    }

    /// Number of threads.
    #[must_use]
    pub fn num_threads(&self) -> usize {
        self.0.shared.thread_count()
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
    pub fn schedule(&self, label: impl Into<Label>, closure: impl FnOnce() + Send + 'static) -> Result<(), Status> {
        self.execute(Task::new(label, closure))
    }

    /// Shuts the pool down as the module says, and blocks until that is done; a second call waits for the first.
    ///
    /// # Errors
    /// [`FailedPrecondition`](crate::StatusCode::FailedPrecondition), and nothing happens, on a thread of this pool.
    pub fn shutdown(&self) -> Result<(), Status> {
        if self.0.shared.is_current() {
            let name = &self.0.name;
            return Err(Status::failed_precondition(format!("pool '{name}' cannot be shut down by a task of its own")));
        }
        self.0.stop();
        self.0.stopped.event().wait()
    }
}

impl Handle {
    /// Steps 1 to 3, once.
    fn stop(&self) {
        self.shared.close();
        let threads = std::mem::take(&mut *self.threads.lock());
        if threads.is_empty() {
            return;
        }
        if !self.shared.is_current() {
            for thread in threads {
                // An error would be a panic of the worker itself, which catches those of its tasks.
                let _ = thread.join();
            }
            debug_assert!(self.shared.is_drained(), "workers end only when no task is left");
        }
        self.stopped.set_ready();
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.stop();
        self.stopped.set_ready();
    }
}

impl Executor for ThreadPool {
    fn execute(&self, task: Task) -> Result<(), Status> {
        self.0.shared.submit(task).map_err(|refused| refusal(&self.0.name, refused))
    }
}

/// Drops a task that came too late, which tells those to whom it owed something, and says so to the caller.
fn refusal(name: &str, task: Task) -> Status {
    let label = task.label();
    drop(task);
    Status::cancelled(format!("pool '{name}' has shut down and refused task '{label}'"))
}

impl AsyncWorkRunner for ThreadPool {
    fn schedule_when_ready(&self, events: &[Event], task: Task) -> Result<(), Status> {
        let gate = when_all(events);
        if gate.is_ready() {
            return self.execute(task);
        }
        // Not the handle: an event that never comes must not keep the pool.
        let shared = Arc::clone(&self.0.shared);
        gate.on_ready(move |_either_way| {
            if let Err(refused) = shared.submit(task) {
                tracing::debug!(target: "purlin", label = %refused.label(), "a task came after its pool's shutdown");
            }
        });
        Ok(())
    }

    fn parallel_for(
        &self,
        count: usize,
        grain: usize,
        body: &(dyn Fn(std::ops::Range<usize>) -> Result<(), Status> + Sync),
    ) -> Result<(), Status> {
        parallel_for::run(&self.0.shared, count, grain, body)
    }
}
