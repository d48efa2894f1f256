//! When memory that is kept for the next allocation goes back to the system: once it has been idle for a while.
//!
//! The first large block that is freed sets a timer of the process; while warm memory is left the timer is set again, and
//! otherwise there is none. So a program that has stopped allocating gives its memory back without being asked, and one that
//! goes on pays a load per free. Where no thread for timers can be had, memory stays warm until the next large free or trim.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::Instance;
use crate::exec::timer::Timers;
use crate::sync::atomic::{AtomicBool, Ordering};

/// How long memory stays warm.
pub(super) const IDLE_MS: u32 = if cfg!(purlin_faults) { 1 } else { 10_000 };
/// Less than this is not worth a timer.
const WORTHWHILE_BYTES: usize = 1 << 20;

/// Whether a timer is set for a space.
pub(super) struct Decay(AtomicBool);

impl Decay {
    pub(super) fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Memory of space `index` was freed, and `warm_bytes` of it are kept.
    pub(super) fn arm(&self, instance: &Arc<Instance>, index: usize, warm_bytes: usize) {
        // Relaxed: the flag guards nothing but the number of timers.
        if warm_bytes < WORTHWHILE_BYTES || self.0.load(Ordering::Relaxed) || self.0.swap(true, Ordering::Relaxed) {
            return;
        }
        set_timer(Arc::downgrade(instance), index);
    }
}

fn set_timer(instance: Weak<Instance>, index: usize) {
    let timers = Timers::shared();
    let time = timers.after(Duration::from_millis(IDLE_MS.into()));
    let timer = timers.call_at(time, c"give idle memory back", move |outcome| {
        let Some(instance) = instance.upgrade() else { return };
        let space = &instance.spaces()[index];
        space.decay.0.store(false, Ordering::Relaxed);
        if !outcome.ok() {
            // There is no thread for timers, and this is still the call that asked for one. The next free asks again.
            return;
        }
        space.arena.trim(IDLE_MS);
        space.decay.arm(&instance, index, space.arena.warm_bytes());
    });
    timer.detach();
}
