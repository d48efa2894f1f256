//! Blocking a thread until an event is terminal, without a node in its list: a timed wait leaves nothing behind.
//!
//! Sleepers share a few buckets, chosen by the event's address. A sleeper announces itself in the event's word under its
//! bucket's lock and then waits on the bucket's condition; a completion that finds the announcement passes through the
//! same lock before it notifies, so it comes either before the announcement (which then fails) or after the sleeper
//! sleeps. Events that share a bucket wake each other's sleepers, who look again.
//!
//! The bucket also knows who its sleepers are (`sleepers.rs`). A thread may have a [`BlockingHook`], which decides what happens instead of sleeping.

use std::cell::Cell;
use std::ptr;
use std::time::{Duration, Instant};

#[cfg(not(any(loom, shuttle)))]
use super::Event;
use super::abi::EventHeader;
#[cfg(not(any(loom, shuttle)))]
use super::sleepers::Sleeper;
use super::sleepers::Sleepers;
use crate::sync::{Condvar, Mutex, hint, mutation, per_thread};

const BUCKETS: usize = 64;
/// Looks before a thread goes to sleep; about a microsecond, less than the price of sleeping.
const SPINS: u32 = if cfg!(any(loom, shuttle)) { 0 } else { 100 };

struct Bucket {
    sleepers: Mutex<Sleepers>,
    woken: Condvar,
}

#[cfg(not(any(loom, shuttle)))]
static TABLE: [Bucket; BUCKETS] =
    [const { Bucket { sleepers: Mutex::new(Sleepers::new()), woken: Condvar::new() } }; BUCKETS];

#[cfg(shuttle)]
shuttle::lazy_static! {
    static ref TABLE: [Bucket; BUCKETS] = std::array::from_fn(|_| Bucket { sleepers: Mutex::new(Sleepers::new()), woken: Condvar::new() });
}

#[cfg(loom)]
loom::lazy_static! {
    static ref TABLE: [Bucket; BUCKETS] = std::array::from_fn(|_| Bucket { sleepers: Mutex::new(Sleepers::new()), woken: Condvar::new() });
}

fn bucket(event: &EventHeader) -> &'static Bucket {
    // Events are at least 32 bytes apart; the multiplier spreads the rest (Fibonacci hashing).
    let hash = (ptr::from_ref(event).addr() >> 5).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    if cfg!(loom) { &TABLE[0] } else { &TABLE[hash >> (usize::BITS - BUCKETS.ilog2())] }
}

/// What a thread that is about to block does instead, if it has something better to do than to sleep: the threads of a
/// pool work meanwhile. Answers as [`wait`] does.
pub(crate) type BlockingHook = fn(&Blocked<'_>) -> bool;

per_thread!(static BLOCKING_HOOK: Cell<Option<BlockingHook>> = Cell::new(None));

/// Installs the hook of this thread.
pub(crate) fn set_blocking_hook(hook: Option<BlockingHook>) {
    BLOCKING_HOOK.with(|cell| cell.set(hook));
}

/// A wait that has begun.
pub(crate) struct Blocked<'a> {
    event: &'a EventHeader,
    deadline: Option<Instant>,
}

impl Blocked<'_> {
    /// True if the event is terminal.
    pub(crate) fn is_over(&self) -> bool {
        self.event.is_terminal()
    }

    /// True if the wait ends at a deadline.
    pub(crate) fn is_timed(&self) -> bool {
        self.deadline.is_some()
    }

    /// True if that has passed.
    pub(crate) fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Sleeps until the event is terminal (true) or the time is up (false).
    pub(crate) fn sleep(&self) -> bool {
        sleep(self.event, self.deadline)
    }

    /// As [`sleep`](Self::sleep), for `nap` at most.
    pub(crate) fn sleep_for(&self, nap: Duration) -> bool {
        let nap = Instant::now() + nap;
        sleep(self.event, Some(self.deadline.map_or(nap, |deadline| deadline.min(nap))))
    }
}

/// Waits until `event` is terminal (true) or `timeout` has passed (false). `None` waits for ever.
pub(super) fn wait(event: &EventHeader, timeout: Option<Duration>) -> bool {
    for _ in 0..SPINS {
        if event.is_terminal() {
            return true;
        }
        hint::spin_loop();
    }
    // A deadline beyond the clock's end is none.
    let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    match BLOCKING_HOOK.try_with(Cell::get) {
        Ok(Some(hook)) => hook(&Blocked { event, deadline }),
        _ => sleep(event, deadline),
    }
}

fn sleep(event: &EventHeader, deadline: Option<Instant>) -> bool {
    let bucket = bucket(event);
    let me = Sleepers::describe_this_thread(event);
    let mut guard = bucket.sleepers.lock();
    let key = guard.enter(me);
    let over = loop {
        if !event.announce_parked() {
            break true;
        }
        guard = match deadline {
            None => bucket.woken.wait(guard),
            Some(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break event.is_terminal();
                }
                bucket.woken.wait_for(guard, left)
            }
        };
    };
    let _me = guard.leave(key);
    drop(guard);
    over
}

/// Everybody who sleeps, for stall reports.
#[cfg(not(any(loom, shuttle)))]
pub(crate) fn sleepers() -> Vec<Sleeper> {
    TABLE.iter().flat_map(|bucket| bucket.sleepers.lock().all()).collect()
}

/// A reference to an event on which a thread sleeps, by the event's address; `None` if nobody does any more.
#[cfg(not(any(loom, shuttle)))]
pub(crate) fn slept_on(event: usize) -> Option<Event> {
    TABLE.iter().find_map(|bucket| {
        let sleepers = bucket.sleepers.lock();
        // SAFETY: a sleeper holds a reference, and cannot leave while we hold the lock.
        sleepers.on(event).map(|header| unsafe { Event::from_borrowed_raw(header) })
    })
}

/// Wakes those who sleep until `event` is terminal, which it is.
pub(super) fn wake(event: &EventHeader) {
    let bucket = bucket(event);
    if !mutation("event-wake-beside-the-lock") {
        drop(bucket.sleepers.lock());
    }
    bucket.woken.notify_all();
}
