//! How much of a memory space is in use.

use purlin_base::sync::atomic::{AtomicU64, Ordering};

/// Counters of one memory space, under PJRT's names. A snapshot: fields are read one after the other.
///
/// ```
/// use purlin::RawBuffer;
/// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
/// # let space = client.devices()[0].default_memory_space();
///
/// drop(RawBuffer::allocate(&space, 1000)?);
/// let stats = space.stats();
/// assert_eq!((stats.bytes_in_use, stats.peak_bytes_in_use, stats.num_allocs), (0, 1000, 1));
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryStats {
    /// Bytes of live allocations, as asked for.
    pub bytes_in_use: u64,
    /// The highest that `bytes_in_use` has been.
    pub peak_bytes_in_use: u64,
    /// Allocations made since the client was: a total under PJRT's name and type, and no count of objects.
    pub num_allocs: u64,
    /// The largest single allocation so far.
    pub largest_alloc_size: u64,
    /// The most bytes that the space takes from the system; `None`: no limit.
    pub bytes_limit: Option<u64>,
    /// Bytes taken from the system: in use, kept for the next allocation, or lost to rounding.
    pub pool_bytes: u64,
    /// The largest allocation that can be had without freeing another; without a limit, and without asking the system.
    pub largest_free_block_bytes: u64,
}

/// The counters behind [`MemoryStats`]; how many allocations were made, classes and extents count under their locks.
/// All orderings are relaxed: the numbers publish nothing but themselves.
#[derive(Debug)]
pub(super) struct ArenaAccounting {
    bytes_in_use: AtomicU64,
    peak_bytes_in_use: AtomicU64,
    largest_alloc_size: AtomicU64,
}

impl ArenaAccounting {
    pub(super) fn new() -> Self {
        Self {
            bytes_in_use: AtomicU64::new(0),
            peak_bytes_in_use: AtomicU64::new(0),
            largest_alloc_size: AtomicU64::new(0),
        }
    }

    /// An allocation was made. The sum cannot overflow: live allocations fit in an address space together.
    pub(super) fn charge(&self, size_bytes: usize) {
        self.charge_all(size_bytes, size_bytes);
    }

    /// Allocations were made of `size_bytes` together, the largest of them of `largest_bytes`.
    pub(super) fn charge_all(&self, size_bytes: usize, largest_bytes: usize) {
        let size_bytes = size_bytes as u64;
        let in_use = self.bytes_in_use.fetch_add(size_bytes, Ordering::Relaxed) + size_bytes;
        raise(&self.peak_bytes_in_use, in_use);
        raise(&self.largest_alloc_size, largest_bytes as u64);
    }

    /// An allocation was given back.
    pub(super) fn release(&self, size_bytes: usize) {
        self.bytes_in_use.fetch_sub(size_bytes as u64, Ordering::Relaxed);
    }

    /// What the arena adds is zero.
    pub(super) fn read(&self) -> MemoryStats {
        MemoryStats {
            bytes_in_use: self.bytes_in_use.load(Ordering::Relaxed),
            peak_bytes_in_use: self.peak_bytes_in_use.load(Ordering::Relaxed),
            largest_alloc_size: self.largest_alloc_size.load(Ordering::Relaxed),
            ..MemoryStats::default()
        }
    }

    /// The peak begins anew at what is in use.
    pub(super) fn clear_peak(&self) {
        self.peak_bytes_in_use.store(self.bytes_in_use.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// Looks first: the highest so far is rarely passed.
fn raise(highest: &AtomicU64, value: u64) {
    if highest.load(Ordering::Relaxed) < value {
        highest.fetch_max(value, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_outlives_its_allocations_until_it_is_cleared() {
        let accounting = ArenaAccounting::new();
        accounting.charge(100);
        accounting.charge(50);
        accounting.release(100);
        accounting.charge(0);
        let expected =
            MemoryStats { bytes_in_use: 50, peak_bytes_in_use: 150, largest_alloc_size: 100, ..MemoryStats::default() };
        assert_eq!(accounting.read(), expected);
        accounting.clear_peak();
        assert_eq!(accounting.read(), MemoryStats { peak_bytes_in_use: 50, ..expected });
    }
}
