//! Which memory of the host is page-locked, so that the GPU reaches it: known without asking the driver.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use purlin_base::sync::Mutex;

use crate::memory::Registration;

/// Ranges of pinned memory, by address. They do not overlap.
#[derive(Default)]
pub(crate) struct PinnedRanges(Mutex<BTreeMap<usize, Range>>);

struct Range {
    size_bytes: usize,
    /// `None`: memory of the driver's, which the copy's own ranges keep.
    registration: Option<Weak<Registration>>,
}

/// Keeps memory pinned.
pub(crate) type Pinned = Option<Arc<Registration>>;

impl PinnedRanges {
    pub(crate) fn add(&self, address: usize, size_bytes: usize, registration: Option<Weak<Registration>>) {
        self.0.lock().insert(address, Range { size_bytes, registration });
    }

    pub(crate) fn remove(&self, address: usize) {
        self.0.lock().remove(&address);
    }

    /// What keeps all of these bytes pinned. `None`: one of them is not.
    pub(crate) fn find(&self, address: usize, size_bytes: usize) -> Option<Pinned> {
        let ranges = self.0.lock();
        let (&begin, range) = ranges.range(..=address).next_back()?;
        let offset_bytes = address - begin;
        if offset_bytes > range.size_bytes || size_bytes > range.size_bytes - offset_bytes {
            return None;
        }
        match &range.registration {
            None => Some(None),
            Some(registration) => registration.upgrade().map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_must_be_in_one_range() {
        let ranges = PinnedRanges::default();
        ranges.add(1000, 100, None);
        ranges.add(1100, 10, None);
        let has = |address, bytes| ranges.find(address, bytes).is_some();
        assert!(has(1000, 100) && has(1050, 50) && has(1100, 10));
        assert!(!has(999, 2) && !has(1050, 51) && !has(1110, 1) && !has(0, 1));
        ranges.remove(1000);
        assert!(ranges.find(1000, 1).is_none());
    }
}
