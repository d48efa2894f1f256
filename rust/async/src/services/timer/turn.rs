//! What the thread of the timers does when a callback of a timer, or a waiter of its event, waits for an event: it
//! passes the timers to another thread, so that nothing is late because of it, and what it waits for may be a timer.
//!
//! Each thread has a turn. A thread that is about to wait ends its own: the next turn belongs to a thread that is
//! started there and then, or, if no timer waits, to the one that the next timer starts. A thread whose turn is over
//! ends when its callback returns. If the system refuses a thread, the turn stays, and the waiting thread makes due
//! timers happen on its own stack (`task/driver.rs`).

use std::sync::Arc;
use std::time::Duration;

use super::TimersShared;
use crate::task::driver::{Driver, drive};

/// How often a thread that makes timers happen while it waits looks for new ones.
const NAP: Duration = Duration::from_millis(10);

/// The timers of which a thread is, or was, the one, and its turn.
struct Turn {
    timers: Arc<TimersShared>,
    number: u64,
}

/// Calls `work` as the thread of `turn`.
pub(super) fn on_a_thread_of(timers: &Arc<TimersShared>, turn: u64, work: impl FnOnce()) {
    let driver: Arc<dyn Driver> = Arc::new(Turn { timers: Arc::clone(timers), number: turn });
    drive(&driver, work);
}

impl Driver for Turn {
    fn thread(&self) -> &'static str {
        "the thread of the timers"
    }

    fn hand_over(&self) -> bool {
        let next = {
            let mut state = self.timers.state();
            if state.turn != self.number {
                return true;
            }
            state.turn += 1;
            state.has_thread = !state.waiting.is_empty();
            if !state.has_thread {
                return true;
            }
            state.turn
        };
        let Err(error) = self.timers.start(next) else { return true };
        tracing::warn!(target: "purlin", %error, "timers could not be handed over by a callback that waits");
        // No other thread has had this turn: only its own ends it.
        self.timers.state().turn = self.number;
        false
    }

    fn step(&self) -> bool {
        self.timers.take_due().is_some_and(|due| {
            due.end(Ok(()));
            true
        })
    }

    fn nap(&self) -> Duration {
        self.timers.next_due().map_or(NAP, |due| due.clamp(Duration::from_micros(100), NAP))
    }
}
