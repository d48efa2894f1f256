//! The only door to locks, atomics and threads for the rest of the crate.
//!
//! Four faces, chosen at compile time, with one shape (locks without poisoning, as parking_lot's):
//! - std, in every ordinary build;
//! - loom under `--cfg loom`, so that the models in `rust/model` explore every interleaving;
//! - shuttle under `--cfg shuttle`, for random schedules of what is too large for loom;
//! - parking_lot under `--cfg purlin_tsan`, because std's locks reach us uninstrumented and ThreadSanitizer would report
//!   races that are none.

#[cfg(any(loom, shuttle))]
#[path = "model_locks.rs"]
mod locks;
#[cfg(all(purlin_tsan, not(any(loom, shuttle))))]
#[path = "parking_lot_locks.rs"]
mod locks;
#[cfg(not(any(loom, shuttle, purlin_tsan)))]
#[path = "std_locks.rs"]
mod locks;

pub(crate) use locks::{Condvar, Mutex};

#[cfg(not(loom))]
mod cell;
#[cfg(not(loom))]
#[allow(unused_imports, reason = "for whoever shares bare memory")]
pub(crate) use cell::UnsafeCell;
#[cfg(loom)]
pub(crate) use loom::cell::UnsafeCell;

#[cfg(loom)]
pub(crate) use loom::{hint, sync::atomic};
#[cfg(shuttle)]
pub(crate) use shuttle::{hint, sync::atomic};
#[cfg(not(any(loom, shuttle)))]
pub(crate) use std::{hint, sync::atomic};

/// A variable per thread, with an initial value that is computed at compile time where the face allows it.
macro_rules! per_thread {
    (static $name:ident: $type:ty = $init:expr) => {
        #[cfg(loom)]
        loom::thread_local! { static $name: $type = $init; }
        #[cfg(shuttle)]
        shuttle::thread_local! { static $name: $type = $init; }
        #[cfg(not(any(loom, shuttle)))]
        std::thread_local! { static $name: $type = const { $init }; }
    };
}
pub(crate) use per_thread;
