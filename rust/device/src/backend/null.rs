//! The backend that does the accounting of memory and holds no bytes. Copy this file to begin a new one.
//!
//! Memory has a limit per space, so that running out of it can be met; copies between device memories and from the host
//! complete, since no program can see a difference; a copy to the host and a launch fail with `Unimplemented`, because
//! there are no bytes to give.

use std::ptr::NonNull;
use std::sync::Arc;

use super::{Backend, Extent, INLINE_LIMIT_BYTES, Memory, Operation, Schedule, Work};
use purlin_async::event::Event;
use purlin_base::status::{Error, StatusOr};
use purlin_base::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that one memory space hands out at most: a tebibyte.
const CAPACITY_BYTES: usize = 1 << 40;

/// See the module.
///
/// ```
/// use std::sync::Arc;
///
/// use purlin::{Client, ClientOptions, NullBackend, RawBuffer};
///
/// let client = Client::new(&ClientOptions::default(), Arc::new(NullBackend::new()))?;
/// let space = client.devices()[0].default_memory_space();
/// let memory = RawBuffer::allocate(&space, 1 << 30)?;
/// assert_eq!(space.stats().bytes_in_use, 1 << 30, "accounted for, though there are no bytes");
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct NullBackend;

impl NullBackend {
    /// A backend; it has no state.
    #[must_use]
    pub fn new() -> Self {
        Self
    }
}

impl Backend for NullBackend {
    fn platform_name(&self) -> &'static str {
        "null"
    }

    fn memory_kinds(&self) -> &'static [&'static str] {
        &["device", "pinned_host", "unpinned_host"]
    }

    fn open_memory(&self, _device: usize, _kind: &'static str) -> StatusOr<Box<dyn Memory>> {
        Ok(Box::new(NullMemory { used_bytes: Arc::new(AtomicUsize::new(0)) }))
    }

    fn run(&self, operation: Operation, schedule: &Schedule<'_>) -> Event {
        schedule.run(operation, INLINE_LIMIT_BYTES, execute)
    }
}

/// What an operation does here.
#[allow(unsafe_code, reason = "a call is performed; it has no address to ask for")]
fn execute(operation: &mut Operation) -> Result<(), Error> {
    match operation.work() {
        Work::CopyFromHost(..) | Work::Copy => Ok(()),
        // SAFETY: Schedule::run() has seen the dependencies, and completes the event afterwards. A call asks for no
        // address.
        Work::Call(..) | Work::Called(_) => unsafe { operation.perform(|_range| std::ptr::null_mut()) },
        Work::CopyToHost(..) | Work::Gather(..) | Work::Scatter(..) | Work::Launch { .. } => {
            Err(Error::unimplemented(format!("the null backend holds no bytes: no {operation:?}")))
        }
    }
}

/// Memory without bytes.
struct NullMemory {
    used_bytes: Arc<AtomicUsize>,
}

impl Memory for NullMemory {
    fn map(&self, size_bytes: usize, _alignment_bytes: usize) -> StatusOr<Arc<dyn Extent>> {
        // Relaxed: the counter publishes nothing but itself.
        let taken = self.used_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used_bytes| {
            used_bytes.checked_add(size_bytes).filter(|&sum| sum <= CAPACITY_BYTES)
        });
        match taken {
            Ok(_) => Ok(Arc::new(NullExtent { size_bytes, used_bytes: Arc::clone(&self.used_bytes) })),
            Err(_) => {
                Err(Error::resource_exhausted(format!("the null backend lends {CAPACITY_BYTES} bytes per space")))
            }
        }
    }

    fn import(&self, _address: usize, _size_bytes: usize) -> StatusOr<Option<Arc<dyn Extent>>> {
        Ok(Some(Arc::new(NullExtent { size_bytes: 0, used_bytes: Arc::clone(&self.used_bytes) })))
    }
}

/// A charge in the accounting of a [`NullMemory`]; dropping it takes the charge back.
struct NullExtent {
    size_bytes: usize,
    used_bytes: Arc<AtomicUsize>,
}

impl Extent for NullExtent {
    /// All extents are nowhere.
    fn address(&self) -> usize {
        0
    }

    fn host_address(&self) -> Option<NonNull<u8>> {
        None
    }
}

impl Drop for NullExtent {
    fn drop(&mut self) {
        // Relaxed: as in map().
        self.used_bytes.fetch_sub(self.size_bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use purlin_base::status::StatusCode;

    #[test]
    fn memory_is_lent_up_to_the_limit_and_taken_back() {
        let memory = NullBackend::new().open_memory(0, "device").unwrap();
        let all = memory.map(CAPACITY_BYTES, 64).unwrap();
        assert_eq!(memory.map(1, 64).err().unwrap().code(), StatusCode::ResourceExhausted);
        drop(all);
        assert!(memory.map(1, 64).is_ok());
        assert!(memory.map(usize::MAX, 64).is_err());
    }
}
