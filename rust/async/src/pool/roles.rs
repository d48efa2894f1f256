//! Which threads of a pool work, are blocked, or rest; and which wait is given up when the pool cannot go on.
//!
//! A thread is *present* (it works, looks for work, or is blocked) or it *rests*: a spare that was superfluous, at most
//! [`Roles::most_resting`] of them; a further one ends and gives up its seat. Seats are numbers; the lowest free one is
//! taken first, so that few are looked at by thieves when few are taken.
//!
//! A pool is *stuck* when all threads that are present are blocked, tasks wait, and no thread can be added. When that
//! has lasted for [`PATIENCE`] without an end of any wait, the newest wait that may be given up ends: its thread
//! continues with an error. If something may be lent until the end of each of them, reports say so.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::waits::Waits;
use crate::event::Blocked;
use purlin_base::sync::atomic::Ordering::{Relaxed, SeqCst};
use purlin_base::sync::atomic::{AtomicBool, AtomicUsize};
use purlin_base::sync::{Condvar, Mutex};

/// For how long a pool is stuck before a wait is given up: what is waited for may be completed elsewhere, and the
/// system may have a thread again.
pub(super) const PATIENCE: Duration = Duration::from_millis(if cfg!(test) { 20 } else { 1000 });

pub(super) struct Roles {
    state: Mutex<RolesState>,
    /// Spares that rest.
    called: Condvar,
    /// More are working than may. Written under the lock; a hint without it.
    surplus: AtomicBool,
    /// Seats from here on are free. Written under the lock.
    used: AtomicUsize,
    thread_count: usize,
    most_seats: usize,
    most_resting: usize,
}

struct RolesState {
    /// Threads that work or are blocked.
    present: usize,
    blocked: usize,
    /// Threads that may work beside `thread_count`, because as many are blocked unseen (`relief.rs`).
    granted: usize,
    /// Spares that rest and have not been called.
    resting: usize,
    /// Calls that no spare has heard yet.
    calls: usize,
    /// Seats below `used` that no worker has.
    free: BTreeSet<usize>,
    waits: Waits,
    /// Since when the pool is stuck.
    stuck_since: Option<Instant>,
    /// That was for long, and no wait could be given up. Says nothing where `stuck_since` does not.
    stuck: bool,
    /// Why the last thread that was asked for did not start; empty if it did.
    refusal: String,
    closed: bool,
}

pub(super) enum Cover {
    /// Another thread works, or will.
    Found,
    /// The thread of this seat must be started.
    Start(usize),
    None,
}

impl Roles {
    pub(super) fn new(thread_count: usize, most_seats: usize, most_resting: usize) -> Self {
        let state = RolesState {
            present: thread_count,
            blocked: 0,
            granted: 0,
            resting: 0,
            calls: 0,
            free: BTreeSet::new(),
            waits: Waits::default(),
            stuck_since: None,
            stuck: false,
            refusal: String::new(),
            closed: false,
        };
        Self {
            state: Mutex::new(state),
            called: Condvar::new(),
            surplus: AtomicBool::new(false),
            used: AtomicUsize::new(thread_count),
            thread_count,
            most_seats,
            most_resting,
        }
    }

    /// How many work and wait, in words.
    pub(super) fn describe(&self) -> String {
        let state = self.state.lock();
        format!("{} present of which {} are blocked, {} spares rest", state.present, state.blocked, state.resting)
    }

    /// True if no thread works: all threads, also the spares that do not rest, wait in a task.
    pub(super) fn all_wait(&self) -> bool {
        self.state.lock().working() == 0
    }

    /// Seats from here on have no tasks.
    #[inline]
    pub(super) fn used_seats(&self) -> usize {
        // SeqCst: a thread that looks for tasks before it sleeps must see the seat of one that has pushed before
        // (`idle.rs`).
        self.used.load(SeqCst)
    }

    pub(super) fn surplus(&self) -> bool {
        self.surplus.load(Relaxed)
    }

    fn note_surplus(&self, state: &RolesState) {
        self.surplus.store(state.working() > self.thread_count + state.granted, Relaxed);
    }

    /// One more thread may work; which is to be it.
    #[cfg(not(purlin_model))]
    pub(super) fn grant(&self) -> Cover {
        let mut state = self.state.lock();
        state.granted += 1;
        let cover = self.cover(&mut state);
        self.note_surplus(&state);
        cover
    }

    /// One less may; true if there are too many now.
    #[cfg(not(purlin_model))]
    pub(super) fn take_back_grant(&self) -> bool {
        let mut state = self.state.lock();
        let Some(granted) = state.granted.checked_sub(1) else { return false };
        state.granted = granted;
        self.note_surplus(&state);
        self.surplus()
    }

    #[cfg(not(purlin_model))]
    pub(super) fn has_granted(&self) -> bool {
        self.state.lock().granted > 0
    }

    /// A thread is about to wait. `wait` is what may be given up, if it may.
    pub(super) fn enter(&self, tasks_wait: bool, wait: Option<&Blocked<'_>>) -> Cover {
        let mut state = self.state.lock();
        state.block(wait);
        let working = state.working();
        let needed = working == 0 || (tasks_wait && working < self.thread_count + state.granted);
        let cover = if !needed { Cover::Found } else { self.cover(&mut state) };
        self.note_surplus(&state);
        cover
    }

    /// As [`enter`](Self::enter), later, if still no thread works.
    pub(super) fn cover_later(&self) -> Cover {
        let mut state = self.state.lock();
        let cover = if state.working() > 0 { Cover::Found } else { self.cover(&mut state) };
        self.note_surplus(&state);
        cover
    }

    fn cover(&self, state: &mut RolesState) -> Cover {
        if state.resting > 0 {
            state.resting -= 1;
            state.calls += 1;
            state.present += 1;
            self.called.notify_one();
            return Cover::Found;
        }
        let used = self.used.load(Relaxed);
        if let Some(seat) = state.free.pop_first() {
            state.present += 1;
            return Cover::Start(seat);
        }
        if used < self.most_seats {
            self.used.store(used + 1, SeqCst);
            state.present += 1;
            return Cover::Start(used);
        }
        if state.refusal.is_empty() {
            state.refusal = format!("it has {used} threads, the most that a pool may have");
        }
        if state.working() > 0 { Cover::Found } else { Cover::None }
    }

    /// The thread of [`Cover::Start`] works.
    pub(super) fn started(&self) {
        let mut state = self.state.lock();
        state.refusal.clear();
        state.stuck_since = None;
    }

    /// The thread of `seat` could not be started; how many still work, and whether that is news.
    pub(super) fn not_started(&self, seat: usize, error: &std::io::Error) -> (usize, bool) {
        let mut state = self.state.lock();
        let is_news = state.refusal.is_empty();
        state.refusal = format!("the system refused another: {error}");
        state.present -= 1;
        self.give_up_seat(&mut state, seat);
        self.note_surplus(&state);
        (state.working(), is_news)
    }

    fn give_up_seat(&self, state: &mut RolesState, seat: usize) {
        state.free.insert(seat);
        let mut used = self.used.load(Relaxed);
        while state.free.last().is_some_and(|last| last + 1 == used) {
            state.free.pop_last();
            used -= 1;
        }
        self.used.store(used, SeqCst);
    }

    /// A thread that waited continues; `over`: because its event has completed.
    pub(super) fn leave(&self, wait: Option<&Blocked<'_>>, over: bool) {
        let mut state = self.state.lock();
        state.unblock(wait);
        if over {
            state.stuck_since = None;
        }
        self.note_surplus(&state);
    }

    /// A thread that left is blocked again, without a spare as before.
    pub(super) fn resume(&self, wait: Option<&Blocked<'_>>) {
        let mut state = self.state.lock();
        state.block(wait);
        self.note_surplus(&state);
    }

    /// What a thread reports that is blocked and found no replacement: `needed` if another thread would have something
    /// to do. Gives up a wait if that has lasted for long.
    pub(super) fn nobody_works(&self, needed: bool) {
        let mut state = self.state.lock();
        if !needed || state.working() > 0 {
            state.stuck_since = None;
            return;
        }
        let now = Instant::now();
        if now.duration_since(*state.stuck_since.get_or_insert(now)) < PATIENCE {
            state.stuck = false;
            return;
        }
        state.stuck |= !state.waits.give_up_newest();
    }

    /// How many threads wait, if none works and no further thread was to be had.
    pub(super) fn standstill(&self) -> Option<usize> {
        let state = self.state.lock();
        (state.working() == 0 && !state.refusal.is_empty()).then_some(state.blocked)
    }

    /// Why the pool has stood still for [`PATIENCE`] and still does, in words, if that is so: all threads that are
    /// present wait, and none of these waits may be given up.
    pub(super) fn describe_stuck(&self) -> Option<String> {
        let state = self.state.lock();
        let (blocked, refusal) = (state.blocked, &state.refusal);
        let is_so = state.stuck && state.stuck_since.is_some() && state.working() == 0;
        is_so.then(|| {
            format!("{blocked} threads are in waits that are not given up, because memory may be lent until they end, and {refusal}")
        })
    }

    /// Why a wait was given up.
    pub(super) fn describe_refusal(&self) -> String {
        let state = self.state.lock();
        let (count, spares) = (self.thread_count, state.present.saturating_sub(self.thread_count));
        format!("all of its {count} threads and {spares} spares wait while tasks are queued, and {}", state.refusal)
    }

    /// Keeps a superfluous spare until it is called or the pool closes. False: it must end, and has no seat any more.
    #[must_use]
    pub(super) fn rest(&self, seat: usize) -> bool {
        let mut state = self.state.lock();
        if state.working() <= self.thread_count + state.granted {
            return true;
        }
        state.present -= 1;
        if state.resting >= self.most_resting && !state.closed {
            self.give_up_seat(&mut state, seat);
            self.note_surplus(&state);
            return false;
        }
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
        true
    }

    pub(super) fn close(&self) {
        self.state.lock().closed = true;
        self.called.notify_all();
    }
}

impl RolesState {
    fn working(&self) -> usize {
        self.present - self.blocked
    }

    fn block(&mut self, wait: Option<&Blocked<'_>>) {
        self.blocked += 1;
        self.waits.enter(wait);
    }

    fn unblock(&mut self, wait: Option<&Blocked<'_>>) {
        self.blocked -= 1;
        self.waits.leave(wait);
    }
}
