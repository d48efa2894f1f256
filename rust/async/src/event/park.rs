//! Blocking a thread until an event is terminal, without a node in its list: a timed wait leaves nothing behind.
//!
//! Sleepers share a few buckets, chosen by the event's address. A sleeper announces itself in the event's word under
//! its bucket's lock and then waits on the bucket's condition; a completion that finds the announcement passes through
//! the same lock before it notifies, so it happens either before the announcement (which then fails) or after the
//! sleeper sleeps. Events that share a bucket wake each other's sleepers, which look again.
//!
//! The bucket also knows its sleepers (`sleepers.rs`). A thread may have a [`BlockingHook`], which decides what happens
//! instead of sleeping.

use std::cell::{Cell, RefCell};
use std::ptr;
use std::time::{Duration, Instant};

#[cfg(not(purlin_model))]
use super::Event;
use super::abi::{EventCell, EventHeader};
#[cfg(not(purlin_model))]
use super::sleepers::Sleeper;
use super::sleepers::Sleepers;
use super::{lent, owing};
use purlin_base::label::Label;
use purlin_base::status::{Error, without_place};
use purlin_base::sync::atomic::AtomicBool;
use purlin_base::sync::atomic::Ordering::Relaxed;
use purlin_base::sync::{Condvar, Mutex, hint, per_thread};

const BUCKETS: usize = 64;
/// Looks before a thread goes to sleep; about a microsecond, less than the price of sleeping.
const SPINS: u32 = if cfg!(purlin_model) { 0 } else { 100 };

struct Bucket {
    sleepers: Mutex<Sleepers>,
    woken: Condvar,
}

#[cfg(not(purlin_model))]
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

/// How a wait ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    /// The event is terminal.
    Over,
    /// The time is up.
    Late,
    /// The pool that stands in for this thread cannot go on, or a watchdog has seen that this never ends; and says why.
    GivenUp(Error),
}

impl From<bool> for Waited {
    fn from(over: bool) -> Self {
        if over { Self::Over } else { Self::Late }
    }
}

/// When a wait may end before its event is terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// At a time.
    Until(Duration),
    /// When nothing can go on otherwise.
    UntilGivenUp,
    /// Never: memory or a stack is lent until the event.
    Endless,
}

/// What a thread that is about to block does instead, if it has something better to do than to sleep: the threads of a
/// pool work meanwhile. Answers as [`wait`] does.
pub(crate) type BlockingHook = fn(&Blocked<'_>) -> Waited;

per_thread!(static BLOCKING_HOOK: Cell<Option<BlockingHook>> = Cell::new(None));

/// Installs the hook of this thread.
pub(crate) fn set_blocking_hook(hook: Option<BlockingHook>) {
    BLOCKING_HOOK.with(|cell| cell.set(hook));
}

/// Calls `wait`, which only sleeps: no task runs on top of it. For waits of callers that ask for none, until other
/// threads that run already and wait for nothing.
pub(crate) fn sleeping_only<R>(wait: impl FnOnce() -> R) -> R {
    let hook = BLOCKING_HOOK.try_with(Cell::take).ok().flatten();
    let result = wait();
    if hook.is_some() {
        set_blocking_hook(hook);
    }
    result
}

/// Whether this thread has one.
pub(crate) fn has_blocking_hook() -> bool {
    BLOCKING_HOOK.with(Cell::get).is_some()
}

/// A wait that has begun.
pub(crate) struct Blocked<'a> {
    event: &'a EventHeader,
    deadline: Option<Instant>,
    may_be_given_up: bool,
    /// Read by the sleeper under its bucket's lock, through which [`give_up`](Self::give_up) passes before it wakes it.
    given_up: AtomicBool,
    /// Why a watchdog has ended it; this thread's alone.
    ended: RefCell<Option<Error>>,
    /// The address of the pool whose thread this is, for reports; 0 without one.
    pool: Cell<usize>,
}

impl Blocked<'_> {
    /// True if [`give_up`](Self::give_up) may end it, unless it [`lasts`](Self::lasts).
    pub(crate) fn may_be_given_up(&self) -> bool {
        self.may_be_given_up
    }

    /// Says that this is a thread of the pool at that address.
    pub(crate) fn in_pool(&self, address: usize) {
        self.pool.set(address);
    }

    /// True if it may not be given up as things are: something may be lent until its event.
    pub(crate) fn lasts(&self) -> bool {
        !self.may_be_given_up || lent::is_lent_until(self.event)
    }

    /// Ends a wait of another thread before its event is terminal; [`sleep`](Self::sleep) answers false there.
    pub(crate) fn give_up(&self) {
        self.given_up.store(true, Relaxed);
        wake(self.event);
    }

    /// True after [`give_up`](Self::give_up).
    pub(crate) fn is_given_up(&self) -> bool {
        self.given_up.load(Relaxed)
    }

    /// True if this is the wait at that address.
    pub(crate) fn is_at(&self, address: *const Blocked<'static>) -> bool {
        ptr::addr_eq(ptr::from_ref(self), address)
    }

    /// The event's name, for errors.
    pub(crate) fn label(&self) -> Label {
        // SAFETY: headers are the first field of cells (`Event::cell`), and this one is alive.
        unsafe { (*ptr::from_ref(self.event).cast::<EventCell>()).label() }
    }

    /// True if the event is terminal, or a watchdog has ended the wait.
    pub(crate) fn is_over(&self) -> bool {
        self.event.is_terminal() || self.ended.borrow().is_some()
    }

    /// True if the wait ends at a deadline.
    pub(crate) fn is_timed(&self) -> bool {
        self.deadline.is_some()
    }

    /// True if that has passed.
    pub(crate) fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Sleeps until this is over (true), or the time is up or this is given up (false).
    pub(crate) fn sleep(&self) -> bool {
        self.sleep_until(self.deadline)
    }

    /// As [`sleep`](Self::sleep), for `nap` at most.
    pub(crate) fn sleep_for(&self, nap: Duration) -> bool {
        let nap = Instant::now() + nap;
        self.sleep_until(Some(self.deadline.map_or(nap, |deadline| deadline.min(nap))))
    }

    fn sleep_until(&self, deadline: Option<Instant>) -> bool {
        let (event, bucket) = (self.event, bucket(self.event));
        let me = Sleepers::describe_this_thread(event, self.may_be_given_up, self.pool.get());
        let mut guard = bucket.sleepers.lock();
        let key = guard.enter(me);
        let over = loop {
            if !event.announce_parked() {
                break true;
            }
            if self.may_be_given_up && self.is_given_up() {
                break false;
            }
            if let Some(why) = guard.take_end(key) {
                *self.ended.borrow_mut() = Some(why);
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
}

/// Waits until `event` is terminal, or as long as `patience` says.
pub(super) fn wait(event: &EventHeader, patience: Patience) -> Waited {
    for _ in 0..SPINS {
        if event.is_terminal() {
            return Waited::Over;
        }
        hint::spin_loop();
    }
    let deadline = match patience {
        // A deadline beyond the clock's end is none.
        Patience::Until(timeout) => Instant::now().checked_add(timeout),
        _ => None,
    };
    if patience != Patience::Endless
        && let Some(why) = owing::why_never(event, patience == Patience::UntilGivenUp)
    {
        return Waited::GivenUp(why);
    }
    let may_be_given_up = patience == Patience::UntilGivenUp;
    let (given_up, ended, pool) = (AtomicBool::new(false), RefCell::new(None), Cell::new(0));
    let blocked = Blocked { event, deadline, may_be_given_up, given_up, ended, pool };
    let waited = match BLOCKING_HOOK.try_with(Cell::get) {
        // What the thread does meanwhile is not for the call that waits.
        Ok(Some(hook)) => without_place(|| hook(&blocked)),
        _ => blocked.sleep().into(),
    };
    match blocked.ended.into_inner().filter(|_| !event.is_terminal()) {
        Some(why) => Waited::GivenUp(why),
        None => waited,
    }
}

/// All sleeping threads, for stall reports.
#[cfg(not(purlin_model))]
pub(crate) fn sleepers() -> Vec<Sleeper> {
    TABLE.iter().flat_map(|bucket| bucket.sleepers.lock().all()).collect()
}

/// A reference to an event on which a thread sleeps, by the event's address; `None` if no thread does any more.
#[cfg(not(purlin_model))]
pub(crate) fn slept_on(event: usize) -> Option<Event> {
    TABLE.iter().find_map(|bucket| {
        let sleepers = bucket.sleepers.lock();
        // SAFETY: a sleeper holds a reference, and cannot leave while we hold the lock.
        sleepers.on(event).map(|header| unsafe { Event::from_borrowed_raw(header) })
    })
}

/// Ends the wait of the thread that runs `task` and sleeps on the event at that address, before the event is terminal:
/// it answers `why`. False if there is none, or it is one of the library's own.
#[cfg(not(purlin_model))]
pub(crate) fn end_wait(event: usize, task: usize, why: &Error) -> bool {
    TABLE.iter().any(|bucket| {
        let ended = bucket.sleepers.lock().end(event, task, why);
        if ended {
            bucket.woken.notify_all();
        }
        ended
    })
}

/// Wakes the threads that sleep until `event` is terminal, which it is.
pub(super) fn wake(event: &EventHeader) {
    let bucket = bucket(event);
    drop(bucket.sleepers.lock());
    bucket.woken.notify_all();
}
