//! How workers sleep and are woken without losing a task, and without waking anybody twice.
//!
//! A worker that found nothing takes the lock, counts itself as a sleeper, looks at all queues once more, and then waits
//! for a permit. A scheduler pushes first, then reads the count of sleepers; if it is not zero, it turns one of them into
//! a permit under the lock and notifies. Whoever was promised a permit is no sleeper any more, so the next scheduler does
//! not pay for waking it again.
//!
//! Each queue has a lock too, and that decides the race: if the worker's second look at the queue came before the push,
//! then the count was raised before the push, so the scheduler sees it; and because the worker holds our lock from the
//! count to the wait, the permit cannot come in between. If the look came after the push, it found the task. So the count
//! needs no ordering of its own.

use crate::sync::atomic::AtomicUsize;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::{Condvar, Mutex};

pub(super) struct Idle {
    /// Workers that wait and have not been promised a permit. Written under the lock.
    sleepers: AtomicUsize,
    permits: Mutex<usize>,
    permitted: Condvar,
}

impl Idle {
    pub(super) fn new() -> Self {
        Self { sleepers: AtomicUsize::new(0), permits: Mutex::new(0), permitted: Condvar::new() }
    }

    /// Sleeps until somebody wakes, unless `has_work`, which reads the queues, says that there is no need to.
    pub(super) fn sleep(&self, has_work: impl Fn() -> bool) {
        let mut permits = self.permits.lock();
        self.sleepers.fetch_add(1, Relaxed);
        if has_work() {
            self.sleepers.fetch_sub(1, Relaxed);
            return;
        }
        while *permits == 0 {
            permits = self.permitted.wait(permits);
        }
        *permits -= 1;
    }

    /// After one task was pushed.
    pub(super) fn wake_one(&self) {
        if self.sleepers.load(Relaxed) > 0 && self.permit(1) > 0 {
            self.permitted.notify_one();
        }
    }

    /// After the queues were closed.
    pub(super) fn wake_all(&self) {
        if self.permit(usize::MAX) > 0 {
            self.permitted.notify_all();
        }
    }

    /// Turns up to `most` sleepers into permits; how many.
    fn permit(&self, most: usize) -> usize {
        let mut permits = self.permits.lock();
        let promised = self.sleepers.load(Relaxed).min(most);
        self.sleepers.fetch_sub(promised, Relaxed);
        *permits += promised;
        promised
    }
}
