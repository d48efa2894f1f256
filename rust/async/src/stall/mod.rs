//! Why nothing happens: which events are pending, what owes them, what waits, and whether they wait for each other.
//!
//! Nothing is recorded for this beforehand except what events carry anyway (label, place, age, and what completes them
//! where that is known), so it is always on. A report ([`stalls`], [`dump_stalls`]) reads all event cells, the sleeping
//! threads and the executors while they run; it is a snapshot, true of each object at some moment during the call. A
//! [`Watchdog`] takes one at intervals.
//!
//! What is known of how an event is owed: `future_on`, mapping on an executor and the like owe it to a task; mapping,
//! forwarding and joining owe it to other events; everything else is owed by the holder of the promise, whose label and
//! place are given.
//!
//! Events in the caller's own storage are not seen. Reports need no thread of any pool and run no user code, except for
//! the watchdog's callback.

mod cycle;
mod poison;
mod report;
mod watchdog;

use std::time::Duration;

pub use report::{BlockedThread, StallReport, StalledEvent};
pub use watchdog::{StallSink, Watchdog, WatchdogAction, WatchdogOptions};

/// What is stuck: events that have been pending for at least `older_than`, and all threads that sleep on an event.
/// Blocks only for the lock of one list at a time.
///
/// ```
/// use std::time::Duration;
///
/// use purlin::{EventPromise, stalls};
///
/// let promise = EventPromise::new(c"forgotten");
/// let report = stalls(Duration::ZERO);
/// assert!(report.events.iter().any(|event| event.label.as_str() == "forgotten"));
/// # drop(promise);
/// ```
#[must_use]
pub fn stalls(older_than: Duration) -> StallReport {
    report::take(older_than)
}

/// [`stalls`] as text for people.
///
/// ```
/// use std::time::Duration;
///
/// use purlin::{EventPromise, dump_stalls};
///
/// let promise = EventPromise::new(c"forgotten");
/// assert!(dump_stalls(Duration::ZERO).contains("forgotten"));
/// drop(promise);
/// assert!(!dump_stalls(Duration::ZERO).contains("forgotten"));
/// ```
#[must_use]
pub fn dump_stalls(older_than: Duration) -> String {
    stalls(older_than).to_string()
}

#[cfg(test)]
mod poison_tests;
#[cfg(test)]
mod tests;
