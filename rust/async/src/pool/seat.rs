//! What others see of a worker: its tasks, and what it does.

use std::ffi::c_char;
use std::ptr;

use super::deque::Deque;
use super::injector::BATCH;
use crate::task::node::TaskNode;
use purlin_base::sync::atomic::{AtomicPtr, AtomicU32};

/// Spawned tasks that a worker holds; the rest goes to the injector.
const RING: usize = if cfg!(purlin_model) { 4 } else { 1024 };
/// The most tasks that a thief takes beside the one that it runs next, and what part of those that it sees: less than
/// would leave its victim without.
const LOOT: usize = if cfg!(purlin_model) { 1 } else { 8 };
const LOOT_PART: usize = if cfg!(purlin_model) { 1 } else { 4 };

/// A worker's place in its pool.
pub(super) struct Seat {
    /// What its tasks schedule.
    pub(super) spawned: Deque,
    /// What it took from the injector, or from another worker.
    pub(super) batch: Deque,
    /// The label of the task that runs, or null.
    pub(super) running: AtomicPtr<c_char>,
    /// The system's number of the thread, or 0.
    pub(super) thread: AtomicU32,
}

impl Seat {
    /// Of no worker yet.
    pub(super) fn new() -> Self {
        let (running, thread) = (AtomicPtr::new(ptr::null_mut()), AtomicU32::new(0));
        Self {
            spawned: Deque::new(RING),
            batch: Deque::new(if cfg!(purlin_model) { 2 } else { BATCH }),
            running,
            thread,
        }
    }

    /// Whether no task is there. Any thread.
    pub(super) fn is_empty(&self) -> bool {
        self.spawned.is_empty() && self.batch.is_empty()
    }

    /// The oldest task that its worker spawned, or took from the injector. Any thread.
    pub(super) fn steal(&self) -> Option<*mut TaskNode> {
        self.spawned.steal_one().or_else(|| self.batch.steal_one())
    }

    /// As `steal`, for the worker of `thief`; how many more tasks have come into its ring for batches.
    ///
    /// # Safety
    /// The caller is that worker.
    pub(super) unsafe fn steal_for(&self, thief: &Self) -> Option<(*mut TaskNode, usize)> {
        let Some(task) = self.spawned.steal_one() else { return self.batch.steal_one().map(|task| (task, 0)) };
        let most = LOOT.min(self.spawned.len() / LOOT_PART).min(thief.batch.room());
        let mut more = 0;
        while more < most
            && let Some(task) = self.spawned.steal_one()
        {
            // SAFETY: the caller is the owner of the ring, which keeps the room that it had: only its owner fills it.
            let fits = unsafe { thief.batch.push(task) };
            debug_assert!(fits, "there was room");
            more += 1;
        }
        Some((task, more))
    }
}
