//! The runs of a loaded executable that are in flight.
//!
//! A run is counted from [`Runs::follow`] until its event is terminal, on whatever thread completes that event. A
//! waiter gets an event that is ready when the count is 0.

use std::sync::Arc;

use purlin_async::event::{Event, EventPromise};
use purlin_base::sync::Mutex;

/// The count of runs in flight. A run that has completed or failed when `follow` is called is never counted.
#[derive(Default)]
pub(crate) struct Runs(Mutex<Counted>);

#[derive(Default)]
struct Counted {
    count: usize,
    /// Set ready when no run is in flight.
    idle: Vec<EventPromise>,
}

impl Runs {
    /// Counts a run until `done` is terminal.
    pub(crate) fn follow(self: &Arc<Self>, done: &Event) {
        if done.is_ready() {
            return;
        }
        self.0.lock().count += 1;
        let runs = Arc::clone(self);
        done.on_ready(move |_outcome| runs.ended());
    }

    fn ended(&self) {
        let idle = {
            let mut counted = self.0.lock();
            counted.count -= 1;
            if counted.count > 0 {
                return;
            }
            std::mem::take(&mut counted.idle)
        };
        // Outside the lock, because setting a promise runs the callbacks of its waiters.
        for promise in idle {
            promise.set_ready();
        }
    }

    /// The number of runs in flight.
    pub(crate) fn count(&self) -> usize {
        self.0.lock().count
    }

    /// An event that is ready when no run is in flight: at once if none is now.
    pub(crate) fn idle(&self) -> Event {
        let promise = EventPromise::guarding(c"runs of an executable");
        let event = promise.event();
        {
            let mut counted = self.0.lock();
            if counted.count > 0 {
                counted.idle.push(promise);
                return event;
            }
        }
        promise.set_ready();
        event
    }
}

#[cfg(all(test, loom))]
mod loom_model;

#[cfg(all(test, not(purlin_model)))]
mod tests {
    use super::*;

    #[test]
    fn idle_is_when_the_last_run_is_over() {
        let runs = Arc::new(Runs::default());
        assert!(runs.idle().is_ready());
        let promises = [EventPromise::new(c"first"), EventPromise::new(c"second")];
        promises.iter().for_each(|promise| runs.follow(&promise.event()));
        runs.follow(&Event::ready());
        let idle = runs.idle();
        assert_eq!(runs.count(), 2);
        promises[1].set_error(purlin_base::Error::aborted("a run that fails is over too"));
        assert!(!idle.is_ready());
        promises[0].set_ready();
        assert!(idle.is_ready() && runs.idle().is_ready());
    }
}
