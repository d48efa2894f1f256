//! Running waiters: first in, first out, each exactly once, under no lock, and never more than [`MAX_INLINE_DEPTH`] deep.
//!
//! A waiter may complete further events, whose waiters run nested on the same stack. Beyond the limit they are queued on
//! the thread and run by its outermost frame, so that a chain of a million links needs no more stack than one of ten.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use super::Event;
use super::abi::{EventHeader, Waiter};
use crate::status::Status;
use crate::sync::per_thread;

/// How many completions nest on one stack before the next is queued.
pub(super) const MAX_INLINE_DEPTH: u32 = 32;

struct Trampoline {
    depth: Cell<u32>,
    queue: RefCell<VecDeque<Deferred>>,
}

/// A list of waiters whose turn comes when the stack has unwound. Keeps their event alive.
struct Deferred {
    event: Event,
    oldest: *mut Waiter,
}

per_thread!(static TRAMPOLINE: Trampoline = Trampoline { depth: Cell::new(0), queue: RefCell::new(VecDeque::new()) });

/// Turns the list that `state.rs` took (newest first) into the order in which waiters run.
///
/// # Safety
/// The list is the caller's own.
pub(super) unsafe fn oldest_first(mut newest: *mut Waiter) -> *mut Waiter {
    let mut oldest = ptr::null_mut();
    while !newest.is_null() {
        // SAFETY: a node of the caller's list, not invoked yet.
        let next = unsafe { std::mem::replace(&mut (*newest).next, oldest) };
        oldest = newest;
        newest = next;
    }
    oldest
}

/// Runs a list of waiters of a terminal event, here or, if too many completions are nested, later on this thread.
///
/// # Safety
/// `event` is null (the ready event) or terminal and alive during this call; the list is the caller's own, oldest first.
pub(super) unsafe fn run(event: *mut EventHeader, oldest: *mut Waiter) {
    if oldest.is_null() {
        return;
    }
    let nested = TRAMPOLINE.try_with(|here| {
        if here.depth.get() >= MAX_INLINE_DEPTH {
            // SAFETY: the caller keeps `event` alive; the clone keeps it alive from now on.
            let event = unsafe { Event::from_borrowed_raw(event) };
            here.queue.borrow_mut().push_back(Deferred { event, oldest });
            return;
        }
        // SAFETY: the caller's promises.
        here.nested(|| unsafe { invoke_all(event, oldest) });
    });
    if nested.is_err() {
        // The thread is ending and its trampoline is gone: run without a bound.
        // SAFETY: the caller's promises.
        unsafe { invoke_all(event, oldest) };
    }
}

/// Queues one waiter behind those that wait for this thread's stack to unwind. For C++, which counts its own nesting and
/// calls [`run_deferred`] when its outermost waiter returns.
///
/// # Safety
/// As [`run`], for a list of one.
pub(super) unsafe fn defer(event: *mut EventHeader, waiter: *mut Waiter) {
    // SAFETY: the waiter is the caller's own; a list of one.
    unsafe { (*waiter).next = ptr::null_mut() };
    let queued = TRAMPOLINE.try_with(|here| {
        // SAFETY: the caller keeps `event` alive; the clone keeps it alive from now on.
        let event = unsafe { Event::from_borrowed_raw(event) };
        here.queue.borrow_mut().push_back(Deferred { event, oldest: waiter });
    });
    if queued.is_err() {
        // SAFETY: the caller's promises.
        unsafe { invoke_all(event, waiter) };
    }
}

/// Runs what is queued on this thread, unless a frame further out will.
pub(super) fn run_deferred() {
    // An ending thread has nothing queued.
    let _ = TRAMPOLINE.try_with(|here| here.nested(|| ()));
}

/// Calls `f` one level deeper; true if it ran.
pub(super) fn run_nested(f: impl FnOnce()) -> Result<(), ()> {
    let mut f = Some(f);
    let ran = TRAMPOLINE.try_with(|here| {
        if here.depth.get() < MAX_INLINE_DEPTH
            && let Some(f) = f.take()
        {
            here.nested(f);
        }
    });
    match (ran, f) {
        (Err(_), Some(f)) => {
            f();
            Ok(())
        }
        (_, None) => Ok(()),
        (Ok(()), Some(_)) => Err(()),
    }
}

impl Trampoline {
    /// Calls `f` one level deeper, then, if this was the outermost level, runs what was queued meanwhile.
    fn nested(&self, f: impl FnOnce()) {
        let depth = self.depth.get();
        self.depth.set(depth + 1);
        f();
        if depth == 0 {
            while let Some(Deferred { event, oldest }) = self.pop() {
                // SAFETY: the queue owned the list and keeps its event, which was terminal when it was queued.
                unsafe { invoke_all(event.as_raw(), oldest) };
            }
        }
        self.depth.set(depth);
    }

    /// The borrow ends before anybody's code runs.
    fn pop(&self) -> Option<Deferred> {
        self.queue.borrow_mut().pop_front()
    }
}

/// # Safety
/// As [`run`].
unsafe fn invoke_all(event: *mut EventHeader, mut oldest: *mut Waiter) {
    while !oldest.is_null() {
        let waiter = oldest;
        // SAFETY: a node of the caller's list that is not invoked yet; invoking it gives it away, so `next` is read
        // first.
        unsafe {
            oldest = (*waiter).next;
            ((*waiter).invoke)(waiter, event);
        }
    }
}

/// A Rust closure as a waiter.
#[repr(C)]
pub(super) struct ClosureWaiter<F> {
    waiter: Waiter,
    closure: F,
}

impl<F: FnOnce(&Status)> ClosureWaiter<F> {
    pub(super) fn boxed(closure: F) -> *mut Waiter {
        let waiter = Waiter { next: ptr::null_mut(), invoke: Self::invoke };
        Box::into_raw(Box::new(Self { waiter, closure })).cast()
    }

    unsafe extern "C" fn invoke(waiter: *mut Waiter, event: *const EventHeader) {
        // SAFETY: `waiter` is the first field of a Self that boxed() leaked, and it is invoked once.
        let node = unsafe { Box::from_raw(waiter.cast::<Self>()) };
        // SAFETY: null or alive and terminal during this call, says whoever runs waiters.
        let error = unsafe { event.as_ref() }.map_or(Status::OK, EventHeader::error);
        call(node.closure, &error);
    }
}

/// Calls a waiter; a panic is reported by the panic hook and in the trace, and goes no further.
pub(super) fn call(waiter: impl FnOnce(&Status), status: &Status) {
    if catch_unwind(AssertUnwindSafe(|| waiter(status))).is_err() {
        tracing::error!(target: "purlin", "a waiter panicked");
    }
}
