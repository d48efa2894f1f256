//! How much memory of each GPU a client has from the driver, on all its devices there. What is used of a GPU beyond
//! that is of others.

use std::collections::BTreeMap;

use purlin_base::sync::Mutex;

/// Bytes by the GPU's number at the driver.
#[derive(Default)]
pub(crate) struct MappedBytes(Mutex<BTreeMap<usize, usize>>);

impl MappedBytes {
    pub(crate) fn add(&self, ordinal: usize, size_bytes: usize) {
        *self.0.lock().entry(ordinal).or_default() += size_bytes;
    }

    pub(crate) fn remove(&self, ordinal: usize, size_bytes: usize) {
        *self.0.lock().entry(ordinal).or_default() -= size_bytes;
    }

    pub(crate) fn of(&self, ordinal: usize) -> usize {
        self.0.lock().get(&ordinal).copied().unwrap_or(0)
    }
}
