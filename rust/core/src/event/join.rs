//! Waiting for several events at once.

use std::ptr;

use super::abi::{EventHeader, Waiter};
use super::{Event, EventPromise};
use crate::status::Status;
use crate::sync::atomic::AtomicUsize;
use crate::sync::atomic::Ordering::{Acquire, Release};

/// An event that completes after all of `events`, and fails if any of them did, with the error of the one with the lowest
/// index: the result does not depend on who came first. No events, or only ready ones: [`Event::ready`], without an
/// allocation. Of several that are all terminal, the first failed one itself.
#[must_use]
#[track_caller]
pub fn when_all(events: &[Event]) -> Event {
    if let [only] = events {
        return only.clone();
    }
    if events.iter().all(Event::is_ready) {
        return events.iter().find(|event| !event.error().ok()).cloned().unwrap_or_default();
    }
    let promise = EventPromise::new(c"WhenAll");
    let all = promise.event();
    Join::start(events, promise);
    all
}

/// One allocation for the whole join (its nodes are a second): freed by the last event that arrives.
struct Join {
    /// Events that have not arrived, plus one for `start` while it attaches.
    missing: AtomicUsize,
    promise: EventPromise,
    nodes: Box<[Node]>,
}

/// A waiter on one of the events. `waiter` is the first field, so that its address is the node's.
#[repr(C)]
struct Node {
    waiter: Waiter,
    join: *mut Join,
    event: Event,
}

impl Join {
    fn start(events: &[Event], promise: EventPromise) {
        let node = |event: &Event| Node {
            waiter: Waiter { next: ptr::null_mut(), invoke: Node::arrived },
            join: ptr::null_mut(),
            event: event.clone(),
        };
        let nodes = events.iter().map(node).collect();
        let join = Box::into_raw(Box::new(Self { missing: AtomicUsize::new(events.len() + 1), promise, nodes }));
        for index in 0..events.len() {
            // SAFETY: `missing` still counts this function, so the join is alive; until the push below succeeds, nobody
            // else knows this node. Raw places only: other nodes may be in use by threads that arrive.
            unsafe {
                let node = (&raw mut *(*join).nodes).cast::<Node>().add(index);
                (*node).join = join;
                let event = (*node).event.as_raw();
                if event.is_null() || !(*event).push(node.cast()) {
                    Self::arrive(join);
                }
            }
        }
        // SAFETY: this function's own count.
        unsafe { Self::arrive(join) };
    }

    /// # Safety
    /// The caller owns one of the counts in `missing` and gives it up.
    unsafe fn arrive(join: *mut Self) {
        // Release: what this arrival saw of its event happens before the last one frees the join.
        // SAFETY: the caller's count keeps the join alive up to here.
        if unsafe { (*join).missing.fetch_sub(1, Release) } != 1 {
            return;
        }
        // SAFETY: nobody else has a count; the load pairs with the releases above.
        let this = unsafe {
            let _ = (*join).missing.load(Acquire);
            Box::from_raw(join)
        };
        let first_error = this.nodes.iter().map(|node| node.event.error()).find(|error| !error.ok());
        let Self { promise, nodes, .. } = *this;
        // The events' references go before anybody's code runs.
        drop(nodes);
        promise.set(first_error.unwrap_or(Status::OK));
    }
}

impl Node {
    unsafe extern "C" fn arrived(waiter: *mut Waiter, _event: *const EventHeader) {
        // SAFETY: `waiter` is the first field of a node whose join counts it, and it arrives once.
        unsafe { Join::arrive((*waiter.cast::<Self>()).join) };
    }
}
