//! Debugging of host memory that is not to be written for a while: whether it was.

#![allow(unsafe_code, reason = "host memory is read by address")]

use std::hash::{DefaultHasher, Hasher};

use purlin_array::shape::Shape;
use purlin_base::status::{Error, SourceLocation};

/// What host memory was when it was given to us.
pub(super) struct Frozen {
    data: *const u8,
    shape: Shape,
    checksum: u64,
    place: SourceLocation,
}

// SAFETY: from_host_array's caller promises that any thread may read there until `on_done` is called.
unsafe impl Send for Frozen {}
// SAFETY: as above; a shared reference gives nothing away.
unsafe impl Sync for Frozen {}

impl Frozen {
    /// # Safety
    /// `shape.size_bytes()` bytes at `data` are readable now, and when [`check`](Self::check) is called.
    pub(super) unsafe fn new(data: *const u8, shape: &Shape, place: SourceLocation) -> Self {
        // SAFETY: the caller's promise.
        let checksum = unsafe { checksum(data, shape.size_bytes()) };
        Self { data, shape: shape.clone(), checksum, place }
    }

    /// `FailedPrecondition`, naming the array and where it was given to us, if the memory is not what it was.
    ///
    /// # Safety
    /// As [`new`](Self::new) says.
    pub(super) unsafe fn check(self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        if unsafe { checksum(self.data, self.shape.size_bytes()) } == self.checksum {
            return Ok(());
        }
        let error = Error::with_location(
            purlin_base::StatusCode::FailedPrecondition,
            format!(
                "the host memory of {} at {:p}, given at {}, was written although it was to stay as it is until its on_done",
                self.shape, self.data, self.place
            ),
            self.place,
        );
        tracing::error!(target: "purlin", %error, "frozen host memory was written");
        Err(error)
    }
}

/// # Safety
/// `size_bytes` bytes at `data` are readable; other code may write them, which is what this is to find out.
unsafe fn checksum(data: *const u8, size_bytes: usize) -> u64 {
    let mut hasher = DefaultHasher::new();
    for offset in (0..size_bytes).step_by(8) {
        let mut word = [0; 8];
        let length = (size_bytes - offset).min(8);
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(data.add(offset), word.as_mut_ptr(), length) };
        hasher.write_u64(u64::from_ne_bytes(word));
    }
    hasher.finish()
}
