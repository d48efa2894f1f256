//! What the handles of one client share: the backend, its memories, and the runner.
//!
//! Clients, devices, memory spaces and blocks of memory each hold a reference, and so does every copy in flight,
//! through its blocks. The last reference may be any of them, and may be dropped on any thread, also a worker of the
//! runner. Dropping the instance shuts the runner down and then closes the memories. A task that is queued on the
//! runner and holds a block keeps the instance; so when it is dropped, nothing queued there needs it any more.

use std::panic::Location;
use std::sync::Arc;

use crate::backend::{Backend, DeviceDescription, ForeignWork, Keep, Operation, Schedule};
use crate::dma::Mappings;
use crate::in_flight::ClientRunner;
use purlin_async::event::{Event, StreamEventMap};
use purlin_async::task::census::{self, Occupied};
use purlin_base::sync::{PinnedArc, PinnedWeak};

/// See the module. `S` is a memory space: what that is, the room above knows. Fields are dropped in this order.
pub(crate) struct Instance<S> {
    runner: ClientRunner,
    /// Device by device, each with all kinds of the backend: space `k` of device `d` stands at `d * kinds + k`.
    spaces: Box<[S]>,
    devices: Box<[DeviceDescription]>,
    dma_mappings: Arc<Mappings>,
    execution_streams: StreamEventMap,
    backend: Arc<dyn Backend>,
    /// By which stall reports know that this lives.
    _listing: Arc<dyn Occupied>,
}

impl<S> Instance<S> {
    /// `spaces` and `listing` are made of a reference that cannot be followed before this returns.
    pub(crate) fn new(
        backend: Arc<dyn Backend>,
        devices: Box<[DeviceDescription]>,
        runner: ClientRunner,
        spaces: impl FnOnce(&PinnedWeak<Self>) -> Box<[S]>,
        listing: impl FnOnce(&PinnedWeak<Self>) -> Arc<dyn Occupied>,
    ) -> PinnedArc<Self> {
        PinnedArc::new_cyclic(|me| {
            let (spaces, dma_mappings, _listing) = (spaces(me), Arc::new(Mappings::new()), listing(me));
            census::enlist(Arc::downgrade(&_listing));
            let execution_streams = StreamEventMap::new();
            Self { runner, spaces, devices, dma_mappings, execution_streams, backend, _listing }
        })
    }

    pub(crate) fn backend(&self) -> &dyn Backend {
        &*self.backend
    }

    pub(crate) fn runner(&self) -> &ClientRunner {
        &self.runner
    }

    /// Host memory that is registered with the backend.
    pub(crate) fn dma_mappings(&self) -> &Arc<Mappings> {
        &self.dma_mappings
    }

    /// The last run of each execution stream.
    pub(crate) fn execution_streams(&self) -> &StreamEventMap {
        &self.execution_streams
    }

    /// What the backend says of its devices.
    pub(crate) fn devices(&self) -> &[DeviceDescription] {
        &self.devices
    }

    pub(crate) fn device_count(&self) -> usize {
        self.devices.len()
    }

    pub(crate) fn spaces(&self) -> &[S] {
        &self.spaces
    }

    /// How many memory spaces each device has.
    pub(crate) fn kind_count(&self) -> usize {
        self.backend.memory_kinds().len()
    }

    /// Does `operation`, which was asked for at `location`, after `dependencies`, as the backend does it. `kept` is
    /// dropped before its event happens.
    #[inline(always)]
    pub(crate) fn run(
        &self,
        location: &'static Location<'static>,
        operation: Operation,
        dependencies: &[Event],
        caller_waits: bool,
        kept: Option<&Keep>,
    ) -> Event {
        self.backend.run(operation, &Schedule { dependencies, runner: &self.runner, caller_waits, location, kept })
    }

    /// Ends `operation`, which was asked for at `location`, when that work of others is over.
    pub(crate) fn await_foreign(
        &self,
        location: &'static Location<'static>,
        device: usize,
        work: ForeignWork,
        operation: Operation,
    ) -> Event {
        let schedule = Schedule { dependencies: &[], runner: &self.runner, caller_waits: false, location, kept: None };
        self.backend.await_foreign(device, work, operation, &schedule)
    }
}
