//! The struct of `benches/op.h`, and the library's table of them.

use std::ffi::{CStr, c_char};

/// One column of one row; see `benches/op.h`.
#[repr(C)]
pub struct Op {
    row: *const c_char,
    peer: *const c_char,
    batch: u64,
    run: extern "C" fn(u64) -> u64,
    kind: u32,
}

// SAFETY: the pointers are to static strings, which are never written.
unsafe impl Send for Op {}
// SAFETY: as above.
unsafe impl Sync for Op {}

/// One thread does it all, so that instructions can be counted.
pub const ONE_THREAD: u32 = 0;
/// More than one thread takes part.
pub const THREADS: u32 = 1;
/// Costs seconds, so runs once.
#[allow(dead_code, reason = "benches/rust shares this file and has no such row")]
pub const ONCE: u32 = 2;

impl Op {
    /// An operation that `run` does `count` times per call.
    pub const fn new(
        row: &'static CStr,
        peer: &'static CStr,
        batch: u64,
        run: extern "C" fn(u64) -> u64,
        kind: u32,
    ) -> Self {
        Self { row: row.as_ptr(), peer: peer.as_ptr(), batch, run, kind }
    }
}
