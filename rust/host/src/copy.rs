//! What a copy does here: one memmove.

#![allow(unsafe_code, reason = "bytes are copied by address")]

use std::ptr;

use purlin_base::Status;
use purlin_device::backend::{CopyEnds, CopyOperation, DeviceRange};

/// Copies now; the dependencies have happened.
pub(crate) fn execute(operation: &CopyOperation) -> Result<(), Status> {
    let (source, destination) = match operation.ends() {
        CopyEnds::FromHost(source, destination) => (source.address(), address(destination)),
        CopyEnds::ToHost(source, destination) => (address(source).cast_const(), destination.address()),
        CopyEnds::Between(source, destination) => (address(source).cast_const(), address(destination)),
    };
    // SAFETY: both ends are `size_bytes()` long. A device end lies inside a block that the operation keeps alive; a
    // host end is kept by the caller that asked for the copy until its event. Nothing else writes either end meanwhile:
    // that is the contract of RawBuffer's copies. The ends may overlap, which ptr::copy allows.
    unsafe { ptr::copy(source, destination, operation.size_bytes()) }
    Ok(())
}

/// The first byte of a range of one of our extents.
fn address(end: &DeviceRange) -> *mut u8 {
    let (extent, offset_bytes) = end.place();
    let Some(base) = extent.host_address() else {
        unreachable!("core guarantees that both ends belong to the backend's own client")
    };
    base.as_ptr().wrapping_add(offset_bytes)
}
