//! Allocations that wait until others are freed: first come, first served.
//!
//! Every block that is freed serves the queue; the oldest entry is served first, so a large request is not passed by smaller
//! ones behind it in the queue (those that do not wait take what they find). An entry whose block nobody holds any more
//! leaves it. The queue's lock is held while the arena looks for room, and never while an event completes.

use std::collections::VecDeque;
use std::sync::Weak;

use super::block::{Backing, MemoryBlock};
use crate::arena::Arena;
use crate::event::EventPromise;
use crate::status::Status;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicUsize, Ordering};

/// An allocation that waits.
pub(super) struct Entry {
    pub(super) block: Weak<MemoryBlock>,
    pub(super) alignment_bytes: usize,
    pub(super) promise: EventPromise,
}

/// See the module.
pub(super) struct Waiting {
    queue: Mutex<VecDeque<Entry>>,
    /// Its length, or more.
    count: AtomicUsize,
}

impl Waiting {
    pub(super) fn new() -> Self {
        Self { queue: Mutex::new(VecDeque::new()), count: AtomicUsize::new(0) }
    }

    /// Queues `entry`. The caller serves the queue afterwards, because memory may have been freed meanwhile.
    pub(super) fn push(&self, entry: Entry) {
        // SeqCst with the load in serve(): whoever frees either sees the entry or did so before it was queued, and then the
        // caller's own serve() finds the memory.
        self.count.fetch_add(1, Ordering::SeqCst);
        self.queue.lock().push_back(entry);
    }

    /// Gives memory to the oldest entries, as far as it goes.
    pub(super) fn serve(&self, arena: &Arena<MemoryBlock>) {
        // See push(). The memory was given back under a lock of the arena before this load.
        while self.count.load(Ordering::SeqCst) > 0 {
            let mut queue = self.queue.lock();
            let Some(entry) = queue.front() else { return };
            let block = entry.block.upgrade();
            let piece = match &block {
                Some(block) => arena.allocate(block.size_bytes(), entry.alignment_bytes, block),
                None => {
                    let entry = queue.pop_front();
                    self.count.fetch_sub(1, Ordering::SeqCst);
                    drop(queue);
                    entry.into_iter().for_each(|entry| not_wanted(&entry.promise));
                    continue;
                }
            };
            let (Ok(piece), Some(block)) = (piece, &block) else {
                // In this order: if the block goes here, its drop serves the queue again.
                drop(queue);
                return;
            };
            let entry = queue.pop_front();
            self.count.fetch_sub(1, Ordering::SeqCst);
            drop(queue);
            block.provide(Backing::Piece(piece));
            if let Some(entry) = entry {
                entry.promise.set_ready();
            }
        }
    }

    /// How many allocations wait.
    pub(super) fn len(&self) -> usize {
        self.queue.lock().len()
    }
}

/// The buffer of a pending block is gone; somebody may still have its event.
pub(super) fn not_wanted(promise: &EventPromise) {
    promise.set_error(Status::cancelled("nobody holds the memory any more that was waited for"));
}
