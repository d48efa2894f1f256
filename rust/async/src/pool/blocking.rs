//! What a worker does when a task of it waits for an event: it helps, and gives up its place before it sleeps.
//!
//! 1. It runs the tasks that the waiting task itself has spawned and that have not begun, newest first, on the same
//!    stack, at most [`MAX_HELPS`] deep. A wait with a timeout skips this: a task that is run could outlast it.
//! 2. It counts as blocked. If it was the last that was not, or if tasks wait and all are busy, a spare thread takes
//!    its place: one that rests, or a new one (`roles.rs`). So N workers, each waiting for N tasks of the same pool,
//!    come to an end.
//! 3. It sleeps until the event is terminal. If there was no spare (the system refused a thread, or there are as many
//!    as there may be) and no other thread is left, it wakes now and then, runs whatever task there is, as deep as in
//!    1, and asks for a spare again. When none of that helps for long, the newest wait of the pool that may be given up
//!    ends with an error.
//!
//! Waits on which memory or a stack depends are never given up, also those of users (`event/lent.rs`): a copy is
//! completed by the threads of its backend, whatever this pool does. These run what there is twice as deep. Waits with
//! a timeout end by themselves.
//!
//! A worker that returns makes a spare superfluous; a spare that finds so between two tasks goes to rest, or ends.
//!
//! What helping cannot solve: a spawned task runs on top of the task that waits, so it must not itself wait for
//! something that this task does later. Unrelated tasks are run only in 3: where the system gives no more threads, a
//! task that waits for a unit of a semaphore may stand on top of the one that has been granted it. That is noticed: a
//! wait that stands for long on top of a wait whose event has completed is given up.

use std::time::{Duration, Instant};

use super::roles::{Cover, PATIENCE};
use super::worker::{PoolShared, Worker};
use crate::event::{Blocked, Waited};
use crate::task::fork;
use purlin_base::fault::{self, Site};
use purlin_base::status::Error;

/// Tasks that are run by tasks that wait, on one stack.
pub(super) const MAX_HELPS: usize = 16;

/// The naps of step 3.
const NAPS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(64));

/// A wait on whose stack an unrelated task runs. Lives on that stack.
pub(super) struct Beneath {
    doze: *const Doze<'static>,
    outer: *const Beneath,
}

/// A wait of step 3.
pub(super) struct Doze<'a> {
    pub(super) is_over: &'a dyn Fn() -> bool,
    /// Sleeps for that long, or less.
    pub(super) nap: &'a dyn Fn(Duration),
    /// The wait, if it may be given up.
    pub(super) wait: Option<&'a Blocked<'a>>,
    /// How many tasks may be run on this stack.
    pub(super) most_helps: usize,
}

/// What `event/park.rs` calls on a worker instead of just sleeping.
pub(super) fn block(blocked: &Blocked<'_>) -> Waited {
    Worker::with_current(|shared, worker| shared.wait(worker, blocked)).unwrap_or_else(|| blocked.sleep().into())
}

impl PoolShared {
    fn wait(&self, worker: &Worker, blocked: &Blocked<'_>) -> Waited {
        if !self.is_here() {
            return blocked.sleep().into();
        }
        blocked.in_pool(std::ptr::from_ref(self).addr());
        if !blocked.is_timed() {
            self.help_until(worker, || blocked.is_over());
            if blocked.is_over() {
                return Waited::Over;
            }
            if !self.is_here() {
                return self.has_forked(blocked);
            }
        }
        let wait = blocked.may_be_given_up().then_some(blocked);
        let over = if self.enter_blocking(wait) {
            blocked.sleep()
        } else {
            let doze = Doze {
                is_over: &|| blocked.is_over() || blocked.is_late() || !self.is_here(),
                nap: &|nap| _ = blocked.sleep_for(nap),
                wait,
                most_helps: match (blocked.is_timed(), wait) {
                    (true, _) => 0,
                    (false, Some(wait)) if !wait.lasts() => MAX_HELPS,
                    (false, _) => 2 * MAX_HELPS,
                },
            };
            self.doze(worker, &doze);
            blocked.is_over()
        };
        self.leave_blocking(wait, over);
        if !over && !self.is_here() {
            return self.has_forked(blocked);
        }
        if !over && blocked.is_given_up() { Waited::GivenUp(self.cannot_go_on(blocked)) } else { over.into() }
    }

    /// Step 1: runs what the running task has spawned, until `done` or nothing is left of it.
    pub(super) fn help_until(&self, worker: &Worker, done: impl Fn() -> bool) {
        while worker.helps.get() < MAX_HELPS
            && !done()
            && let Some(task) = self.pop_own(worker)
        {
            self.help(worker, task);
        }
    }

    fn help(&self, worker: &Worker, task: *mut crate::task::node::TaskNode) {
        worker.helps.set(worker.helps.get() + 1);
        self.run(worker, task);
        worker.helps.set(worker.helps.get() - 1);
    }

    /// Step 2; false if no other thread works. `wait` is what may be given up.
    pub(super) fn enter_blocking(&self, wait: Option<&Blocked<'_>>) -> bool {
        let cover = self.roles.enter(self.idle.all_awake() && self.has_work(), wait);
        self.is_covered(cover)
    }

    /// Starts the spare if one is to be started; true if a thread works.
    pub(super) fn is_covered(&self, cover: Cover) -> bool {
        let seat = match cover {
            Cover::Found => return true,
            Cover::None => return false,
            Cover::Start(seat) => seat,
        };
        match fault::spawn(Site::SpawnSpare).and_then(|()| self.start(seat)) {
            Ok(()) => {
                self.roles.started();
                true
            }
            Err(error) => {
                let (working, is_news) = self.roles.not_started(seat, &error);
                if is_news {
                    tracing::warn!(target: "purlin", %error, "a pool could not start a spare thread");
                }
                working > 0
            }
        }
    }

    /// The end of steps 2 and 3.
    pub(super) fn leave_blocking(&self, wait: Option<&Blocked<'_>>, over: bool) {
        self.roles.leave(wait, over);
    }

    /// Step 3 without a spare; returns when it is over or given up.
    #[cold]
    pub(super) fn doze(&self, worker: &Worker, doze: &Doze<'_>) {
        let mut nap = NAPS.0;
        let mut on_top_since = None;
        while !(doze.is_over)() && !doze.wait.is_some_and(Blocked::is_given_up) {
            let may_help = worker.helps.get() < doze.most_helps;
            if let Some(task) = if may_help { self.take_any(worker) } else { None } {
                self.help_on_top(worker, doze, task);
                nap = NAPS.0;
                continue;
            }
            let tasks_wait = self.has_work();
            if tasks_wait && self.is_covered(self.roles.cover_later()) {
                nap = NAPS.0;
            }
            self.roles.nobody_works(tasks_wait);
            if !worker.is_on_top_of_one_that_is_over() {
                on_top_since = None;
            } else if on_top_since.get_or_insert_with(Instant::now).elapsed() >= PATIENCE
                && let Some(wait) = doze.wait.filter(|wait| !wait.lasts())
            {
                wait.give_up();
                continue;
            }
            (doze.nap)(nap);
            nap = NAPS.1.min(nap * 2);
        }
    }

    /// Runs an unrelated task on top of a wait.
    fn help_on_top(&self, worker: &Worker, doze: &Doze<'_>, task: *mut crate::task::node::TaskNode) {
        // It works now, and if that task waits, it is this one thread that is blocked, not two.
        self.roles.leave(doze.wait, false);
        let here = Beneath { doze: std::ptr::from_ref(doze).cast(), outer: worker.beneath.get() };
        worker.beneath.set(&raw const here);
        self.help(worker, task);
        worker.beneath.set(here.outer);
        self.roles.resume(doze.wait);
    }

    /// A task that was run on top of the wait has forked, and this is the child, where no thread completes the event.
    #[cold]
    fn has_forked(&self, blocked: &Blocked<'_>) -> Waited {
        let what =
            format_args!("event '{}', which was pending in a task of pool '{}',", blocked.label(), self.threads.name());
        Waited::GivenUp(fork::refusal(what))
    }

    fn cannot_go_on(&self, blocked: &Blocked<'_>) -> Error {
        let (pool, event, why) = (self.threads.name(), blocked.label(), self.roles.describe_refusal());
        Error::resource_exhausted(format!(
            "pool '{pool}' cannot go on: {why}; the wait for event '{event}', which is still pending, was given up"
        ))
    }
}

impl Worker {
    fn is_on_top_of_one_that_is_over(&self) -> bool {
        let mut next = self.beneath.get();
        // SAFETY: entries stay on this thread's stack while they are in the list, and their waits with them.
        while let Some(beneath) = unsafe { next.as_ref() } {
            // SAFETY: as above.
            if unsafe { ((*beneath.doze).is_over)() } {
                return true;
            }
            next = beneath.outer;
        }
        false
    }
}
