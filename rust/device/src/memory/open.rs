//! The memories of a client's devices, opened: what its handles share.

use std::sync::Arc;

use super::Instance;
use super::listing::Listing;
use super::report::MemoryReport;
use super::space::{Space, SpaceRules};
use crate::arena::Arena;
use crate::backend::Backend;
use crate::in_flight::ClientRunner;
use purlin_async::pool::ThreadPool;
use purlin_base::fault::{self, Site};
use purlin_base::status::{Error, StatusOr};
use purlin_base::sync::PinnedArc;

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

/// Opens the memories of `device_count` devices, each of which takes at most `memory_limit_bytes` from the system.
///
/// # Errors
/// The backend's, if it cannot open one of them.
pub(crate) fn open_memories(
    backend: Arc<dyn Backend>,
    device_count: usize,
    memory_limit_bytes: Option<usize>,
    rules: &SpaceRules,
    pool: ThreadPool,
) -> StatusOr<PinnedArc<Instance>> {
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
    let arenas = (0..device_count).flat_map(|device| kinds.iter().map(move |&kind| (device, kind))).map(open);
    let arenas = arenas.collect::<StatusOr<Vec<_>>>()?;
    Ok(Instance::new(
        backend,
        devices,
        ClientRunner::new(pool),
        |me| {
            let space = |(index, (kind, arena))| Space::new(me.uncounted(), index, kind, arena, rules.clone());
            arenas.into_iter().enumerate().map(space).collect()
        },
        |me| Arc::new(Listing(me.clone())),
    ))
}
