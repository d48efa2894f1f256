//! Allocations that wait until others are freed: first come, first served.
//!
//! Every block that is freed serves the queue; the oldest entry is served first, so a large request is not passed by smaller
//! ones behind it in the queue (those that do not wait take what they find). An entry whose block nobody holds any more
//! leaves it; so does one that cannot be served although nothing is held that could still be freed, with the reason.
//!
//! States: idle, or *being served* by one thread, whose turn it is to look for memory for the oldest entry. It looks and
//! completes events under no lock, because memory may come from an allocator of the user's. Whoever frees memory meanwhile
//! leaves word (`again`), and then that thread looks again before it gives its turn up; so no freed memory is overlooked.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use super::MemorySpace;
use super::block::MemoryBlock;
use crate::arena::Shortage;
use crate::backend::Pending;
use crate::event::EventPromise;
use crate::status::{Status, StatusCode};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicUsize, Ordering};

/// An allocation that waits.
pub(super) struct Entry {
    pub(super) block: Weak<MemoryBlock>,
    pub(super) alignment_bytes: usize,
    pub(super) promise: EventPromise,
    /// Let go of last.
    pub(super) _pending: Pending,
}

/// See the module.
pub(super) struct Waiting {
    state: Mutex<State>,
    /// The length of the queue, or more.
    count: AtomicUsize,
}

struct State {
    queue: VecDeque<Entry>,
    /// A thread has its turn. Only that one takes entries out.
    serving: bool,
    /// Memory was freed, or an entry came, since it last looked.
    again: bool,
    /// The client has ended: why nobody waits any more.
    ended: Option<Status>,
}

/// What there is for the oldest entry.
enum Found {
    /// The block has it.
    Memory,
    /// Nobody holds the block any more.
    NobodyWaits,
    /// The client has ended.
    Ended(Status),
    /// No memory, and none can come.
    Nothing(Arc<MemoryBlock>, Shortage),
}

/// What comes of looking.
enum Look {
    /// The entry leaves the queue.
    Take(Found),
    /// It waits on.
    Stay,
    /// Somebody has allocated and freed meanwhile; it is not clear what there is now.
    Again,
}

impl Waiting {
    pub(super) fn new() -> Self {
        let state = State { queue: VecDeque::new(), serving: false, again: false, ended: None };
        Self { state: Mutex::new(state), count: AtomicUsize::new(0) }
    }

    /// Queues `entry`. The caller serves the queue afterwards, because memory may have been freed meanwhile.
    pub(super) fn push(&self, entry: Entry) {
        // SeqCst with the load in serve(): whoever frees either sees the entry or did so before it was queued, and then the
        // caller's own serve() finds the memory.
        self.count.fetch_add(1, Ordering::SeqCst);
        self.state.lock().queue.push_back(entry);
    }

    /// Gives memory of `space`, whose queue this is, to the oldest entries, as far as it goes.
    pub(super) fn serve(&self, space: &MemorySpace) {
        // See push(). The memory was given back under a lock of the arena before this load.
        while self.count.load(Ordering::SeqCst) > 0 {
            let Some(turn) = self.take_turn() else { return };
            let Some((entry, found)) = turn.serve(space) else { return };
            match found {
                Found::Memory => _ = entry.promise.set_ready(),
                Found::NobodyWaits => not_wanted(&entry.promise),
                Found::Ended(why) => _ = entry.promise.set_error(why),
                Found::Nothing(block, shortage) => {
                    entry.promise.set_error(space.exhausted(block.size_bytes(), shortage));
                }
            }
        }
    }

    /// `None`: another thread has it, and looks again.
    fn take_turn(&self) -> Option<Turn<'_>> {
        let mut state = self.state.lock();
        if state.serving {
            state.again = true;
            return None;
        }
        state.serving = true;
        Some(Turn { waiting: self })
    }

    /// From now on nobody waits: the entries fail with `why`.
    pub(super) fn end(&self, space: &MemorySpace, why: Status) {
        {
            let mut state = self.state.lock();
            state.ended.get_or_insert(why);
            state.again = true;
        }
        self.serve(space);
    }

    /// How many allocations wait.
    pub(super) fn len(&self) -> usize {
        self.state.lock().queue.len()
    }
}

/// The turn of this thread. It ends when this is dropped, also by a panic of a backend's.
struct Turn<'a> {
    waiting: &'a Waiting,
}

impl Turn<'_> {
    /// Takes the oldest entry out, with what was found for it; `None`: it has to wait on, or there is none.
    fn serve(self, space: &MemorySpace) -> Option<(Entry, Found)> {
        loop {
            let (oldest, ended) = {
                let mut state = self.waiting.state.lock();
                state.again = false;
                let oldest = state.queue.front().map(|entry| (Weak::clone(&entry.block), entry.alignment_bytes));
                (oldest, state.ended.clone())
            };
            // If this drops the last reference to a block, that leaves word.
            let look = match (oldest, ended) {
                (None, _) => Look::Stay,
                (Some(_), Some(why)) => Look::Take(Found::Ended(why)),
                (Some((block, alignment_bytes)), None) => look(space, &block, alignment_bytes),
            };
            let mut state = self.waiting.state.lock();
            match look {
                Look::Take(found) => {
                    let entry = state.queue.pop_front().expect("only whose turn it is takes entries out");
                    self.waiting.count.fetch_sub(1, Ordering::SeqCst);
                    drop(state);
                    return Some((entry, found));
                }
                Look::Stay if !state.again => {
                    // In one step with the look at `again`; so the drop has nothing left to do.
                    state.serving = false;
                    drop(state);
                    std::mem::forget(self);
                    return None;
                }
                Look::Stay | Look::Again => {}
            }
        }
    }
}

fn look(space: &MemorySpace, block: &Weak<MemoryBlock>, alignment_bytes: usize) -> Look {
    let Some(block) = block.upgrade() else { return Look::Take(Found::NobodyWaits) };
    let before = space.stats();
    let Err(shortage) = space.try_fill(&block, alignment_bytes) else { return Look::Take(Found::Memory) };
    if matches!(&shortage, Shortage::Backend(reason) if reason.code() != StatusCode::ResourceExhausted) {
        return Look::Take(Found::Nothing(block, shortage));
    }
    let after = space.stats();
    if after.pool_bytes > 0 {
        // Somebody holds memory, or is about to. They serve the queue when they free it, or come away empty-handed.
        return Look::Stay;
    }
    if before.pool_bytes > 0 || before.num_allocs != after.num_allocs {
        return Look::Again;
    }
    Look::Take(Found::Nothing(block, shortage))
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.waiting.state.lock().serving = false;
    }
}

/// The buffer of a pending block is gone; somebody may still have its event.
pub(super) fn not_wanted(promise: &EventPromise) {
    promise.set_error(Status::cancelled("nobody holds the memory any more that was waited for"));
}
