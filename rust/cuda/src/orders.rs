//! Which of the backend's own operations are on their way, by the event that each owes.
//!
//! States of an operation: *held*, until the events of others that it waits for have happened, and those of ours are
//! enqueued; *enqueued*, with a [`SyncPoint`], until its event has happened, which may be a while after the work is
//! over. What has failed, or never is enqueued, is no longer here. An operation whose dependency is enqueued waits for
//! it by a wait between streams, unless its work is over; one whose dependency is held is held, too, until that is
//! enqueued.

use std::collections::HashMap;

use purlin_async::event::Part;
use purlin_async::{Event, EventPromise};
use purlin_base::sync::Mutex;

use crate::stream::SyncPoint;

/// See the module.
#[derive(Default)]
pub(crate) struct Orders(Mutex<HashMap<usize, Stage>>);

enum Stage {
    /// The event happens when it is enqueued, or fails with why it never will be.
    Held(Event),
    Enqueued(SyncPoint),
}

/// An operation of ours whose event has not happened.
pub(crate) enum Order {
    /// It is enqueued.
    Enqueued(SyncPoint),
    /// It is not, and the event says when it is.
    Held(Event),
}

/// What a dependency is.
pub(crate) enum Known {
    /// The event of an operation of ours.
    Order(Order),
    /// A join of such events.
    Join(Vec<Part<Order>>),
    /// Something else.
    Foreign,
}

/// By what an event is known.
pub(crate) fn key(event: &Event) -> usize {
    event.as_raw().addr()
}

impl Orders {
    /// An operation that owes `event` is held from now on, until the answer says something else.
    pub(crate) fn hold(&self, event: &Event) -> EventPromise {
        let promise = EventPromise::new(c"enqueue");
        self.0.lock().insert(key(event), Stage::Held(promise.event()));
        promise
    }

    /// It is enqueued, unless it has failed meanwhile.
    pub(crate) fn enqueued(&self, key: usize, point: SyncPoint) {
        if let Some(stage) = self.0.lock().get_mut(&key) {
            *stage = Stage::Enqueued(point);
        }
    }

    /// What owes the event of that key is enqueued from the beginning.
    pub(crate) fn enqueued_at_once(&self, key: usize, point: SyncPoint) {
        self.0.lock().insert(key, Stage::Enqueued(point));
    }

    /// Its event has happened, or is about to. The event is still there, so that no other one has its key.
    pub(crate) fn remove(&self, key: usize) {
        let stage = self.0.lock().remove(&key);
        drop(stage);
    }

    /// What owes `event`, or the events that it joins.
    pub(crate) fn find(&self, event: &Event) -> Known {
        if let Some(order) = self.at(key(event)) {
            return Known::Order(order);
        }
        event.parts(|address| self.at(address)).map_or(Known::Foreign, Known::Join)
    }

    fn at(&self, key: usize) -> Option<Order> {
        Some(match self.0.lock().get(&key)? {
            Stage::Enqueued(point) => Order::Enqueued(point.clone()),
            Stage::Held(enqueued) => Order::Held(enqueued.clone()),
        })
    }
}
