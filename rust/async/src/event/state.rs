//! The state machine of an event: one atomic word, and the threads that may move it.
//!
//! ```text
//!            try_ready                                 bits 0-1: state
//!  PENDING ------------------------> READY             bit 2:    a thread is parked (park.rs)
//!     |                                                bits 3..: newest waiter, a list through Waiter::next
//!     | try_claim               publish_error
//!     '-------------> CLAIMED ----------------> ERROR
//!                        |      publish_ready
//!                        '-------------------> READY
//! ```
//!
//! 1. The thread that moves the state out of PENDING has won: no other thread will change the state, and the attempts
//!    of all others are refused.
//! 2. Only the winner of CLAIMED writes `error` or the payload, and only between its two steps.
//! 3. Waiters are pushed by compare-and-swap while the state is PENDING or CLAIMED; the step into a terminal state
//!    takes the whole list, so that each waiter has exactly one owner. Afterwards the list is empty for ever.
//! 4. The step into a terminal state is a release: it publishes `error`, the payload and all that its thread did
//!    before. It is also an acquire, which pairs with the release of each push: the nodes are readable.
//! 5. Terminal states are read with acquire, by `IsReady` in C++ too.
//! 6. References are counted as in `Arc`: an increment is relaxed because its maker holds one already; a decrement is a
//!    release, and the thread that was last acquires all of them before it frees. A thread that sees a count of one
//!    holds the only reference, so no other thread can add one: it frees without a decrement. At [`REFS_SATURATED`] the
//!    count sticks.
//! 7. Before the event is shared, its maker may write into `error` what the event waits for; rule 2's winner overwrites
//!    it.

use std::ptr;

use super::abi::{
    EventHeader, PARKED_BIT, REFS_SATURATED, STATE_CLAIMED, STATE_ERROR, STATE_MASK, STATE_PENDING, STATE_READY,
    TERMINAL_BIT, WAITER_MASK, Waiter,
};
use purlin_base::status::Error;
use purlin_base::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// What the thread that completed an event now owes: run these waiters, wake the threads that are parked.
#[must_use = "these waiters would be forgotten"]
pub(super) struct Completion {
    /// The newest waiter first.
    pub(super) newest: *mut Waiter,
    pub(super) wake: bool,
}

impl Completion {
    /// What the word held before the step into a terminal state.
    pub(super) fn of(word: usize) -> Self {
        Self { newest: ptr::with_exposed_provenance_mut(word & WAITER_MASK), wake: word & PARKED_BIT != 0 }
    }
}

impl EventHeader {
    /// True in READY and ERROR.
    #[inline]
    pub(super) fn is_terminal(&self) -> bool {
        self.word.load(Acquire) & TERMINAL_BIT != 0
    }

    /// PENDING, CLAIMED, READY or ERROR.
    #[inline]
    pub(super) fn state(&self) -> usize {
        self.word.load(Acquire) & STATE_MASK
    }

    /// A waiter is attached or a thread is parked.
    pub(super) fn has_waiters(&self) -> bool {
        let word = self.word.load(Acquire);
        word & TERMINAL_BIT == 0 && word & (WAITER_MASK | PARKED_BIT) != 0
    }

    pub(super) fn ref_count(&self) -> u32 {
        self.refs.load(Acquire)
    }

    /// The error in state ERROR.
    #[inline]
    pub(super) fn error(&self) -> Option<Error> {
        if self.state() != STATE_ERROR {
            return None;
        }
        // Relaxed: the acquire in state() saw it written.
        // SAFETY: rule 2: in ERROR it is an error that the event owns; no thread writes it any more.
        unsafe { Error::from_borrowed_raw(self.error.load(Relaxed).cast()) }
    }

    /// A first guess for a compare-and-swap. loom remembers one access per object, so a load here would hide from it
    /// that the swap races with other loads.
    fn guess(&self) -> usize {
        if cfg!(loom) { STATE_PENDING } else { self.word.load(Relaxed) }
    }

    /// PENDING to READY; `None` if another thread was first.
    #[inline]
    pub(super) fn try_ready(&self) -> Option<Completion> {
        let mut word = self.guess();
        while word & STATE_MASK == STATE_PENDING {
            match self.word.compare_exchange_weak(word, STATE_READY, AcqRel, Relaxed) {
                Ok(before) => return Some(Completion::of(before)),
                Err(now) => word = now,
            }
        }
        None
    }

    /// PENDING to ERROR; gives `error` back if another thread was first.
    pub(super) fn try_error(&self, error: Error) -> Result<Completion, Error> {
        if self.try_claim() { Ok(self.publish_error(error)) } else { Err(error) }
    }

    /// PENDING to CLAIMED; false if another thread was first. True: the caller owes a publish.
    #[inline]
    #[must_use]
    pub(super) fn try_claim(&self) -> bool {
        let mut word = self.guess();
        while word & STATE_MASK == STATE_PENDING {
            // Relaxed: nothing is published yet. The list stays where it is.
            match self.word.compare_exchange_weak(word, word | STATE_CLAIMED, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// CLAIMED to READY, by the winner of CLAIMED: publishes the payload.
    pub(super) fn publish_ready(&self) -> Completion {
        Completion::of(self.word.swap(STATE_READY, AcqRel))
    }

    /// CLAIMED to ERROR, by the winner of CLAIMED.
    pub(super) fn publish_error(&self, error: Error) -> Completion {
        // Relaxed: rule 2: we won CLAIMED, so no other thread writes it, and the swap publishes it.
        self.error.store(error.into_raw().cast_mut().cast(), Relaxed);
        Completion::of(self.word.swap(STATE_ERROR, AcqRel))
    }

    /// Pushes `waiter`; false, and the waiter is still the caller's, if the event is terminal.
    ///
    /// # Safety
    /// `waiter` is the caller's own, aligned to 8 and stays valid until it is invoked.
    #[inline]
    #[must_use]
    pub(super) unsafe fn push(&self, waiter: *mut Waiter) -> bool {
        let address = waiter.expose_provenance();
        debug_assert_eq!(address & !WAITER_MASK, 0, "a waiter is aligned to 8");
        let mut word = self.word.load(Acquire);
        while word & TERMINAL_BIT == 0 {
            // SAFETY: the node is the caller's until the exchange below succeeds.
            unsafe { (*waiter).next = ptr::with_exposed_provenance_mut(word & WAITER_MASK) };
            // Release publishes the node to the completion's acquire; acquire on failure sees the completion.
            match self.word.compare_exchange_weak(word, address | (word & !WAITER_MASK), Release, Acquire) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// Announces that a thread is about to sleep; false if the event is terminal. The sleeper holds its bucket's lock,
    /// so that a completion which sees the bit cannot wake it too early.
    #[must_use]
    pub(super) fn announce_parked(&self) -> bool {
        let mut word = self.word.load(Acquire);
        while word & TERMINAL_BIT == 0 {
            if word & PARKED_BIT != 0 {
                return true;
            }
            match self.word.compare_exchange_weak(word, word | PARKED_BIT, Relaxed, Acquire) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// One more reference.
    #[inline]
    pub(super) fn retain(&self) {
        if self.refs.fetch_add(1, Relaxed) >= REFS_SATURATED {
            self.refs.store(REFS_SATURATED, Relaxed);
        }
    }

    /// One reference less; true if it was the last and the caller must free the event.
    #[inline]
    #[must_use]
    pub(super) fn release(&self) -> bool {
        // Not under loom, for the reason in guess(); the two have a model of their own there.
        (!cfg!(loom) && self.is_only_reference()) || self.drop_one_reference()
    }

    /// True if the caller's reference is the only one: no other thread can add one, so it needs no decrement.
    #[inline]
    pub(super) fn is_only_reference(&self) -> bool {
        // Acquire as below.
        self.refs.load(Acquire) == 1
    }

    /// The decrement; true if it was the last reference.
    #[inline]
    pub(super) fn drop_one_reference(&self) -> bool {
        let before = self.refs.fetch_sub(1, Release);
        if before >= REFS_SATURATED {
            self.refs.store(REFS_SATURATED, Relaxed);
        } else if before == 1 {
            // A load and not a fence: ThreadSanitizer follows loads only.
            let _ = self.refs.load(Acquire);
            return true;
        }
        false
    }
}
