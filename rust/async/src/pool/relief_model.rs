//! Models have no timers: no thread watches there, except in the model of watching itself.

use super::worker::PoolShared;

/// See `relief.rs`.
pub(super) struct Relief;

impl Relief {
    pub(super) fn of_the_system() -> Self {
        Self
    }
}

/// See `relief.rs`.
pub(super) fn this_thread() -> u32 {
    0
}

impl PoolShared {
    #[cold]
    pub(super) fn watch(&self) {
        self.idle.begin_watch();
    }
}
