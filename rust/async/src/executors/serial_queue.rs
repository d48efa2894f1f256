//! Tasks one at a time, in the order in which they were scheduled, on threads of any executor.
//!
//! At most one pump exists: the right to take entries out, a turn (base's `turns.rs`). It is made by the thread that
//! schedules into an idle queue, given to the executor as a task, runs entries until none is left or a batch is done
//! (then it goes to the back of the executor's queue, so that a long queue does not keep a thread from others), and
//! ends with an empty queue. If the executor refuses or drops it, its destructor drops every entry and notifies its
//! waiters: no completion is lost. An executor that panics has the pump or has dropped it, as after any other answer.
//!
//! Memory order: what a task did is visible to the next one, whatever threads they run on.
//!
//! # Shutdown
//! 1. The queue is closed: new tasks are refused with `Cancelled` and dropped.
//! 2. What is queued still runs, in order, on the executor's threads, or is dropped, as the mode says.
//! 3. The thread that shuts down waits until the last task has run, at most for the timeout. After that, what has not
//!    begun is dropped; a task that runs is left to end on its own.
//!
//! Dropping the last handle does step 1 alone and does not wait; [`SerialQueue::shutdown`] first if you must know the
//! end.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::mem;
use std::sync::Arc;

use crate::event::{Event, EventPromise};
use crate::task::census;
use crate::task::census::{Occupation, Occupied};
use crate::task::fork;
use crate::task::shutdown::{ShutdownMode, ShutdownOptions, by_own_task, is_late, late, refused};
use crate::task::{Executor, Task};
use purlin_base::fault::{self, Site};
use purlin_base::label::Label;
use purlin_base::panics::answered;
use purlin_base::status::Error;
use purlin_base::sync::{Mutex, Process, per_thread};
use purlin_base::turns::Turn;

/// Entries that a pump runs before it lets others have the thread.
const BATCH: usize = 64;

/// A handle; clones share the queue. Itself an [`Executor`].
///
/// ```
/// use std::sync::{Arc, Mutex};
///
/// use purlin::{SerialQueue, ThreadPool, ThreadPoolOptions};
///
/// let pool = ThreadPool::new(&ThreadPoolOptions { thread_count: 2, ..Default::default() })?;
/// let (queue, log) = (SerialQueue::new(c"log", Arc::new(pool)), Arc::new(Mutex::new(Vec::new())));
/// for line in 0..100 {
///     let log = Arc::clone(&log);
///     queue.schedule(c"append", move || log.lock().unwrap().push(line))?;
/// }
/// queue.drain()?;
/// assert_eq!(*log.lock().unwrap(), (0..100).collect::<Vec<_>>(), "one at a time, in order");
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone)]
pub struct SerialQueue(Arc<Handle>);

/// What the handles share. Pumps hold `SerialQueueShared` only, so that this is dropped with the last handle.
struct Handle(Arc<SerialQueueShared>);

struct SerialQueueShared {
    label: Label,
    executor: Arc<dyn Executor>,
    /// Where the pump is.
    process: Process,
    state: Mutex<SerialQueueState>,
}

#[derive(Default)]
struct SerialQueueState {
    entries: VecDeque<Entry>,
    /// The pump's.
    turn: Turn,
    /// The task that runs.
    running: Option<usize>,
    /// The pump returned to the frame that gave it away, on the same thread.
    handed_back: bool,
    /// Pumps that were dropped.
    abandoned: u64,
    closed: bool,
}

enum Entry {
    Task(Task),
    /// Everything before this is over.
    Drained(EventPromise),
}

// The queues whose pumps this thread is in, by address, outermost first.
per_thread!(static PUMPS: RefCell<Vec<usize>> = RefCell::new(Vec::new()));

impl SerialQueue {
    /// An empty queue over `executor`, which the queue keeps.
    #[must_use]
    pub fn new(label: impl Into<Label>, executor: Arc<dyn Executor>) -> Self {
        let shared = SerialQueueShared {
            label: label.into(),
            executor,
            process: Process::this(),
            state: Mutex::new(SerialQueueState::default()),
        };
        let shared = Arc::new(shared);
        census::enlist(Arc::downgrade(&(Arc::clone(&shared) as Arc<dyn Occupied>)));
        Self(Arc::new(Handle(shared)))
    }

    /// [`Executor::execute`], with a closure and its label.
    ///
    /// # Errors
    /// As [`Executor::execute`].
    pub fn schedule(&self, label: impl Into<Label>, closure: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        self.execute(Task::new(label, closure))
    }

    /// Happens when everything that was scheduled before this call has run; fails with
    /// [`Cancelled`](purlin_base::StatusCode::Cancelled) if the executor dropped it. Never blocks; a task of the queue
    /// may call it too. The event's waiters run between two tasks of the queue.
    #[must_use]
    #[track_caller]
    pub fn drained(&self) -> Event {
        let promise = EventPromise::guarding(c"SerialQueue drained");
        let event = promise.event();
        let shared = self.shared();
        let mut state = shared.state.lock();
        if state.turn.is_taken() && !shared.process.is_this() {
            drop(state);
            return Event::from_error(shared.refusal_of_child());
        }
        if state.turn.is_taken() {
            state.entries.push_back(Entry::Drained(promise));
            return event;
        }
        drop(state);
        Event::ready()
    }

    /// Blocks until everything that was scheduled before this call has run.
    ///
    /// # Errors
    /// [`FailedPrecondition`](purlin_base::StatusCode::FailedPrecondition) inside a task of this queue, which would
    /// wait for itself (a task that waits for another thread that drains is not noticed);
    /// [`Cancelled`](purlin_base::StatusCode::Cancelled) if the executor dropped what was queued.
    pub fn drain(&self) -> Result<(), Error> {
        let shared = self.shared();
        if shared.is_current() {
            let label = shared.label;
            return Err(Error::failed_precondition(format!("a task of queue '{label}' cannot wait for it to drain")));
        }
        self.drained().wait_uninterruptible()
    }

    /// True while a task is queued or runs: false as soon as [`drained`](Self::drained) happens, unless there are
    /// others.
    #[must_use]
    pub fn has_backlog(&self) -> bool {
        let state = self.shared().state.lock();
        state.running.is_some() || state.entries.iter().any(|entry| matches!(entry, Entry::Task(_)))
    }

    /// Refuses new tasks; what is queued still runs. Again: nothing happens.
    pub fn close(&self) {
        self.shared().close();
    }

    /// Drops the tasks that have not started, uncalled; the queue stays in use. Returns how many there were.
    pub fn cancel_pending(&self) -> usize {
        let dropped = {
            let mut state = self.shared().state.lock();
            let (dropped, kept): (VecDeque<_>, VecDeque<_>) =
                mem::take(&mut state.entries).into_iter().partition(|entry| matches!(entry, Entry::Task(_)));
            state.entries = kept;
            dropped
        };
        dropped.len()
    }

    /// [`shutdown_with`](Self::shutdown_with), which drains and has no timeout.
    ///
    /// # Errors
    /// As there.
    pub fn shutdown(&self) -> Result<(), Error> {
        self.shutdown_with(ShutdownOptions::default())
    }

    /// Shuts the queue down as the module says, and blocks until that is done; a second call waits too.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use purlin::{InlineExecutor, SerialQueue, ShutdownMode, ShutdownOptions};
    ///
    /// let queue = SerialQueue::new(c"log", Arc::new(InlineExecutor));
    /// queue.shutdown_with(ShutdownOptions { mode: ShutdownMode::CancelPending, ..Default::default() })?;
    /// assert!(queue.schedule(c"late", || ()).is_err());
    /// # Ok::<(), purlin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`FailedPrecondition`](purlin_base::StatusCode::FailedPrecondition), and nothing happens: in a task of this
    /// queue, or in a child made by `fork`. [`DeadlineExceeded`](purlin_base::StatusCode::DeadlineExceeded): a task
    /// still runs, or some were dropped after the timeout. [`Cancelled`](purlin_base::StatusCode::Cancelled): the
    /// executor dropped what was queued.
    pub fn shutdown_with(&self, ShutdownOptions { mode, timeout }: ShutdownOptions) -> Result<(), Error> {
        let shared = self.shared();
        if !shared.process.is_this() {
            return Err(shared.refusal_of_child());
        }
        if shared.is_current() {
            return Err(by_own_task(format_args!("queue '{}'", shared.label)));
        }
        self.close();
        if mode == ShutdownMode::CancelPending {
            self.cancel_pending();
        }
        // A pump that has nothing left to run need not come.
        let ended = if self.has_backlog() { self.drained() } else { Event::ready() };
        let Some(timeout) = timeout else { return ended.wait_uninterruptible() };
        let waited = ended.wait_uninterruptible_for(timeout);
        if !is_late(&waited) {
            return waited;
        }
        let (label, dropped) = (shared.label, self.cancel_pending());
        Err(Error::deadline_exceeded(format!(
            "queue '{label}' did not end within {timeout:?} of its shutdown: {dropped} tasks were dropped"
        )))
    }

    fn shared(&self) -> &Arc<SerialQueueShared> {
        &self.0.0
    }
}

impl Executor for SerialQueue {
    /// Queues `task` behind all others.
    ///
    /// # Errors
    /// The task was dropped uncalled: [`Cancelled`](purlin_base::StatusCode::Cancelled) after [`SerialQueue::close`];
    /// the executor's error if it refused to work for the queue.
    fn execute(&self, task: Task) -> Result<(), Error> {
        let shared = self.shared();
        if let Err(error) = fault::point(Site::SubmitSerial) {
            return Err(refused(task, error));
        }
        if !shared.process.is_this() {
            return Err(refused(task, shared.refusal_of_child()));
        }
        let mut state = shared.state.lock();
        if state.closed {
            drop(state);
            return Err(late(format_args!("queue '{}'", shared.label), task));
        }
        state.entries.push_back(Entry::Task(task));
        if !state.turn.take() {
            return Ok(());
        }
        let abandoned = state.abandoned;
        drop(state);
        shared.give_pump(abandoned)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The right to take entries out. Dropped without having run, it drops them all.
struct Pump(Option<Arc<SerialQueueShared>>);

impl Pump {
    fn run(mut self) {
        let Some(shared) = self.0.take() else { return };
        if shared.is_current() {
            // The frame below gave this pump to an executor that ran it at once: that frame continues, the stack stays
            // flat.
            shared.state.lock().handed_back = true;
        } else {
            shared.pump();
        }
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        if let Some(shared) = self.0.take() {
            shared.abandon();
        }
    }
}

impl SerialQueueShared {
    /// `abandoned` is how many pumps were before.
    fn give_pump(self: &Arc<Self>, abandoned: u64) -> Result<(), Error> {
        let pump = Pump(Some(Arc::clone(self)));
        let label = self.label;
        let given = answered(
            || format!("the executor of queue '{label}'"),
            || self.executor.execute(Task::new(label, move || pump.run())),
        );
        match given {
            // It says no and has the pump all the same, or has run it: what was queued is not lost.
            Err(error) if self.state.lock().abandoned == abandoned => {
                tracing::warn!(target: "purlin", %label, %error, "an executor failed after it had taken a queue's task");
                Ok(())
            }
            given => given,
        }
    }

    fn pump(self: &Arc<Self>) {
        let _here = Here::enter(Arc::as_ptr(self).addr());
        loop {
            for _ in 0..BATCH {
                let Some(entry) = self.next() else { return };
                match entry {
                    Entry::Task(task) => task.run_in_span(),
                    Entry::Drained(promise) => _ = promise.set_ready(),
                }
            }
            let abandoned = {
                let mut state = self.state.lock();
                state.running = None;
                if state.entries.is_empty() {
                    state.turn.end();
                    return;
                }
                state.abandoned
            };
            // If it is refused, the pump's destructor has notified all waiters.
            let _ = self.give_pump(abandoned);
            if !mem::take(&mut self.state.lock().handed_back) {
                return;
            }
        }
    }

    fn refusal_of_child(&self) -> Error {
        fork::refusal(format_args!("queue '{}'", self.label))
    }

    /// The oldest entry; without one, the pump's life ends. So it does in a child that an entry has made by `fork`: the
    /// others are the parent's.
    fn next(&self) -> Option<Entry> {
        if !self.process.is_this() {
            return None;
        }
        let mut state = self.state.lock();
        let entry = state.entries.pop_front();
        if entry.is_none() {
            state.turn.end();
        }
        state.running = match &entry {
            Some(Entry::Task(task)) => Some(task.number()),
            _ => None,
        };
        entry
    }

    /// The executor dropped the pump.
    fn abandon(&self) {
        let entries = {
            let mut state = self.state.lock();
            state.turn.end();
            state.abandoned += 1;
            mem::take(&mut state.entries)
        };
        let error = Error::cancelled(format!(
            "the executor of queue '{}' refused or dropped it with {} entries",
            self.label,
            entries.len()
        ));
        tracing::debug!(target: "purlin", label = %self.label, %error, "a queue lost its executor");
        for entry in entries {
            match entry {
                Entry::Task(task) => drop(task),
                Entry::Drained(promise) => _ = promise.set_error(error.clone()),
            }
        }
    }

    fn close(&self) {
        self.state.lock().closed = true;
    }

    /// True inside a task of this queue.
    fn is_current(self: &Arc<Self>) -> bool {
        let here = Arc::as_ptr(self).addr();
        PUMPS.try_with(|pumps| pumps.borrow().contains(&here)).unwrap_or(false)
    }
}

impl Occupied for SerialQueueShared {
    fn occupation(&self) -> Occupation {
        let state = self.state.lock();
        let numbers = state.entries.iter().filter_map(|entry| match entry {
            Entry::Task(task) => Some(task.number()),
            Entry::Drained(_) => None,
        });
        let queued: Vec<_> = numbers.collect();
        let doing = if state.running.is_some() { "one runs" } else { "none runs" };
        let text = format!("queue '{}': {} tasks queued, {doing}", self.label, queued.len());
        Occupation { text, running: state.running, queued, standstill: None }
    }
}

/// Remembers, while it lives, that this thread is in a queue's pump.
struct Here;

impl Here {
    fn enter(queue: usize) -> Self {
        // An ending thread keeps no such list; then a task that waits for itself is not noticed.
        let _ = PUMPS.try_with(|pumps| pumps.borrow_mut().push(queue));
        Self
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        let _ = PUMPS.try_with(|pumps| pumps.borrow_mut().pop());
    }
}

impl fmt::Debug for SerialQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared().state.lock();
        let (label, entries) = (self.shared().label, state.entries.len());
        write!(
            f,
            "SerialQueue({label:?}, {entries} queued, pumping: {}, closed: {})",
            state.turn.is_taken(),
            state.closed
        )
    }
}

#[cfg(all(test, not(purlin_model)))]
mod tests;
