//! Purlin's host backend: real memory of this machine, any number of virtual devices.
//!
//! Every device has two memory spaces, `device` and `pinned_host`. Both are ordinary memory of the process: there is no
//! hardware to pin it for, and the two names exist so that programs written for accelerators run here unchanged.
//!
//! A copy without unfinished dependencies and of at most [`INLINE_LIMIT_BYTES`] runs inside the call; others are tasks of
//! the client's runner.

#![deny(unsafe_code)]

mod copy;
mod memory;
mod source;

use std::fmt;
use std::sync::Arc;

use purlin::backend::{Backend, CopyOperation, CopySchedule, Memory};
use purlin::{Event, StatusOr};

pub use copy::INLINE_LIMIT_BYTES;
pub use memory::ALIGNMENT_BYTES;
pub use source::{ByteSource, SystemSource};

/// See the crate.
#[derive(Clone)]
pub struct HostBackend {
    source: Arc<dyn ByteSource>,
}

impl HostBackend {
    /// A backend on the memory of the process's allocator.
    #[must_use]
    pub fn new() -> Self {
        Self::with_source(Arc::new(SystemSource))
    }

    /// A backend on memory from `source`, such as one that fails when a test wants it to.
    #[must_use]
    pub fn with_source(source: Arc<dyn ByteSource>) -> Self {
        Self { source }
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
        &["device", "pinned_host"]
    }

    fn open_memory(&self, _device: usize, _kind: &'static str) -> StatusOr<Box<dyn Memory>> {
        Ok(Box::new(memory::HostMemory::new(Arc::clone(&self.source))))
    }

    fn copy(&self, operation: CopyOperation, schedule: &CopySchedule<'_>) -> Event {
        schedule.run(operation, INLINE_LIMIT_BYTES, copy::execute)
    }
}
