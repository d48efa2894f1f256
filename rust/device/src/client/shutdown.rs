//! How a client ends.
//!
//! 1. The client accepts no more: new copies, allocations and definitions behind events are refused with
//!    `FailedPrecondition`.
//! 2. `Drain`: what is in flight continues, at most for the timeout. `CancelPending`: at once step 3.
//! 3. What has not begun, because it waits for an event or for memory, fails: with `DeadlineExceeded` after the
//!    timeout, else with `Cancelled`. The error has its own name and that of the event. It releases its memory and
//!    completes its event as after any failed dependency, so callbacks are called once.
//! 4. The runner shuts down in the same mode: it runs what is queued, or drops it, and joins its threads; whatever
//!    still runs a moment after the timeout is named and left to end by itself.
//! 5. Whatever a backend still does on its own is waited for, as long as the timeout allows.
//!
//! Afterwards nothing of the client is in flight, unless the answer says so. Handles stay valid: memory lives as long
//! as it is held, and memory that other code may use until an event (`RawBuffer::retain_until`) until that event. A
//! foreign use of memory is no operation of the client's; but a caller that has asked when it is over waits behind a
//! gate, as for anything else.

use std::time::{Duration, Instant};

use crate::backend::is_notifying_here;
use crate::in_flight::EndReason;
use crate::memory::{Instance, MemorySpace};
use purlin_async::event::Event;
use purlin_async::pool::{ShutdownMode, ShutdownOptions};
use purlin_base::status::{Error, StatusCode};
use purlin_base::sync::PinnedArc;

/// How long operations may take to notice that what they wait for has failed. They do at once, where there is a thread
/// for them.
const GRACE: Duration = Duration::from_secs(1);
/// How many operations a message names.
const NAMED: usize = 4;

/// See the module. `name` is the client, for errors.
///
/// # Errors
/// As [`Client::shutdown`](super::Client::shutdown).
pub(super) fn shut_down(instance: &PinnedArc<Instance>, name: &str, options: ShutdownOptions) -> Result<(), Error> {
    let ShutdownOptions { mode, timeout } = options;
    let (pool, in_flight) = (instance.runner().pool(), instance.runner().in_flight());
    pool.check_shutdown()?;
    if is_notifying_here(&**in_flight) {
        return Err(Error::failed_precondition(format!(
            "{name} cannot be shut down by a waiter of one of its own operations, which is over when that waiter has returned"
        )));
    }
    let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let left = |at_least: Duration| until.map(|until| until.saturating_duration_since(Instant::now()).max(at_least));
    in_flight.close();
    let late =
        |timeout| EndReason(Error::deadline_exceeded(format!("{name} did not end within {timeout:?} of its shutdown")));
    let mut failed = Vec::new();
    let mut is_late = false;
    match (mode, timeout.filter(|_| until.is_some())) {
        (ShutdownMode::Drain, None) => in_flight.idle().wait_uninterruptible()?,
        (ShutdownMode::Drain, Some(timeout)) => {
            is_late = !is_over(&in_flight.idle(), Some(timeout));
            if is_late {
                failed = end(instance, &late(timeout));
            }
        }
        (ShutdownMode::CancelPending, _) => {}
    }
    // From here on nothing waits in vain, whatever comes.
    end(instance, &EndReason(Error::cancelled(format!("{name} was shut down"))));
    let grace = if is_late { GRACE } else { Duration::ZERO };
    let stopped = pool.shutdown_with(ShutdownOptions { mode, timeout: left(grace) });
    let is_over = is_over(&in_flight.idle(), left(GRACE));
    match timeout {
        Some(timeout) if is_late || !is_over => {
            Err(report(&late(timeout).0, &failed, in_flight.count(), stopped.err()))
        }
        _ => stopped,
    }
}

/// What a client does that ends where it cannot wait: on a thread of its own runner.
pub(super) fn give_up(instance: &PinnedArc<Instance>, name: &str) {
    instance.runner().in_flight().close();
    end(instance, &EndReason(Error::cancelled(format!("{name} was shut down"))));
}

/// Fails whatever has not begun because it waits, for an event or for memory, now and later; says what that was.
fn end(instance: &PinnedArc<Instance>, why: &EndReason) -> Vec<String> {
    let mut failed = instance.runner().in_flight().end(why);
    for index in 0..instance.spaces().len() {
        failed.extend(MemorySpace::new(instance.clone(), index).end_waiting(why));
    }
    failed
}

fn is_over(idle: &Event, timeout: Option<Duration>) -> bool {
    let waited = timeout.map_or_else(|| idle.wait_uninterruptible(), |timeout| idle.wait_uninterruptible_for(timeout));
    !waited.is_err_and(|error| error.code() == StatusCode::DeadlineExceeded)
}

fn report(late: &Error, failed: &[String], running: usize, stopped: Option<Error>) -> Error {
    let mut text = late.message().to_owned();
    if !failed.is_empty() {
        text += &format!("; {} operations had not begun and failed: ", failed.len());
        text += &failed[..failed.len().min(NAMED)].join("; ");
        if failed.len() > NAMED {
            text += "; ...";
        }
    }
    if running > 0 {
        text += &format!("; {running} operations are still in flight");
    }
    if let Some(stopped) = stopped {
        text += &format!("; {}", stopped.message());
    }
    Error::deadline_exceeded(text)
}

#[cfg(test)]
mod tests;
