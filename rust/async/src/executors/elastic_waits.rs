//! What an elastic pool does about tasks that wait for events: it keeps its cap while it can, and never stands still
//! for ever.
//!
//! A pool is at a *standstill* when each of its threads is in a wait for an event, tasks are queued, and no thread is
//! being started. The thread that brings that about (by a wait, or by queueing a task) begins to watch: rounds, of
//! [`Pace::round`], on the timers of [`relief`].
//!
//! 1. After [`Pace::patience`] rounds at a standstill in which no wait and no task has ended, one thread more than the
//!    cap is started, and in each further such round another. So short waits do not exceed the cap, and tasks that all
//!    wait for one that is queued come to an end, however many they are.
//! 2. A thread that finds more than the cap working ends after its task.
//! 3. If the system refuses the thread for as many rounds, or there are too many, the newest wait that may be given up
//!    ends: it answers `ResourceExhausted`. Waits until which memory may be lent (`event/lent.rs`) do not; reports say
//!    so.
//!
//! Where not even the timers' thread can be started, a waiting thread makes the rounds; for one that queues a task
//! there is one, at once, without patience.

use std::sync::Arc;
use std::time::Duration;

use super::elastic_pool::{ElasticPoolShared, ElasticPoolState};
use crate::event::{Blocked, Waited};
use crate::pool::relief;
use crate::pool::thread_pool::MAX_SPARES;
use crate::pool::waits::Waits;
use crate::task::Task;
use crate::task::census::{Occupation, Occupied};
use purlin_base::status::Error;

/// How quickly a standstill is noticed.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    pub(super) round: Duration,
    pub(super) patience: u32,
}

impl Default for Pace {
    /// A second.
    fn default() -> Self {
        Self { round: Duration::from_millis(50), patience: 20 }
    }
}

/// Waits of a pool's threads, and what rounds have seen.
#[derive(Default)]
pub(super) struct Standing {
    /// Threads in a wait.
    pub(super) waiting: usize,
    /// Those waits that may be given up.
    waits: Waits,
    /// How many waits and tasks have ended.
    pub(super) ended: u64,
    /// Rounds go on.
    watched: bool,
    /// The system has just refused the timers' thread.
    without_timers: bool,
    /// That number at the last round, and the rounds at a standstill since it changed.
    last: (u64, u32),
    /// Rounds in which no thread could be started, and why.
    refused: u32,
    refusal: String,
}

impl ElasticPoolState {
    fn stands_still(&self) -> bool {
        let waiting = self.standing.waiting;
        !self.queue.is_empty() && self.starting.is_none() && waiting > 0 && waiting >= self.threads.len()
    }

    /// Whether the caller must watch from now on: by [`ElasticPoolShared::watch`], under no lock.
    #[must_use]
    pub(super) fn begins_watch(&mut self) -> bool {
        self.stands_still() && !std::mem::replace(&mut self.standing.watched, true)
    }
}

impl ElasticPoolShared {
    /// What `event/park.rs` calls on a thread of the pool instead of just sleeping.
    pub(super) fn wait(self: &Arc<Self>, blocked: &Blocked<'_>) -> Waited {
        if !self.process.is_this() {
            return blocked.sleep().into();
        }
        blocked.in_pool(Arc::as_ptr(self).addr());
        let wait = blocked.may_be_given_up().then_some(blocked);
        let begins_watch = {
            let mut state = self.state.lock();
            state.standing.waiting += 1;
            state.standing.waits.enter(wait);
            state.begins_watch()
        };
        let mut naps = begins_watch && !self.plan_round();
        let over = loop {
            if !naps {
                break blocked.sleep();
            }
            let over = blocked.sleep_for(self.pace.round);
            if over || blocked.is_given_up() || blocked.is_late() {
                break over;
            }
            naps = self.round(self.pace.patience);
        };
        let mut state = self.state.lock();
        state.standing.waiting -= 1;
        state.standing.ended += 1;
        // This thread continues, so nothing stands still.
        state.standing.watched &= !naps;
        state.standing.waits.leave(wait);
        drop(state);
        if !over && blocked.is_given_up() { Waited::GivenUp(self.cannot_go_on(blocked)) } else { over.into() }
    }

    fn cannot_go_on(&self, blocked: &Blocked<'_>) -> Error {
        let (pool, event, why) = (&self.options.name, blocked.label(), self.state.lock().standing.refusal.clone());
        Error::resource_exhausted(format!(
            "pool '{pool}' cannot go on: all of its threads wait while tasks are queued, and {why}; the wait for event '{event}', \
             which is still pending, was given up"
        ))
    }

    /// For a thread that has queued a task, and cannot stay.
    #[cold]
    pub(super) fn watch(self: &Arc<Self>) {
        if !self.plan_round() {
            let _ = self.round(0);
            self.state.lock().standing.watched = false;
        }
    }

    /// False if the system refuses the timers' thread.
    fn plan_round(self: &Arc<Self>) -> bool {
        let (timers, shared) = (relief::timers(), Arc::downgrade(self));
        let round = move |outcome: Result<(), Error>| {
            let Some(shared) = shared.upgrade() else { return };
            if outcome.is_err() {
                // Here and now, inside of call_at().
                shared.state.lock().standing.without_timers = true;
            } else if shared.round(shared.pace.patience) {
                shared.watch();
            }
        };
        timers.call_at(timers.after(self.pace.round), c"relief of an elastic pool", round).detach();
        !std::mem::take(&mut self.state.lock().standing.without_timers)
    }

    /// True if there must be another one.
    fn round(self: &Arc<Self>, patience: u32) -> bool {
        {
            let mut state = self.state.lock();
            let stands_still = state.stands_still();
            state.standing.watched = stands_still;
            if !stands_still {
                return false;
            }
            let Standing { ended, last, refused, .. } = &mut state.standing;
            if last.0 != *ended {
                (*last, *refused) = ((*ended, 0), 0);
            }
            last.1 = last.1.saturating_add(1);
            if last.1 < patience {
                return true;
            }
        }
        // Under the lock for starts, and so not under the state's.
        if let Err(why) = self.start_spare() {
            let mut state = self.state.lock();
            let standing = &mut state.standing;
            standing.refusal = why;
            standing.refused = standing.refused.saturating_add(1);
            if standing.refused >= patience {
                standing.waits.give_up_newest();
            }
        }
        true
    }

    /// Starts a thread beyond the cap, if the pool still stands still.
    fn start_spare(self: &Arc<Self>) -> Result<(), String> {
        let _one_at_a_time = self.starting.lock();
        let mut state = self.state.lock();
        let threads = state.threads.len();
        if !state.stands_still() {
            return Ok(());
        }
        if threads >= self.options.max_threads + MAX_SPARES {
            return Err(format!("it has {threads} threads, {MAX_SPARES} more than max_threads"));
        }
        let number = state.list_thread();
        drop(state);
        let spawned = self.spawn_thread(number);
        let refused = spawned.as_ref().err().map(|error| format!("the system refused another: {error}"));
        self.state.lock().is_started(number, spawned.ok());
        self.work.notify_all();
        self.end_if_over();
        refused.map_or(Ok(()), Err)
    }
}

impl Occupied for ElasticPoolShared {
    fn occupation(&self) -> Occupation {
        let state = self.state.lock();
        let (threads, most, idle, tasks) =
            (state.threads.len(), self.options.max_threads, state.idle, state.queue.len());
        let Standing { waiting, waits, refusal, .. } = &state.standing;
        let mut text = format!(
            "pool '{}': {threads} threads (max_threads is {most}), {waiting} wait, {idle} idle; {tasks} tasks are queued",
            self.options.name
        );
        if state.stands_still() {
            text += "; ALL OF ITS THREADS WAIT while tasks are queued";
            if !refusal.is_empty() && waits.may_give_up() == 0 {
                text +=
                    "; IT CANNOT GO ON: its waits are not given up, because memory may be lent until they end, and ";
                text += refusal;
            }
        }
        let mut occupation = Occupation { text, ..Default::default() };
        if state.stands_still() && state.standing.refused > 0 {
            occupation.standstill = Some((std::ptr::from_ref(self).addr(), *waiting));
            occupation.queued = state.queue.iter().map(Task::number).collect();
        }
        occupation
    }
}
