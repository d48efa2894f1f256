//! Schedules on a pool that it does not keep: what waits for an event that never completes must not keep threads.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::parallel_for;
use super::worker::PoolShared;
use crate::task::shutdown::{late, refused};
use crate::task::{Executor, Priority, Task, TaskOptions, fork};
use purlin_base::fault::{self, Site};
use purlin_base::label::Label;
use purlin_base::status::Error;

/// A way to schedule on a [`ThreadPool`](super::ThreadPool) without keeping it. Once the pool has shut down, which the
/// drop of its last handle does, tasks are refused as the pool refuses them.
///
/// ```
/// use purlin::{Executor, StatusCode, Task, ThreadPool, ThreadPoolOptions};
///
/// let pool = ThreadPool::new(&ThreadPoolOptions { thread_count: 1, ..Default::default() })?;
/// let submitter = pool.submitter();
/// submitter.execute(Task::new(c"while it lives", || ()))?;
/// drop(pool);
/// let refused = submitter.execute(Task::new(c"later", || ())).unwrap_err();
/// assert_eq!(refused.code(), StatusCode::Cancelled);
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone)]
pub struct PoolSubmitter(Arc<PoolShared>);

impl PoolSubmitter {
    pub(super) fn new(shared: &Arc<PoolShared>) -> Self {
        Self(Arc::clone(shared))
    }

    /// Calls `body` for consecutive ranges that together cover `0..count`, each at most `grain` long (0: chosen from
    /// the count and the number of threads), on this thread and on workers that are idle now; returns when all calls
    /// have returned. Workers that are idle later take none, and one that helps leaves as soon as a task waits. If none
    /// is idle, that is one call, for the whole range, on this thread. `label` is the helpers' in traces and reports.
    ///
    /// # Errors
    /// As [`parallel_for`](crate::task::AsyncWorkRunner::parallel_for).
    pub fn parallel_for_idle(
        &self,
        label: impl Into<Label>,
        count: usize,
        grain: usize,
        body: &(dyn Fn(Range<usize>) -> Result<(), Error> + Sync),
    ) -> Result<(), Error> {
        if !self.0.is_here() {
            return parallel_for::alone(count, 0, body);
        }
        parallel_for::on_idle(&self.0, label.into(), count, grain, body)
    }

    fn submit(&self, task: Task, priority: Priority) -> Result<(), Error> {
        let name = self.0.threads.name();
        if !self.0.is_here() {
            return Err(refused(task, fork::refusal(format_args!("pool '{name}'"))));
        }
        match fault::point(Site::SubmitLate) {
            Ok(()) => self.0.submit(task, priority).map_err(|task| late(format_args!("pool '{name}'"), task)),
            Err(error) => Err(refused(task, error)),
        }
    }
}

impl Executor for PoolSubmitter {
    fn execute(&self, task: Task) -> Result<(), Error> {
        self.submit(task, Priority::Normal)
    }

    fn execute_with(&self, task: Task, options: &TaskOptions) -> Result<(), Error> {
        self.submit(options.apply(task)?, options.priority)
    }
}

impl fmt::Debug for PoolSubmitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PoolSubmitter('{}')", self.0.threads.name())
    }
}
