//! Who runs asynchronous work.
//!
//! [`Executor`] takes a [`Task`]; [`AsyncWorkRunner`] also understands events and loops; [`ThreadPool`] is ours. A runner
//! that refuses a task drops its closure before it returns, so what the closure owed is told: no completion is lost.
//!
//! Files: `task.rs` the closure; `deque.rs`, `injector.rs` and `idle.rs` the protocols under the pool; `worker.rs` what
//! a thread does, `blocking.rs` what it does when a task waits, `relief.rs` when it waits unseen, `roles.rs` which
//! thread stands in for which, `seats.rs` where they sit; `fork_join.rs` and `parallel_for.rs` work that is shared and
//! waited for; `threads.rs`, `pool.rs` and `fork.rs` how a pool begins and ends; `parallelism` how many threads this
//! machine grants. Models: `loom_model.rs` and, the whole pool, `shuttle_model.rs`.
//!
//! Services over any executor: `options.rs` what may be said about a task, `cancel.rs` calling it off, `timer` deadlines,
//! `semaphore.rs` how much at a time. Other executors: `inline.rs`, `serial_queue.rs`, `elastic_pool.rs`. `guard.rs` calls
//! strangers for them, `census.rs` knows all executors. `driver.rs` is what other threads that complete events do when they
//! wait: those of the timers and of backends.

#![allow(unsafe_code, reason = "tasks are intrusive and shared with C++; loops lend their body to other threads")]

mod blocking;
pub mod cancel;
// Statics, which models cannot have.
#[cfg_attr(any(loom, shuttle), path = "census_model.rs")]
pub(crate) mod census;
mod deque;
pub(crate) mod driver;
// Threads of std, which models cannot explore.
#[cfg(not(any(loom, shuttle)))]
pub mod elastic_pool;
#[cfg(not(any(loom, shuttle)))]
mod elastic_waits;
pub(crate) mod fork;
mod fork_join;
pub(crate) mod guard;
mod idle;
mod injector;
pub mod inline;
pub mod options;
mod parallel_for;
pub mod parallelism;
mod pool;
#[cfg_attr(any(loom, shuttle), path = "relief_model.rs")]
mod relief;
mod roles;
mod seats;
pub mod semaphore;
pub mod serial_queue;
pub mod task;
mod threads;
#[cfg(not(any(loom, shuttle)))]
pub mod timer;
mod waits;
mod worker;

use std::ops::Range;

use crate::event::Event;
use crate::status::Status;

pub use options::{Priority, TaskOptions};
pub use pool::{MAX_SPARES, MAX_THREADS, ShutdownMode, ShutdownOptions, ThreadPool, ThreadPoolOptions};
pub use task::Task;
pub use threads::STACK_SIZE_BYTES;

/// The field's name for [`ThreadPool`], as C++ has it.
pub type ThreadPoolAsyncWorkRunner = ThreadPool;

/// Something that runs tasks: a pool of ours, or one of yours.
pub trait Executor: Send + Sync {
    /// Takes `task` to be run once, on a thread of the executor's choosing, in general after this returns. Does not block
    /// on other tasks.
    ///
    /// # Errors
    /// The task was dropped uncalled: [`Cancelled`](crate::StatusCode::Cancelled) after shutdown.
    fn execute(&self, task: Task) -> Result<(), Status>;

    /// As [`execute`](Self::execute), unless the task's token is cancelled or its deadline has passed, now or when its turn
    /// comes: then it is dropped uncalled, which tells those to whom it owed something, and counted
    /// ([`options::dropped_tasks`]). An executor that knows what to do with the hints overrides this.
    ///
    /// # Errors
    /// As [`execute`](Self::execute); the token's reason; [`DeadlineExceeded`](crate::StatusCode::DeadlineExceeded). The
    /// task was dropped uncalled.
    fn execute_with(&self, task: Task, options: &TaskOptions) -> Result<(), Status> {
        self.execute(options.apply(task)?)
    }
}

/// An executor that also understands events and loops.
pub trait AsyncWorkRunner: Executor {
    /// Runs `task` after all of `events` are terminal, whether they happened or failed. Never blocks. If the runner has
    /// shut down by then, the task is dropped uncalled.
    ///
    /// # Errors
    /// As [`execute`](Executor::execute), when all events are terminal already.
    fn schedule_when_ready(&self, events: &[Event], task: Task) -> Result<(), Status>;

    /// Calls `body` for consecutive ranges that together cover `0..count`, each at most `grain` long (0: chosen from the
    /// count and the number of threads), on this thread and on idle workers, and returns when all calls have returned.
    /// This thread works too, so nesting cannot deadlock.
    ///
    /// # Errors
    /// The error of the lowest failed range; a panic counts as [`Internal`](crate::StatusCode::Internal). The other
    /// ranges still run.
    fn parallel_for(
        &self,
        count: usize,
        grain: usize,
        body: &(dyn Fn(Range<usize>) -> Result<(), Status> + Sync),
    ) -> Result<(), Status>;
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod blocking_tests;
#[cfg(all(test, loom))]
mod loom_model;
#[cfg(all(test, shuttle))]
mod shuttle_model;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
