//! What a caller may say about a task beside what it does: how urgent it is, until when it is worth running, and which
//! token may cancel it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use super::Task;
use super::cancel::CancelToken;
use purlin_base::label::Label;
use purlin_base::status::Error;

/// Which of the tasks that wait for a thread runs first. A hint: an executor without such a choice ignores it.
///
/// ```
/// use purlin::{EventPromise, Executor, Priority, Task, TaskOptions, ThreadPool, ThreadPoolOptions};
///
/// let pool = ThreadPool::new(&ThreadPoolOptions { thread_count: 1, ..Default::default() })?;
/// let (urgent, done) = (TaskOptions { priority: Priority::High, ..Default::default() }, EventPromise::new(c"done"));
/// let event = done.event();
/// pool.execute_with(Task::new(c"urgent", move || _ = done.set_ready()), &urgent)?;
/// event.wait()?;
/// assert!(Priority::Low < Priority::High);
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
#[non_exhaustive]
pub enum Priority {
    /// After the others.
    Low = 0,
    /// In its turn.
    #[default]
    Normal = 1,
    /// Before the others.
    High = 2,
}

/// How to run a task; the default says nothing.
///
/// ```
/// use purlin::{CancelSource, Executor, InlineExecutor, Error, StatusCode, Task, TaskOptions};
///
/// let source = CancelSource::new(c"request");
/// let options = TaskOptions { cancel: source.token(), ..Default::default() };
/// source.cancel(Error::cancelled("the user left"));
/// let refused = InlineExecutor.execute_with(Task::new(c"answer", || unreachable!()), &options);
/// assert_eq!(refused.unwrap_err().code(), StatusCode::Cancelled);
/// ```
#[derive(Clone, Debug, Default)]
pub struct TaskOptions {
    /// A hint, see [`Priority`].
    pub priority: Priority,
    /// When this has passed, the task is dropped instead of started. A task that runs is not interrupted.
    pub deadline: Option<Instant>,
    /// When this is cancelled, the task is dropped instead of started. A task that runs is not interrupted; it may look
    /// at its own clone of the token.
    pub cancel: CancelToken,
    /// Replaces the name that the task was made with.
    pub label: Option<Label>,
    /// A hint: the task may wait for something other than the processor for long.
    pub may_block: bool,
}

/// Tasks of this process that were dropped at their turn.
///
/// ```
/// use purlin::task::options::dropped_tasks;
///
/// let before = dropped_tasks();
/// assert!(dropped_tasks().late >= before.late, "they only grow");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DroppedTasks {
    /// Because their token was cancelled.
    pub cancelled: u64,
    /// Because their deadline had passed.
    pub late: u64,
}

// Of std: these are statistics that order nothing, and statics, which models cannot have.
static CANCELLED: AtomicU64 = AtomicU64::new(0);
static LATE: AtomicU64 = AtomicU64::new(0);

/// How many tasks were dropped at their turn since the process began.
#[must_use]
pub fn dropped_tasks() -> DroppedTasks {
    DroppedTasks { cancelled: CANCELLED.load(Relaxed), late: LATE.load(Relaxed) }
}

impl TaskOptions {
    /// Why a task with these options must not start now, if it must not.
    ///
    /// # Errors
    /// The token's reason, or [`DeadlineExceeded`](purlin_base::StatusCode::DeadlineExceeded).
    ///
    /// # Examples
    /// ```
    /// use std::time::Instant;
    ///
    /// use purlin::{Label, StatusCode, TaskOptions};
    ///
    /// let options = TaskOptions { deadline: Some(Instant::now()), ..Default::default() };
    /// let error = options.check(Label::new(c"late")).unwrap_err();
    /// assert_eq!(error.code(), StatusCode::DeadlineExceeded);
    /// ```
    pub fn check(&self, label: Label) -> Result<(), Error> {
        check(&self.cancel, self.deadline, label)
    }

    /// A task that does what `task` does unless, at its turn, the token is cancelled or the deadline has passed: then
    /// `task` is dropped uncalled, so what it owed fails, and that is counted and traced. For executors that keep no
    /// options beside their tasks.
    ///
    /// # Errors
    /// As [`check`](Self::check), if that holds now already; `task` was dropped.
    pub fn apply(&self, task: Task) -> Result<Task, Error> {
        let label = self.label.unwrap_or_else(|| task.label());
        if let Err(error) = self.check(label) {
            count(label, &error, self.cancel.is_cancelled());
            drop(task);
            return Err(error);
        }
        if self.deadline.is_none() && self.cancel.is_retired() && self.label.is_none() {
            return Ok(task);
        }
        let (cancel, deadline) = (self.cancel.clone(), self.deadline);
        Ok(Task::new(label, move || match check(&cancel, deadline, label) {
            Ok(()) => task.run(),
            Err(error) => count(label, &error, cancel.is_cancelled()),
        }))
    }
}

fn check(cancel: &CancelToken, deadline: Option<Instant>, label: Label) -> Result<(), Error> {
    cancel.check()?;
    let now = Instant::now();
    match deadline {
        Some(deadline) if deadline <= now => Err(Error::deadline_exceeded(format!(
            "task '{label}' was not started: its deadline had passed {:?} ago",
            now - deadline
        ))),
        _ => Ok(()),
    }
}

fn count(label: Label, error: &Error, cancelled: bool) {
    (if cancelled { &CANCELLED } else { &LATE }).fetch_add(1, Relaxed);
    tracing::debug!(target: "purlin", %label, %error, "a task was dropped at its turn");
}

#[cfg(all(test, not(purlin_model)))]
mod tests;
