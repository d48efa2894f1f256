//! Memory of a device that was not allocated by Purlin, for cases that import it.

#![allow(unsafe_code, reason = "memory is allocated and freed by hand")]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fmt;

/// Memory that somebody else has allocated for a case. Its contents are unspecified.
pub struct Lent {
    /// Of its first byte, as the device sees it; a multiple of 64.
    pub address: *mut u8,
    /// How many bytes there are.
    pub size_bytes: usize,
    /// Frees it. Called once, on any thread, when nothing uses the memory any more.
    pub take_back: Box<dyn FnOnce() + Send + Sync>,
}

impl fmt::Debug for Lent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lent({} bytes at {:p})", self.size_bytes, self.address)
    }
}

/// Allocates memory of the device of that number for a case to import.
pub type Lend = fn(device: usize, size_bytes: usize) -> Lent;

/// Memory of the host, for backends whose devices use it. When it is taken back it is overwritten before it is freed,
/// so that a copy that is still to come finds other bytes.
#[must_use]
pub fn lend_host_memory(_device: usize, size_bytes: usize) -> Lent {
    let layout = Layout::from_size_align(size_bytes, 64).expect("cases ask for little memory");
    assert!(size_bytes > 0, "cases ask for some memory");
    // SAFETY: the layout has a size.
    let address = unsafe { alloc_zeroed(layout) };
    assert!(!address.is_null(), "the host has a few megabytes");
    let exposed = address.expose_provenance();
    let take_back = move || {
        let address = std::ptr::with_exposed_provenance_mut::<u8>(exposed);
        // SAFETY: allocated above with this layout; this is called once, when nothing uses it.
        unsafe {
            std::ptr::write_bytes(address, 0xDD, layout.size());
            dealloc(address, layout);
        }
    };
    Lent { address, size_bytes, take_back: Box::new(take_back) }
}
