//! Threads for work that blocks: as many as there are tasks at a time, up to a cap; they end after they have been idle.
//!
//! A task goes to an idle thread if there is one; otherwise a thread is started for it, or, at the cap, it waits in the
//! one queue, first in, first out. If the system refuses a thread, the task waits for those that exist; only if there
//! is none is it refused. `elastic_waits.rs` says what happens when all threads wait for events while tasks are queued.
//!
//! A thread is listed from before it starts until it has nothing left to do, under the lock under which tasks are
//! queued, and it leaves the list only with the queue empty; so a task that was queued while a thread was listed is
//! run. Threads are started one at a time, outside that lock. The handles of ended threads are joined by the next one
//! to end, or by the shutdown.
//!
//! # Shutdown
//! 1. New tasks are refused with `Cancelled` and dropped.
//! 2. What is queued runs, or is dropped uncalled, as the [`ShutdownMode`] says; after the timeout, what is left is
//!    dropped.
//! 3. The threads end. The thread that shuts down waits for that as for an event, so that other pools, the timers and
//!    the simulator go on. Then they are joined. After the timeout, those that are still in a task end on their own.
//!
//! In a child made by `fork` the threads are not there: tasks are refused and nothing is waited for, as in
//! `thread_pool.rs`.

#![allow(unsafe_code, reason = "a thread finds its pool by a pointer")]

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io;
use std::mem;
use std::ptr;
use std::sync::{Arc, Weak};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use super::elastic_waits::{Pace, Standing};
use crate::event::{Blocked, EventPromise, Waited, set_blocking_hook};
use crate::task::shutdown::{ShutdownMode, ShutdownOptions, by_own_task, late, refused};
use crate::task::{Executor, STACK_SIZE_BYTES, Task, census, fork};
use purlin_base::fault::{self, Site};
use purlin_base::label::Label;
use purlin_base::status::{Error, StatusOr};
use purlin_base::sync::{Condvar, Mutex, Process, per_thread, spawn};

/// The most threads that one pool may have.
const MAX_THREADS: usize = 4096;
/// The largest stack that one may ask for.
const MAX_STACK_BYTES: usize = 1 << 40;
/// No wait is longer at a time; std cannot add more to a clock than fits.
const LONG: Duration = Duration::from_secs(24 * 60 * 60);

/// How to make a pool.
///
/// ```
/// use std::time::Duration;
///
/// use purlin::{ElasticPool, ElasticPoolOptions};
///
/// let options = ElasticPoolOptions {
///     max_threads: 8,
///     idle_timeout: Duration::from_millis(100),
///     name: "io".to_owned(),
///     ..Default::default()
/// };
/// assert_eq!(ElasticPool::new(&options)?.num_threads(), 0, "threads start with tasks");
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ElasticPoolOptions {
    /// The most threads at a time, 1 to 4096. When for a second all of them have waited for events ([`Event::wait`] and
    /// its like) while tasks were queued, and none of these waits ended, one more is started, and in each twentieth of
    /// a second in which that lasts another, 16384 at most: so tasks may wait for what is queued behind them. They end
    /// when they are not needed any more. If the system refuses one, a wait ends as [`Event::wait`] says.
    ///
    /// [`Event::wait`]: crate::Event::wait
    pub max_threads: usize,
    /// How long a thread without work stays.
    pub idle_timeout: Duration,
    /// Bytes of stack per thread; 0 takes [`STACK_SIZE_BYTES`].
    pub stack_size_bytes: usize,
    /// Threads are named `name/0`, `name/1`, ...; the kernel keeps 15 bytes.
    pub name: String,
}

impl Default for ElasticPoolOptions {
    fn default() -> Self {
        Self {
            max_threads: 256,
            idle_timeout: Duration::from_secs(10),
            stack_size_bytes: 0,
            name: "purlin-elastic".to_owned(),
        }
    }
}

/// A handle; clones share the pool, and the last one to be dropped drains it and joins its threads. If that happens in
/// a task of the pool, which cannot wait for itself, or after a shutdown that took longer than its timeout, the
/// threads end on their own.
///
/// ```
/// use purlin::{ElasticPool, ElasticPoolOptions, EventPromise};
///
/// let pool = ElasticPool::new(&ElasticPoolOptions::default())?;
/// let (first, second) = (EventPromise::new(c"first"), EventPromise::new(c"second"));
/// let (asked, answered) = (first.event(), second.event());
/// pool.schedule(c"wait", move || _ = second.set(asked.wait()))?;
/// pool.schedule(c"set", move || _ = first.set_ready())?;
/// answered.wait()?;
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone)]
pub struct ElasticPool(Arc<Handle>);

/// What the handles share. Threads hold `ElasticPoolShared` only, so that this is dropped with the last handle.
struct Handle(Arc<ElasticPoolShared>);

/// Starts a thread; std's, but for tests of a system that refuses.
type Spawn = dyn Fn(Builder, Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle<()>> + Send + Sync;

pub(super) struct ElasticPoolShared {
    pub(super) options: ElasticPoolOptions,
    spawn: Box<Spawn>,
    /// Where the threads are.
    pub(super) process: Process,
    /// Held while a thread is started; taken before `state`.
    pub(super) starting: Mutex<()>,
    pub(super) state: Mutex<ElasticPoolState>,
    /// Tasks were queued, a thread was listed for good, or the pool was closed.
    pub(super) work: Condvar,
    /// Happens when the pool is closed and no thread is listed any more.
    ended: EventPromise,
    pub(super) pace: Pace,
    me: Weak<Self>,
}

#[derive(Default)]
pub(super) struct ElasticPoolState {
    pub(super) queue: VecDeque<Task>,
    /// By number; the handle is entered once the thread is known to have started.
    pub(super) threads: BTreeMap<u64, Option<JoinHandle<()>>>,
    next_number: u64,
    /// Threads that wait for work.
    pub(super) idle: usize,
    /// The number of the thread that is being started: listed, but it may never start. It does not leave meanwhile.
    pub(super) starting: Option<u64>,
    /// Left the list, not joined.
    ended: Vec<JoinHandle<()>>,
    closed: bool,
    /// A shutdown took longer than its timeout.
    gave_up: bool,
    pub(super) standing: Standing,
}

impl ElasticPoolState {
    /// True if a listed thread will certainly look at the queue.
    fn is_manned(&self) -> bool {
        self.threads.keys().any(|number| Some(*number) != self.starting)
    }

    /// Closed, without a thread. It stays so: a pool that is closed lists no thread while it has none.
    fn is_over(&self) -> bool {
        self.closed && self.threads.is_empty()
    }

    /// The number of a thread that is about to be started. The caller has the lock for that.
    pub(super) fn list_thread(&mut self) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        self.threads.insert(number, None);
        self.starting = Some(number);
        number
    }

    /// It was, or was not.
    pub(super) fn is_started(&mut self, number: u64, thread: Option<JoinHandle<()>>) {
        self.starting = None;
        if thread.is_some() {
            self.threads.insert(number, thread);
        } else {
            self.threads.remove(&number);
        }
    }
}

/// What became of a task.
enum Served {
    /// It is queued.
    Yes,
    /// It is queued, and the caller must [`watch`](ElasticPoolShared::watch), under no lock.
    Watch,
    /// A thread must be started for it.
    No(Task),
}

// The pool of which this thread is one.
per_thread!(static CURRENT: Cell<*const ElasticPoolShared> = Cell::new(ptr::null()));

impl ElasticPool {
    /// A pool without threads; the first task starts one.
    ///
    /// # Errors
    /// [`InvalidArgument`](purlin_base::StatusCode::InvalidArgument): no threads or more than 4096, a stack of more
    /// than 1 TiB, or a name that is empty or has a NUL.
    pub fn new(options: &ElasticPoolOptions) -> StatusOr<Self> {
        Self::with_parts(options, Box::new(spawn), Pace::default())
    }

    fn with_parts(options: &ElasticPoolOptions, spawn: Box<Spawn>, pace: Pace) -> StatusOr<Self> {
        let ElasticPoolOptions { max_threads, stack_size_bytes, ref name, .. } = *options;
        if max_threads == 0 || max_threads > MAX_THREADS {
            return Err(Error::invalid_argument(format!(
                "max_threads is {max_threads}; an elastic pool has 1 to {MAX_THREADS}"
            )));
        }
        if stack_size_bytes > MAX_STACK_BYTES {
            return Err(Error::invalid_argument(format!(
                "stack_size_bytes is {stack_size_bytes}; the most is {MAX_STACK_BYTES}"
            )));
        }
        if name.is_empty() || name.contains('\0') {
            return Err(Error::invalid_argument(format!("{name:?} is no name for threads: it is empty or has a NUL")));
        }
        let shared = Arc::new_cyclic(|me| ElasticPoolShared {
            options: options.clone(),
            spawn,
            process: Process::this(),
            starting: Mutex::new(()),
            state: Mutex::new(ElasticPoolState::default()),
            work: Condvar::new(),
            ended: EventPromise::guarding(c"pool ended"),
            pace,
            me: Weak::clone(me),
        });
        census::enlist(Arc::downgrade(&(Arc::clone(&shared) as Arc<dyn census::Occupied>)));
        Ok(Self(Arc::new(Handle(shared))))
    }

    /// [`Executor::execute`], with a closure and its label.
    ///
    /// # Errors
    /// As [`Executor::execute`].
    pub fn schedule(&self, label: impl Into<Label>, closure: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        self.execute(Task::new(label, closure))
    }

    /// Threads at this moment.
    #[must_use]
    pub fn num_threads(&self) -> usize {
        self.0.0.state.lock().threads.len()
    }

    /// Threads that wait for work at this moment.
    #[must_use]
    pub fn num_idle(&self) -> usize {
        self.0.0.state.lock().idle
    }

    /// [`shutdown_with`](Self::shutdown_with), which drains and has no timeout.
    ///
    /// # Errors
    /// As there.
    pub fn shutdown(&self) -> Result<(), Error> {
        self.shutdown_with(ShutdownOptions::default())
    }

    /// Shuts the pool down as the module says, and blocks until that is done. A second call may use a stricter mode for
    /// what is left than the first, and waits too.
    ///
    /// # Errors
    /// [`FailedPrecondition`](purlin_base::StatusCode::FailedPrecondition), and nothing happens: on a thread of this
    /// pool, or in a child made by `fork`. [`DeadlineExceeded`](purlin_base::StatusCode::DeadlineExceeded): tasks still
    /// run, or some were dropped after the timeout.
    pub fn shutdown_with(&self, options: ShutdownOptions) -> Result<(), Error> {
        let shared = &self.0.0;
        if !shared.process.is_this() {
            return Err(shared.refusal_of_child());
        }
        if shared.is_current() {
            return Err(by_own_task(format_args!("pool '{}'", shared.options.name)));
        }
        shared.shutdown(options)
    }
}

impl Executor for ElasticPool {
    /// See the module.
    ///
    /// # Errors
    /// The task was dropped uncalled: [`Cancelled`](purlin_base::StatusCode::Cancelled) after shutdown;
    /// [`ResourceExhausted`](purlin_base::StatusCode::ResourceExhausted): the pool has no thread and the system refused
    /// one.
    fn execute(&self, task: Task) -> Result<(), Error> {
        let _span = tracing::trace_span!(target: "purlin", "schedule", label = %task.label()).entered();
        if let Err(error) = fault::point(Site::SubmitElastic) {
            return Err(refused(task, error));
        }
        self.0.0.execute(task)
    }
}

impl ElasticPoolShared {
    fn refusal_of_child(&self) -> Error {
        fork::refusal(format_args!("pool '{}'", self.options.name))
    }

    fn execute(self: &Arc<Self>, task: Task) -> Result<(), Error> {
        if !self.process.is_this() {
            return Err(refused(task, self.refusal_of_child()));
        }
        let Some(task) = self.watch_if(self.queue_if_served(task)?) else { return Ok(()) };
        let one_at_a_time = self.starting.lock();
        // Meanwhile another caller may have started a thread that is idle by now.
        let task = match self.queue_if_served(task)? {
            Served::No(task) => task,
            served => {
                drop(one_at_a_time);
                self.watch_if(served);
                return Ok(());
            }
        };
        let mut state = self.state.lock();
        if state.closed {
            drop(state);
            drop(one_at_a_time);
            return Err(self.late(task));
        }
        let number = state.list_thread();
        drop(state);
        let spawned = self.spawn_thread(number);
        let mut state = self.state.lock();
        let (thread, failure) = spawned.map_or_else(|error| (None, Some(error)), |thread| (Some(thread), None));
        state.is_started(number, thread);
        let (closed, alone) = (state.closed, state.threads.is_empty());
        let refused = if closed || alone {
            Some(task)
        } else {
            state.queue.push_back(task);
            None
        };
        let begins_watch = state.begins_watch();
        drop(state);
        drop(one_at_a_time);
        if begins_watch {
            self.watch();
        }
        // All: an idle thread may be woken for the task, and the new one must wake to see that it stays listed.
        self.work.notify_all();
        self.end_if_over();
        match (refused, failure) {
            (None, None) => Ok(()),
            (None, Some(error)) => {
                tracing::warn!(target: "purlin", name = self.options.name, %error, "a pool could not grow");
                Ok(())
            }
            (Some(task), Some(error)) if !closed => Err(self.no_thread(task, &error)),
            (Some(task), _) => Err(self.late(task)),
        }
    }

    /// Queues the task if an idle thread will take it or no further thread is allowed.
    fn queue_if_served(&self, task: Task) -> Result<Served, Error> {
        let mut state = self.state.lock();
        if state.closed {
            drop(state);
            return Err(self.late(task));
        }
        let full = state.threads.len() >= self.options.max_threads && state.is_manned();
        if state.idle <= state.queue.len() && !full {
            return Ok(Served::No(task));
        }
        state.queue.push_back(task);
        let served = if state.begins_watch() { Served::Watch } else { Served::Yes };
        drop(state);
        self.work.notify_one();
        Ok(served)
    }

    /// The task, if a thread must be started for it.
    fn watch_if(self: &Arc<Self>, served: Served) -> Option<Task> {
        match served {
            Served::No(task) => return Some(task),
            Served::Watch => self.watch(),
            Served::Yes => {}
        }
        None
    }

    pub(super) fn spawn_thread(self: &Arc<Self>, number: u64) -> io::Result<JoinHandle<()>> {
        let mine = Arc::clone(self);
        let work = move || {
            // It is there: this is the thread's first use of it.
            let _ = CURRENT.try_with(|current| current.set(Arc::as_ptr(&mine)));
            set_blocking_hook(Some(block));
            mine.work(number);
            set_blocking_hook(None);
        };
        let stack_size_bytes = match self.options.stack_size_bytes {
            0 => STACK_SIZE_BYTES,
            chosen => chosen,
        };
        let builder = Builder::new().name(format!("{}/{number}", self.options.name)).stack_size(stack_size_bytes);
        fault::spawn(Site::SpawnElastic)?;
        (self.spawn)(builder, Box::new(work))
    }

    /// The life of a thread.
    fn work(&self, number: u64) {
        let mut state = self.state.lock();
        loop {
            // A thread that is one too many ends; others work, so no task is left alone.
            let working = state.threads.len() - state.standing.waiting;
            if working > self.options.max_threads && state.starting != Some(number) {
                // This thread may have been woken for a task.
                self.work.notify_all();
                break;
            }
            if let Some(task) = state.queue.pop_front() {
                drop(state);
                task.run_in_span();
                if !self.process.is_this() {
                    // The task has forked, and this is the child's only thread: the pool is the parent's.
                    return;
                }
                state = self.state.lock();
                state.standing.ended += 1;
                continue;
            }
            // The thread that started this one has a task for it and will list its handle.
            let expected = |state: &ElasticPoolState| state.starting == Some(number);
            if state.closed && !expected(&state) {
                break;
            }
            let since = Instant::now();
            state.idle += 1;
            loop {
                let left = self.options.idle_timeout.saturating_sub(since.elapsed());
                if !state.queue.is_empty() || (!expected(&state) && (state.closed || left.is_zero())) {
                    break;
                }
                let left = if expected(&state) { LONG } else { left.min(LONG) };
                state = self.work.wait_for(state, left);
            }
            state.idle -= 1;
            if state.queue.is_empty() {
                break;
            }
        }
        let own = state.threads.remove(&number).flatten();
        let others = mem::replace(&mut state.ended, own.into_iter().collect());
        drop(state);
        self.end_if_over();
        join(others);
    }

    /// After the pool was closed or a thread left the list, under no lock.
    pub(super) fn end_if_over(&self) {
        if self.state.lock().is_over() {
            self.ended.set_ready();
        }
    }

    fn shutdown(&self, ShutdownOptions { mode, timeout }: ShutdownOptions) -> Result<(), Error> {
        let mut state = self.state.lock();
        state.closed = true;
        let mut dropped =
            if mode == ShutdownMode::CancelPending { mem::take(&mut state.queue) } else { VecDeque::new() };
        drop(state);
        self.work.notify_all();
        dropped.clear();
        self.end_if_over();
        let ended = self.ended.event();
        if let Some(timeout) = timeout {
            // An error means that it is late: the event is never failed.
            let _ = ended.wait_uninterruptible_for(timeout);
        } else {
            ended.wait_uninterruptible()?;
        }
        let mut state = self.state.lock();
        if !state.is_over() {
            state.gave_up = true;
            let (running, dropped) = (state.threads.len(), mem::take(&mut state.queue));
            drop(state);
            let count = dropped.len();
            drop(dropped);
            let name = &self.options.name;
            return Err(Error::deadline_exceeded(format!(
                "pool '{name}' did not end in time: {running} threads are left to their tasks, {count} tasks were dropped"
            )));
        }
        debug_assert!(state.queue.is_empty(), "threads end only when no task is left");
        let ended = mem::take(&mut state.ended);
        drop(state);
        join(ended);
        Ok(())
    }

    /// Drops a task that was too late.
    fn late(&self, task: Task) -> Error {
        late(format_args!("pool '{}'", self.options.name), task)
    }

    /// Drops a task for which there is no thread.
    fn no_thread(&self, task: Task, error: &io::Error) -> Error {
        let (name, label) = (&self.options.name, task.label());
        let why = format!("pool '{name}' has no thread and could not start one for task '{label}': {error}");
        refused(task, Error::resource_exhausted(why))
    }

    fn is_current(&self) -> bool {
        CURRENT.try_with(|current| ptr::eq(current.get(), self)).unwrap_or(false)
    }
}

/// What `event/park.rs` calls on a thread of a pool.
fn block(blocked: &Blocked<'_>) -> Waited {
    // SAFETY: the pool lives as long as its threads, and this is one.
    let shared = CURRENT.try_with(Cell::get).ok().and_then(|shared| unsafe { shared.as_ref() });
    let shared = shared.and_then(|shared| shared.me.upgrade());
    shared.map_or_else(|| blocked.sleep().into(), |shared| shared.wait(blocked))
}

fn join(threads: Vec<JoinHandle<()>>) {
    for thread in threads {
        // An error would be a panic of the thread itself, which catches those of its tasks.
        let _ = thread.join();
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if !self.0.process.is_this() {
            // Its tasks are the parent's, and so are the records of its threads.
            mem::forget(Arc::clone(&self.0));
        } else if self.0.is_current() || self.0.state.lock().gave_up {
            self.0.state.lock().closed = true;
            self.0.work.notify_all();
            self.0.end_if_over();
        } else {
            // Draining cannot fail.
            let _ = self.0.shutdown(ShutdownOptions::default());
        }
    }
}

impl fmt::Debug for ElasticPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ElasticPoolShared { options, state, .. } = &*self.0.0;
        let state = state.lock();
        let (threads, idle, queued) = (state.threads.len(), state.idle, state.queue.len());
        write!(f, "ElasticPool({:?}, {threads} threads, {idle} idle, {queued} queued)", options.name)
    }
}

#[cfg(test)]
mod tests;
