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

use super::cores::{Core, Parted, Place, restore, suffice, this_core};
use super::parallelism::calls_are_filtered;
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
    /// How many sleepers more are kept from cores that are taken.
    distrust: usize,
    /// How many were kept from cores, and have not run since.
    parted: usize,
    /// Of the pool, without spares.
    workers: usize,
}

impl Beds {
    /// Room for `seats`, all awake.
    fn resize(&mut self, seats: usize) {
        self.states.resize(seats, Sleep::Awake);
        self.places.resize_with(seats, Place::default);
    }

    /// The cores of the workers that are awake, as far as they are known, but for one.
    fn taken(&self, but: usize) -> impl Iterator<Item = Core> + '_ {
        let others = self.states.iter().zip(&self.places).enumerate().filter(move |&(worker, _)| worker != but);
        others.filter_map(|(_, (&state, place))| if state == Sleep::Awake { place.core } else { None })
    }

    /// The core of this thread, if it counts.
    fn here(&self) -> Option<Core> {
        if self.may_part { this_core() } else { None }
    }

    /// Wakes `worker`, but for its condition.
    fn rouse(&mut self, worker: usize, waker: Waker) {
        if let Waker::WorksOn(itself) = waker
            && let Some(here) = self.here()
        {
            if let Some(itself) = itself {
                self.places[itself].core = Some(here);
            }
            let mut place = std::mem::take(&mut self.places[worker]);
            place.waker = Some(here);
            if self.distrust > 0 {
                self.distrust -= 1;
                self.may_part = place.part(here, self.taken(worker), self.workers);
                self.parted += usize::from(place.is_parted());
            }
            self.places[worker] = place;
        }
        self.places[worker].core = None;
        self.states[worker] = Sleep::Awake;
    }

    /// `worker` runs again; what it must give back to itself.
    fn leave(&mut self, worker: usize) -> Option<Parted> {
        let here = self.here();
        let (parted, is_on_wakers_core) = self.places[worker].leave(here);
        self.parted -= usize::from(parted.is_some());
        if is_on_wakers_core {
            // A filter that has come into force since the last time is found here.
            self.may_part &= self.distrust > 0 || !calls_are_filtered();
            self.distrust = DISTRUST;
        }
        parted
    }

    /// A worker falls asleep: its core is free for those that were kept from it and have not begun to run.
    fn release(&mut self) {
        if self.parted > 0 {
            self.places.iter_mut().for_each(Place::release);
        }
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
            may_part: suffice(workers) && !calls_are_filtered(),
            distrust: 0,
            parted: 0,
            workers,
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
        let here = beds.here();
        beds.places[worker].enter(thread, here);
        beds.release();
        while beds.states[worker] != Sleep::Awake {
            beds = self.woken.get(worker).wait(beds);
        }
        let parted = beds.leave(worker);
        drop(beds);
        if !restore(parted) {
            self.beds.lock().may_part = false;
        }
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
        beds.release();
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

    #[cfg(all(test, target_os = "linux", not(purlin_model)))]
    pub(super) fn may_part(&self) -> bool {
        self.beds.lock().may_part
    }

    /// True if no worker sleeps; a hint.
    pub(super) fn all_awake(&self) -> bool {
        sleepers(self.word.load(SeqCst)) == 0
    }
}

#[cfg(all(test, target_os = "linux", not(purlin_model)))]
mod tests {
    use super::*;
    use crate::pool::cores::affinity;
    use crate::pool::relief::this_thread;

    /// Whether `waker` keeps a worker from cores. It has this thread, which gets its affinity back.
    fn kept_after(beds: &mut Beds, waker: Waker) -> bool {
        beds.places[1].enter(this_thread(), None);
        beds.states[1] = Sleep::Listed;
        beds.rouse(1, waker);
        let parted = beds.leave(1);
        let kept = parted.is_some();
        assert!(restore(parted) && beds.parted == 0);
        kept
    }

    #[test]
    fn a_kernel_that_wakes_a_worker_on_its_wakers_core_is_not_trusted_for_a_while() {
        let idle = Idle::new(2, 2, 2);
        let mut beds = idle.beds.lock();
        if !beds.may_part {
            return; // There is one core, or a filter of system calls.
        }
        assert!(!kept_after(&mut beds, Waker::Other), "its waker may sleep");
        assert_eq!(beds.distrust, 0, "what wakes it then says nothing");
        // This thread wakes itself on its own core, unless the kernel moves it meanwhile.
        while beds.distrust == 0 {
            assert!(!kept_after(&mut beds, Waker::WorksOn(None)), "it is trusted at first");
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
        beds.places[1].enter(1 << 30, None);
        beds.rouse(1, Waker::WorksOn(None));
        assert!(!beds.may_part && beds.parted == 0);
    }

    #[test]
    fn a_worker_that_falls_asleep_leaves_its_core_to_one_that_has_not_begun() {
        let listed = |idle: &Idle| {
            idle.begin_search();
            idle.sleep(0, this_thread(), || false);
            let _ = idle.end_search();
        };
        let alone = |idle: &Idle| idle.sleep_alone(0, || false);
        for falls_asleep in [listed, alone as fn(&Idle)] {
            let idle = Idle::new(2, 2, 2);
            let own = affinity();
            let mut beds = idle.beds.lock();
            if !beds.may_part {
                return;
            }
            beds.distrust = 1;
            beds.places[1].enter(this_thread(), None);
            beds.states[1] = Sleep::Listed;
            beds.rouse(1, Waker::WorksOn(None));
            assert_eq!((beds.parted, affinity() == own), (1, false));
            drop(beds);
            let released = std::thread::scope(|scope| {
                scope.spawn(|| falls_asleep(&idle));
                while idle.beds.lock().states[0] == Sleep::Awake {
                    std::thread::yield_now();
                }
                let released = affinity();
                idle.wake(0);
                released
            });
            assert_eq!(released, own);
            let mut beds = idle.beds.lock();
            assert!(restore(beds.leave(1)));
            assert_eq!((beds.parted, affinity()), (0, own));
        }
    }
}
