//! Work on host memory that is no plain copy, scheduled as copies are.

use super::operation::Operation;
use super::{CopySchedule, Gated};
use purlin_async::event::Event;
use purlin_base::fault::{self, Site};
use purlin_base::label::Label;
use purlin_base::status::Status;

impl CopySchedule<'_> {
    /// Calls `work` once all dependencies have happened; the event has its answer, or why it was not called.
    ///
    /// Without unfinished dependencies, and if the caller waits or `is_small`, that is inside this call; otherwise it is a task
    /// of the runner. `work` is called at most once, and what it captured is dropped before the event happens.
    pub(crate) fn run_work<F>(&self, label: Label, is_small: bool, work: F) -> Event
    where
        F: FnOnce() -> Result<(), Status> + Send + 'static,
    {
        self.start(HostWork { label, work: Some(work) }, is_small, |host_work| {
            fault::point(Site::RunWork)?;
            host_work.work.take().map_or(Ok(()), |work| work())
        })
    }
}

/// A closure, until it is called.
struct HostWork<F> {
    label: Label,
    work: Option<F>,
}

impl<F: FnOnce() -> Result<(), Status> + Send + 'static> Operation for HostWork<F> {
    fn label(&self) -> Label {
        self.label
    }

    fn gated(&self) -> Gated {
        Gated::Named(self.label)
    }

    fn describe(&self) -> String {
        format!("'{}'", self.label)
    }
}
