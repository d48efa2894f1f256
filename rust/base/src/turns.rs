//! A queue that any of its callers serves: first come, first served, by one thread at a time.
//!
//! States: idle, or *being served* by one thread, whose turn it is to look for what the oldest entry waits for. It
//! looks under no lock, because that may call user code. A thread that meanwhile changes what a look would find notes
//! it (`again`), and then the serving thread looks again before it gives its turn up; so no change is overlooked.
//!
//! Entries that were taken out are notified after the turn has been given up. So a slow notification delays only the
//! entries that were taken out in the same turn.

use std::collections::VecDeque;
use std::fmt;

use smallvec::SmallVec;

use crate::sync::Mutex;
use crate::sync::atomic::{AtomicUsize, Ordering};

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
    state: Mutex<State<E>>,
    /// The length of the queue, or more.
    count: AtomicUsize,
}

impl<E> fmt::Debug for Turns<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turns").finish_non_exhaustive()
    }
}

struct State<E> {
    queue: VecDeque<E>,
    /// A thread has its turn. Only that one takes entries out.
    serving: bool,
    /// Something has changed since it last looked.
    again: bool,
}

impl<E> Default for Turns<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E> Turns<E> {
    /// An empty queue.
    pub fn new() -> Self {
        let state = State { queue: VecDeque::new(), serving: false, again: false };
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
        // See wait().
        if self.count.load(Ordering::SeqCst) > 0 {
            self.serve_who_waits(source);
        }
    }

    #[cold]
    fn serve_who_waits<S: Source<Entry = E>>(&self, source: &S) {
        let Some(turn) = self.take_turn() else { return };
        for (entry, found) in turn.serve(source) {
            source.tell(entry, found);
        }
    }

    /// `None`: another thread has it, and looks again.
    fn take_turn(&self) -> Option<Turn<'_, E>> {
        let mut state = self.state.lock();
        if state.serving {
            state.again = true;
            return None;
        }
        state.serving = true;
        Some(Turn(self))
    }

    /// How many wait.
    pub fn count(&self) -> usize {
        self.state.lock().queue.len()
    }
}

/// The turn of this thread. It ends when this is dropped, also by a panic of user code.
struct Turn<'a, E>(&'a Turns<E>);

impl<E> Turn<'_, E> {
    /// Takes entries out, the oldest first, until one has to wait on, or there is none.
    fn serve<S: Source<Entry = E>>(self, source: &S) -> SmallVec<[(E, S::Found); 1]> {
        let mut taken = SmallVec::new();
        loop {
            let oldest = {
                let mut state = self.0.state.lock();
                state.again = false;
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
                Look::Stay if !state.again => {
                    // In one step with the look at `again`; so the drop has nothing left to do.
                    state.serving = false;
                    drop(state);
                    std::mem::forget(self);
                    return taken;
                }
                Look::Stay | Look::Again => {}
            }
        }
    }
}

impl<E> Drop for Turn<'_, E> {
    fn drop(&mut self) {
        self.0.state.lock().serving = false;
    }
}
