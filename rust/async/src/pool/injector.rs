//! Tasks from outside, a lane per priority: first in, first out, unbounded, closable, without an allocation.
//!
//! A lane is an inbox and an outbox. Schedulers push to the inbox, a stack linked through [`TaskNode::next`], by one
//! compare-and-swap. Workers take from the outbox, a list behind a lock; when it is empty, they take the whole inbox by
//! one exchange and turn it around. So schedulers and workers meet once per batch, and order is kept: the outbox is
//! older than the inbox, and is refilled only when empty.
//!
//! [`CLOSED`] in the inbox's word refuses pushes for ever: what was pushed before is still taken, and a thread that
//! finds the lane closed and empty knows that it stays so.
//!
//! A worker that takes several tasks puts the others into a ring of its own, from which others may take them in turn.
//!
//! A task that is moved must be visible somewhere at every moment, because a worker that finds nothing goes to sleep.
//! `held` is raised before the inbox is emptied and lowered after the last task is in a ring; a worker that looks reads
//! `inbox`, then `held`, then the rings. All of these are sequentially consistent.

use std::ptr;

use super::deque::{Deque, Padded};
use crate::task::Priority;
use crate::task::Task;
use crate::task::node::TaskNode;
use purlin_base::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use purlin_base::sync::atomic::{AtomicPtr, AtomicUsize};
use purlin_base::sync::{Mutex, total_order};

/// The most tasks that a worker takes at once, beside the one that it runs next: the size of its ring for them.
pub(super) const BATCH: usize = 32;

/// A bit of the inbox's word; nodes are aligned to 8.
const CLOSED: usize = 1;

pub(super) struct Injector {
    /// By [`Priority`].
    lanes: [Lane; 3],
    /// Workers that are to share the tasks.
    workers: usize,
}

struct Lane {
    /// The newest task, and [`CLOSED`].
    inbox: Padded<AtomicPtr<TaskNode>>,
    /// Zero if the outbox is empty and no thread is moving tasks to or from it. Written under the lock.
    held: Padded<AtomicUsize>,
    outbox: Mutex<List>,
}

/// Oldest first.
struct List {
    oldest: *mut TaskNode,
    len: usize,
}

// SAFETY: a list owns its tasks, which are Send.
unsafe impl Send for List {}

impl Injector {
    pub(super) fn new(workers: usize) -> Self {
        Self { lanes: std::array::from_fn(|_| Lane::new()), workers }
    }

    /// Gives the task back after [`close`](Self::close).
    #[inline]
    pub(super) fn push(&self, task: Task, priority: Priority) -> Result<(), Task> {
        self.lanes[priority as usize].push(task)
    }

    /// Whether a lane has tasks. In the order that the module says.
    #[inline]
    pub(super) fn has(&self, priority: Priority) -> bool {
        !self.lanes[priority as usize].is_empty()
    }

    /// The oldest task of a lane.
    #[inline]
    pub(super) fn take_one(&self, priority: Priority) -> Option<*mut TaskNode> {
        if self.has(priority) { self.lanes[priority as usize].take(|_| 0, None) } else { None }
    }

    /// The oldest task of the normal lane; up to [`BATCH`] more, the caller's share, go to its `ring`, which is
    /// empty.
    ///
    /// # Safety
    /// The caller owns `ring`.
    #[inline]
    pub(super) unsafe fn take_batch(&self, ring: &Deque) -> Option<*mut TaskNode> {
        let lane = &self.lanes[Priority::Normal as usize];
        if lane.is_empty() {
            return None;
        }
        lane.take(|len| (len / (2 * self.workers)).min(ring.room()), Some(ring))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lanes.iter().all(Lane::is_empty)
    }

    /// Tasks that were moved out of the inboxes, by lane; a hint.
    #[cfg(not(purlin_model))]
    pub(super) fn held(&self) -> [usize; 3] {
        self.lanes.each_ref().map(|lane| lane.held.0.load(Relaxed))
    }

    /// The numbers of the tasks that are in no ring, for reports.
    pub(super) fn numbers(&self) -> Vec<usize> {
        self.lanes.iter().flat_map(Lane::numbers).collect()
    }

    pub(super) fn close(&self) {
        self.lanes.iter().for_each(Lane::close);
    }
}

impl Drop for Injector {
    fn drop(&mut self) {
        for lane in &self.lanes {
            while let Some(task) = lane.take(|_| 0, None) {
                // SAFETY: the lane owned it.
                drop(unsafe { Task::from_raw(task) });
            }
        }
    }
}

impl Lane {
    fn new() -> Self {
        Self {
            inbox: Padded(AtomicPtr::new(ptr::null_mut())),
            held: Padded(AtomicUsize::new(0)),
            outbox: Mutex::new(List { oldest: ptr::null_mut(), len: 0 }),
        }
    }

    #[inline]
    fn push(&self, task: Task) -> Result<(), Task> {
        let node = task.into_raw();
        let mut newest = self.inbox.0.load(Relaxed);
        loop {
            if newest.addr() & CLOSED != 0 {
                // SAFETY: the node is the one that was given away above.
                return Err(unsafe { Task::from_raw(node) });
            }
            // SAFETY: the node is ours until the exchange succeeds.
            unsafe { (&raw mut (*node).next).write(newest) };
            // Publishes the node to refill(); SeqCst because the scheduler reads next which workers sleep (`idle.rs`).
            match self.inbox.0.compare_exchange_weak(newest, node, SeqCst, Relaxed) {
                Ok(_) => {
                    total_order();
                    return Ok(());
                }
                Err(now) => newest = now,
            }
        }
    }

    fn close(&self) {
        let mut newest = self.inbox.0.load(Relaxed);
        while let Err(now) =
            self.inbox.0.compare_exchange_weak(newest, newest.map_addr(|address| address | CLOSED), SeqCst, Relaxed)
        {
            newest = now;
        }
    }

    /// In the order that the module says. Any thread.
    #[inline]
    fn is_empty(&self) -> bool {
        self.inbox.0.load(SeqCst).addr() & !CLOSED == 0 && self.held.0.load(SeqCst) == 0
    }

    /// The oldest task; `more` says how many others, of as many as are there, go to `ring`, which is the caller's.
    fn take(&self, more: impl FnOnce(usize) -> usize, ring: Option<&Deque>) -> Option<*mut TaskNode> {
        let mut outbox = self.outbox.lock();
        if outbox.len == 0 {
            if self.inbox.0.load(Relaxed).addr() & !CLOSED == 0 {
                return None;
            }
            self.held.0.store(1, SeqCst);
            total_order();
            *outbox = self.refill();
        }
        let first = outbox.pop();
        if let Some(ring) = ring {
            let count = more(outbox.len);
            // SAFETY: the caller owns the ring, which has room for as many as more() says.
            unsafe { ring.push_all(std::iter::from_fn(|| outbox.pop()).take(count)) };
        }
        // Also publishes the ring to the thread that reads the zero.
        self.held.0.store(outbox.len, SeqCst);
        total_order();
        first
    }

    /// The inbox is emptied under the lock only, so its tasks stay while we have it; others may be pushed.
    fn numbers(&self) -> Vec<usize> {
        let outbox = self.outbox.lock();
        // Acquire: the tasks are readable.
        let inbox = self.inbox.0.load(Acquire).map_addr(|address| address & !CLOSED);
        let mut numbers = Vec::new();
        for mut node in [outbox.oldest, inbox] {
            while !node.is_null() {
                numbers.push(node.addr());
                // SAFETY: a task of a list that no thread shortens; its link is not written any more.
                node = unsafe { (&raw const (*node).next).read() }.map_addr(|address| address & !CLOSED);
            }
        }
        numbers
    }

    /// The whole inbox, oldest first.
    fn refill(&self) -> List {
        let mut newest = self.inbox.0.load(Relaxed);
        // Acquire: the tasks are readable.
        while let Err(now) =
            self.inbox.0.compare_exchange_weak(newest, newest.map_addr(|address| address & CLOSED), SeqCst, Acquire)
        {
            newest = now;
        }
        let mut list = List { oldest: ptr::null_mut(), len: 0 };
        let mut node = newest.map_addr(|address| address & !CLOSED);
        while !node.is_null() {
            // SAFETY: a task of the list that is ours now. Its link may be marked: it was pushed before the lane
            // closed.
            let older = unsafe { std::mem::replace(&mut (*node).next, list.oldest) };
            list.oldest = node;
            list.len += 1;
            node = older.map_addr(|address| address & !CLOSED);
        }
        list
    }
}

impl List {
    fn pop(&mut self) -> Option<*mut TaskNode> {
        if self.oldest.is_null() {
            return None;
        }
        let node = self.oldest;
        // SAFETY: a task of the list, which owns it.
        self.oldest = unsafe { (&raw const (*node).next).read() };
        self.len -= 1;
        Some(node)
    }
}
