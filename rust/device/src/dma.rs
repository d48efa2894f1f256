//! Host memory that was announced to a backend, so that its hardware may reach it: pinned, registered, mapped.
//!
//! A [`Mapped`] is the right to end that. Copies from and to the host that touch mapped memory count as uses while they
//! are in flight; [`Mapped::unmap`] refuses while there are any, and a mapping that is dropped ends with the last of
//! them. So no transfer loses its memory's mapping.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::backend::{Backend, DmaRegistration};
use purlin_base::fault::{self, Site};
use purlin_base::status::{Error, StatusOr};
use purlin_base::sync::Mutex;
use purlin_base::sync::atomic::{AtomicUsize, Ordering};

/// Mapped memory of one client.
pub(crate) struct Mappings {
    /// How many there are, so that copies of programs without any pay a load.
    count: AtomicUsize,
    ranges: Mutex<BTreeMap<usize, Arc<Range>>>,
}

/// One mapping. The last reference, the mapping's or a copy's, unmaps.
struct Range {
    address: usize,
    size_bytes: usize,
    in_flight: AtomicUsize,
    _registration: DmaRegistration,
}

/// A copy in flight uses mapped memory.
pub(crate) struct DmaUse(Arc<Range>);

/// Mapped memory: see the module.
pub(crate) struct Mapped {
    mappings: Arc<Mappings>,
    range: Arc<Range>,
}

impl Mappings {
    pub(crate) fn new() -> Self {
        Self { count: AtomicUsize::new(0), ranges: Mutex::new(BTreeMap::new()) }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// The use of the mapping in which these bytes lie, or some of them, if there is one.
    pub(crate) fn use_of(&self, address: usize, size_bytes: usize) -> Option<DmaUse> {
        // Relaxed: a copy of memory that is being mapped at the same time need not know of it.
        if self.count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let ranges = self.ranges.lock();
        let (_, range) = ranges.range(..address.saturating_add(size_bytes)).next_back()?;
        let overlaps = range.address + range.size_bytes > address;
        overlaps.then(|| {
            // Under the lock, so that unmap() sees it or has removed the range.
            range.in_flight.fetch_add(1, Ordering::Relaxed);
            DmaUse(Arc::clone(range))
        })
    }
}

impl Drop for DmaUse {
    fn drop(&mut self) {
        // Release, for the load in unmap(): what the copy did happens before.
        self.0.in_flight.fetch_sub(1, Ordering::Release);
    }
}

impl Mapped {
    /// Announces `size_bytes` bytes at `address` to `backend`.
    ///
    /// # Errors
    /// `InvalidArgument`, naming the range: null, empty, or past the end of the address space. `AlreadyExists`: it
    /// overlaps another of `mappings`. The backend's.
    pub(crate) fn new(
        mappings: &Arc<Mappings>,
        backend: &dyn Backend,
        address: usize,
        size_bytes: usize,
    ) -> StatusOr<Self> {
        let end = address.checked_add(size_bytes).filter(|_| address != 0 && size_bytes > 0);
        let Some(end) = end else {
            return Err(Error::invalid_argument(format!("cannot map {size_bytes} bytes at {address:#x} for DMA")));
        };
        mappings.check_free(address, end)?;
        fault::point(Site::MapDma)?;
        let registration = backend.dma_map(address, size_bytes)?;
        let in_flight = AtomicUsize::new(0);
        let range = Arc::new(Range { address, size_bytes, in_flight, _registration: registration });
        {
            let mut ranges = mappings.ranges.lock();
            // Another thread may have been faster; then what the backend did is undone, under no lock.
            if overlapping(&ranges, address, end).is_none() {
                ranges.insert(address, Arc::clone(&range));
                mappings.count.fetch_add(1, Ordering::Relaxed);
                drop(ranges);
                return Ok(Self { mappings: Arc::clone(mappings), range });
            }
        }
        mappings.check_free(address, end)?;
        Err(Error::aborted(format!("another mapping at {address:#x} came and went meanwhile")))
    }

    /// Address and bytes.
    pub(crate) fn range(&self) -> (usize, usize) {
        (self.range.address, self.range.size_bytes)
    }

    /// Copies in flight that use the memory.
    pub(crate) fn in_flight(&self) -> usize {
        self.range.in_flight.load(Ordering::Acquire)
    }

    /// Unmaps the memory, at once.
    ///
    /// # Errors
    /// `FailedPrecondition`, with the mapping back: copies in flight use the memory, and how many.
    pub(crate) fn unmap(self) -> Result<(), (Error, Self)> {
        let mut ranges = self.mappings.ranges.lock();
        let in_flight = self.in_flight();
        if in_flight > 0 {
            drop(ranges);
            let (address, size_bytes) = self.range();
            let error = Error::failed_precondition(format!(
                "{in_flight} copies in flight use the {size_bytes} bytes at {address:#x}, which cannot be unmapped now"
            ));
            return Err((error, self));
        }
        let removed = ranges.remove(&self.range.address);
        drop(ranges);
        drop(removed);
        // What is left to the drop is the count and the last reference.
        Ok(())
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        let mappings = &self.mappings;
        let removed = {
            let mut ranges = mappings.ranges.lock();
            mappings.count.fetch_sub(1, Ordering::Relaxed);
            let is_ours = ranges.get(&self.range.address).is_some_and(|range| Arc::ptr_eq(range, &self.range));
            if is_ours { ranges.remove(&self.range.address) } else { None }
        };
        drop(removed);
    }
}

impl Mappings {
    fn check_free(&self, address: usize, end: usize) -> Result<(), Error> {
        let Some((other, bytes)) = overlapping(&self.ranges.lock(), address, end) else { return Ok(()) };
        Err(Error::already_exists(format!(
            "{} bytes at {address:#x} overlap the {bytes} bytes at {other:#x}, which are mapped already",
            end - address
        )))
    }
}

/// Address and bytes of a mapping that has bytes of `[address, end)`.
fn overlapping(ranges: &BTreeMap<usize, Arc<Range>>, address: usize, end: usize) -> Option<(usize, usize)> {
    let (_, range) = ranges.range(..end).next_back()?;
    (range.address + range.size_bytes > address).then_some((range.address, range.size_bytes))
}
