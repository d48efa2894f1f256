//! Running waiters: first in, first out, each exactly once, under no lock, and never more than [`MAX_INLINE_DEPTH`]
//! deep.
//!
//! A waiter may complete further events, whose waiters run nested on the same stack. Beyond the limit they are queued
//! on the thread and run by its outermost frame, so that a chain of a million links needs no more stack than one of
//! ten.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ptr;

use super::Event;
use super::abi::{EventHeader, Waiter};
use crate::user_context::{self, UserContext, with_user_context};
use purlin_base::panics::reported;
use purlin_base::slab::{self, Class};
use purlin_base::status::Error;
use purlin_base::sync::per_thread;
use purlin_base::thread_state;
use purlin_base::thread_state::ThreadState;

/// How many completions nest on one stack before the next is queued.
pub(super) const MAX_INLINE_DEPTH: u32 = 32;

/// The waiters that wait for this thread's stack to unwind. The depth is in the thread's state, where C++ counts too.
struct Trampoline {
    queue: RefCell<VecDeque<Deferred>>,
}

/// A list of waiters that run once the stack has unwound. Keeps their event alive.
struct Deferred {
    event: Event,
    oldest: *mut Waiter,
}

per_thread!(static TRAMPOLINE: Trampoline = Trampoline { queue: RefCell::new(VecDeque::new()) });

/// Turns the list that `state.rs` took (newest first) into the order in which waiters run.
///
/// # Safety
/// The list is the caller's own.
pub(super) unsafe fn oldest_first(mut newest: *mut Waiter) -> *mut Waiter {
    let mut oldest: *mut Waiter = ptr::null_mut();
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
/// `event` is null (the ready event) or terminal and alive during this call; the list is the caller's own, oldest
/// first.
pub(super) unsafe fn run(event: *mut EventHeader, oldest: *mut Waiter) {
    if oldest.is_null() {
        return;
    }
    if may_nest() {
        // SAFETY: the caller's promises.
        nested(|| unsafe { invoke_all(event, oldest) });
    } else {
        // SAFETY: the caller's promises.
        unsafe { queue(event, oldest) };
    }
}

/// Queues one waiter behind those that wait for this thread's stack to unwind. For C++, which runs waiters too.
///
/// # Safety
/// As [`run`], for a list of one.
pub(super) unsafe fn defer(event: *mut EventHeader, waiter: *mut Waiter) {
    // SAFETY: the waiter is the caller's own; a list of one.
    unsafe {
        (*waiter).next = ptr::null_mut();
        queue(event, waiter);
    }
}

/// # Safety
/// As [`run`].
unsafe fn queue(event: *mut EventHeader, oldest: *mut Waiter) {
    let queued = TRAMPOLINE.try_with(|here| {
        // SAFETY: the caller keeps `event` alive; the clone keeps it alive from now on.
        let event = unsafe { Event::from_borrowed_raw(event) };
        here.queue.borrow_mut().push_back(Deferred { event, oldest });
        thread_state::with_state(|state| state.deferred.set(1));
    });
    if queued.is_err() {
        // The thread is ending and its queue is gone: run without a bound.
        // SAFETY: the caller's promises.
        unsafe { invoke_all(event, oldest) };
    }
}

/// Runs what is queued on this thread, unless a frame further out will.
pub(super) fn run_deferred() {
    nested(|| ());
}

/// Whether waiters may run on this stack, and not only queue.
#[inline]
pub(super) fn may_nest() -> bool {
    thread_state::with_state(|state| state.depth.get() < MAX_INLINE_DEPTH)
}

/// Calls `f` one level deeper; if this was the outermost level, then runs what was queued meanwhile.
#[inline]
pub(super) fn nested(f: impl FnOnce()) {
    thread_state::with_state(|state| {
        let depth = state.depth.get();
        state.depth.set(depth + 1);
        f();
        if depth == 0 && state.deferred.get() != 0 {
            drain(state);
        }
        state.depth.set(depth);
    });
}

/// Runs what is queued, until nothing is.
#[cold]
fn drain(state: &ThreadState) {
    while state.deferred.get() != 0 {
        match TRAMPOLINE.try_with(Trampoline::pop) {
            // SAFETY: the queue owned the list and keeps its event, which was terminal when it was queued.
            Ok(Some(Deferred { event, oldest })) => unsafe { invoke_all(event.as_raw(), oldest) },
            Ok(None) | Err(_) => state.deferred.set(0),
        }
    }
}

impl Trampoline {
    /// The borrow ends before any user code runs.
    fn pop(&self) -> Option<Deferred> {
        self.queue.borrow_mut().pop_front()
    }
}

/// # Safety
/// As [`run`].
unsafe fn invoke_all(event: *mut EventHeader, mut oldest: *mut Waiter) {
    // A waiter runs in the context where it was attached, not in that of the thread that completes the event.
    let _cleared = user_context::cleared();
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
struct ClosureWaiter<F> {
    waiter: Waiter,
    closure: F,
}

impl<F: FnOnce(&Result<(), Error>)> ClosureWaiter<F> {
    /// Small closures live in recycled blocks.
    const IN_A_BLOCK: bool = size_of::<Self>() <= Class::WideNode.block_bytes() && align_of::<Self>() <= 64;
    const CLASS: Class = if size_of::<Self>() <= Class::Node.block_bytes() { Class::Node } else { Class::WideNode };

    #[inline]
    fn allocated(closure: F) -> *mut Waiter {
        let waiter = Waiter { next: ptr::null_mut(), invoke: Self::invoke };
        if !Self::IN_A_BLOCK {
            return Box::into_raw(Box::new(Self { waiter, closure })).cast();
        }
        let node = slab::allocate(Self::CLASS).cast::<Self>();
        // Each field where it belongs: a copy of the whole would stall on the stores that have just made it.
        // SAFETY: a block that is large enough, and ours.
        unsafe {
            (&raw mut (*node).waiter).write(waiter);
            (&raw mut (*node).closure).write(closure);
        }
        node.cast()
    }

    unsafe extern "C" fn invoke(waiter: *mut Waiter, event: *const EventHeader) {
        let node = waiter.cast::<Self>();
        // SAFETY: `waiter` is the first field of what allocated() made, and it is invoked once; so the closure is read
        // once.
        let closure = unsafe {
            if Self::IN_A_BLOCK {
                let closure = (&raw const (*node).closure).read();
                slab::free(Self::CLASS, node.cast());
                closure
            } else {
                Box::from_raw(node).closure
            }
        };
        // SAFETY: null or alive and terminal during this call, as the caller that runs waiters promises.
        let error = unsafe { event.as_ref() }.and_then(EventHeader::error);
        call(closure, &error.map_or(Ok(()), Err));
    }
}

/// A node with `closure`, which will run in the user context that is current here.
#[inline]
pub(super) fn new(closure: impl FnOnce(&Result<(), Error>) + Send + 'static) -> *mut Waiter {
    match UserContext::current() {
        None => ClosureWaiter::allocated(closure),
        Some(context) => ClosureWaiter::allocated(move |outcome: &_| with_user_context(context, || closure(outcome))()),
    }
}

/// Calls a waiter; a panic is reported and swallowed.
#[inline]
pub(super) fn call(waiter: impl FnOnce(&Result<(), Error>), outcome: &Result<(), Error>) {
    reported(|| "a waiter", || waiter(outcome));
}
