//! Which memory of the host is page-locked, so that the GPU reaches it: known without asking the driver.

use std::collections::BTreeMap;

use purlin_base::sync::Mutex;

/// Ranges of pinned memory, by address. They do not overlap.
#[derive(Default)]
pub(crate) struct PinnedRanges(Mutex<BTreeMap<usize, usize>>);

impl PinnedRanges {
    pub(crate) fn add(&self, address: usize, size_bytes: usize) {
        self.0.lock().insert(address, size_bytes);
    }

    pub(crate) fn remove(&self, address: usize) {
        self.0.lock().remove(&address);
    }

    /// Whether one of the ranges has all of these bytes.
    pub(crate) fn has(&self, address: usize, size_bytes: usize) -> bool {
        let ranges = self.0.lock();
        let below = ranges.range(..=address).next_back();
        below.is_some_and(|(&begin, &bytes)| address - begin <= bytes && size_bytes <= bytes - (address - begin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_must_be_in_one_range() {
        let ranges = PinnedRanges::default();
        ranges.add(1000, 100);
        ranges.add(1100, 10);
        assert!(ranges.has(1000, 100) && ranges.has(1050, 50) && ranges.has(1100, 10));
        assert!(!ranges.has(999, 2) && !ranges.has(1050, 51) && !ranges.has(1110, 1) && !ranges.has(0, 1));
        ranges.remove(1000);
        assert!(!ranges.has(1000, 1));
    }
}
