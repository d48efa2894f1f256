//! What events with several creditors wait for: joins, and what happens later than its [creditors](Awaited). A list by
//! the address of the event that waits, in buckets; its entries are part of the join, and leave the list before that is
//! freed.
//!
//! A creditor that has arrived is struck out by the thread that notes its arrival, in its waiter. So what stands in the
//! list is not freed as long as the event that waits is pending: rule 2 of `debt.rs`.

use std::fmt;
use std::ptr;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Release};

use super::abi::{DEBT_SEVERAL, EventHeader};
use super::{Event, debt};
use purlin_base::sync::Mutex;

const BUCKETS: usize = 256;

/// An entry of the list.
pub(super) struct Several {
    next: *mut Several,
    before: *mut Several,
    /// The address of the event that waits.
    waiter: usize,
    /// The first creditor's debt word, 0 once it has arrived; the others follow at equal distances.
    first: *const AtomicUsize,
    stride_bytes: usize,
    count: usize,
}

struct Bucket(*mut Several);

// SAFETY: the entries are reached under the bucket's lock only.
unsafe impl Send for Bucket {}

static TABLE: [Mutex<Bucket>; BUCKETS] = [const { Mutex::new(Bucket(ptr::null_mut())) }; BUCKETS];

fn bucket(waiter: usize) -> &'static Mutex<Bucket> {
    // As park.rs.
    let hash = (waiter >> 6).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    &TABLE[hash >> (usize::BITS - BUCKETS.ilog2())]
}

impl Several {
    /// `count` creditors of the event at `waiter`; in no list yet.
    pub(super) fn new(waiter: usize, first: *const AtomicUsize, stride_bytes: usize, count: usize) -> Self {
        Self { next: ptr::null_mut(), before: ptr::null_mut(), waiter, first, stride_bytes, count }
    }

    /// Enters the list.
    ///
    /// # Safety
    /// The entry and its creditors stay where they are until [`leave`](Self::leave).
    pub(super) unsafe fn enter(this: *mut Self) {
        // SAFETY: the caller's own; the list's entries are valid until they leave, under this lock.
        unsafe {
            let mut bucket = bucket((*this).waiter).lock();
            (*this).next = bucket.0;
            if !bucket.0.is_null() {
                (*bucket.0).before = this;
            }
            bucket.0 = this;
        }
    }

    /// Leaves it.
    ///
    /// # Safety
    /// It has entered, once.
    pub(super) unsafe fn leave(this: *mut Self) {
        // SAFETY: as in enter().
        unsafe {
            let mut bucket = bucket((*this).waiter).lock();
            let (next, before) = ((*this).next, (*this).before);
            if before.is_null() {
                bucket.0 = next;
            } else {
                (*before).next = next;
            }
            if !next.is_null() {
                (*next).before = before;
            }
        }
    }
}

/// The creditors of an event of C++'s that joins several.
pub struct Creditors {
    entry: Several,
    debts: Box<[AtomicUsize]>,
}

impl fmt::Debug for Creditors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Creditors").finish_non_exhaustive()
    }
}

impl Creditors {
    /// Those of `sources` that are pending, on which `event` waits; `None` if none is.
    ///
    /// # Safety
    /// `event` is alive and new, and pending until this is dropped.
    #[must_use]
    pub unsafe fn of(event: *mut EventHeader, sources: &[Event]) -> Option<Box<Self>> {
        if sources.iter().all(Event::is_ready) {
            return None;
        }
        let debt = |source: &Event| match source.is_ready() {
            true => AtomicUsize::new(0),
            // SAFETY: the sources are alive.
            false => AtomicUsize::new(unsafe { debt::to(source.as_raw()) }),
        };
        let debts: Box<[_]> = sources.iter().map(debt).collect();
        let entry = Several::new(event.addr(), debts.as_ptr(), size_of::<AtomicUsize>(), debts.len());
        let mut this = Box::new(Self { entry, debts });
        // SAFETY: the box and what it has stay until drop(), which leaves the list; the event is alive.
        unsafe {
            Several::enter(&raw mut this.entry);
            debt::note(&*event, DEBT_SEVERAL);
        }
        Some(this)
    }

    /// Strikes a source out, in its waiter.
    pub fn arrived(&self, index: usize) {
        if let Some(debt) = self.debts.get(index) {
            arrived(debt);
        }
    }
}

impl Drop for Creditors {
    fn drop(&mut self) {
        // SAFETY: of() has entered it.
        unsafe { Several::leave(&raw mut self.entry) };
    }
}

/// The creditors of an event whose owner knows by other means when they have happened, and completes the event after
/// that. Nothing is attached to them. They are kept meanwhile, so none of them is struck out.
pub struct Awaited {
    /// Leaves the list before the events may go.
    _creditors: Box<Creditors>,
    sources: Vec<Event>,
}

impl fmt::Debug for Awaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Awaited").finish_non_exhaustive()
    }
}

// SAFETY: the entry is touched under its bucket's lock, and the debts are atomic.
unsafe impl Send for Awaited {}
// SAFETY: as above; a shared reference gives nothing away.
unsafe impl Sync for Awaited {}

impl Awaited {
    /// Those of `sources` that are pending, for which `event` waits; `None` if none is.
    ///
    /// # Safety
    /// As [`Creditors::of`].
    pub(super) unsafe fn of(event: &EventHeader, sources: &[Event]) -> Option<Self> {
        let sources: Vec<_> = sources.iter().filter(|source| !source.is_ready()).cloned().collect();
        // SAFETY: the caller's promise.
        let creditors = unsafe { Creditors::of(ptr::from_ref(event).cast_mut(), &sources) }?;
        Some(Self { _creditors: creditors, sources })
    }

    /// Those that have not happened yet.
    #[must_use]
    pub fn pending(&self) -> Vec<Event> {
        self.sources.iter().filter(|source| !source.is_ready()).cloned().collect()
    }
}

/// Strikes a creditor out. Release, for the load in `of`: a thread that finds it struck out sees what was marked
/// before.
pub(super) fn arrived(creditor: &AtomicUsize) {
    creditor.store(0, Release);
}

/// The debts of the event at `waiter`, to those that have not arrived.
pub(super) fn of(waiter: usize) -> Vec<usize> {
    let bucket = bucket(waiter).lock();
    let mut entry = bucket.0;
    // SAFETY: entries and their creditors are valid while they are in the list, which the lock keeps as it is.
    unsafe {
        while !entry.is_null() && (*entry).waiter != waiter {
            entry = (*entry).next;
        }
        if entry.is_null() {
            return Vec::new();
        }
        let Several { first, stride_bytes, count, .. } = *entry;
        let debts = (0..count).map(|index| (*first.byte_add(index * stride_bytes)).load(Acquire));
        debts.filter(|&debt| debt != 0).collect()
    }
}
