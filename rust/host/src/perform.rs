//! What an operation does here: work on bytes that the host reaches.

#![allow(unsafe_code, reason = "bytes are moved by address")]

use purlin_base::Error;
use purlin_device::backend::{DeviceRange, IdleWorkers, Operation};

/// Does the work now; the dependencies have happened.
pub(crate) fn perform(operation: &mut Operation, idle: IdleWorkers<'_>) -> Result<(), Error> {
    // SAFETY: a schedule calls this after the dependencies and completes the event afterwards. The extents of ranges
    // are ours: readable and writable at their host's address.
    unsafe { operation.perform_in_pieces(idle, address) }
}

/// The first byte of a range of one of our extents.
fn address(range: &DeviceRange) -> *mut u8 {
    let (extent, offset_bytes) = range.place();
    let Some(base) = extent.host_address() else {
        unreachable!("core guarantees that ranges belong to the backend's own client")
    };
    base.as_ptr().wrapping_add(offset_bytes)
}
