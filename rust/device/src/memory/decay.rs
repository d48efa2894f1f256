//! When memory that is kept for the next allocation is given back to the system: once it has been idle for a while.
//!
//! The first large block that is freed sets a timer of the process; while warm memory is left the timer is set again,
//! and otherwise there is none. So a program that has stopped allocating gives its memory back without being asked, and
//! one that continues pays a load per free. Where no thread for timers can be had, memory stays warm until the next
//! large free or trim.

use std::time::Duration;

use super::Instance;
use purlin_async::services::timer::Timers;
use purlin_base::sync::atomic::{AtomicBool, Ordering};
use purlin_base::sync::{PinnedArc, PinnedWeak};

/// How long memory stays warm. Tests of this crate and fail points do not wait so long.
const IDLE_MS: u32 = if cfg!(purlin_faults) {
    1
} else if cfg!(test) {
    10
} else {
    10_000
};
/// Less than this is not worth a timer.
const WORTHWHILE_BYTES: usize = 1 << 20;

/// Whether a timer is set for a space.
pub(crate) struct Decay(AtomicBool);

impl Decay {
    pub(crate) fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Memory of space `index` was freed, and `warm_bytes` of it are kept.
    pub(super) fn arm(&self, instance: &PinnedArc<Instance>, index: usize, warm_bytes: usize) {
        // Relaxed: the flag guards nothing but the number of timers.
        if warm_bytes < WORTHWHILE_BYTES || self.0.load(Ordering::Relaxed) || self.0.swap(true, Ordering::Relaxed) {
            return;
        }
        set_timer(PinnedArc::downgrade(instance), index);
    }
}

fn set_timer(instance: PinnedWeak<Instance>, index: usize) {
    let timers = Timers::shared();
    let time = timers.after(Duration::from_millis(IDLE_MS.into()));
    let timer = timers.call_at(time, c"give idle memory back", move |outcome| {
        let Some(instance) = instance.upgrade() else { return };
        let space = &instance.spaces()[index];
        space.decay.0.store(false, Ordering::Relaxed);
        if outcome.is_err() {
            // There is no thread for timers, and this is still the call that asked for one. The next free asks again.
            return;
        }
        space.arena.trim(IDLE_MS);
        space.decay.arm(&instance, index, space.arena.warm_bytes());
    });
    timer.detach();
}

#[cfg(all(test, not(purlin_model)))]
mod tests {
    use std::sync::{Arc, mpsc};
    use std::thread;
    use std::time::Instant;

    use purlin_async::services::timer::Timers;
    use purlin_base::clock;

    use super::IDLE_MS;
    use crate::{Client, ClientOptions, LIMIT, NullBackend, RawBuffer};

    #[test]
    fn idle_memory_goes_back_by_itself() {
        let options = ClientOptions { worker_count: 1, ..Default::default() };
        let client = Client::new(&options, Arc::new(NullBackend::new())).unwrap();
        let space = client.devices()[0].default_memory_space();
        let held = RawBuffer::allocate(&space, 100).unwrap();
        let long_enough = Instant::now() + LIMIT;
        for _round in 0..3 {
            // More than an extent that is shared with others.
            let large = RawBuffer::allocate(&space, 80 << 20).unwrap();
            let pool_bytes = space.stats().pool_bytes;
            drop(large);
            let has_gone_back = || space.stats().pool_bytes + (80 << 20) <= pool_bytes;
            while !has_gone_back() && Instant::now() < long_enough {
                thread::yield_now();
            }
            assert!(has_gone_back(), "{:?}", space.stats());
            assert_eq!(space.stats().bytes_in_use, 100);
        }
        drop(held);
    }

    /// What is freed while the timer waits is younger than what it was set for, and needs another one.
    #[test]
    fn memory_that_is_freed_while_a_timer_waits_goes_back_too() {
        let options = ClientOptions { worker_count: 1, ..Default::default() };
        let client = Client::new(&options, Arc::new(NullBackend::new())).unwrap();
        let space = client.devices()[0].default_memory_space();
        let pool_bytes = space.stats().pool_bytes;
        for _round in 0..20 {
            let [first, second] = [(); 2].map(|()| RawBuffer::allocate(&space, 80 << 20).unwrap());
            // The thread of the timers is held, so that the first timer is still there, and due, when the second block
            // is freed.
            let (timers, (begins, begun), (opens, opened)) = (Timers::shared(), mpsc::channel(), mpsc::channel::<()>());
            let hold = move |_| {
                begins.send(()).unwrap();
                let _ = opened.recv();
            };
            timers.call_at(timers.now(), c"holds the thread", hold).detach();
            begun.recv_timeout(LIMIT).unwrap();
            drop(first);
            let freed_ms = clock::touch();
            while clock::touch().wrapping_sub(freed_ms) <= 2 * IDLE_MS {
                thread::yield_now();
            }
            drop(second);
            opens.send(()).unwrap();
            let long_enough = Instant::now() + LIMIT;
            while space.stats().pool_bytes > pool_bytes && Instant::now() < long_enough {
                thread::yield_now();
            }
            let stats = space.stats();
            assert!(stats.pool_bytes <= pool_bytes, "no timer is left for memory that is kept: {stats:?}");
        }
    }
}
