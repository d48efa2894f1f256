//! Counts down and wakes one waiting thread; does what `benches/latch.h` does.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{Thread, current, park};

/// For one waiting thread at a time.
pub struct Latch {
    left: AtomicU64,
    open: AtomicBool,
    waiter: Mutex<Option<Thread>>,
}

impl Latch {
    /// Open.
    pub const fn new() -> Self {
        Self { left: AtomicU64::new(0), open: AtomicBool::new(true), waiter: Mutex::new(None) }
    }
    /// Closed until `count` calls of [`Self::down`]. To be called by the thread that will wait.
    pub fn reset(&self, count: u64) {
        *self.waiter.lock().unwrap() = Some(current());
        self.open.store(false, Ordering::Relaxed);
        self.left.store(count, Ordering::Release);
    }
    /// One less; the last one wakes the waiter.
    pub fn down(&self) {
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            let waiter = self.waiter.lock().unwrap().clone();
            self.open.store(true, Ordering::Release);
            if let Some(thread) = waiter {
                thread.unpark();
            }
        }
    }
    /// Blocks until the count is zero.
    pub fn wait(&self) {
        while !self.open.load(Ordering::Acquire) {
            park();
        }
    }
}
