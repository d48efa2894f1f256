//! A copy together with the host memory that it needs, so that cases are safe code.

use std::mem;

use purlin_async::Event;
use purlin_base::{Error, StatusOr};
use purlin_device::RawBuffer;

/// A copy from or to the host that owns the host's end.
pub(crate) struct HostCopy {
    event: Event,
    bytes: Vec<u8>,
}

impl HostCopy {
    /// Copies `bytes` to `buffer` at `offset_bytes`.
    pub(crate) fn to_device(buffer: &RawBuffer, offset_bytes: usize, bytes: Vec<u8>, dependencies: &[Event]) -> Self {
        // SAFETY: `bytes` lives here, untouched, until the event is terminal (see Drop). Cases order the copies that
        // touch the same device bytes by their dependencies.
        let event = unsafe { buffer.copy_from_host(bytes.as_ptr(), offset_bytes, bytes.len(), dependencies) };
        Self { event, bytes }
    }

    /// Copies `size_bytes` bytes at `offset_bytes` of `buffer` to the host.
    pub(crate) fn from_device(
        buffer: &RawBuffer,
        offset_bytes: usize,
        size_bytes: usize,
        dependencies: &[Event],
    ) -> Self {
        let mut bytes = vec![0xEE; size_bytes];
        // SAFETY: as in to_device().
        let event = unsafe { buffer.copy_to_host(bytes.as_mut_ptr(), offset_bytes, size_bytes, dependencies) };
        Self { event, bytes }
    }

    /// Copies the host's bytes to the start of `buffer`, after this copy and `dependencies`.
    pub(crate) fn sent_on(mut self, buffer: &RawBuffer, dependencies: &[Event]) -> Self {
        let dependencies = [dependencies, &[self.event.clone()]].concat();
        let bytes = mem::take(&mut self.bytes);
        // SAFETY: as in to_device(): the second copy waits for the first.
        let event = unsafe { buffer.copy_from_host(bytes.as_ptr(), 0, bytes.len(), &dependencies) };
        Self { event, bytes }
    }

    pub(crate) fn event(&self) -> &Event {
        &self.event
    }

    /// The host's bytes, after the copy.
    pub(crate) fn wait(mut self) -> StatusOr<Vec<u8>> {
        self.event.wait()?;
        Ok(mem::take(&mut self.bytes))
    }

    /// The error of a copy that must fail.
    #[track_caller]
    pub(crate) fn wait_error(self) -> Error {
        self.event.wait().expect_err("the copy should have failed")
    }
}

impl Drop for HostCopy {
    /// A case that panics while the copy is pending leaves the memory to it.
    fn drop(&mut self) {
        if !self.event.is_ready() {
            mem::forget(mem::take(&mut self.bytes));
        }
    }
}

/// Copies all of `source` to the start of `destination`.
pub(crate) fn between(source: &RawBuffer, destination: &RawBuffer, dependencies: &[Event]) -> Event {
    // SAFETY: cases order the copies that touch the same bytes by their dependencies.
    unsafe { source.copy_to(destination, dependencies) }
}
