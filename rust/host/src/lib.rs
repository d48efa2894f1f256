//! Purlin's host backend: real memory of this machine, any number of virtual devices.
//!
//! Every device has three memory spaces, `device`, `pinned_host` and `unpinned_host`. All are ordinary memory of the
//! process: there is no hardware to pin it for, and the names exist so that programs written for accelerators run here
//! unchanged. Memory is in huge pages where the kernel gives them, and stays warm until it has been idle for a while;
//! an allocator of the user's ([`ByteSource`]) is asked for every block instead.
//!
//! A copy without unfinished dependencies and of at most [`INLINE_LIMIT_BYTES`] runs inside the call; others are tasks
//! of the client's runner.

#![deny(unsafe_code)]

mod copy;
mod extent;
mod memory;
#[cfg(purlin_asan)]
mod poison;
#[cfg(not(purlin_asan))]
#[path = "poison_disabled.rs"]
mod poison;
mod source;

use std::fmt;
use std::sync::Arc;

use purlin_async::Event;
use purlin_base::StatusOr;
use purlin_device::backend::{Backend, CopyOperation, CopySchedule, INLINE_LIMIT_BYTES, Memory};

pub use memory::{ALIGNMENT_BYTES, IMPORT_ALIGNMENT_BYTES};
pub use source::{ByteSource, SystemSource};

/// See the crate.
///
/// ```
/// use std::sync::Arc;
///
/// use purlin::host::HostBackend;
/// use purlin::{Client, ClientOptions};
///
/// let client = Client::new(&ClientOptions::default(), Arc::new(HostBackend::new()))?;
/// let kinds: Vec<_> = client.devices()[0].memory_spaces().iter().map(|space| space.kind()).collect();
/// assert_eq!(kinds, ["device", "pinned_host", "unpinned_host"]);
/// # Ok::<(), purlin::Status>(())
/// ```
#[derive(Clone)]
pub struct HostBackend {
    source: Option<Arc<dyn ByteSource>>,
}

impl HostBackend {
    /// A backend on memory of the system.
    #[must_use]
    pub fn new() -> Self {
        Self { source: None }
    }

    /// A backend that takes every block from `source` and gives it back to it: an allocator of the user's, or one that
    /// fails when a test wants it to.
    #[must_use]
    pub fn with_source(source: Arc<dyn ByteSource>) -> Self {
        Self { source: Some(source) }
    }
}

impl Default for HostBackend {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for HostBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostBackend").finish_non_exhaustive()
    }
}

impl Backend for HostBackend {
    fn platform_name(&self) -> &'static str {
        "host"
    }

    fn memory_kinds(&self) -> &'static [&'static str] {
        &["device", "pinned_host", "unpinned_host"]
    }

    fn open_memory(&self, _device: usize, _kind: &'static str) -> StatusOr<Box<dyn Memory>> {
        Ok(Box::new(memory::HostMemory::new(self.source.clone())))
    }

    fn copy(&self, operation: CopyOperation, schedule: &CopySchedule<'_>) -> Event {
        schedule.run(operation, INLINE_LIMIT_BYTES, copy::execute)
    }
}
