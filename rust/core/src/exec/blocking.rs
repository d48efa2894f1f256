//! What a worker does when a task of it waits for an event: it helps, and hands over its place before it sleeps.
//!
//! 1. It runs the tasks that the waiting task itself has spawned and that nobody has begun, newest first, on the same
//!    stack, at most [`MAX_HELPS`] deep. A wait with a timeout skips this: a task that is run could outlast it.
//! 2. It counts as blocked. If it was the last that was not, or if tasks wait and everybody is busy, a spare thread takes
//!    its place: one that rests, or a new one. So N workers, each waiting for N tasks of the same pool, come to an end.
//! 3. It sleeps until the event is terminal. If there was no spare (all are in use, or the system refused a thread) and
//!    nobody else is left, it wakes now and then and runs whatever task there is, as deep as in 1.
//!
//! A worker that comes back makes a spare superfluous; one that finds so between two tasks goes to rest. Spares rest until
//! the pool closes: they use no processor.
//!
//! What helping cannot solve: a spawned task runs on top of the task that waits, so it must not itself wait for something
//! that this task does later. Unrelated tasks are run only in 3: where the system gives no more threads, a task that waits for
//! a unit of a semaphore may stand on top of the one that has been granted it.

use std::time::Duration;

use super::worker::{Shared, Worker};
use crate::event::Blocked;
use crate::fault::{self, Site};
use crate::sync::atomic::AtomicBool;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::{Condvar, Mutex, mutation};

/// Tasks that are run by tasks that wait, on one stack.
pub(super) const MAX_HELPS: usize = 16;

/// The naps of step 3.
const NAPS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(64));

/// Who works, who is blocked, who rests.
pub(super) struct Roles {
    state: Mutex<State>,
    /// Spares that rest.
    called: Condvar,
    /// More are working than the pool has threads. Written under the lock; a hint without it.
    surplus: AtomicBool,
    thread_count: usize,
}

struct State {
    /// Threads that work or are blocked.
    present: usize,
    blocked: usize,
    /// Spares that rest and have not been called.
    resting: usize,
    /// Calls that no spare has heard yet.
    calls: usize,
    /// Seats of spares that were not started.
    free: Vec<usize>,
    closed: bool,
}

enum Cover {
    /// Somebody else works, or will.
    Found,
    /// The thread of this seat must be started.
    Start(usize),
    None,
}

impl Roles {
    pub(super) fn new(thread_count: usize, seats: usize) -> Self {
        let free = (thread_count..seats).rev().collect();
        let state = State { present: thread_count, blocked: 0, resting: 0, calls: 0, free, closed: false };
        Self { state: Mutex::new(state), called: Condvar::new(), surplus: AtomicBool::new(false), thread_count }
    }

    /// How many work and wait, in words.
    pub(super) fn describe(&self) -> String {
        let state = self.state.lock();
        format!("{} present of which {} are blocked, {} spares rest", state.present, state.blocked, state.resting)
    }

    pub(super) fn surplus(&self) -> bool {
        self.surplus.load(Relaxed)
    }

    fn note_surplus(&self, state: &State) {
        self.surplus.store(state.present - state.blocked > self.thread_count, Relaxed);
    }

    fn enter(&self, tasks_wait: bool) -> Cover {
        let mut state = self.state.lock();
        state.blocked += 1;
        let working = state.present - state.blocked;
        let needed = working == 0 || (tasks_wait && working < self.thread_count);
        let cover = if !needed || mutation("blocking-no-spare") {
            Cover::Found
        } else if state.resting > 0 {
            state.resting -= 1;
            state.calls += 1;
            state.present += 1;
            self.called.notify_one();
            Cover::Found
        } else if let Some(seat) = state.free.pop() {
            state.present += 1;
            Cover::Start(seat)
        } else if working > 0 {
            Cover::Found
        } else {
            Cover::None
        };
        self.note_surplus(&state);
        cover
    }

    fn leave(&self) {
        let mut state = self.state.lock();
        state.blocked -= 1;
        self.note_surplus(&state);
    }

    /// One who left is blocked again, without a spare as before.
    fn resume(&self) {
        let mut state = self.state.lock();
        state.blocked += 1;
        self.note_surplus(&state);
    }

    /// The thread of `seat` could not be started; how many still work.
    fn not_started(&self, seat: usize) -> usize {
        let mut state = self.state.lock();
        state.present -= 1;
        state.free.push(seat);
        self.note_surplus(&state);
        state.present - state.blocked
    }

    /// Keeps a superfluous spare until it is called or the pool closes.
    pub(super) fn rest(&self) {
        let mut state = self.state.lock();
        if state.present - state.blocked <= self.thread_count {
            return;
        }
        state.present -= 1;
        state.resting += 1;
        self.note_surplus(&state);
        while state.calls == 0 && !state.closed {
            state = self.called.wait(state);
        }
        if state.calls > 0 {
            state.calls -= 1;
        } else {
            state.resting -= 1;
            state.present += 1;
        }
    }

    pub(super) fn close(&self) {
        self.state.lock().closed = true;
        self.called.notify_all();
    }
}

/// What `event/park.rs` calls on a worker instead of just sleeping. True if the event is terminal, false if its time is up.
pub(super) fn block(blocked: &Blocked<'_>) -> bool {
    let waited = Worker::with_current(|shared, worker| {
        if !blocked.is_timed() {
            shared.help_until(worker, || blocked.is_over());
            if blocked.is_over() {
                return true;
            }
        }
        let covered = shared.enter_blocking();
        let over = if covered { blocked.sleep() } else { shared.doze(worker, blocked) };
        shared.roles.leave();
        over
    });
    waited.unwrap_or_else(|| blocked.sleep())
}

impl Shared {
    /// Step 1: runs what the running task has spawned, until `done` or nothing is left of it.
    pub(super) fn help_until(&self, worker: &Worker, done: impl Fn() -> bool) {
        while worker.helps.get() < MAX_HELPS
            && !mutation("blocking-no-help")
            && !done()
            && let Some(task) = self.pop_own(worker)
        {
            self.help(worker, task);
        }
    }

    fn help(&self, worker: &Worker, task: *mut super::task::TaskNode) {
        worker.helps.set(worker.helps.get() + 1);
        self.run(worker, task);
        worker.helps.set(worker.helps.get() - 1);
    }

    /// Step 2; false if nobody else works.
    pub(super) fn enter_blocking(&self) -> bool {
        match self.roles.enter(self.idle.all_awake() && self.has_work()) {
            Cover::Found => true,
            Cover::None => false,
            Cover::Start(seat) => match fault::spawn(Site::SpawnSpare).and_then(|()| self.start(seat)) {
                Ok(()) => true,
                Err(error) => {
                    tracing::warn!(target: "purlin", %error, "a pool could not start a spare thread");
                    self.roles.not_started(seat) > 0
                }
            },
        }
    }

    /// The end of step 2.
    pub(super) fn leave_blocking(&self) {
        self.roles.leave();
    }

    /// Step 3 without a spare.
    #[cold]
    fn doze(&self, worker: &Worker, blocked: &Blocked<'_>) -> bool {
        let mut nap = NAPS.0;
        loop {
            let may_help = worker.helps.get() < MAX_HELPS && !blocked.is_timed() && !mutation("blocking-no-help");
            if let Some(task) = if may_help { self.take_any(worker) } else { None } {
                // It works now, and if that task waits, it is this one thread that is blocked, not two.
                self.roles.leave();
                self.help(worker, task);
                self.roles.resume();
                nap = NAPS.0;
            } else if blocked.sleep_for(nap) {
                return true;
            } else if blocked.is_late() {
                return false;
            }
            if blocked.is_over() {
                return true;
            }
            nap = NAPS.1.min(nap * 2);
        }
    }
}
