//! Work that any thread may do and one thread at a time does: [`Turn`] says whose turn it is, [`Turns`] is a queue that
//! is served so, first come, first served.
//!
//! A thread that changes something takes the turn, does what there is to do, and gives the turn up; if another thread
//! has it, the change is noted, and that thread looks again before it gives the turn up. So no change is overlooked,
//! and no thread waits for the turn. A `Turn` stands under the lock under which changes are made. Where the look is
//! made under that lock too (serial queues, staged reads), a look that finds nothing and the end of the turn are one
//! step, and nothing need be noted. Where it is not (`Turns`), because it may call user code, the note is what counts.
//!
//! States of the queue: idle, or *being served* by one thread, whose turn it is to look for what the oldest entry waits
//! for, under no lock.
//!
//! Entries that were taken out are notified after the turn has been given up. So a slow notification delays only the
//! entries that were taken out in the same turn.

use std::collections::VecDeque;
use std::fmt;

use smallvec::SmallVec;

use crate::sync::Mutex;
use crate::sync::atomic::{AtomicUsize, Ordering};

/// Whose turn it is. See the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Turn {
    /// No thread's.
    #[default]
    Free,
    /// A thread's.
    Taken,
    /// A thread's, and something has changed since it last looked.
    Again,
}

impl Turn {
    /// Something has changed: true if the turn is the caller's now, false if another thread has it, and looks again.
    #[inline]
    #[must_use]
    pub fn take(&mut self) -> bool {
        let taken = *self == Self::Free;
        *self = if taken { Self::Taken } else { Self::Again };
        taken
    }

    /// The thread whose turn it is looks from here on, and sees all changes up to here.
    #[inline]
    pub fn look(&mut self) {
        *self = Self::Taken;
    }

    /// The look has found nothing: true if the turn is over, false if something has changed since [`look`](Self::look).
    #[inline]
    #[must_use]
    pub fn leave(&mut self) -> bool {
        if *self == Self::Again {
            return false;
        }
        self.end();
        true
    }

    /// The turn is over: the look was made under the lock and has found nothing, or the thread cannot go on.
    #[inline]
    pub fn end(&mut self) {
        *self = Self::Free;
    }

    /// Whether it is a thread's.
    #[must_use]
    pub fn is_taken(self) -> bool {
        self != Self::Free
    }
}

/// What entries wait for, and how they are notified. Called under no lock of the queue except [`see`](Self::see).
pub trait Source {
    /// What is queued.
    type Entry;
    /// What a look needs to know of an entry.
    type Seen;
    /// How an entry's wait ends.
    type Found;

    /// Notes down what a look needs to know; calls no user code.
    fn see(entry: &Self::Entry) -> Self::Seen;
    /// Looks for what the oldest entry waits for.
    fn look(&self, oldest: Self::Seen) -> Look<Self::Found>;
    /// The entry has left the queue.
    fn tell(&self, entry: Self::Entry, found: Self::Found);
}

/// The result of a look.
#[derive(Debug)]
pub enum Look<F> {
    /// The entry leaves the queue.
    Take(F),
    /// It waits on, until a thread serves the queue.
    Stay,
    /// Something has changed during the look; it is not clear what there is now.
    Again,
}

/// See the module.
pub struct Turns<E> {
    state: Mutex<TurnsState<E>>,
    /// The length of the queue, or more.
    count: AtomicUsize,
}

impl<E> fmt::Debug for Turns<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turns").finish_non_exhaustive()
    }
}

struct TurnsState<E> {
    queue: VecDeque<E>,
    /// Only the thread whose turn it is takes entries out.
    turn: Turn,
}

impl<E> Default for Turns<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E> Turns<E> {
    /// An empty queue.
    pub fn new() -> Self {
        let state = TurnsState { queue: VecDeque::new(), turn: Turn::Free };
        Self { state: Mutex::new(state), count: AtomicUsize::new(0) }
    }

    /// Queues `entry`, and serves the queue: no other thread looks for what has changed before it was there.
    pub fn wait<S: Source<Entry = E>>(&self, entry: E, source: &S) {
        // SeqCst with the load in serve(): a thread that changes something either sees the entry, or has done so before
        // it was queued, and then the look below finds it.
        self.count.fetch_add(1, Ordering::SeqCst);
        self.state.lock().queue.push_back(entry);
        self.serve(source);
    }

    /// Something has changed: serves the oldest entries, as many as can be served. Costs a load while nothing waits.
    #[inline]
    pub fn serve<S: Source<Entry = E>>(&self, source: &S) {
        if self.has_entries() {
            self.serve_who_waits(source);
        }
    }

    /// Whether something waits, or is about to; true also for a moment after the last entry was taken out. A load.
    #[inline]
    pub fn has_entries(&self) -> bool {
        // See wait().
        self.count.load(Ordering::SeqCst) > 0
    }

    #[cold]
    fn serve_who_waits<S: Source<Entry = E>>(&self, source: &S) {
        let Some(turn) = self.take_turn() else { return };
        for (entry, found) in turn.serve(source) {
            source.tell(entry, found);
        }
    }

    /// `None`: another thread has it, and looks again.
    fn take_turn(&self) -> Option<Serving<'_, E>> {
        self.state.lock().turn.take().then(|| Serving(self))
    }

    /// How many wait.
    pub fn count(&self) -> usize {
        self.state.lock().queue.len()
    }
}

/// The turn of this thread. It ends when this is dropped, also by a panic of user code.
struct Serving<'a, E>(&'a Turns<E>);

impl<E> Serving<'_, E> {
    /// Takes entries out, the oldest first, until one has to wait on, or there is none.
    fn serve<S: Source<Entry = E>>(self, source: &S) -> SmallVec<[(E, S::Found); 1]> {
        let mut taken = SmallVec::new();
        loop {
            let oldest = {
                let mut state = self.0.state.lock();
                state.turn.look();
                state.queue.front().map(S::see)
            };
            // If this changes something itself, it leaves word.
            let look = oldest.map_or(Look::Stay, |oldest| source.look(oldest));
            let mut state = self.0.state.lock();
            match look {
                Look::Take(found) => {
                    let entry = state.queue.pop_front().expect("only whose turn it is takes entries out");
                    self.0.count.fetch_sub(1, Ordering::SeqCst);
                    drop(state);
                    taken.push((entry, found));
                }
                // In one step with the look at the note; so the drop has nothing left to do.
                Look::Stay if state.turn.leave() => {
                    drop(state);
                    std::mem::forget(self);
                    return taken;
                }
                Look::Stay | Look::Again => {}
            }
        }
    }
}

impl<E> Drop for Serving<'_, E> {
    fn drop(&mut self) {
        self.0.state.lock().turn.end();
    }
}

#[cfg(all(test, not(purlin_model)))]
mod tests {
    use super::*;

    #[test]
    fn one_thread_has_the_turn_and_looks_again_after_a_change() {
        let mut turn = Turn::default();
        assert!(!turn.is_taken() && turn.take() && turn.is_taken());
        turn.look();
        assert!(!turn.take(), "another thread's change is noted");
        assert!(!turn.leave() && turn.is_taken(), "so the turn is not over");
        turn.look();
        assert!(turn.leave() && !turn.is_taken());
        assert!(turn.take() && !turn.take());
        turn.end();
        assert!(turn.take(), "a turn that ends whatever was noted is free");
    }

    /// Serves an entry that is there; each look changes something itself, once.
    struct Changes<'a>(&'a Turns<i32>, Mutex<Vec<i32>>, AtomicUsize);

    impl Source for Changes<'_> {
        type Entry = i32;
        type Seen = i32;
        type Found = ();

        fn see(entry: &i32) -> i32 {
            *entry
        }

        fn look(&self, oldest: i32) -> Look<()> {
            let looks = self.2.fetch_add(1, Ordering::SeqCst);
            if looks == 0 {
                self.0.serve(self);
                return Look::Stay;
            }
            assert!(oldest > 0);
            Look::Take(())
        }

        fn tell(&self, entry: i32, (): ()) {
            self.1.lock().push(entry);
        }
    }

    #[test]
    fn a_look_that_changes_something_is_followed_by_another() {
        let turns = Turns::new();
        let source = Changes(&turns, Mutex::new(Vec::new()), AtomicUsize::new(0));
        turns.wait(1, &source);
        assert_eq!((source.1.lock().clone(), turns.count()), (vec![1], 0));
        turns.wait(2, &source);
        assert_eq!(*source.1.lock(), [1, 2]);
    }
}
