//! What the handles of one client share: the backend, its memories, and the runner.
//!
//! Clients, devices, memory spaces and blocks of memory each hold a reference, and so does every copy in flight,
//! through its blocks. The last reference may be any of them, and may be dropped on any thread, also a worker of the
//! runner. Dropping the instance shuts the runner down and then closes the memories. A task that is queued on the
//! runner and holds a block keeps the instance; so when it is dropped, nothing queued there needs it any more.

mod in_flight;
mod listing;
mod runner;

use std::sync::Arc;

use crate::arena::Arena;
use crate::backend::{Backend, DeviceDescription, Operation, Schedule};
use crate::memory::Mappings;
use crate::memory::Space;
use crate::memory::{MemoryReport, MemorySpace};
pub(crate) use in_flight::{EndReason, InFlight};
use listing::Listing;
use purlin_async::event::Event;
use purlin_async::pool::ThreadPool;
use purlin_async::task::census;
use purlin_async::task::census::Occupied;
use purlin_base::fault::{self, Site};
use purlin_base::status::{Error, StatusOr};
use purlin_base::sync::PinnedArc;
use runner::ClientRunner;

/// Called when memory is short; true if it may have freed some.
///
/// ```
/// use std::sync::Arc;
///
/// use purlin::{ClientOptions, MemoryHook, MemoryReport};
///
/// let hook: MemoryHook = Arc::new(|report: &MemoryReport| {
///     eprintln!("{report}");
///     false // Nothing was freed, so the allocation fails.
/// });
/// let options = ClientOptions { on_out_of_memory: Some(hook), ..Default::default() };
/// assert!(options.on_out_of_memory.is_some());
/// ```
pub type MemoryHook = Arc<dyn Fn(&MemoryReport) -> bool + Send + Sync>;

/// See the module. Fields are dropped in this order.
pub(crate) struct Instance {
    runner: ClientRunner,
    /// Device by device, each with all kinds of the backend: space `k` of device `d` stands at `d * kinds + k`.
    spaces: Box<[Space]>,
    devices: Box<[DeviceDescription]>,
    out_of_memory: Option<MemoryHook>,
    checks_frozen_memory: bool,
    dma_mappings: Mappings,
    backend: Arc<dyn Backend>,
    /// By which stall reports know that this lives.
    _listing: Arc<Listing>,
}

/// What an instance is made of.
pub(crate) struct InstanceOptions {
    pub(crate) device_count: usize,
    /// Of each memory space; `None`: no limit.
    pub(crate) memory_limit_bytes: Option<usize>,
    pub(crate) out_of_memory: Option<MemoryHook>,
    pub(crate) checks_frozen_memory: bool,
}

impl Instance {
    /// Opens the memories of all devices.
    ///
    /// # Errors
    /// The backend's, if it cannot open one of them.
    pub(crate) fn open(
        backend: Arc<dyn Backend>,
        options: InstanceOptions,
        runner: ThreadPool,
    ) -> StatusOr<PinnedArc<Self>> {
        let InstanceOptions { device_count, memory_limit_bytes, out_of_memory, checks_frozen_memory } = options;
        let devices = backend.devices(device_count)?.into_boxed_slice();
        if devices.len() != device_count {
            return Err(Error::internal(format!(
                "the backend {} describes {} devices where {device_count} were asked for",
                backend.platform_name(),
                devices.len()
            )));
        }
        let kinds = backend.memory_kinds();
        let open = |(device, kind)| {
            fault::point(Site::OpenMemory)?;
            Ok((kind, Arena::new(backend.open_memory(device, kind)?, memory_limit_bytes)))
        };
        let spaces = (0..device_count).flat_map(|device| kinds.iter().map(move |&kind| (device, kind))).map(open);
        let (arenas, dma_mappings) = (spaces.collect::<StatusOr<Vec<_>>>()?, Mappings::new());
        let in_flight = InFlight::new(Box::new(runner.submitter()));
        let runner = ClientRunner { pool: runner, in_flight };
        Ok(PinnedArc::new_cyclic(|me| {
            let space = |(index, (kind, arena))| Space::new(me.uncounted(), index, kind, arena);
            let spaces = arenas.into_iter().enumerate().map(space).collect();
            let _listing = Arc::new(Listing(me.clone()));
            census::enlist(Arc::downgrade(&(Arc::clone(&_listing) as Arc<dyn Occupied>)));
            Self { runner, spaces, devices, out_of_memory, checks_frozen_memory, dma_mappings, backend, _listing }
        }))
    }

    pub(crate) fn backend(&self) -> &dyn Backend {
        &*self.backend
    }

    pub(crate) fn runner(&self) -> &ClientRunner {
        &self.runner
    }

    /// Host memory that is registered with the backend.
    pub(crate) fn dma_mappings(&self) -> &Mappings {
        &self.dma_mappings
    }

    /// What the backend says of its devices.
    pub(crate) fn devices(&self) -> &[DeviceDescription] {
        &self.devices
    }

    pub(crate) fn device_count(&self) -> usize {
        self.devices.len()
    }

    /// Does `operation` after `dependencies`, as the backend does it.
    #[inline(always)]
    pub(crate) fn run(&self, operation: Operation, dependencies: &[Event], caller_waits: bool) -> Event {
        self.backend.run(operation, &Schedule { dependencies, runner: &self.runner, caller_waits })
    }

    pub(super) fn out_of_memory(&self) -> Option<&MemoryHook> {
        self.out_of_memory.as_ref()
    }

    pub(super) fn checks_frozen_memory(&self) -> bool {
        self.checks_frozen_memory
    }

    pub(super) fn spaces(&self) -> &[Space] {
        &self.spaces
    }

    /// Fails whatever has not begun because it waits, for an event or for memory, now and later; says what that was.
    pub(crate) fn end(this: &PinnedArc<Self>, why: &EndReason) -> Vec<String> {
        let mut failed = this.runner.in_flight.end(why);
        for index in 0..this.spaces.len() {
            failed.extend(MemorySpace::new(this.clone(), index).end_waiting(why));
        }
        failed
    }

    /// How many memory spaces each device has.
    pub(super) fn kind_count(&self) -> usize {
        self.backend.memory_kinds().len()
    }
}
