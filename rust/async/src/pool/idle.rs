//! How workers sleep and are woken without losing a task, and without a needless wake-up.
//!
//! A worker is busy, searching (it has found nothing of its own and looks everywhere) or asleep. One word counts the
//! workers that search and those that sleep. A thread that pushes a task reads it afterwards: while a worker searches,
//! or none sleeps, there is nothing to do; else one sleeper is woken and counts as searching from that moment, so that
//! the next push wakes no worker.
//!
//! Why no task is forgotten. The push and the reading of the word, the change of the word and the look at the queues
//! are sequentially consistent, so for each pair of them one is first:
//! 1. A worker that falls asleep counts itself as a sleeper first and then looks at all queues once more. Either it
//!    sees the task or the pusher sees the sleeper.
//! 2. A worker that stops searching because it found something leaves the count first and then looks at all queues once
//!    more, if it was the last one; if there is more, it wakes the next. Either it sees the task or the pusher sees
//!    that no worker searches.
//!
//! Beside the sleepers, the lower half says if no thread watches the pool (`relief.rs`). A thread that pushes while all
//! are busy and no thread watches begins to watch. This costs other pushes nothing, because both are read in one word.
//! The thread that ends the watch says so first and then looks at all queues once more: either it sees the task, or the
//! pusher sees that no thread watches.
//!
//! The sleepers' list is behind a lock, which a sleeper holds from its entry until it waits; so a wake-up cannot happen
//! in between. The last to fall asleep is the first to be woken: its cache is the warmest. A thread that works on
//! after it has woken a worker may keep that from its own core (`cores.rs`).

use super::cores::{Cores, Place, restore, suffice, this_core};
use super::seats::Seats;
use purlin_base::sync::atomic::AtomicUsize;
use purlin_base::sync::atomic::Ordering::SeqCst;
use purlin_base::sync::{Condvar, Mutex, total_order};

pub(super) struct Idle {
    /// Sleepers, and [`UNWATCHED`], in the lower half, searching workers in the upper.
    word: AtomicUsize,
    beds: Mutex<Beds>,
    /// One per worker, for the lock above.
    woken: Seats<Condvar>,
}

/// By worker.
struct Beds {
    /// Those counted in the word, in the order in which they fell asleep.
    asleep: Vec<usize>,
    states: Vec<Sleep>,
    places: Vec<Place>,
    /// Whether sleepers may be kept from cores at all.
    may_part: bool,
    /// How many sleepers more are kept from cores that are taken, also if they slept on a free one.
    distrust: usize,
}

impl Beds {
    /// Room for `workers`, all awake.
    fn resize(&mut self, workers: usize) {
        self.states.resize(workers, Sleep::Awake);
        self.places.resize_with(workers, Place::default);
    }

    /// The cores of the workers that are awake, as far as they are known, but for one.
    fn taken(&self, but: usize) -> impl Iterator<Item = usize> + '_ {
        let others = self.states.iter().zip(&self.places).enumerate().filter(move |&(worker, _)| worker != but);
        others.filter_map(|(_, (&state, place))| if state == Sleep::Awake { place.core } else { None })
    }

    /// Wakes `worker`, but for its condition.
    fn rouse(&mut self, worker: usize, waker: Waker) {
        if let Waker::WorksOn(itself) = waker
            && self.may_part
        {
            let here = this_core();
            if let Some(itself) = itself {
                self.places[itself].core = here;
            }
            let mut place = std::mem::take(&mut self.places[worker]);
            place.waker = here;
            let taken = || self.taken(worker).chain(here);
            let must_part = self.distrust > 0 || place.is_among(taken());
            self.may_part = !must_part || place.part(taken());
            self.places[worker] = place;
            self.distrust = self.distrust.saturating_sub(1);
        }
        self.places[worker].core = None;
        self.states[worker] = Sleep::Awake;
    }

    /// `worker` runs again; what it must give back to itself.
    fn leave(&mut self, worker: usize) -> Option<Cores> {
        let (own, waker) = self.places[worker].leave(this_core());
        if self.places[worker].is_among(self.taken(worker).chain(waker)) {
            self.distrust = DISTRUST;
        }
        own
    }
}

/// The thread that wakes a worker.
#[derive(Clone, Copy)]
pub(super) enum Waker {
    /// It may soon sleep itself.
    Other,
    /// It works on, on its core; it is this worker, if it is one.
    WorksOn(Option<usize>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sleep {
    Awake,
    /// In the list: any task will do.
    Listed,
    /// Not in the list: waits to be woken by name.
    Alone,
}

/// A kernel that has woken a worker on the core of another is not trusted for so many times.
const DISTRUST: usize = 1000;

const SLEEPER: usize = 1;
const UNWATCHED: usize = 1 << 31;
const SEARCHER: usize = 1 << 32;

fn sleepers(word: usize) -> usize {
    word % UNWATCHED
}

/// True if something is to be done for a task when no worker searches: a worker sleeps, or no thread watches.
fn concerned(word: usize) -> bool {
    !word.is_multiple_of(SEARCHER)
}

fn searchers(word: usize) -> usize {
    word / SEARCHER
}

impl Idle {
    /// Room for `seats`, `workers` of them for those that the pool always has, and for `most` after
    /// [`make_room`](Self::make_room). No thread watches, but in models, where that would be one more step everywhere.
    pub(super) fn new(workers: usize, seats: usize, most: usize) -> Self {
        let mut beds = Beds {
            asleep: Vec::with_capacity(seats),
            states: Vec::new(),
            places: Vec::new(),
            may_part: suffice(workers),
            distrust: 0,
        };
        beds.resize(seats);
        Self {
            word: AtomicUsize::new(if cfg!(purlin_model) { 0 } else { UNWATCHED }),
            beds: Mutex::new(beds),
            woken: Seats::new(seats, most, Condvar::new),
        }
    }

    /// Before `worker` sleeps for the first time.
    pub(super) fn make_room(&self, worker: usize) {
        self.woken.make_room(worker);
        let mut beds = self.beds.lock();
        if beds.states.len() <= worker {
            beds.resize(worker + 1);
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
        searchers(before) == 1 && concerned(before)
    }

    /// Sleeps until a thread wakes `worker`, unless `stay_awake`, which reads the queues, says that there is no need
    /// to. The worker was searching, and is so again on return. `thread`: the system's number of this thread.
    pub(super) fn sleep(&self, worker: usize, thread: u32, stay_awake: impl FnOnce() -> bool) {
        let mut beds = self.beds.lock();
        self.word.fetch_add(SLEEPER.wrapping_sub(SEARCHER), SeqCst);
        total_order();
        if stay_awake() {
            self.word.fetch_add(SEARCHER - SLEEPER, SeqCst);
            return;
        }
        beds.asleep.push(worker);
        beds.states[worker] = Sleep::Listed;
        beds.places[worker].enter(thread);
        while beds.states[worker] != Sleep::Awake {
            beds = self.woken.get(worker).wait(beds);
        }
        let own = beds.leave(worker);
        drop(beds);
        restore(own);
    }

    /// The thread of `worker` works no more, or not for now.
    pub(super) fn leave(&self, worker: usize) {
        self.beds.lock().places[worker].core = None;
    }

    /// Sleeps until [`wake`](Self::wake) names `worker`, unless `stay_awake`. The worker was busy, and is so again.
    pub(super) fn sleep_alone(&self, worker: usize, stay_awake: impl FnOnce() -> bool) {
        let mut beds = self.beds.lock();
        if stay_awake() {
            return;
        }
        beds.states[worker] = Sleep::Alone;
        while beds.states[worker] != Sleep::Awake {
            beds = self.woken.get(worker).wait(beds);
        }
    }

    /// After a task was pushed: true if [`wake_one`](Self::wake_one) must be called for it.
    #[inline]
    pub(super) fn must_wake(&self) -> bool {
        let word = self.word.load(SeqCst);
        concerned(word) && searchers(word) == 0
    }

    /// Wakes a sleeper, unless a worker searches. True if there is none and no thread watches.
    #[cold]
    #[must_use]
    pub(super) fn wake_one(&self, waker: Waker) -> bool {
        let worker = {
            let mut beds = self.beds.lock();
            let word = self.word.load(SeqCst);
            // Another thread may have woken one meanwhile, which will find our task.
            if searchers(word) > 0 {
                return false;
            }
            let Some(worker) = beds.asleep.pop() else { return word & UNWATCHED != 0 };
            beds.rouse(worker, waker);
            self.word.fetch_add(SEARCHER - SLEEPER, SeqCst);
            worker
        };
        self.woken.get(worker).notify_one();
        false
    }

    /// True: the caller watches from now on; false: another thread does.
    pub(super) fn begin_watch(&self) -> bool {
        self.word.fetch_and(!UNWATCHED, SeqCst) & UNWATCHED != 0
    }

    /// Ends the caller's watch; false if it must go on after all, because `tasks_wait`, which reads the queues, and no
    /// other thread has begun to watch.
    pub(super) fn end_watch(&self, tasks_wait: impl FnOnce() -> bool) -> bool {
        self.word.fetch_or(UNWATCHED, SeqCst);
        total_order();
        !tasks_wait() || !self.begin_watch()
    }

    /// Wakes `worker` if it sleeps.
    #[cold]
    pub(super) fn wake(&self, worker: usize) {
        {
            let mut beds = self.beds.lock();
            match beds.states[worker] {
                Sleep::Awake => return,
                Sleep::Alone => {}
                Sleep::Listed => {
                    beds.asleep.retain(|&other| other != worker);
                    self.word.fetch_add(SEARCHER - SLEEPER, SeqCst);
                }
            }
            beds.rouse(worker, Waker::Other);
        }
        self.woken.get(worker).notify_one();
    }

    /// Wakes all sleepers of the list, after something changed that they look for.
    pub(super) fn wake_all(&self) {
        let mut beds = self.beds.lock();
        while let Some(worker) = beds.asleep.pop() {
            beds.rouse(worker, Waker::Other);
            self.word.fetch_add(SEARCHER - SLEEPER, SeqCst);
            self.woken.get(worker).notify_one();
        }
    }

    /// True if no worker sleeps or searches; a hint.
    #[cfg(not(purlin_model))]
    pub(super) fn all_busy(&self) -> bool {
        let word = self.word.load(SeqCst);
        sleepers(word) == 0 && searchers(word) == 0
    }

    /// How many workers sleep or search; a hint.
    pub(super) fn count(&self) -> usize {
        let word = self.word.load(SeqCst);
        sleepers(word) + searchers(word)
    }

    #[cfg(all(test, not(purlin_model)))]
    pub(super) fn asleep(&self) -> usize {
        self.beds.lock().asleep.len()
    }

    /// True if no worker sleeps; a hint.
    pub(super) fn all_awake(&self) -> bool {
        sleepers(self.word.load(SeqCst)) == 0
    }
}

#[cfg(all(test, target_os = "linux", not(purlin_model)))]
mod tests {
    use super::*;
    use crate::pool::relief::this_thread;

    /// What a worker that slept on no known core must give back, after `waker` has woken it. It has this thread.
    fn kept_after(beds: &mut Beds, waker: Waker) -> bool {
        beds.places[1].enter(this_thread());
        beds.places[1].core = None;
        beds.states[1] = Sleep::Listed;
        beds.rouse(1, waker);
        let (own, _) = beds.places[1].leave(None);
        let kept = own.is_some();
        restore(own);
        kept
    }

    #[test]
    fn a_kernel_that_wakes_a_worker_on_a_taken_core_is_not_trusted_for_a_while() {
        let idle = Idle::new(2, 2, 2);
        let mut beds = idle.beds.lock();
        if !beds.may_part {
            return; // There is one core.
        }
        assert!(!kept_after(&mut beds, Waker::WorksOn(Some(0))), "it is trusted at first");
        // Until the kernel leaves this thread where it is.
        while beds.distrust == 0 {
            beds.places[0].core = this_core();
            assert!(beds.leave(1).is_none());
        }
        assert!(!kept_after(&mut beds, Waker::Other), "its waker may sleep");
        assert_eq!(beds.distrust, DISTRUST);
        for left in (0..DISTRUST).rev() {
            assert!(kept_after(&mut beds, Waker::WorksOn(Some(0))) && beds.distrust == left, "{left}");
        }
        assert!(!kept_after(&mut beds, Waker::WorksOn(Some(0))), "it is trusted again");
    }

    #[test]
    fn a_pool_of_more_workers_than_cores_moves_none_and_a_refusal_ends_it() {
        let (many, one) = (Idle::new(2000, 2, 2), Idle::new(1, 2, 2));
        let mut beds = many.beds.lock();
        beds.distrust = 1;
        assert!(!kept_after(&mut beds, Waker::WorksOn(Some(0))));
        let mut beds = one.beds.lock();
        beds.distrust = 1;
        // No such thread.
        beds.places[1].enter(1 << 30);
        beds.rouse(1, Waker::WorksOn(None));
        assert!(!beds.may_part);
    }
}
