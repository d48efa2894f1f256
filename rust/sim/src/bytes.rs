//! What a copy does to bytes, once it is known where they are.

#![allow(unsafe_code, reason = "bytes are copied by address")]

use std::ptr;

use purlin_device::backend::{CopyEnds, CopyOperation};

use crate::memory::{IN_FLIGHT_BYTE, Place};
use crate::shadow::Span;

/// Both ends of a copy.
pub(crate) struct Ends {
    from: *const u8,
    to: *mut u8,
    size_bytes: usize,
    /// Whose streams it uses: the device at its end, else that at its beginning.
    pub(crate) device: usize,
    /// Its destination is the host's.
    pub(crate) to_host: bool,
    /// Its destination is memory that only copies write.
    pub(crate) to_watched: bool,
}

impl Ends {
    /// Only after the copy's dependencies.
    pub(crate) fn of(operation: &CopyOperation) -> Self {
        let size_bytes = operation.size_bytes();
        match operation.ends() {
            CopyEnds::FromHost(from, to) => {
                let to = Place::of(to);
                let to_watched = !to.is_host_visible;
                let (from, device) = (from.address(), to.device);
                Self { from, to: to.address, size_bytes, device, to_host: false, to_watched }
            }
            CopyEnds::ToHost(from, to) => {
                let from = Place::of(from);
                let (device, to) = (from.device, to.address());
                Self { from: from.address, to, size_bytes, device, to_host: true, to_watched: false }
            }
            CopyEnds::Between(from, to) => {
                let (from, to) = (Place::of(from), Place::of(to));
                let to_watched = !to.is_host_visible;
                Self { from: from.address, to: to.address, size_bytes, device: to.device, to_host: false, to_watched }
            }
        }
    }

    /// What it reads.
    pub(crate) fn from(&self) -> Span {
        Span::new(self.from.addr(), self.size_bytes)
    }

    /// What it writes.
    pub(crate) fn to(&self) -> Span {
        Span::new(self.to.addr(), self.size_bytes)
    }

    /// The copy begins: code that looks at its destination now does not see what was there, nor what will be.
    ///
    /// # Safety
    /// The copy's contract: its dependencies have happened, its event has not.
    pub(crate) unsafe fn spoil(&self) {
        if self.from().intersection(self.to()).is_none() {
            // SAFETY: the destination is the copy's until its event: device memory that the operation keeps alive, or
            // memory of the host that its caller promised (RawBuffer's contract).
            unsafe { ptr::write_bytes(self.to, IN_FLIGHT_BYTE, self.size_bytes) }
        }
    }

    /// The copy ends.
    ///
    /// # Safety
    /// As [`spoil`](Self::spoil).
    pub(crate) unsafe fn transfer(&self) {
        // SAFETY: as in spoil(), for both ends; they may overlap, which ptr::copy allows.
        unsafe { ptr::copy(self.from, self.to, self.size_bytes) }
    }
}
