//! How workers sleep and are woken without losing a task, and without waking anybody for nothing.
//!
//! A worker is busy, searching (it has found nothing of its own and looks everywhere) or asleep. One word counts who
//! searches and who sleeps. Whoever pushes a task reads it afterwards: while somebody searches, or nobody sleeps, there
//! is nothing to do; else one sleeper is woken and counts as searching from that moment, so that the next push wakes
//! nobody.
//!
//! Why no task is forgotten. The push and the reading of the word, the change of the word and the look at the queues are
//! sequentially consistent, so for each pair of them one comes first:
//! 1. Who falls asleep counts itself as a sleeper first and then looks at all queues once more. Either it sees the task or
//!    the pusher sees the sleeper.
//! 2. Who stops to search because it found something leaves the count first and then looks at all queues once more, if
//!    it was the last one; if there is more, it wakes the next. Either it sees the task or the pusher sees that nobody
//!    searches.
//!
//! The sleepers' list is behind a lock, which a sleeper holds from its entry until it waits; so a wake-up cannot come in
//! between. The last to fall asleep is the first to be woken: its cache is the warmest.

use crate::sync::atomic::AtomicUsize;
use crate::sync::atomic::Ordering::SeqCst;
use crate::sync::{Condvar, Mutex, mutation, total_order};

pub(super) struct Idle {
    /// Sleepers in the lower half, searching workers in the upper.
    word: AtomicUsize,
    seats: Mutex<Seats>,
    /// One per worker, for the lock above.
    woken: Box<[Condvar]>,
}

struct Seats {
    /// Those counted in the word, in the order in which they fell asleep.
    asleep: Vec<usize>,
    states: Box<[Sleep]>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sleep {
    Awake,
    /// In the list: any task will do.
    Listed,
    /// Not in the list: waits to be woken by name.
    Alone,
}

const SLEEPER: usize = 1;
const SEARCHER: usize = 1 << 32;

fn sleepers(word: usize) -> usize {
    word % SEARCHER
}

fn searchers(word: usize) -> usize {
    word / SEARCHER
}

impl Idle {
    pub(super) fn new(workers: usize) -> Self {
        Self {
            word: AtomicUsize::new(0),
            seats: Mutex::new(Seats {
                asleep: Vec::with_capacity(workers),
                states: vec![Sleep::Awake; workers].into_boxed_slice(),
            }),
            woken: (0..workers).map(|_| Condvar::new()).collect(),
        }
    }

    /// A busy worker begins to search; how many others do.
    pub(super) fn begin_search(&self) -> usize {
        searchers(self.word.fetch_add(SEARCHER, SeqCst))
    }

    /// A worker stops to search. True if it must look at the queues again, and wake the next if there is more.
    #[must_use]
    pub(super) fn end_search(&self) -> bool {
        let before = self.word.fetch_sub(SEARCHER, SeqCst);
        total_order();
        searchers(before) == 1 && sleepers(before) > 0 && !mutation("idle-last-searcher-silent")
    }

    /// Sleeps until somebody wakes `worker`, unless `stay_awake`, which reads the queues, says that there is no need to.
    /// The worker was searching, and is so again on return.
    pub(super) fn sleep(&self, worker: usize, stay_awake: impl FnOnce() -> bool) {
        let mut seats = self.seats.lock();
        self.word.fetch_add(SLEEPER.wrapping_sub(SEARCHER), SeqCst);
        total_order();
        if !mutation("idle-no-second-look") && stay_awake() {
            self.word.fetch_add(SEARCHER - SLEEPER, SeqCst);
            return;
        }
        seats.asleep.push(worker);
        seats.states[worker] = Sleep::Listed;
        while seats.states[worker] != Sleep::Awake {
            seats = self.woken[worker].wait(seats);
        }
    }

    /// Sleeps until [`wake`](Self::wake) names `worker`, unless `stay_awake`. The worker was busy, and is so again.
    pub(super) fn sleep_alone(&self, worker: usize, stay_awake: impl FnOnce() -> bool) {
        let mut seats = self.seats.lock();
        if stay_awake() {
            return;
        }
        seats.states[worker] = Sleep::Alone;
        while seats.states[worker] != Sleep::Awake {
            seats = self.woken[worker].wait(seats);
        }
    }

    /// After a task was pushed.
    #[inline]
    pub(super) fn wake_one(&self) {
        let word = self.word.load(SeqCst);
        if sleepers(word) > 0 && searchers(word) == 0 && !mutation("idle-forget-wake") {
            self.wake_sleeper();
        }
    }

    #[cold]
    fn wake_sleeper(&self) {
        let worker = {
            let mut seats = self.seats.lock();
            // Somebody may have woken one meanwhile, who will find our task.
            if searchers(self.word.load(SeqCst)) > 0 {
                return;
            }
            let Some(worker) = seats.asleep.pop() else { return };
            seats.states[worker] = Sleep::Awake;
            self.word.fetch_add(SEARCHER - SLEEPER, SeqCst);
            worker
        };
        self.woken[worker].notify_one();
    }

    /// Wakes `worker` if it sleeps.
    #[cold]
    pub(super) fn wake(&self, worker: usize) {
        {
            let mut seats = self.seats.lock();
            match std::mem::replace(&mut seats.states[worker], Sleep::Awake) {
                Sleep::Awake => return,
                Sleep::Alone => {}
                Sleep::Listed => {
                    seats.asleep.retain(|&other| other != worker);
                    self.word.fetch_add(SEARCHER - SLEEPER, SeqCst);
                }
            }
        }
        self.woken[worker].notify_one();
    }

    /// Wakes all sleepers of the list, after something changed that they look for.
    pub(super) fn wake_all(&self) {
        let mut seats = self.seats.lock();
        while let Some(worker) = seats.asleep.pop() {
            seats.states[worker] = Sleep::Awake;
            self.word.fetch_add(SEARCHER - SLEEPER, SeqCst);
            self.woken[worker].notify_one();
        }
    }

    /// True if nobody sleeps; a hint.
    pub(super) fn all_awake(&self) -> bool {
        sleepers(self.word.load(SeqCst)) == 0
    }
}
