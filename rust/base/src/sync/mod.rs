//! The only door to locks, atomics and threads for this crate and all others of Purlin. No user code may run while one
//! of these locks is held: a fork waits for it.
//!
//! Four faces, chosen at compile time, with one shape (locks without poisoning, as parking_lot's):
//! - std, in every ordinary build, with locks on a futex where there is one (`futex_lock`);
//! - loom under `--cfg purlin_model --cfg loom`, so that the models in `rust/model` explore every interleaving;
//! - shuttle under `--cfg purlin_model --cfg shuttle`, for random schedules of what is too large for loom;
//! - parking_lot under `--cfg purlin_tsan`, because std's locks reach us uninstrumented and ThreadSanitizer would
//!   report races that are none.
//!
//! Outside of models, locks keep clear of `fork` (`fork.rs`): it copies none that is taken. A lock that is not of this
//! module may hang a child for ever, so there is none (`.ci/check/locks`).
//!
//! std's other uninstrumented parts that order what threads do stay out of reach: no `LazyLock`, no `mpsc`, no `park`.

#[cfg(any(all(purlin_model, loom, shuttle), all(purlin_model, not(loom), not(shuttle))))]
compile_error!("a model is explored by loom or by shuttle");
#[cfg(all(not(purlin_model), any(loom, shuttle)))]
compile_error!("--cfg loom and --cfg shuttle go with --cfg purlin_model");

#[cfg(purlin_model)]
#[path = "model_locks.rs"]
mod locks;
#[cfg(not(purlin_model))]
#[path = "gated_locks.rs"]
mod locks;

#[cfg(all(purlin_tsan, not(purlin_model)))]
#[path = "parking_lot_locks.rs"]
mod bare;
#[cfg(all(not(any(purlin_model, purlin_tsan)), target_os = "linux", not(miri)))]
use futex_lock as bare;
#[cfg(all(not(any(purlin_model, purlin_tsan)), any(not(target_os = "linux"), miri)))]
#[path = "std_locks.rs"]
mod bare;

#[cfg(not(purlin_model))]
pub mod foreign;
#[cfg(not(purlin_model))]
mod fork;
#[cfg(not(purlin_model))]
mod futex;
#[cfg(any(loom, all(not(any(shuttle, purlin_tsan, miri)), target_os = "linux")))]
#[cfg_attr(loom, allow(dead_code, reason = "its model uses it"))]
mod futex_lock;
#[cfg(any(loom, not(shuttle)))]
#[cfg_attr(loom, allow(dead_code, reason = "its model uses it"))]
mod gate;

#[cfg(not(purlin_model))]
pub use fork::Process;
#[cfg(not(purlin_model))]
pub use fork::{Inside, in_children, without_forks};
#[cfg(purlin_model)]
pub use locks::Process;
pub use locks::{Condvar, Mutex, MutexGuard, OnceLock};
pub use spawn::spawn;

#[cfg(purlin_model)]
mod explore;
mod spawn;
#[cfg(purlin_model)]
pub use explore::explore;

#[cfg(not(loom))]
mod cell;
#[cfg(not(loom))]
#[allow(unused_imports, reason = "for types that share bare memory")]
pub use cell::UnsafeCell;
#[cfg(loom)]
pub use loom::cell::UnsafeCell;

#[cfg(loom)]
pub use loom::{hint, sync::atomic};
#[cfg(shuttle)]
pub use shuttle::{hint, sync::atomic};
#[cfg(not(purlin_model))]
pub use std::{hint, sync::atomic};

mod pinned_arc;
mod set_once;
pub use pinned_arc::{Inner as PinnedInner, PinnedArc, PinnedCounts, PinnedUse, PinnedWeak, Uncounted};
pub use set_once::SetOnce;

/// A variable per thread, with an initial value that is computed at compile time where the face allows it.
#[macro_export]
macro_rules! per_thread {
    (static $name:ident: $type:ty = $init:expr) => {
        #[cfg(loom)]
        loom::thread_local! { static $name: $type = $init; }
        #[cfg(shuttle)]
        shuttle::thread_local! { static $name: $type = $init; }
        #[cfg(not(purlin_model))]
        std::thread_local! { static $name: $type = const { $init }; }
    };
}
pub use per_thread;

/// Called before a share of std's record of a thread is released while that thread may end: the thread gives up its own
/// share inside std, where ThreadSanitizer does not look, so that it would take the last share's end for a race. Under
/// it there is no last one; otherwise this does nothing.
pub fn keep_record(thread: &std::thread::Thread) {
    if cfg!(purlin_tsan) {
        std::mem::forget(thread.clone());
    }
}

/// Where the argument needs the one total order of sequentially consistent accesses. loom takes such accesses for
/// acquire and release only, and knows the total order by fences; ThreadSanitizer knows it by accesses and not by
/// fences. So the code makes its accesses `SeqCst`, and this is a fence for loom and nothing in all other builds.
#[inline(always)]
pub fn total_order() {
    #[cfg(loom)]
    loom::sync::atomic::fence(atomic::Ordering::SeqCst);
}
