//! What time it is, for timers: the system's monotonic clock, or one that a test moves.

use std::sync::Arc;
use std::time::{Duration, Instant};

use purlin_base::sync::Mutex;

/// A clock that never runs backwards.
///
/// ```
/// use std::time::{Duration, Instant};
///
/// use purlin::{Clock, Timers};
///
/// /// A clock that stands still.
/// struct Stopped(Instant);
///
/// impl Clock for Stopped {
///     fn now(&self) -> Instant {
///         self.0
///     }
/// }
///
/// let timers = Timers::with_clock(Stopped(Instant::now()));
/// let _timer = timers.event_after(Duration::from_nanos(1), c"never");
/// assert_eq!(timers.run_due(), 0);
/// ```
pub trait Clock: Send + Sync {
    /// The time now.
    fn now(&self) -> Instant;
}

/// The system's monotonic clock.
///
/// ```
/// use purlin::{Clock, SystemClock};
///
/// let before = SystemClock.now();
/// assert!(SystemClock.now() >= before);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        Instant::now()
    }
}

/// A clock that stands still until it is set. Clones share the time.
///
/// ```
/// use std::time::Duration;
///
/// use purlin::{Clock, ManualClock};
///
/// let clock = ManualClock::new();
/// let (before, other) = (clock.now(), clock.clone());
/// other.advance(Duration::from_secs(60));
/// assert_eq!(clock.now() - before, Duration::from_secs(60));
/// ```
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<Mutex<Instant>>);

impl ManualClock {
    /// Stands at the time of this call.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }

    /// Moves on by `by`; what does not fit leaves it where it was.
    pub fn advance(&self, by: Duration) {
        let mut now = self.0.lock();
        *now = now.checked_add(by).unwrap_or(*now);
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Instant {
        *self.0.lock()
    }
}
