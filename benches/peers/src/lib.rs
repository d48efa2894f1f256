//! Rust peers, for `benches/driver.cc` to load: the same rows as `benches/event_rows.h` and `benches/pool_rows.h`.

mod deque_pool;
mod latch;
mod oneshot;
mod op;
mod pools;

use std::sync::OnceLock;

use op::Op;

/// See `benches/op.h`.
///
/// # Safety
/// `count` must be valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bench_ops(count: *mut usize) -> *const Op {
    static OPS: OnceLock<Vec<Op>> = OnceLock::new();
    let ops = OPS.get_or_init(|| {
        let mut ops = Vec::new();
        pools::add(&mut ops);
        oneshot::add(&mut ops);
        ops
    });
    // SAFETY: the caller's promise.
    unsafe { *count = ops.len() };
    ops.as_ptr()
}
