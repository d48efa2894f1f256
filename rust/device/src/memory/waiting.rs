//! Allocations that wait until others are freed: first come, first served.
//!
//! Every block that is freed serves the queue (`turns.rs`); the oldest entry is served first, so a large request is not
//! passed by smaller ones behind it in the queue, nor by one that is not queued yet (those that do not wait take what
//! they find). An entry whose block is no longer held leaves the queue; so does one that cannot be served although
//! nothing is held that could still be freed, with that error. Memory may be made by a user's allocator, so it is
//! looked for, and events are completed, under no lock.

use super::MemorySpace;
use super::block::MemoryBlock;
use crate::arena::{MemoryStats, Shortage};
use crate::backend::Pending;
use purlin_async::event::EventPromise;
use purlin_base::status::{Error, StatusCode};
use purlin_base::sync::{Mutex, PinnedArc, PinnedWeak};
use purlin_base::turns::{Look, Source, Turns};

/// An allocation that waits.
pub(super) struct Entry {
    pub(super) block: PinnedWeak<MemoryBlock>,
    pub(super) alignment_bytes: usize,
    pub(super) promise: EventPromise,
    /// Dropped last.
    pub(super) pending: Pending,
}

/// See the module.
pub(crate) struct Waiting {
    turns: Turns<Entry>,
    /// The client has ended: why nothing waits any more.
    ended: Mutex<Option<Error>>,
}

/// What there is for the oldest entry.
pub(super) enum Found {
    /// The block has it.
    Memory,
    /// The block is no longer held.
    NobodyWaits,
    /// The client has ended.
    Ended(Error),
    /// No memory, and none can become free.
    Nothing(PinnedArc<MemoryBlock>, Shortage),
}

impl Waiting {
    pub(crate) fn new() -> Self {
        Self { turns: Turns::new(), ended: Mutex::new(None) }
    }

    /// Queues `entry`, unless there is memory of `space`, whose queue this is, by now.
    pub(super) fn wait(&self, entry: Entry, space: &MemorySpace) {
        self.turns.wait(entry, &Memory { space, waiting: self });
    }

    /// Gives memory of `space`, whose queue this is, to the oldest entries, as far as it suffices.
    pub(super) fn serve(&self, space: &MemorySpace) {
        // The memory was given back under a lock of the arena before this.
        self.turns.serve(&Memory { space, waiting: self });
    }

    /// From now on nothing waits: the entries fail with `why`.
    pub(super) fn end(&self, space: &MemorySpace, why: Error) {
        // Under the lock under which looks ask for it: an entry whose look was before is one that serve() sees.
        self.ended.lock().get_or_insert(why);
        self.serve(space);
    }

    /// Whether allocations wait, or have just had what they waited for. A load.
    pub(super) fn has_entries(&self) -> bool {
        self.turns.has_entries()
    }

    /// How many allocations wait.
    pub(crate) fn len(&self) -> usize {
        self.turns.count()
    }
}

/// What entries wait for.
struct Memory<'a> {
    space: &'a MemorySpace,
    waiting: &'a Waiting,
}

impl Source for Memory<'_> {
    type Entry = Entry;
    type Seen = (PinnedWeak<MemoryBlock>, usize);
    type Found = Found;

    fn see(entry: &Entry) -> Self::Seen {
        (entry.block.clone(), entry.alignment_bytes)
    }

    fn look(&self, (block, alignment_bytes): Self::Seen) -> Look<Found> {
        let ended = self.waiting.ended.lock().clone();
        if let Some(why) = ended {
            return Look::Take(Found::Ended(why));
        }
        let Some(block) = block.upgrade() else { return Look::Take(Found::NobodyWaits) };
        let before = self.space.stats();
        let Err(shortage) = self.space.try_fill(&block, alignment_bytes) else { return Look::Take(Found::Memory) };
        if matches!(&shortage, Shortage::Backend(reason) if reason.code() != StatusCode::ResourceExhausted) {
            return Look::Take(Found::Nothing(block, shortage));
        }
        match after_shortage(&before, &self.space.stats()) {
            Look::Take(()) => Look::Take(Found::Nothing(block, shortage)),
            Look::Stay => Look::Stay,
            Look::Again => Look::Again,
        }
    }

    fn tell(&self, entry: Entry, found: Found) {
        entry.pending.notifying(|| match found {
            Found::Memory => _ = entry.promise.set_ready(),
            Found::NobodyWaits => not_wanted(&entry.promise),
            Found::Ended(why) => _ = entry.promise.set_error(why),
            Found::Nothing(block, shortage) => {
                entry.promise.set_error(self.space.exhausted(block.size_bytes(), shortage));
            }
        });
    }
}

/// Whether an allocation that finds no memory between two looks at the statistics is to wait on; `Take`: none can
/// become free.
pub(super) fn after_shortage(before: &MemoryStats, after: &MemoryStats) -> Look<()> {
    if after.pool_bytes > 0 {
        // Another thread holds memory, or is about to. It serves the queue when it frees it, or when it gets none.
        return Look::Stay;
    }
    if before.pool_bytes > 0 || before.num_allocs != after.num_allocs {
        // Another thread has allocated and freed meanwhile.
        return Look::Again;
    }
    Look::Take(())
}

/// The buffer of a pending block is gone; its event may still have holders.
pub(super) fn not_wanted(promise: &EventPromise) {
    promise.set_error(Error::cancelled("nobody holds the memory any more that was waited for"));
}
