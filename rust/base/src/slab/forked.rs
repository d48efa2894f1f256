//! In a child made by `fork`, no thread completes what was pending: the threads that would have are not there. So every
//! such event of the slab fails, in `fork`, before any code looks; its waiters belong to the parent and are never
//! called, and what they hold stays where it is. Events in their owner's memory are not known here; the clock
//! distinguishes them ([`is_inherited`]).

use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize};

use super::{ERROR_WORD, LINK_OFFSET, TERMINAL_BIT, for_each_cell};
use crate::clock;
use crate::status::{Error, StatusRep};
use crate::sync::in_children;

static IS_CHILD: AtomicBool = AtomicBool::new(false);
/// The time of the fork; nothing that was made after it has this time.
static FORKED_MS: AtomicU32 = AtomicU32::new(0);

/// From now on, in children, as the module says. Costs two stores, once it has been called.
pub(super) fn watch() {
    static CALL: fn() = fail_pending;
    in_children(&CALL);
}

fn fail_pending() {
    FORKED_MS.store(clock::step(), Relaxed);
    IS_CHILD.store(true, Relaxed);
    let failure = Error::failed_precondition(
        "this process was made by fork(), which copies no threads: nobody completes here what was pending then",
    );
    for_each_cell(|cell| {
        // SAFETY: a cell, whose first word is atomic.
        let word = unsafe { &*cell.cast::<AtomicUsize>() };
        if word.load(Relaxed) & TERMINAL_BIT != 0 {
            return;
        }
        // SAFETY: a cell; its error stands there. Its writer is not there, or is this thread further out on its stack,
        // which then overwrites it.
        let error = unsafe { &*cell.byte_add(LINK_OFFSET).cast::<AtomicPtr<StatusRep>>() };
        error.store(failure.clone().into_raw().cast_mut(), Relaxed);
        word.store(ERROR_WORD, Release);
    });
}

/// True in a process that a fork has made.
pub fn is_child() -> bool {
    IS_CHILD.load(Relaxed)
}

/// True for what was made, at `born_ms` of the coarse clock, before this process was made by `fork`. For 24 days: then
/// the clock cannot tell, and this is false.
pub fn is_inherited(born_ms: u32) -> bool {
    let forked_ms = FORKED_MS.load(Relaxed);
    is_child()
        && clock::touch().wrapping_sub(forked_ms).cast_signed() >= 0
        && born_ms.wrapping_sub(forked_ms).cast_signed() <= 0
}
