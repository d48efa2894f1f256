//! The end of what runs tasks: the words that pools, elastic pools, serial queues and clients share, and the
//! errors for calls that come too late. Each of them writes its end in numbered steps.
//!
//! In a child made by `fork` (`fork.rs`) each refuses tasks and its shutdown.

use std::fmt::Display;
use std::time::Duration;

use super::Task;
use crate::event::refusal;
use purlin_base::status::{Error, StatusCode};

/// What a shutdown does with tasks that have not begun.
///
/// ```
/// use purlin::{ShutdownMode, ShutdownOptions, ThreadPool, ThreadPoolOptions};
///
/// let pool = ThreadPool::new(&ThreadPoolOptions { thread_count: 1, ..Default::default() })?;
/// pool.shutdown_with(ShutdownOptions { mode: ShutdownMode::CancelPending, ..Default::default() })?;
/// assert!(pool.schedule(c"late", || ()).is_err());
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum ShutdownMode {
    /// They run.
    #[default]
    Drain = 0,
    /// They are dropped; what they owed completes with an error.
    CancelPending = 1,
}

/// How to shut down a pool, an elastic pool, a serial queue or a client.
///
/// ```
/// use std::time::Duration;
///
/// use purlin::{ElasticPool, ElasticPoolOptions, ShutdownMode, ShutdownOptions};
///
/// let pool = ElasticPool::new(&ElasticPoolOptions::default())?;
/// let (sender, receiver) = std::sync::mpsc::channel();
/// pool.schedule(c"send", move || sender.send(1).unwrap())?;
/// assert_eq!(ShutdownOptions::default(), ShutdownOptions { mode: ShutdownMode::Drain, timeout: None });
/// pool.shutdown_with(ShutdownOptions { timeout: Some(Duration::from_secs(60)), ..Default::default() })?;
/// assert_eq!(receiver.try_recv(), Ok(1), "what was queued has run");
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShutdownOptions {
    /// What happens to tasks that have not begun.
    pub mode: ShutdownMode,
    /// How long to wait for the end; after that, tasks that have not begun are dropped, whatever the mode. `None`: for
    /// ever.
    pub timeout: Option<Duration>,
}

/// Drops a task, whose debts fail with that reason.
pub(crate) fn refused(task: Task, why: Error) -> Error {
    refusal::dropping(&why, || drop(task));
    why
}

/// Drops a task that came after the end of `what` had begun.
pub(crate) fn late(what: impl Display, task: Task) -> Error {
    let why = format!("{what} has shut down and refused task '{}'", task.label());
    refused(task, Error::cancelled(why))
}

/// A task shuts down what runs it, and would wait for itself.
pub(crate) fn by_own_task(what: impl Display) -> Error {
    Error::failed_precondition(format!("{what} cannot be shut down by a task of its own"))
}

/// Whether a wait for the end took longer than it may.
pub(crate) fn is_late(waited: &Result<(), Error>) -> bool {
    waited.as_ref().is_err_and(|error| error.code() == StatusCode::DeadlineExceeded)
}
