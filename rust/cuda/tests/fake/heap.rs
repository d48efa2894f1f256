//! What this program asks the host's allocator for. The fake driver's library has an allocator of its own.

#![allow(unsafe_code, reason = "an allocator is unsafe")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of the largest allocation since [`forget`].
static LARGEST: AtomicUsize = AtomicUsize::new(0);
/// Bytes of all allocations of 64 KiB and more since then.
static LARGE: AtomicUsize = AtomicUsize::new(0);

struct Watched;

#[global_allocator]
static WATCHED: Watched = Watched;

fn count(bytes: usize) {
    // Relaxed, here and below: read after what allocates is joined or waited for.
    LARGEST.fetch_max(bytes, Ordering::Relaxed);
    if bytes >= 64 << 10 {
        LARGE.fetch_add(bytes, Ordering::Relaxed);
    }
}

// SAFETY: the system's.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, address: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(address, layout, size) }
    }

    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(address, layout) }
    }
}

/// Counts from here on.
pub(crate) fn forget() {
    LARGEST.store(0, Ordering::Relaxed);
    LARGE.store(0, Ordering::Relaxed);
}

/// Bytes of the largest allocation, and of all large ones together.
pub(crate) fn since() -> (usize, usize) {
    (LARGEST.load(Ordering::Relaxed), LARGE.load(Ordering::Relaxed))
}
