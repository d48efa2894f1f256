//! Purlin's host backend: real memory of this machine, any number of virtual devices.
//!
//! Every device has three memory spaces, `device`, `pinned_host` and `unpinned_host`. All are ordinary memory of the
//! process: there is no hardware to pin it for, and the names exist so that programs written for accelerators run here
//! unchanged. Memory is in huge pages where the kernel gives them, and stays warm until it has been idle for a while;
//! an allocator of the user's ([`ByteSource`]) is asked for every block instead.
//!
//! An operation without unfinished dependencies and on at most [`INLINE_LIMIT_BYTES`] runs inside the call; others are
//! tasks of the client's runner. Of a copy of 4 MiB or more, workers that are idle take pieces.

#![deny(unsafe_code)]

mod extent;
mod memory;
mod perform;
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
use purlin_device::backend::{
    AttributeValue, Backend, DeviceDescription, INLINE_LIMIT_BYTES, Memory, Operation, Schedule,
};

use purlin_device::platform::Platform;

pub use memory::{ALIGNMENT_BYTES, IMPORT_ALIGNMENT_BYTES};
pub use purlin_device::backend::ByteSource;
pub use source::SystemSource;

/// The platform of this backend.
pub const PLATFORM: Platform = Platform {
    name: "host",
    make: |options| Ok(Arc::new(HostBackend { source: options.host_memory_allocator.clone() })),
};

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
/// # Ok::<(), purlin::Error>(())
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

    fn devices(&self, count: usize) -> StatusOr<Vec<DeviceDescription>> {
        let cores = std::thread::available_parallelism().map_or(1, |cores| i64::try_from(cores.get()).unwrap_or(1));
        let device = DeviceDescription::of_kind("host").with_attribute("core_count", AttributeValue::Integer(cores));
        Ok(vec![device; count])
    }

    fn memory_kinds(&self) -> &'static [&'static str] {
        &["device", "pinned_host", "unpinned_host"]
    }

    fn open_memory(&self, _device: usize, _kind: &'static str) -> StatusOr<Box<dyn Memory>> {
        Ok(Box::new(memory::HostMemory::new(self.source.clone())))
    }

    // They are tasks of the client's pool, where a spare thread takes the place of one that waits.
    fn launches_may_wait(&self) -> bool {
        true
    }

    fn launches_inside_calls(&self) -> bool {
        true
    }

    fn run(&self, operation: Operation, schedule: &Schedule<'_>) -> Event {
        schedule.run_in_pieces(operation, INLINE_LIMIT_BYTES, perform::perform)
    }
}
