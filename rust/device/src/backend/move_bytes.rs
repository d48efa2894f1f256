//! How bytes are moved that the host reaches: at once, in pieces, past the caches.
//!
//! One thread does not use all of the memory's bandwidth. A copy of [`LEAST_SHARED_BYTES`] or more is cut into pieces,
//! which idle workers take, too; smaller ones would be over before a worker is awake.
//!
//! A destination that is larger than the last cache is not there when it is read next, so it is written past the caches
//! (`stream.rs`).

#![allow(unsafe_code, reason = "bytes are moved by address")]

// Sanitizers and Miri do not see stores past the caches, and models have none.
#[cfg_attr(
    any(not(target_arch = "x86_64"), miri, purlin_asan, purlin_tsan, purlin_model),
    path = "move_bytes/no_stream.rs"
)]
mod stream;

use std::ptr;

use super::IdleWorkers;
use purlin_base::status::Error;

/// The smallest copy that workers share: two threads copy 2 MiB as fast as one does (docs/benchmarks.md).
const LEAST_SHARED_BYTES: usize = 4 << 20;
/// What a thread takes at once: it keeps the others waiting at the end for no longer than this takes.
const PIECE_BYTES: usize = 1 << 20;

/// The two ends of a copy.
#[derive(Clone, Copy)]
struct Ends {
    from: *const u8,
    to: *mut u8,
}

// SAFETY: threads that share a copy access disjoint pieces of it; `move_bytes` waits for them.
unsafe impl Send for Ends {}
// SAFETY: as above.
unsafe impl Sync for Ends {}

/// Moves `size_bytes` bytes, as memmove does, with the help of `idle` workers.
///
/// # Errors
/// A fail point's.
///
/// # Safety
/// `from` is valid for reads and `to` for writes of so many bytes, also by other threads, until this returns.
#[inline]
pub(super) unsafe fn move_bytes(
    from: *const u8,
    to: *mut u8,
    size_bytes: usize,
    idle: IdleWorkers<'_>,
) -> Result<(), Error> {
    if size_bytes < LEAST_SHARED_BYTES || from.addr().abs_diff(to.addr()) < size_bytes {
        // SAFETY: the caller's promise; the ends may overlap.
        unsafe { ptr::copy(from, to, size_bytes) };
        return Ok(());
    }
    // SAFETY: the caller's promise; the ends are disjoint.
    unsafe { share(Ends { from, to }, size_bytes, idle) }
}

/// # Safety
/// As [`move_bytes`], and both ends are disjoint.
#[cold]
#[inline(never)]
unsafe fn share(ends: Ends, size_bytes: usize, idle: IdleWorkers<'_>) -> Result<(), Error> {
    let past_caches = size_bytes > stream::last_cache_bytes();
    idle.share(size_bytes, PIECE_BYTES, &move |piece| {
        let Ends { from, to } = { ends };
        // SAFETY: the piece lies within both ends, and the ranges of two pieces are disjoint.
        unsafe {
            let (from, to) = (from.add(piece.start), to.add(piece.start));
            if past_caches {
                stream::copy(from, to, piece.len());
            } else {
                ptr::copy_nonoverlapping(from, to, piece.len());
            }
        }
        Ok(())
    })
}

#[cfg(all(test, not(purlin_model)))]
mod tests;
