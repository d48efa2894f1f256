//! A worker's tasks: a ring that its owner fills and empties at one end, newest first, while others steal from the
//! other end, oldest first (Chase and Lev, "Dynamic circular work-stealing deque", 2005). The ring does not grow; what
//! does not fit goes to the injector. An owner that steals from itself has a queue: first in, first out.
//!
//! `top` counts what was taken from the old end, `bottom` what was put at the new end; the tasks are those in between.
//! Only the owner moves `bottom`. `top` only grows, by compare-and-swap, so the thread that moves it past a task has it
//! alone.
//!
//! Memory order. Three steps are argued in the total order of sequentially consistent accesses:
//! 1. The owner takes back the last task: it lowers `bottom`, then reads `top`. A thief reads `top`, then `bottom`. One
//!    of the two sees the other, or both meet at the compare-and-swap. (Pairs: `pop` with `steal`.)
//! 2. After a push, the owner reads which workers sleep; a worker that goes to sleep says so, then looks at `bottom`
//!    (`idle.rs`).
//! 3. A slot is overwritten only after `top` was seen beyond it (acquire), which its thief wrote (release). A push
//!    reads `top` only when the ring would be full by what its owner saw of it last: while others steal, that line is
//!    in their caches.
//!
//! A thief reads its slot before it knows whether it has won; slots are atomics so that this is no race.

use std::cell::Cell;

use crate::task::node::TaskNode;
use purlin_base::sync::atomic::Ordering;
use purlin_base::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use purlin_base::sync::atomic::{AtomicPtr, AtomicUsize};
use purlin_base::sync::total_order;

/// On lines of its own: two, because processors fetch them in pairs.
#[repr(align(128))]
pub(super) struct Padded<T>(pub(super) T);

pub(super) struct Deque {
    top: Padded<AtomicUsize>,
    bottom: Padded<Bottom>,
    slots: Box<[AtomicPtr<TaskNode>]>,
}

/// What the owner writes.
struct Bottom {
    index: AtomicUsize,
    /// What `top` was when the owner saw it last. Only the owner's.
    top: Cell<usize>,
}

// SAFETY: `Bottom::top` is only the owner's, as methods of the owner are unsafe to call for any other thread.
unsafe impl Sync for Deque {}

/// The result of a theft.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Steal {
    Empty,
    /// Another thread was faster; there may be more.
    Retry,
    Taken(*mut TaskNode),
}

impl Deque {
    /// `capacity` is a power of two.
    pub(super) fn new(capacity: usize) -> Self {
        assert!(capacity.is_power_of_two(), "slots are found by a mask");
        let slots = (0..capacity).map(|_| AtomicPtr::new(std::ptr::null_mut())).collect();
        let bottom = Bottom { index: AtomicUsize::new(0), top: Cell::new(0) };
        Self { top: Padded(AtomicUsize::new(0)), bottom: Padded(bottom), slots }
    }

    fn slot(&self, index: usize) -> &AtomicPtr<TaskNode> {
        &self.slots[index & (self.slots.len() - 1)]
    }

    /// Where the next push goes. For the owner, as a mark: what it pops while `bottom` is above the mark was pushed
    /// later.
    pub(super) fn bottom(&self) -> usize {
        self.bottom.0.index.load(Relaxed)
    }

    /// Puts a task at the new end; false if the ring is full.
    ///
    /// # Safety
    /// The caller is the owner.
    #[inline]
    pub(super) unsafe fn push(&self, task: *mut TaskNode) -> bool {
        // SeqCst for step 2.
        // SAFETY: the caller's promise.
        let fits = unsafe { self.put(task, SeqCst) };
        total_order();
        fits
    }

    /// As `push`, without step 2: a worker that falls asleep at this moment may miss the task, until the next push.
    ///
    /// # Safety
    /// The caller is the owner.
    #[inline]
    pub(super) unsafe fn offer(&self, task: *mut TaskNode) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.put(task, Release) }
    }

    /// # Safety
    /// The caller is the owner.
    #[inline]
    unsafe fn put(&self, task: *mut TaskNode, order: Ordering) -> bool {
        let bottom = self.bottom.0.index.load(Relaxed);
        if self.is_full_below(bottom) {
            return false;
        }
        self.slot(bottom).store(task, Relaxed);
        // Publishes the slot and the task to thieves.
        self.bottom.0.index.store(bottom.wrapping_add(1), order);
        true
    }

    /// For the owner, whose `bottom` it is.
    #[inline]
    fn is_full_below(&self, bottom: usize) -> bool {
        let is_full = |top: usize| bottom.wrapping_sub(top) >= self.slots.len();
        // The value of old: `top` only grows.
        if !is_full(self.bottom.0.top.get()) {
            return false;
        }
        self.bottom.0.top.set(self.top.0.load(Acquire));
        is_full(self.bottom.0.top.get())
    }

    /// The numbers of the tasks, as they were a moment ago, for reports.
    pub(super) fn numbers(&self) -> Vec<usize> {
        let (top, count) = (self.ends().0, self.len());
        (0..count).map(|index| self.slot(top.wrapping_add(index)).load(Relaxed).addr()).collect()
    }

    /// How many tasks [`push`](Self::push) would take now, at least. For the owner.
    pub(super) fn room(&self) -> usize {
        self.slots.len() - self.bottom.0.index.load(Relaxed).wrapping_sub(self.top.0.load(Acquire))
    }

    /// Puts tasks at the new end, visible to thieves all at once. What this publishes is not ordered against sleepers:
    /// that is the caller's business.
    ///
    /// # Safety
    /// The caller is the owner, and there is [`room`](Self::room) for all of them.
    pub(super) unsafe fn push_all(&self, tasks: impl Iterator<Item = *mut TaskNode>) {
        let mut bottom = self.bottom.0.index.load(Relaxed);
        for task in tasks {
            self.slot(bottom).store(task, Relaxed);
            bottom = bottom.wrapping_add(1);
        }
        self.bottom.0.index.store(bottom, Release);
    }

    /// Takes the newest task.
    ///
    /// # Safety
    /// The caller is the owner.
    #[inline]
    pub(super) unsafe fn pop(&self) -> Option<*mut TaskNode> {
        let bottom = self.bottom.0.index.load(Relaxed);
        // Old values of `top` are smaller: this never takes a task for granted, it only saves the exchange below.
        if bottom == self.top.0.load(Relaxed) {
            return None;
        }
        let newest = bottom.wrapping_sub(1);
        self.bottom.0.index.store(newest, SeqCst);
        total_order();
        let top = self.top.0.load(SeqCst);
        if newest.wrapping_sub(top).cast_signed() > 0 {
            return Some(self.slot(newest).load(Relaxed));
        }
        let mut taken = None;
        if newest == top {
            // The last one: thieves may be at it too.
            let won = self.top.0.compare_exchange(top, bottom, SeqCst, Relaxed).is_ok();
            if won {
                taken = Some(self.slot(newest).load(Relaxed));
            }
        }
        // Release: a thief that reads this value reads slots that earlier pushes published.
        self.bottom.0.index.store(bottom, Release);
        taken
    }

    /// Takes the oldest task. Any thread.
    pub(super) fn steal(&self) -> Steal {
        let top = self.top.0.load(SeqCst);
        total_order();
        let bottom = self.bottom.0.index.load(SeqCst);
        if bottom.wrapping_sub(top).cast_signed() <= 0 {
            return Steal::Empty;
        }
        let task = self.slot(top).load(Relaxed);
        match self.top.0.compare_exchange(top, top.wrapping_add(1), SeqCst, Relaxed) {
            Ok(_) => Steal::Taken(task),
            Err(_) => Steal::Retry,
        }
    }

    /// [`steal`](Self::steal) until it is decided.
    pub(super) fn steal_one(&self) -> Option<*mut TaskNode> {
        loop {
            match self.steal() {
                Steal::Empty => return None,
                Steal::Taken(task) => return Some(task),
                Steal::Retry => {}
            }
        }
    }

    /// How many tasks there are; a hint. Any thread.
    pub(super) fn len(&self) -> usize {
        let (top, bottom) = self.ends();
        bottom.wrapping_sub(top).min(self.slots.len())
    }

    /// Both ends, which move when a task is put in or taken out. Any thread; a hint.
    pub(super) fn ends(&self) -> (usize, usize) {
        (self.top.0.load(Relaxed), self.bottom.0.index.load(Relaxed))
    }

    /// True also while the owner is deciding about the last task. Any thread.
    pub(super) fn is_empty(&self) -> bool {
        let top = self.top.0.load(SeqCst);
        self.bottom.0.index.load(SeqCst).wrapping_sub(top).cast_signed() <= 0
    }
}
