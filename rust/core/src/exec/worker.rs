//! One thread of a pool, and what all of them share.

use std::cell::Cell;
use std::fmt;
use std::ptr;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use super::Task;
use super::idle::Idle;
use super::queue::Queue;
use crate::status::Status;
use crate::sync::atomic::AtomicBool;
use crate::sync::atomic::Ordering::{Acquire, Release};
use crate::sync::per_thread;
use crate::user_context::current_id;

/// Every so many tasks of its own, a worker looks at the shared queue first, so that neither can starve the other.
const SHARED_FIRST: u32 = 61;

pub(super) struct Shared {
    /// A queue per worker, then the shared one.
    queues: Box<[Queue]>,
    idle: Idle,
    /// Set after all queues are closed.
    closing: AtomicBool,
}

// The pool and the index of the worker that this thread is.
per_thread!(static CURRENT: Cell<(*const Shared, usize)> = Cell::new((ptr::null(), 0)));

impl Shared {
    pub(super) fn new(thread_count: usize) -> Self {
        let queues = (0..=thread_count).map(|_| Queue::new()).collect();
        Self { queues, idle: Idle::new(), closing: AtomicBool::new(false) }
    }

    pub(super) fn thread_count(&self) -> usize {
        self.queues.len() - 1
    }

    /// The index of the worker that this thread is, if it is one of ours.
    fn current(&self) -> Option<usize> {
        let (pool, index) = CURRENT.with(Cell::get);
        ptr::eq(pool, self).then_some(index)
    }

    pub(super) fn is_current(&self) -> bool {
        self.current().is_some()
    }

    /// Queues a task and wakes somebody for it; gives it back after [`close`](Self::close).
    pub(super) fn submit(&self, task: Task) -> Result<(), Task> {
        let _span =
            tracing::trace_span!(target: "purlin", "schedule", label = %task.label(), context = current_id()).entered();
        self.queues[self.current().unwrap_or(self.thread_count())].push(task)?;
        self.idle.wake_one();
        Ok(())
    }

    /// Refuses new tasks and lets the workers end once no task is left.
    pub(super) fn close(&self) {
        self.queues.iter().for_each(Queue::close);
        // Release: a worker that sees this also sees every queue closed.
        self.closing.store(true, Release);
        self.idle.wake_all();
    }

    pub(super) fn is_drained(&self) -> bool {
        self.queues.iter().all(Queue::is_empty)
    }

    /// A task for worker `index`: its own, a shared one, or stolen from the next worker that has one.
    fn find(&self, index: usize, tick: u32) -> Option<Task> {
        let (shared, own) = (&self.queues[self.thread_count()], &self.queues[index]);
        let (first, second) = if tick.is_multiple_of(SHARED_FIRST) { (shared, own) } else { (own, shared) };
        let mut others = (1..self.thread_count()).map(|step| &self.queues[(index + step) % self.thread_count()]);
        first.pop().or_else(|| second.pop()).or_else(|| others.find_map(Queue::pop))
    }

    /// The life of worker `index`.
    pub(super) fn work(&self, index: usize) {
        let mut tick = 0_u32;
        loop {
            tick = tick.wrapping_add(1);
            if let Some(task) = self.find(index, tick) {
                let _span = tracing::trace_span!(target: "purlin", "run", label = %task.label()).entered();
                task.run();
            } else if self.closing.load(Acquire) {
                // The queues were closed before, so nothing can have come after find() saw them empty, except what it
                // passed by before they were closed.
                if self.is_drained() {
                    return;
                }
            } else {
                self.idle.sleep(|| self.closing.load(Acquire) || !self.is_drained());
            }
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} workers, closing: {}", self.thread_count(), self.closing.load(Acquire))
    }
}

/// Starts worker `index` of a pool.
pub(super) fn spawn(shared: &Arc<Shared>, index: usize, name: &str) -> Result<JoinHandle<()>, Status> {
    let mine = Arc::clone(shared);
    let work = move || {
        CURRENT.with(|current| current.set((Arc::as_ptr(&mine), index)));
        mine.work(index);
    };
    Builder::new().name(format!("{name}/{index}")).spawn(work).map_err(|error| {
        let count = shared.thread_count();
        Status::resource_exhausted(format!("could not start thread {index} of the {count} of pool '{name}': {error}"))
    })
}
