//! A clock that costs one load: milliseconds since the first look, brought up to date by threads that are about to do
//! something slow anyway (sleep, take a batch of blocks, look for stalls). So it lags while no thread does such a
//! thing, and an age computed from it is an upper bound; a watchdog that looks at intervals makes it as exact as its
//! period.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Instant;

use crate::sync::OnceLock;

/// Milliseconds, as C++ reads them. Wraps around after 49 days; ages are differences and survive that.
pub static NOW_MS: AtomicU32 = AtomicU32::new(0);

/// How far the clock is ahead: a step for every fork.
static AHEAD_MS: AtomicU32 = AtomicU32::new(0);

fn exact_ms() -> u32 {
    static START: OnceLock<Instant> = OnceLock::new();
    #[expect(clippy::cast_possible_truncation, reason = "the clock wraps around")]
    let elapsed = START.get_or_init(Instant::now).elapsed().as_millis() as u32;
    elapsed.wrapping_add(AHEAD_MS.load(Relaxed))
}

/// Goes a step ahead; returns the time before it, which nothing has that is made later.
#[cfg(not(purlin_model))]
pub fn step() -> u32 {
    let before = touch();
    AHEAD_MS.fetch_add(1, Relaxed);
    touch();
    before
}

/// Brings the clock up to date; the time.
pub fn touch() -> u32 {
    let now = exact_ms();
    NOW_MS.store(now, Relaxed);
    now
}

/// The time as of the last [`touch`].
#[inline]
pub fn now_ms() -> u32 {
    NOW_MS.load(Relaxed)
}
