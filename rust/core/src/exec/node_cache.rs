//! Recycling of task nodes: a list per thread, and a depot through which full batches travel from the threads that free
//! nodes (workers) to those that allocate them (schedulers).
//!
//! A thread keeps at most [`KEEP`] nodes and hands a batch of half as many to the depot when it has more; it takes a batch
//! when it has none. The depot's lock is so paid once per batch. The depot keeps at most [`DEPOT_BATCHES`] batches, the
//! rest goes back to the system: 1 MiB at most lies idle.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::{Cell, RefCell};
use std::mem;
use std::ptr::{self, NonNull};

use super::task::TaskNode;
use crate::sync::Mutex;

const BATCH: usize = 32;
const KEEP: usize = 2 * BATCH;
const DEPOT_BATCHES: usize = 512;

/// Free nodes, linked through `next`.
struct List {
    head: *mut TaskNode,
    len: usize,
}

// SAFETY: a list owns its nodes, which are bare memory.
unsafe impl Send for List {}

static DEPOT: Mutex<Vec<List>> = Mutex::new(Vec::new());

thread_local! {
    /// Ends with its thread; nodes that are freed afterwards go straight to the system.
    static LOCAL: LocalList = const { LocalList(RefCell::new(List::new())) };
    /// Set while `LOCAL` is being torn down.
    static ENDED: Cell<bool> = const { Cell::new(false) };
}

struct LocalList(RefCell<List>);

impl Drop for LocalList {
    fn drop(&mut self) {
        ENDED.set(true);
        let mut list = mem::replace(&mut *self.0.borrow_mut(), List::new());
        while let Some(node) = list.pop() {
            release(node);
        }
    }
}

impl List {
    const fn new() -> Self {
        Self { head: ptr::null_mut(), len: 0 }
    }

    fn push(&mut self, node: NonNull<TaskNode>) {
        // SAFETY: the node is free and ours; only `next` is touched.
        unsafe { (&raw mut (*node.as_ptr()).next).write(self.head) };
        self.head = node.as_ptr();
        self.len += 1;
    }

    fn pop(&mut self) -> Option<NonNull<TaskNode>> {
        let node = NonNull::new(self.head)?;
        // SAFETY: a node of this list, whose `next` push() wrote.
        self.head = unsafe { (&raw const (*node.as_ptr()).next).read() };
        self.len -= 1;
        Some(node)
    }

    fn take_batch(&mut self) -> Self {
        let mut batch = Self::new();
        while batch.len < BATCH
            && let Some(node) = self.pop()
        {
            batch.push(node);
        }
        batch
    }
}

/// A node with unspecified contents.
pub(super) fn allocate() -> NonNull<TaskNode> {
    let recycled = LOCAL.try_with(|local| {
        let mut list = local.0.borrow_mut();
        if list.len == 0
            && let Some(batch) = DEPOT.lock().pop()
        {
            *list = batch;
        }
        list.pop()
    });
    recycled.ok().flatten().unwrap_or_else(fresh)
}

/// Takes back a node from [`allocate`].
///
/// # Safety
/// The node is the caller's own, and nothing in it needs to be destroyed.
pub(super) unsafe fn free(node: NonNull<TaskNode>) {
    if ENDED.get() {
        return release(node);
    }
    let kept = LOCAL.try_with(|local| {
        let mut list = local.0.borrow_mut();
        list.push(node);
        (list.len > KEEP).then(|| list.take_batch())
    });
    match kept {
        Ok(Some(batch)) => hand_over(batch),
        Ok(None) => {}
        Err(_ended) => release(node),
    }
}

fn hand_over(mut batch: List) {
    {
        let mut depot = DEPOT.lock();
        if depot.len() < DEPOT_BATCHES {
            depot.push(batch);
            return;
        }
    }
    while let Some(node) = batch.pop() {
        release(node);
    }
}

fn fresh() -> NonNull<TaskNode> {
    let layout = Layout::new::<TaskNode>();
    // SAFETY: the layout is not empty.
    let node = unsafe { alloc(layout) };
    NonNull::new(node.cast()).unwrap_or_else(|| handle_alloc_error(layout))
}

fn release(node: NonNull<TaskNode>) {
    // SAFETY: every node comes from fresh(), with this layout, and is released once.
    unsafe { dealloc(node.as_ptr().cast(), Layout::new::<TaskNode>()) };
}
