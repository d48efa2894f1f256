//! A client's pool, together with the account of what is in flight.

use std::ops::Range;
use std::sync::Arc;

use super::InFlight;
use crate::backend::{Gated, Held, Pending, Piece, Runner, Share};
use purlin_async::event::Event;
use purlin_async::pool::ThreadPool;
use purlin_async::task::{AsyncWorkRunner, Executor, Task, TaskOptions};
use purlin_base::status::Error;

/// Where operations run. What users schedule goes to the pool itself.
pub(crate) struct ClientRunner {
    pool: ThreadPool,
    in_flight: Arc<InFlight>,
}

impl ClientRunner {
    /// The runner of a client that has begun nothing yet.
    pub(crate) fn new(pool: ThreadPool) -> Self {
        let in_flight = InFlight::new(Box::new(pool.submitter()));
        Self { pool, in_flight }
    }

    pub(crate) fn pool(&self) -> &ThreadPool {
        &self.pool
    }

    /// What is not over.
    pub(crate) fn in_flight(&self) -> &Arc<InFlight> {
        &self.in_flight
    }
}

impl Executor for ClientRunner {
    fn execute(&self, task: Task) -> Result<(), Error> {
        self.pool.execute(task)
    }

    fn execute_with(&self, task: Task, options: &TaskOptions) -> Result<(), Error> {
        self.pool.execute_with(task, options)
    }
}

impl AsyncWorkRunner for ClientRunner {
    fn schedule_when_ready(&self, events: &[Event], task: Task) -> Result<(), Error> {
        self.pool.schedule_when_ready(events, task)
    }

    fn parallel_for(
        &self,
        count: usize,
        grain: usize,
        body: &(dyn Fn(Range<usize>) -> Result<(), Error> + Sync),
    ) -> Result<(), Error> {
        self.pool.parallel_for(count, grain, body)
    }
}

impl Share for ClientRunner {
    fn share(&self, count: usize, grain: usize, piece: &Piece<'_>) -> Result<(), Error> {
        self.in_flight.share(count, grain, piece)
    }
}

impl Runner for ClientRunner {
    fn refusal(&self) -> Option<Error> {
        self.in_flight.refusal()
    }

    fn begin(&self) -> Result<Pending, Error> {
        self.in_flight.begin()
    }

    fn hold(&self, after: &Event, waits_for: &Event, gated: Gated, held: Box<dyn Held>) {
        self.in_flight.hold(after, waits_for, gated, held);
    }
}
