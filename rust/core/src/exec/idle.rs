//! How workers sleep and are woken without losing a task.
//!
//! A worker that found nothing takes the lock, counts itself as a sleeper, and looks at all queues once more before it
//! waits. A scheduler pushes first, then reads the count, and if it is not zero passes through the lock before it
//! notifies. Each queue has a lock too, and that decides the race: if the worker's second look at the queue came before
//! the push, then the count was raised before the push, so the scheduler sees it; and because the worker holds our lock
//! from the count to the wait, the notification cannot come in between. If the look came after the push, it found the
//! task. So the count needs no ordering of its own.

use crate::sync::atomic::AtomicUsize;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::{Condvar, Mutex};

pub(super) struct Idle {
    sleepers: AtomicUsize,
    lock: Mutex<()>,
    woken: Condvar,
}

impl Idle {
    pub(super) fn new() -> Self {
        Self { sleepers: AtomicUsize::new(0), lock: Mutex::new(()), woken: Condvar::new() }
    }

    /// Sleeps until somebody wakes, unless `has_work`, which reads the queues, says that there is no need to.
    pub(super) fn sleep(&self, has_work: impl Fn() -> bool) {
        let guard = self.lock.lock();
        self.sleepers.fetch_add(1, Relaxed);
        if !has_work() {
            drop(self.woken.wait(guard));
        }
        self.sleepers.fetch_sub(1, Relaxed);
    }

    /// After one task was pushed.
    pub(super) fn wake_one(&self) {
        if self.sleepers.load(Relaxed) > 0 {
            drop(self.lock.lock());
            self.woken.notify_one();
        }
    }

    /// After the queues were closed.
    pub(super) fn wake_all(&self) {
        drop(self.lock.lock());
        self.woken.notify_all();
    }
}
