//! How much of a memory space is in use.

use crate::sync::atomic::{AtomicU64, Ordering};

/// Counters of one memory space, under PJRT's names. A snapshot: fields are read one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// Bytes of live allocations, as asked for.
    pub bytes_in_use: u64,
    /// The highest that `bytes_in_use` has been.
    pub peak_bytes_in_use: u64,
    /// Allocations made since the client was.
    pub num_allocs: u64,
    /// The largest single allocation so far.
    pub largest_alloc_size: u64,
}

/// The books behind [`MemoryStats`]. All orderings are relaxed: the numbers publish nothing but themselves.
#[derive(Debug)]
pub(super) struct Ledger {
    bytes_in_use: AtomicU64,
    peak_bytes_in_use: AtomicU64,
    num_allocs: AtomicU64,
    largest_alloc_size: AtomicU64,
}

impl Ledger {
    pub(super) fn new() -> Self {
        Self {
            bytes_in_use: AtomicU64::new(0),
            peak_bytes_in_use: AtomicU64::new(0),
            num_allocs: AtomicU64::new(0),
            largest_alloc_size: AtomicU64::new(0),
        }
    }

    /// An allocation was made. The sum cannot overflow: live allocations fit in an address space together.
    pub(super) fn charge(&self, size_bytes: u64) {
        let in_use = self.bytes_in_use.fetch_add(size_bytes, Ordering::Relaxed) + size_bytes;
        self.peak_bytes_in_use.fetch_max(in_use, Ordering::Relaxed);
        self.num_allocs.fetch_add(1, Ordering::Relaxed);
        self.largest_alloc_size.fetch_max(size_bytes, Ordering::Relaxed);
    }

    /// An allocation was given back.
    pub(super) fn release(&self, size_bytes: u64) {
        self.bytes_in_use.fetch_sub(size_bytes, Ordering::Relaxed);
    }

    pub(super) fn read(&self) -> MemoryStats {
        MemoryStats {
            bytes_in_use: self.bytes_in_use.load(Ordering::Relaxed),
            peak_bytes_in_use: self.peak_bytes_in_use.load(Ordering::Relaxed),
            num_allocs: self.num_allocs.load(Ordering::Relaxed),
            largest_alloc_size: self.largest_alloc_size.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_outlives_its_allocations() {
        let ledger = Ledger::new();
        ledger.charge(100);
        ledger.charge(50);
        ledger.release(100);
        ledger.charge(0);
        assert_eq!(
            ledger.read(),
            MemoryStats { bytes_in_use: 50, peak_bytes_in_use: 150, num_allocs: 3, largest_alloc_size: 100 }
        );
    }
}
