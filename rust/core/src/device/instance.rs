//! What the handles of one client share: the backend, its memories, and the runner.
//!
//! Clients, devices, memory spaces and blocks of memory each hold a reference, and so does every copy in flight, through
//! its blocks. The last one to go may be any of them, on any thread, also a worker of the runner; dropping the instance
//! shuts the runner down and then closes the memories. A task that is queued on the runner and holds a block keeps the
//! instance; so when it goes, nothing queued there needs it any more.

use std::sync::Arc;

use super::stats::Ledger;
use crate::backend::{Backend, Memory};
use crate::exec::ThreadPool;
use crate::status::StatusOr;

/// One kind of memory of one device.
pub(super) struct Space {
    pub(super) kind: &'static str,
    pub(super) memory: Box<dyn Memory>,
    pub(super) ledger: Ledger,
}

/// See the module. Fields are dropped in this order.
pub(crate) struct Instance {
    runner: ThreadPool,
    /// Device by device, each with all kinds of the backend: space `k` of device `d` stands at `d * kinds + k`.
    spaces: Box<[Space]>,
    device_count: usize,
    backend: Arc<dyn Backend>,
}

impl Instance {
    /// Opens the memories of `device_count` devices.
    ///
    /// # Errors
    /// The backend's, if it cannot open one of them.
    pub(crate) fn open(backend: Arc<dyn Backend>, device_count: usize, runner: ThreadPool) -> StatusOr<Arc<Self>> {
        let kinds = backend.memory_kinds();
        let spaces = (0..device_count)
            .flat_map(|device| kinds.iter().map(move |&kind| (device, kind)))
            .map(|(device, kind)| Ok(Space { kind, memory: backend.open_memory(device, kind)?, ledger: Ledger::new() }))
            .collect::<StatusOr<_>>()?;
        Ok(Arc::new(Self { runner, spaces, device_count, backend }))
    }

    pub(crate) fn backend(&self) -> &dyn Backend {
        &*self.backend
    }

    pub(crate) fn runner(&self) -> &ThreadPool {
        &self.runner
    }

    pub(crate) fn device_count(&self) -> usize {
        self.device_count
    }

    pub(super) fn spaces(&self) -> &[Space] {
        &self.spaces
    }

    /// How many memory spaces each device has.
    pub(super) fn kind_count(&self) -> usize {
        self.backend.memory_kinds().len()
    }
}
