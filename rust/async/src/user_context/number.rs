//! The numbers of contexts: a counter with a random start, scrambled so that two processes hardly ever meet.

use std::hash::{BuildHasher, Hasher, RandomState};
// Not purlin_base::sync: a counter that takes no part in any protocol, and models need no fresh one.
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// 0 until the first number is asked for.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// A number that no other call in this process has given; never 0.
pub(super) fn next() -> u64 {
    if NEXT.load(Relaxed) == 0 {
        // Where the system's randomness makes std's hashes begin. The first thread decides.
        let start = RandomState::new().build_hasher().finish() | 1;
        let _ = NEXT.compare_exchange(0, start, Relaxed, Relaxed);
    }
    scramble(NEXT.fetch_add(1, Relaxed))
}

/// Maps different numbers to different numbers, and only 0 to 0: each step can be undone.
const fn scramble(mut number: u64) -> u64 {
    number = (number ^ (number >> 33)).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    number = (number ^ (number >> 33)).wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    number ^ (number >> 33)
}
