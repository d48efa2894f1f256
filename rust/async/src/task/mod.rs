//! A task, what may be said about it, and what runs it.
//!
//! [`Executor`] takes a [`Task`]; [`AsyncWorkRunner`] also understands events and loops. An executor that refuses a
//! task drops its closure before it returns, so that what the closure owed completes with an error: no completion is
//! lost.
//!
//! | file | what is in it |
//! |---|---|
//! | [`node`] | the closure, called once or destroyed uncalled |
//! | [`options`] | how urgent a task is, and until when it is worth running |
//! | [`cancel`] | asking work to stop |
//! | [`census`] | all executors of the process, for reports |
//! | [`driver`] | what other threads that complete events do when they wait: those of timers and of backends |
//! | [`fork`] | what executors of the parent answer in a child made by `fork` |

#![allow(unsafe_code, reason = "tasks are intrusive and shared with C++")]

pub mod cancel;
// Statics, which models cannot have.
#[cfg_attr(purlin_model, path = "census_model.rs")]
#[doc(hidden)]
pub mod census;
// Users meet its items in `purlin::backend`.
#[doc(hidden)]
pub mod driver;
#[doc(hidden)]
pub mod fork;
#[doc(hidden)]
pub mod node;
pub mod options;
pub mod shutdown;

use std::ops::Range;

use crate::event::Event;
use purlin_base::status::Error;

pub use node::Task;
pub use options::{Priority, TaskOptions};
pub use shutdown::{ShutdownMode, ShutdownOptions};

/// Bytes of stack of every thread that Purlin starts, unless its maker chose another size; `RUST_MIN_STACK` has no
/// effect.
pub const STACK_SIZE_BYTES: usize = 2 << 20;

/// Something that runs tasks: a pool of ours, or one of yours.
///
/// ```
/// use purlin::{Executor, Error, Task};
///
/// /// Runs every task in the call that hands it in.
/// struct AtOnce;
///
/// impl Executor for AtOnce {
///     fn execute(&self, task: Task) -> Result<(), Error> {
///         task.run();
///         Ok(())
///     }
/// }
///
/// let (sender, receiver) = std::sync::mpsc::channel();
/// AtOnce.execute(Task::new(c"send", move || sender.send(1).unwrap()))?;
/// assert_eq!(receiver.try_recv(), Ok(1));
/// # Ok::<(), purlin::Error>(())
/// ```
pub trait Executor: Send + Sync {
    /// Takes `task` to be run once, on a thread of the executor's choosing, in general after this returns. Does not
    /// block on other tasks.
    ///
    /// # Errors
    /// The task was dropped uncalled: [`Cancelled`](purlin_base::StatusCode::Cancelled) after shutdown.
    fn execute(&self, task: Task) -> Result<(), Error>;

    /// As [`execute`](Self::execute), unless the task's token is cancelled or its deadline has passed, now or when its
    /// turn comes: then it is dropped uncalled, which fails what it owed, and counted ([`options::dropped_tasks`]). An
    /// executor that knows what to do with the hints overrides this.
    ///
    /// # Errors
    /// As [`execute`](Self::execute); the token's reason;
    /// [`DeadlineExceeded`](purlin_base::StatusCode::DeadlineExceeded). The task was dropped uncalled.
    fn execute_with(&self, task: Task, options: &TaskOptions) -> Result<(), Error> {
        self.execute(options.apply(task)?)
    }
}

/// An executor that also understands events and loops.
///
/// ```
/// use purlin::{AsyncWorkRunner, EventPromise, Task, ThreadPool, ThreadPoolOptions};
///
/// let pool = ThreadPool::new(&ThreadPoolOptions { thread_count: 2, ..Default::default() })?;
/// let (input, output) = (EventPromise::new(c"input"), EventPromise::new(c"output"));
/// let (ready, done) = (input.event(), output.event());
/// pool.schedule_when_ready(&[ready], Task::new(c"step", move || _ = output.set_ready()))?;
/// assert!(!done.is_ready(), "its input is not there");
/// input.set_ready();
/// done.wait()?;
/// # Ok::<(), purlin::Error>(())
/// ```
pub trait AsyncWorkRunner: Executor {
    /// Runs `task` after all of `events` are terminal, whether they happened or failed. Never blocks. If the runner has
    /// shut down by then, the task is dropped uncalled.
    ///
    /// # Errors
    /// As [`execute`](Executor::execute), when all events are terminal already.
    fn schedule_when_ready(&self, events: &[Event], task: Task) -> Result<(), Error>;

    /// Calls `body` for consecutive ranges that together cover `0..count`, each at most `grain` long (0: chosen from
    /// the count and the number of threads), on this thread and on idle workers, and returns when all calls have
    /// returned. This thread works too, so nesting cannot deadlock.
    ///
    /// # Errors
    /// The error of the lowest failed range; a panic counts as [`Internal`](purlin_base::StatusCode::Internal). The
    /// other ranges still run.
    fn parallel_for(
        &self,
        count: usize,
        grain: usize,
        body: &(dyn Fn(Range<usize>) -> Result<(), Error> + Sync),
    ) -> Result<(), Error>;
}
