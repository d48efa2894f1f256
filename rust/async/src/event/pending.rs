//! All pending events of the process, read while they are made, completed and freed by others: a stall report must not
//! need the cooperation of threads that are stuck. What is read is atomic, and read again to see that it still holds.

use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::time::Duration;

use super::abi::{
    DEBT_EVENT, DEBT_KIND, DEBT_MASK, DEBT_SEVERAL, DEBT_TASK, EventCell, FLAG_KEEPS_MEMORY, FLAG_LENDS_THROUGHOUT,
    FLAG_POISONABLE, PARKED_BIT, TERMINAL_BIT, WAITER_MASK,
};
use super::debt::{self, Link};
use super::several;
use purlin_base::clock;
use purlin_base::label::Label;
use purlin_base::slab;
use purlin_base::status::SourceLocation;

/// What completes an event, as far as its maker said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Debt {
    /// The holder of the promise.
    Promise,
    /// The event at this address.
    Event(usize),
    /// The task of this number.
    Task(usize),
    /// The events at these addresses.
    Several(Vec<usize>),
}

impl Debt {
    /// The events that it waits for.
    pub(crate) fn events(&self) -> &[usize] {
        match self {
            Self::Event(event) => std::slice::from_ref(event),
            Self::Several(events) => events,
            Self::Promise | Self::Task(_) => &[],
        }
    }
}

/// An event that was pending when it was looked at.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub(crate) address: usize,
    pub(crate) label: Label,
    pub(crate) location: SourceLocation,
    /// When it was made, by the coarse clock.
    pub(crate) born_ms: u32,
    /// At most this old; see `base/src/clock.rs`.
    pub(crate) age: Duration,
    /// The number of its user context; 0 for none.
    pub(crate) context: u64,
    pub(crate) debt: Debt,
    /// A waiter is attached.
    pub(crate) has_waiters: bool,
    /// A promise of the user's owes it.
    pub(crate) is_the_users: bool,
    /// Memory is kept until it.
    pub(crate) keeps_memory: bool,
}

/// Pending events that are at least `older_than` old, oldest first.
pub(crate) fn pending(older_than: Duration) -> Vec<Pending> {
    let now_ms = clock::touch();
    let mut found = Vec::new();
    // Events by their index, and what they are known to have waited for: looked at when the slab's lock is free again.
    let mut awaiting = Vec::new();
    slab::for_each_cell(|cell| {
        // SAFETY: cells of the slab stay cells, and each field that is read is atomic and was written before the word
        // first said pending; large cells are not freed while they are visited.
        let cell = unsafe { &*cell.cast::<EventCell>() };
        if let Some((event, awaited)) = look(cell, now_ms)
            && event.age >= older_than
        {
            if !awaited.is_empty() {
                awaiting.push((found.len(), awaited));
            }
            found.push(event);
        }
    });
    for (index, mut awaited) in awaiting {
        awaited.retain(|&source| debt::may_be_pending(source));
        if !awaited.is_empty() {
            found[index].debt = Debt::Several(awaited.into_iter().map(|source| source.address).collect());
        }
    }
    found.sort_by_key(|event| std::cmp::Reverse(event.age));
    found
}

/// The event, if it is pending, and what it waits for, where no code strikes out what has happened.
fn look(cell: &EventCell, now_ms: u32) -> Option<(Pending, Vec<Link>)> {
    // Acquire: pairs with the release of the thread that wrote the cell and made it pending.
    let word = cell.header.word.load(Acquire);
    if word & TERMINAL_BIT != 0 {
        return None;
    }
    let debt = cell.header.error.load(Relaxed).addr();
    let flags = cell.header.flags.load(Relaxed);
    let born_ms = cell.born_ms.load(Relaxed);
    let age_ms = now_ms.wrapping_sub(born_ms);
    let mut awaited = Vec::new();
    let event = Pending {
        address: ptr::from_ref(cell).addr(),
        label: cell.label(),
        location: cell.location(),
        born_ms,
        // An event that is younger than our look at the clock.
        age: Duration::from_millis(if age_ms > u32::MAX / 2 { 0 } else { u64::from(age_ms) }),
        context: cell.context.load(Relaxed),
        debt: match debt & DEBT_KIND {
            DEBT_EVENT => Debt::Event(debt & !DEBT_MASK),
            DEBT_TASK => Debt::Task(debt & !DEBT_MASK),
            DEBT_SEVERAL => {
                let sources = several::of(ptr::from_ref(cell).addr());
                if flags & FLAG_LENDS_THROUGHOUT != 0 {
                    awaited = sources.into_iter().map(Link::of).collect();
                    Debt::Promise
                } else {
                    Debt::Several(sources.into_iter().map(|debt| debt & !DEBT_MASK).collect())
                }
            }
            _ => Debt::Promise,
        },
        has_waiters: word & WAITER_MASK != 0,
        is_the_users: flags & FLAG_POISONABLE != 0,
        keeps_memory: flags & FLAG_KEEPS_MEMORY != 0,
    };
    // The cell may have become another event meanwhile: then at least one of these differs, or nothing that matters.
    let same = cell.header.word.load(Acquire) & !(WAITER_MASK | PARKED_BIT) == word & !(WAITER_MASK | PARKED_BIT)
        && cell.header.error.load(Relaxed).addr() == debt
        && cell.born_ms.load(Relaxed) == born_ms;
    same.then_some((event, awaited))
}
