//! What each thread keeps for itself, shared with C++ (`include/purlin/internal/thread_state.h`): how deep its waiters
//! are nested, its user context, its free blocks, the tasks that run on it.

#![allow(unsafe_code, reason = "frames of the thread's stack, and a context that it owns, by pointer")]

use std::cell::Cell;
use std::ffi::{CStr, c_char};
use std::ptr;
use std::sync::atomic::AtomicU32;

use crate::clock::NOW_MS;
use crate::label::Label;
use crate::sync::per_thread;

/// How many classes of blocks there are (`slab::Class`).
pub const CLASSES: usize = 4;

/// A thread's free blocks of one class.
#[derive(Debug)]
#[repr(C)]
pub struct FreeList {
    /// The first; null for none.
    pub head: Cell<*mut u8>,
    /// How many.
    pub count: Cell<u32>,
    /// 0 until the thread has used the class, and again when it is ending.
    pub limit: Cell<u32>,
}

/// What each thread keeps for itself, shared with C++.
#[derive(Debug)]
#[repr(C)]
pub struct ThreadState {
    /// How deep the waiters that run on this thread are nested.
    pub depth: Cell<u32>,
    /// Not 0 when waiters are queued until the nesting ends.
    pub deferred: Cell<u32>,
    /// The current user context, owned (`user_context/scope.rs`); null for none. Its first word is its number.
    pub context: Cell<*const u64>,
    /// The coarse clock: milliseconds, behind by what `clock.rs` says.
    pub now_ms: Cell<*const AtomicU32>,
    /// By class.
    pub lists: [FreeList; CLASSES],
    /// The task that runs on this thread, and those that wait for it further out on the stack; null for none.
    pub running: Cell<*const Running>,
}

/// A task that runs, on the stack of the thread that runs it.
#[derive(Debug)]
pub struct Running {
    /// Distinguishes it from other tasks while it runs.
    pub task: usize,
    /// Static, ends with a NUL.
    pub label: *const c_char,
    /// The task that waits for this one, on the same stack.
    pub outer: *const Running,
}

const _: () = {
    use std::mem::offset_of;
    assert!(size_of::<FreeList>() == 16 && align_of::<FreeList>() == 8);
    assert!(offset_of!(FreeList, head) == 0 && offset_of!(FreeList, count) == 8 && offset_of!(FreeList, limit) == 12);
    assert!(size_of::<ThreadState>() == 96 && align_of::<ThreadState>() == 8);
    assert!(offset_of!(ThreadState, depth) == 0 && offset_of!(ThreadState, deferred) == 4);
    assert!(offset_of!(ThreadState, context) == 8 && offset_of!(ThreadState, now_ms) == 16);
    assert!(offset_of!(ThreadState, lists) == 24 && offset_of!(ThreadState, running) == 88);
};

impl FreeList {
    const fn new() -> Self {
        Self { head: Cell::new(ptr::null_mut()), count: Cell::new(0), limit: Cell::new(0) }
    }
}

impl ThreadState {
    const fn new() -> Self {
        Self {
            depth: Cell::new(0),
            deferred: Cell::new(0),
            context: Cell::new(ptr::null()),
            now_ms: Cell::new(&raw const NOW_MS),
            lists: [const { FreeList::new() }; CLASSES],
            running: Cell::new(ptr::null()),
        }
    }

    /// The number of the current user context; 0 for none.
    pub fn context_id(&self) -> u64 {
        let context = self.context.get();
        // SAFETY: we own a reference, which only this thread gives up.
        if context.is_null() { 0 } else { unsafe { context.read() } }
    }
}

// Nothing in it needs a destructor, so it can be used until the thread is gone.
per_thread!(static STATE: ThreadState = ThreadState::new());

/// Calls `f` with this thread's state.
#[inline]
pub fn with_state<R>(f: impl FnOnce(&ThreadState) -> R) -> R {
    STATE.with(f)
}

/// Calls `f` as task `task`; that is what this thread is reported to do meanwhile. `f` does not unwind.
#[inline]
pub fn running(task: usize, label: *const c_char, f: impl FnOnce()) {
    with_state(|state| {
        let frame = Running { task, label, outer: state.running.get() };
        state.running.set(&raw const frame);
        f();
        state.running.set(frame.outer);
    });
}

/// The tasks that run on this thread, innermost first: their numbers and labels.
pub fn running_tasks() -> impl Iterator<Item = (usize, Label)> {
    // SAFETY: a frame stands on this thread's stack, further out than the caller's, until running() takes it out of the
    // list.
    let at = |frame: *const Running| unsafe { frame.as_ref() };
    let frames = std::iter::successors(at(with_state(|state| state.running.get())), move |frame| at(frame.outer));
    // SAFETY: a label is a static string with a NUL.
    frames.map(|frame| (frame.task, Label::new(unsafe { CStr::from_ptr(frame.label) })))
}
