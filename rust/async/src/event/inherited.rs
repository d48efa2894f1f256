//! In a child made by `fork`, the events that no thread completes. Events of the slab have failed there
//! (`slab/forked.rs`); one in its owner's memory has not, and a join or a forward that the child makes of it would wait
//! for ever. So before a thread of a child sleeps, it follows the debts of its event, as `debt.rs` says, into owners'
//! memory too.
//!
//! A thread that ends an event that is far and followed passes the lock of `rescue.rs` before it frees the event, after
//! it has completed its followers. So a thread that has that lock and sees that a chain stands may look at the event at
//! its end.

use std::collections::HashSet;
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use super::abi::{EventCell, TERMINAL_BIT};
use super::debt::{self, Link};
use super::{describe, rescue};
use purlin_base::slab;

/// An event that a chain has led to, and the index of the one that waits for it.
type Node = (Link, Option<usize>);

/// The event, in words, that was pending before the fork and that `event` waits for.
pub(super) fn source_of(event: &EventCell) -> Option<String> {
    let _kept = rescue::lock();
    let first = Link { address: ptr::from_ref(event).expose_provenance(), is_far: true };
    let mut nodes: Vec<Node> = vec![(first, None)];
    let mut known = HashSet::from([first.address]);
    let mut next = 0;
    while next < nodes.len() {
        for link in links(nodes[next].0) {
            if !known.insert(link.address) {
                continue;
            }
            nodes.push((link, Some(next)));
            let is_the_owners = link.is_far && debt::with_cell(link, |_| ()).is_none();
            if !is_the_owners {
                continue;
            }
            if !stands(&nodes) {
                nodes.pop();
            } else if let Some(name) = look(link, inherited).flatten() {
                return Some(name);
            }
        }
        next += 1;
    }
    None
}

/// Its name, if no thread completes it.
fn inherited(cell: &EventCell) -> Option<String> {
    let is_pending = cell.header.word.load(Acquire) & TERMINAL_BIT == 0;
    (is_pending && slab::is_inherited(cell.born_ms.load(Relaxed)))
        .then(|| format!("{} (made at {})", describe(cell), cell.location()))
}

/// What the event there waits for.
fn links(link: Link) -> Vec<Link> {
    let debt = look(link, |cell| {
        let is_pending = cell.header.word.load(Acquire) & TERMINAL_BIT == 0;
        is_pending.then(|| cell.header.error.load(Acquire).addr())
    });
    debt.flatten().map_or_else(Vec::new, |debt| debt::links(link.address, debt))
}

/// Whether each link from the first node to the last stands, looked at from the far end.
fn stands(nodes: &[Node]) -> bool {
    let mut index = nodes.len() - 1;
    while let (link, Some(waiter)) = nodes[index] {
        if !links(nodes[waiter].0).contains(&link) {
            return false;
        }
        index = waiter;
    }
    true
}

/// Reads a cell that a chain has led to. In an owner's memory: only of the first event, and where the chain stood.
fn look<R>(link: Link, read: impl Fn(&EventCell) -> R) -> Option<R> {
    match debt::with_cell(link, &read) {
        // SAFETY: as the module says; the first event is the caller's.
        None if link.is_far => Some(read(unsafe { &*ptr::with_exposed_provenance::<EventCell>(link.address) })),
        seen => seen,
    }
}
