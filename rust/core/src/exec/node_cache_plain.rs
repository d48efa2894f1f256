//! Task nodes without recycling, for models: the cache holds no protocol that is worth exploring, only state that would
//! outlive a model's run.

use std::mem::MaybeUninit;
use std::ptr::NonNull;

use super::task::TaskNode;

/// See `node_cache.rs`.
pub(super) fn allocate() -> NonNull<TaskNode> {
    NonNull::from(Box::leak(Box::<TaskNode>::new_uninit())).cast()
}

/// See `node_cache.rs`.
///
/// # Safety
/// As there.
pub(super) unsafe fn free(node: NonNull<TaskNode>) {
    // SAFETY: allocate() leaked this box, and the caller owns it.
    drop(unsafe { Box::from_raw(node.cast::<MaybeUninit<TaskNode>>().as_ptr()) });
}
