//! One thread of a pool, and what all of them share.
//!
//! A worker has two rings (`deque.rs`): `spawned` for the tasks that its own tasks schedule, which it runs newest
//! first, and `batch` for what it took from the injector (`injector.rs`), oldest first. When both are empty it takes
//! more from the injector; when that is empty too, it searches: it steals from the other workers, of many spawned tasks
//! some for its own `batch` at once, looks again for a while ([`LOOKS`]), and sleeps (`idle.rs`).
//!
//! No task starves: urgent tasks go first; now and then a worker takes an outside task or its oldest spawned one before
//! the newest, and a task of low priority before everything.

use std::cell::Cell;
use std::fmt;
use std::ptr;
use std::sync::{Arc, Weak};

use tracing::level_filters::LevelFilter;
use tracing::trace_span;

use super::blocking;
use super::blocking::Beneath;
use super::deque::Deque;
use super::idle::{Idle, Waker};
use super::injector::Injector;
use super::relief;
use super::relief::Relief;
use super::roles::Roles;
use super::seat::Seat;
use super::seats::Seats;
use super::threads::{Starter, Threads};
use crate::event::{Event, EventPromise, set_blocking_hook};
use crate::task::census::{Occupation, Occupied};
use crate::task::node::TaskNode;
use crate::task::{Priority, Task};
use crate::user_context::current_id;
use purlin_base::label::Label;
use purlin_base::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, SeqCst};
use purlin_base::sync::atomic::{AtomicBool, AtomicUsize};
use purlin_base::sync::{Process, hint, per_thread};

/// Every so many tasks, a worker takes an outside task first; halfway between, its oldest spawned task.
const TURN: u32 = 61;
/// Every so many turns, the outside task is one of low priority.
const LOW_TURN: u32 = 8;
/// How often a searching worker looks before it sleeps: for about 10 microseconds. If [`LOOKERS`] search already,
/// another sleeps at once.
const LOOKS: u32 = if cfg!(purlin_model) { 0 } else { 32 + PAUSES };
/// Of these, so many are a pause apart; before the others it lets another thread have the processor, which may be the
/// one with the next task.
const PAUSES: u32 = 64;
/// Two: when one has found a task, the next push still finds a thread awake.
const LOOKERS: usize = 2;

/// How many threads a pool may have beside those that it was made with.
#[derive(Clone, Copy)]
pub(super) struct Spares {
    /// While their places are filled.
    pub(super) most: usize,
    /// Afterwards.
    pub(super) at_rest: usize,
}

/// What the threads of a pool share.
pub(super) struct PoolShared {
    pub(super) injector: Injector,
    pub(super) idle: Idle,
    pub(super) roles: Roles,
    pub(super) relief: Relief,
    pub(super) threads: Threads,
    /// The workers', then the spares'.
    seats: Seats<Seat>,
    /// How many threads the pool was made with; the rest are spares.
    thread_count: usize,
    /// New tasks are refused. Set after the injector is closed.
    closing: AtomicBool,
    /// Tasks are dropped instead of run.
    cancelling: AtomicBool,
    /// Threads that have not ended, and one for the thread that still starts them.
    alive: AtomicUsize,
    /// Where the threads are.
    process: Process,
    /// Happens when none is alive.
    ended: EventPromise,
    me: Weak<PoolShared>,
}

/// What only the worker itself sees. Lives on its thread's stack.
pub(super) struct Worker {
    shared: *const PoolShared,
    pub(super) seat: usize,
    /// That seat.
    own: *const Seat,
    tick: Cell<u32>,
    /// Spawned tasks above this were spawned by the task that runs.
    mark: Cell<usize>,
    /// Tasks that are being run by tasks that wait.
    pub(super) helps: Cell<usize>,
    /// The innermost wait of this stack on top of which an unrelated task runs (`blocking.rs`); null without one.
    pub(super) beneath: Cell<*const Beneath>,
}

// The worker that this thread is.
per_thread!(static CURRENT: Cell<*const Worker> = Cell::new(ptr::null()));
// The pool that has started this thread: for comparison only, because it stays when the worker has ended, for the
// destructors of the thread's variables.
per_thread!(static STARTED_BY: Cell<*const PoolShared> = Cell::new(ptr::null()));

/// Until when a worker works.
pub(super) trait Until {
    /// True when it is enough.
    fn is_over(&self) -> bool;
    /// As `is_over`, the last time before the worker sleeps, to be woken by name.
    fn is_over_before_sleep(&self) -> bool {
        self.is_over()
    }
}

/// Until the pool has closed and drained, or a spare is not needed any more, or this thread has become a process of its
/// own.
struct Shift<'a>(&'a PoolShared, usize);

impl Until for Shift<'_> {
    #[inline]
    fn is_over(&self) -> bool {
        let Self(shared, seat) = *self;
        if !shared.is_here() {
            return true;
        }
        if shared.closing.load(SeqCst) {
            return !shared.has_work();
        }
        seat >= shared.thread_count && shared.roles.surplus() && shared.seats.get(seat).is_empty()
    }

    /// No push wakes a worker that falls asleep after the pool has closed, so none may fall asleep: the last task may
    /// be taken between two looks at the queues, of which the first says that it is not over and the second that there
    /// is nothing to do.
    fn is_over_before_sleep(&self) -> bool {
        self.0.is_closing() || self.is_over()
    }
}

impl PoolShared {
    /// No thread works yet. One thread counts as alive until [`left`](Self::left).
    pub(super) fn new(name: &str, thread_count: usize, spares: Spares, starter: Starter, relief: Relief) -> Arc<Self> {
        let (seats, most) = (thread_count + spares.at_rest, thread_count + spares.most);
        Arc::new_cyclic(|me| Self {
            injector: Injector::new(thread_count),
            idle: Idle::new(thread_count, seats, most),
            roles: Roles::new(thread_count, most, spares.at_rest),
            relief,
            threads: Threads::new(name, starter),
            seats: Seats::new(seats, most, Seat::new),
            thread_count,
            closing: AtomicBool::new(false),
            cancelling: AtomicBool::new(false),
            alive: AtomicUsize::new(1),
            process: Process::this(),
            ended: EventPromise::guarding(c"pool ended"),
            me: me.clone(),
        })
    }

    /// Starts the thread of a seat that is the caller's to give.
    pub(super) fn start(&self, seat: usize) -> std::io::Result<()> {
        // The caller is a worker or holds a handle, so this is alive.
        let Some(shared) = self.me.upgrade() else { return Err(std::io::ErrorKind::NotFound.into()) };
        self.enlist(seat);
        let work = move || {
            STARTED_BY.with(|started_by| started_by.set(Arc::as_ptr(&shared)));
            shared.work(seat);
        };
        self.threads.start(seat, work).inspect_err(|_| self.left())
    }

    /// Before a thread calls [`work`](Self::work).
    pub(super) fn enlist(&self, seat: usize) {
        self.seats.make_room(seat);
        self.idle.make_room(seat);
        // Relaxed: the thread that enlists is alive.
        self.alive.fetch_add(1, Relaxed);
    }

    /// One less alive.
    pub(super) fn left(&self) {
        // AcqRel: the last one has seen what all others did.
        if self.alive.fetch_sub(1, AcqRel) == 1 {
            self.ended.set_ready();
        }
    }

    /// Happens when all threads have ended.
    pub(super) fn ended(&self) -> Event {
        self.ended.event()
    }

    /// False in a child made by `fork`, where the threads are not.
    #[inline]
    pub(super) fn is_here(&self) -> bool {
        self.process.is_this()
    }

    pub(super) fn thread_count(&self) -> usize {
        self.thread_count
    }

    /// The worker that this thread is, if it is one of ours.
    #[inline]
    pub(super) fn current(&self) -> Option<&Worker> {
        // SAFETY: a worker clears this before it ends, and we look on its own thread.
        let worker = unsafe { CURRENT.with(Cell::get).as_ref() }?;
        ptr::eq(worker.shared, self).then_some(worker)
    }

    /// True on this pool's threads, also in the destructors of their variables.
    pub(super) fn is_current(&self) -> bool {
        STARTED_BY.with(|started_by| ptr::eq(started_by.get(), self))
    }

    /// The seat of the worker that this thread is.
    pub(super) fn current_seat(&self) -> Option<usize> {
        self.current().map(|worker| worker.seat)
    }

    /// Queues a task and wakes a worker for it; gives it back after [`close`](Self::close).
    #[inline]
    pub(super) fn submit(&self, task: Task, priority: Priority) -> Result<(), Task> {
        self.submit_and(task, priority, false)
    }

    /// As [`submit`](Self::submit). `work_on`: this thread does so, as workers do in any case.
    #[inline]
    pub(super) fn submit_and(&self, task: Task, priority: Priority, work_on: bool) -> Result<(), Task> {
        // As Task::run_in_span().
        if LevelFilter::current() >= LevelFilter::TRACE {
            return self.submit_watched(task, priority, work_on);
        }
        self.submit_unwatched(task, priority, work_on)
    }

    #[cold]
    fn submit_watched(&self, task: Task, priority: Priority, work_on: bool) -> Result<(), Task> {
        let _span = trace_span!(target: "purlin", "schedule", label = %task.label(), context = current_id()).entered();
        self.submit_unwatched(task, priority, work_on)
    }

    #[inline]
    fn submit_unwatched(&self, task: Task, priority: Priority, work_on: bool) -> Result<(), Task> {
        self.push(task, priority)?;
        self.wake_one(work_on);
        Ok(())
    }

    /// After a task was pushed.
    #[inline]
    fn wake_one(&self, work_on: bool) {
        if self.idle.must_wake() {
            self.wake_one_slowly(work_on);
        }
    }

    #[cold]
    fn wake_one_slowly(&self, work_on: bool) {
        let seat = self.current_seat();
        if self.idle.wake_one(if work_on || seat.is_some() { Waker::WorksOn(seat) } else { Waker::Other }) {
            self.watch();
        }
    }

    #[inline]
    fn push(&self, mut task: Task, priority: Priority) -> Result<(), Task> {
        if priority == Priority::Normal
            && let Some(worker) = self.current()
            && !self.closing.load(Relaxed)
        {
            let node = task.into_raw();
            // SAFETY: the seat is this thread's; if the ring was full, the node is still ours.
            unsafe {
                if worker.own().spawned.push(node) {
                    return Ok(());
                }
                task = Task::from_raw(node);
            }
        }
        self.injector.push(task, priority)
    }

    /// Lends a job on this worker's stack to the worker that steals it; false if there is no room. A worker that falls
    /// asleep meanwhile may not see it: then this one will take it back.
    ///
    /// # Safety
    /// The node is complete and stays until it was taken back or invoked; `worker` is this thread.
    #[inline]
    pub(super) unsafe fn lend(&self, worker: &Worker, job: *mut TaskNode) -> bool {
        // SAFETY: the seat is this thread's.
        let lent = unsafe { worker.own().spawned.offer(job) };
        if lent {
            self.wake_one(true);
        }
        lent
    }

    /// The newest task that this worker spawned.
    #[inline]
    pub(super) fn pop(&self, worker: &Worker) -> Option<*mut TaskNode> {
        // SAFETY: the seat is this thread's: a Worker is only seen by its own thread.
        unsafe { worker.own().spawned.pop() }
    }

    /// The newest task that was spawned by the task that this worker runs.
    pub(super) fn pop_own(&self, worker: &Worker) -> Option<*mut TaskNode> {
        let above = worker.own().spawned.bottom().wrapping_sub(worker.mark.get()).cast_signed();
        if above > 0 { self.pop(worker) } else { None }
    }

    /// Refuses new tasks and lets the workers end once no task is left.
    pub(super) fn close(&self) {
        self.injector.close();
        self.closing.store(true, SeqCst);
        self.idle.wake_all();
        self.roles.close();
    }

    /// This pool, weakly.
    #[cfg(not(purlin_model))]
    pub(super) fn me(&self) -> &Weak<Self> {
        &self.me
    }

    /// Puts a task into the ring of a seat on which no thread works.
    #[cfg(all(test, loom))]
    pub(super) fn put(&self, seat: usize, task: Task) {
        // SAFETY: this thread is its only user.
        assert!(unsafe { self.seats.get(seat).spawned.push(task.into_raw()) });
    }

    /// The system's numbers of the threads that work, wait or rest.
    #[cfg(not(purlin_model))]
    pub(super) fn numbers_of_threads(&self) -> Vec<u32> {
        let numbers = (0..self.roles.used_seats()).map(|seat| self.seats.get(seat).thread.load(Relaxed));
        numbers.filter(|&number| number != 0).collect()
    }

    /// The numbers of the tasks that are queued, as they were a moment ago.
    pub(super) fn queued(&self) -> Vec<usize> {
        let seats = (0..self.roles.used_seats()).map(|seat| self.seats.get(seat));
        let in_rings = seats.flat_map(|seat| [seat.spawned.numbers(), seat.batch.numbers()]).flatten();
        in_rings.chain(self.injector.numbers()).collect()
    }

    /// What changes when a task is taken or begun, in nearly all cases.
    #[cfg(not(purlin_model))]
    pub(super) fn traces_of_work(&self) -> Vec<usize> {
        let seats = (0..self.roles.used_seats()).map(|seat| self.seats.get(seat));
        let of_seats = seats.flat_map(|seat| {
            let [spawned, batch] = [&seat.spawned, &seat.batch].map(Deque::ends);
            [spawned.0, spawned.1, batch.0, batch.1, seat.running.load(Relaxed).addr()]
        });
        of_seats.chain(self.injector.held()).collect()
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(SeqCst)
    }

    /// After [`close`](Self::close): drops every task that has not begun, here and on the workers.
    pub(super) fn cancel(&self) {
        self.cancelling.store(true, SeqCst);
        while let Some(task) = self.find_anywhere() {
            // SAFETY: taken out of a queue, so ours.
            drop(unsafe { Task::from_raw(task) });
        }
    }

    /// The labels of the tasks that run.
    pub(super) fn running(&self) -> Vec<Label> {
        let labels = (0..self.roles.used_seats()).map(|seat| self.seats.get(seat).running.load(Acquire));
        // SAFETY: labels are static strings with a NUL.
        labels.filter(|label| !label.is_null()).map(|label| unsafe { Label::from_ptr(label) }).collect()
    }

    /// How many threads have nothing to do; a hint.
    pub(super) fn idle_count(&self) -> usize {
        self.idle.count()
    }

    /// True if a task is queued. Reads in the order that `injector.rs` asks for.
    pub(super) fn has_work(&self) -> bool {
        let has_tasks = |seat: &Seat| (!seat.is_empty()).then_some(());
        !self.injector.is_empty() || self.seats.find_map(0..self.roles.used_seats(), has_tasks).is_some()
    }

    fn find_anywhere(&self) -> Option<*mut TaskNode> {
        let lanes = [Priority::High, Priority::Normal, Priority::Low];
        let outside = lanes.into_iter().find_map(|lane| self.injector.take_one(lane));
        outside.or_else(|| self.seats.find_map(0..self.roles.used_seats(), Seat::steal))
    }

    /// A task of this worker's own, or one from outside.
    #[inline]
    fn next(&self, worker: &Worker) -> Option<*mut TaskNode> {
        let seat = worker.own();
        let tick = worker.tick.get().wrapping_add(1);
        worker.tick.set(tick);
        if self.injector.has(Priority::High)
            && let Some(urgent) = self.injector.take_one(Priority::High)
        {
            return Some(urgent);
        }
        if tick.is_multiple_of(TURN) {
            let low = if tick.is_multiple_of(TURN * LOW_TURN) { self.injector.take_one(Priority::Low) } else { None };
            let turn = low.or_else(|| seat.batch.steal_one()).or_else(|| self.injector.take_one(Priority::Normal));
            if turn.is_some() {
                return turn;
            }
        } else if tick % TURN == TURN / 2 {
            let oldest = seat.spawned.steal_one();
            if oldest.is_some() {
                return oldest;
            }
        }
        self.pop(worker).or_else(|| self.next_of_batch(seat))
    }

    /// For the worker of `seat`, which has spawned nothing that is left.
    fn next_of_batch(&self, seat: &Seat) -> Option<*mut TaskNode> {
        // SAFETY: the seat is this thread's.
        seat.batch.steal_one().or_else(|| unsafe { self.injector.take_batch(&seat.batch) })
    }

    /// Another worker's task, for the worker on `seat`, whose ring may get some more of that worker's.
    ///
    /// # Safety
    /// The caller is that worker.
    pub(super) unsafe fn rob(&self, seat: usize) -> Option<*mut TaskNode> {
        let used = self.roles.used_seats();
        // SAFETY: the caller's promise.
        let rob = |victim: &Seat| unsafe { victim.steal_for(self.seats.get(seat)) };
        let (task, more) =
            self.seats.find_map(seat + 1..used, rob).or_else(|| self.seats.find_map(0..seat.min(used), rob))?;
        if more > 0 {
            // A worker that fell asleep while they were in no ring has not seen them.
            self.wake_one(true);
        }
        Some(task)
    }

    /// Another worker's task, one from outside, or at last one of low priority.
    fn steal(&self, worker: &Worker) -> Option<*mut TaskNode> {
        // SAFETY: the worker is this thread's.
        let stolen = unsafe { self.rob(worker.seat) };
        let outside = || self.injector.take_one(Priority::High).or_else(|| self.injector.take_one(Priority::Normal));
        stolen.or_else(outside).or_else(|| self.injector.take_one(Priority::Low))
    }

    /// Whatever task there is, newest of its own first.
    pub(super) fn take_any(&self, worker: &Worker) -> Option<*mut TaskNode> {
        self.pop(worker).or_else(|| worker.own().batch.steal_one()).or_else(|| self.steal(worker))
    }

    /// Works until `until` is over.
    pub(super) fn work_until(&self, worker: &Worker, until: &impl Until) {
        while !until.is_over() {
            if let Some(task) = self.next(worker).or_else(|| self.search(worker, until)) {
                self.run(worker, task);
            }
        }
    }

    /// Searches, and sleeps, until there is a task or it is over.
    #[cold]
    fn search(&self, worker: &Worker, until: &impl Until) -> Option<*mut TaskNode> {
        // What is found at once needs no search that other threads know of: they read its count at each push.
        // SAFETY: the worker is this thread's.
        if let Some(task) = unsafe { self.rob(worker.seat) } {
            return Some(task);
        }
        let mut may_look = self.idle.begin_search() < LOOKERS;
        let found = loop {
            let mut looks = if may_look { LOOKS } else { 0 };
            let found = loop {
                let found = self.steal(worker);
                if found.is_some() || until.is_over() || looks == 0 {
                    break found;
                }
                while looks > 0 && !self.has_work() && !until.is_over() {
                    looks -= 1;
                    if looks + PAUSES >= LOOKS {
                        hint::spin_loop();
                    } else {
                        std::thread::yield_now();
                    }
                }
            };
            if found.is_some() || until.is_over() {
                break found;
            }
            self.idle.sleep(worker.seat, worker.own().thread.load(Relaxed), || {
                until.is_over_before_sleep() || self.has_work()
            });
            may_look = true;
        };
        if self.idle.end_search() && self.has_work() {
            self.wake_one(true);
        }
        found
    }

    /// Runs a task, or drops it if the pool is being cancelled.
    pub(super) fn run(&self, worker: &Worker, task: *mut TaskNode) {
        let seat = worker.own();
        // SAFETY: the task was taken out of a queue, so it is ours.
        let (task, label) = unsafe { (Task::from_raw(task), (*task).label) };
        let outer = (worker.mark.replace(seat.spawned.bottom()), seat.running.load(Relaxed));
        seat.running.store(label.cast_mut(), Relaxed);
        if self.cancelling.load(Relaxed) {
            drop(task);
        } else {
            task.run_in_span();
        }
        worker.mark.set(outer.0);
        seat.running.store(outer.1, Relaxed);
    }

    /// The life of the worker on `seat`.
    pub(super) fn work(&self, seat: usize) {
        let worker = Worker {
            shared: self,
            seat,
            own: self.seats.get(seat),
            tick: Cell::new(0),
            mark: Cell::new(self.seats.get(seat).spawned.bottom()),
            helps: Cell::new(0),
            beneath: Cell::new(ptr::null()),
        };
        CURRENT.with(|current| current.set(&raw const worker));
        worker.own().thread.store(relief::this_thread(), Relaxed);
        set_blocking_hook(Some(blocking::block));
        let shift = || {
            self.work_until(&worker, &Shift(self, seat));
            if self.is_here() {
                self.idle.leave(seat);
            }
        };
        shift();
        while !self.is_closing() && self.is_here() && self.roles.rest(seat) {
            shift();
        }
        if self.is_here() {
            self.threads.join_ended();
        }
        set_blocking_hook(None);
        CURRENT.with(|current| current.set(ptr::null()));
        self.left();
    }
}

impl Worker {
    /// True if this thread is a worker of a pool in which a task waits.
    pub(super) fn has_more() -> bool {
        Self::with_current(|shared, _worker| shared.has_work()).unwrap_or(false)
    }

    /// What others see of this worker.
    #[inline]
    fn own(&self) -> &Seat {
        // SAFETY: a seat stays where it is as long as its pool, which lives as long as its workers.
        unsafe { &*self.own }
    }

    /// The worker that this thread is, with its pool.
    pub(super) fn with_current<R>(f: impl FnOnce(&PoolShared, &Self) -> R) -> Option<R> {
        // SAFETY: a worker clears this before it ends, and holds its pool meanwhile; we look on its own thread.
        unsafe {
            let worker = CURRENT.with(Cell::get).as_ref()?;
            Some(f(&*worker.shared, worker))
        }
    }
}

impl Occupied for PoolShared {
    fn occupation(&self) -> Occupation {
        let running: Vec<_> = self.running().iter().map(|label| format!("'{label}'")).collect();
        let tasks = self.queued();
        let queued = match (self.has_work(), self.roles.all_wait()) {
            (true, true) => format!("ALL OF ITS THREADS WAIT while tasks are queued: {}", tasks.len()),
            (true, false) => "tasks are queued".to_owned(),
            (false, _) => "no task is queued".to_owned(),
        };
        let stuck = self.roles.describe_stuck().map(|why| format!("; IT CANNOT GO ON: {why}")).unwrap_or_default();
        let running =
            if running.is_empty() { "nothing runs".to_owned() } else { format!("running {}", running.join(", ")) };
        let text = format!(
            "pool '{}': {} threads, {}; {running}; {queued}{stuck}",
            self.threads.name(),
            self.thread_count,
            self.roles.describe()
        );
        let standstill = self.roles.standstill().map(|waiting| (std::ptr::from_ref(self).addr(), waiting));
        Occupation { text, queued: if standstill.is_some() { tasks } else { Vec::new() }, standstill, running: None }
    }
}

impl fmt::Debug for PoolShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} workers, closing: {}", self.thread_count, self.is_closing())
    }
}
