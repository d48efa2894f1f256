//! What completes a pending event, as far as its maker has said: one word of the cell, and chains of them.
//!
//! 1. A debt is written into a new cell by its maker, or later by a compare-and-swap that replaces nothing but another
//!    debt: never the error of an event that has failed meanwhile.
//! 2. The code that notes that an event waits for another one completes it, or takes the debt back, in a waiter of that
//!    other one, or holds a reference to it. So as long as an event is pending and notes that debt, the other's cell is
//!    not freed.
//! 3. Hence chains of debts may be followed from an event that is alive. What was read on the way may have been the
//!    cell of an unrelated event by then, which the slab keeps readable (large ones are looked up); it was none if
//!    every link still stands afterwards, looked at from the far end to the near one.
//! 4. An event that is waited for is marked. A forward notes its debt, marks, passes a fence and then looks whether it
//!    was itself marked; if so, it follows the chain. Of threads that close a cycle together, the one whose fence is
//!    last sees the debts of all.

use std::collections::HashSet;
use std::ptr;

use super::abi::{
    DEBT_EVENT, DEBT_FAR, DEBT_KIND, DEBT_MASK, DEBT_SEVERAL, DEBT_TASK, EventCell, EventHeader, FLAG_FAR,
    FLAG_FOLLOWED, TERMINAL_BIT,
};
use super::{describe, several};
use purlin_base::slab;
use purlin_base::status::{Error, StatusCode};
use purlin_base::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use purlin_base::sync::atomic::fence;

/// How many events of a cycle a message names.
const NAMED: usize = 8;

/// Where the cell of an event is that is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) address: usize,
    pub(super) is_far: bool,
}

/// A pending event, as it was a moment ago.
#[derive(Clone, Copy)]
pub(super) struct Seen {
    pub(super) debt: usize,
    pub(super) flags: u16,
}

/// An event that a chain of debts has led to.
pub(super) struct Node {
    pub(super) link: Link,
    pub(super) seen: Seen,
    /// The index of the event that waits for it; none for the first.
    pub(super) waiter: Option<usize>,
}

impl Link {
    pub(super) fn of(debt: usize) -> Self {
        Self { address: debt & !DEBT_MASK, is_far: debt & DEBT_FAR != 0 }
    }
}

impl Seen {
    pub(super) fn of(event: &EventHeader) -> Option<Self> {
        let is_pending = event.word.load(Acquire) & TERMINAL_BIT == 0;
        is_pending.then(|| Self { debt: event.error.load(Acquire).addr(), flags: event.flags.load(Relaxed) })
    }

    /// The number of the task that completes it.
    pub(super) fn task(self) -> Option<usize> {
        (self.debt & DEBT_KIND == DEBT_TASK).then_some(self.debt & !DEBT_MASK)
    }

    /// The promise's owner completes it, for all that is known.
    pub(super) fn is_owed_by_a_promise(self) -> bool {
        self.debt & DEBT_KIND == 0
    }
}

/// The debt of an event that waits for `source`, which is marked.
///
/// # Safety
/// `source` is alive.
#[inline]
pub(super) unsafe fn to(source: *mut EventHeader) -> usize {
    // SAFETY: alive.
    let flags = unsafe { &(*source).flags };
    let before = flags.load(Relaxed);
    if before & FLAG_FOLLOWED == 0 {
        flags.fetch_or(FLAG_FOLLOWED, Relaxed);
    }
    source.expose_provenance() | usize::from(before & FLAG_FAR) | DEBT_EVENT
}

/// Notes a debt of an event that others may know.
pub(super) fn note(event: &EventHeader, debt: usize) {
    let debt = ptr::without_provenance_mut(debt);
    let mut known = event.error.load(Relaxed);
    while known.is_null() || known.addr() & DEBT_KIND != 0 {
        match event.error.compare_exchange_weak(known, debt, Relaxed, Relaxed) {
            Ok(_) => return,
            Err(now) => known = now,
        }
    }
}

/// Notes that `event` waits for `source`.
///
/// # Errors
/// Internal, naming the cycle, if `source` waits for `event`.
///
/// # Safety
/// Both are alive.
pub(super) unsafe fn follow(event: *mut EventHeader, source: *mut EventHeader) -> Result<(), Error> {
    // SAFETY: alive.
    let target = unsafe {
        note(&*event, to(source));
        &*event
    };
    fence(SeqCst);
    if target.flags.load(Relaxed) & FLAG_FOLLOWED == 0 {
        return Ok(());
    }
    // SAFETY: alive.
    unsafe { closes_cycle(event, source) }
}

/// # Errors
/// As [`follow`].
///
/// # Safety
/// As [`follow`].
#[cold]
unsafe fn closes_cycle(event: *mut EventHeader, source: *mut EventHeader) -> Result<(), Error> {
    // SAFETY: alive.
    if event != source && !unsafe { may_reach(&*source, event.addr()) } {
        return Ok(());
    }
    // SAFETY: alive.
    let Some(chain) = chain(unsafe { &*source }, event.addr()) else { return Ok(()) };
    // SAFETY: alive, and all events are EventCells.
    let cell = unsafe { &*event.cast::<EventCell>() };
    // As the report says it: each follows the next, and the last the first.
    let mut names: Vec<_> = std::iter::once(describe_with_place(cell)).chain(chain.into_iter().map(name)).collect();
    if names.len() > NAMED + 1 {
        let left_out = names.len() - NAMED - 1;
        names.splice(NAMED / 2..NAMED / 2 + left_out, [format!("{left_out} others")]);
    }
    let message = format!("{} would wait for itself: {}", describe(cell), names.join(" follows "));
    Err(Error::with_location(StatusCode::Internal, message, cell.location()))
}

/// Whether a chain of debts leads from `source` to `target`. Where several are owed, perhaps.
fn may_reach(source: &EventHeader, target: usize) -> bool {
    let mut seen = Seen::of(source);
    // Brent's: a cycle that the chain leads into, and that does not contain the start, is not gone round for ever.
    let (mut stone, mut steps, mut limit) = (0, 0_usize, 2_usize);
    while let Some(Seen { debt, .. }) = seen {
        match debt & DEBT_KIND {
            DEBT_EVENT => {}
            DEBT_SEVERAL => return true,
            _ => return false,
        }
        let link = Link::of(debt);
        if link.address == target {
            return true;
        }
        if link.address == stone {
            return false;
        }
        steps += 1;
        if steps == limit {
            (stone, steps, limit) = (link.address, 0, limit * 2);
        }
        seen = look(link);
    }
    false
}

/// The way from `source`, the first, to an event that is a `target`, the last: what [`explore`] found, if the last
/// stands. Nothing, if there is none.
pub(super) fn reach(source: &EventHeader, target: impl Fn(&Node) -> bool) -> Vec<Node> {
    // SAFETY: alive, because borrowed.
    let mut nodes = unsafe { explore(ptr::from_ref(source).cast_mut(), &target) };
    // SAFETY: the first of the nodes is the source, which is alive.
    if !nodes.last().is_some_and(&target) || !unsafe { stands(&nodes, nodes.len() - 1) } {
        nodes.clear();
    }
    nodes
}

/// The chain of debts from `source`, the first, to `target`, the last, if there is one.
fn chain(source: &EventHeader, target: usize) -> Option<Vec<Link>> {
    let nodes = reach(source, |node| node.link.address == target);
    let mut chain: Vec<_> = steps(&nodes, nodes.len().checked_sub(1)?).map(|index| nodes[index].link).collect();
    chain.reverse();
    Some(chain)
}

/// The pending events that `source` waits for, itself the first, up to the first that is `last`.
///
/// # Safety
/// `source` is alive.
pub(super) unsafe fn explore(source: *mut EventHeader, last: impl Fn(&Node) -> bool) -> Vec<Node> {
    let link = Link { address: source.expose_provenance(), is_far: false };
    // SAFETY: alive.
    let Some(seen) = (unsafe { Seen::of(&*source) }) else { return Vec::new() };
    let mut nodes = vec![Node { link, seen, waiter: None }];
    let mut known = HashSet::from([link.address]);
    let mut next = 0;
    while next < nodes.len() && !last(&nodes[next]) {
        for link in links(nodes[next].link.address, nodes[next].seen.debt) {
            if known.insert(link.address)
                && let Some(seen) = look(link)
            {
                nodes.push(Node { link, seen, waiter: Some(next) });
            }
        }
        next += 1;
    }
    nodes.truncate(next + 1);
    nodes
}

/// Whether every link from the first node to that one stands. If so, that one was the same event all the time.
///
/// # Safety
/// The first node is alive.
pub(super) unsafe fn stands(nodes: &[Node], index: usize) -> bool {
    steps(nodes, index).all(|index| {
        let Some(waiter) = nodes[index].waiter else { return true };
        let by = nodes[waiter].link;
        let seen = match nodes[waiter].waiter {
            Some(_) => look(by),
            // SAFETY: alive; it may be in memory that the slab does not know.
            None => unsafe { Seen::of(&*ptr::with_exposed_provenance::<EventHeader>(by.address)) },
        };
        seen.is_some_and(|seen| links(by.address, seen.debt).contains(&nodes[index].link))
    })
}

/// From a node to the first.
fn steps(nodes: &[Node], index: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(index), |&index| nodes[index].waiter)
}

/// What the event at `address`, with that debt, waits for.
pub(super) fn links(address: usize, debt: usize) -> Vec<Link> {
    match debt & DEBT_KIND {
        DEBT_EVENT => vec![Link::of(debt)],
        DEBT_SEVERAL => several::of(address).into_iter().map(Link::of).collect(),
        _ => Vec::new(),
    }
}

pub(super) fn look(link: Link) -> Option<Seen> {
    with_cell(link, |cell| Seen::of(&cell.header)).flatten()
}

/// False if an event of the slab is terminal; takes no lock.
#[cfg(not(purlin_model))]
pub(super) fn may_be_pending(link: Link) -> bool {
    link.is_far || look(link).is_some()
}

/// Calls `f` with the cell there, which may be another one by now; `None` if its memory has gone.
pub(super) fn with_cell<R>(link: Link, f: impl FnOnce(&EventCell) -> R) -> Option<R> {
    // SAFETY: a cell, if not that of the same event; all that is read of it is atomic.
    slab::with_cell(link.address, link.is_far, |cell| f(unsafe { &*cell.cast::<EventCell>() }))
}

fn name(link: Link) -> String {
    with_cell(link, describe_with_place).unwrap_or_else(|| "an event that has gone".to_owned())
}

fn describe_with_place(cell: &EventCell) -> String {
    format!("{} (made at {})", describe(cell), cell.location())
}
