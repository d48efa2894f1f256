//! How memory is asked for.

use purlin_async::event::Event;
use purlin_base::label::Label;

/// What to do when a space has no room.
///
/// ```
/// use std::sync::Arc;
///
/// use purlin::host::HostBackend;
/// use purlin::{AllocOptions, Client, ClientOptions, OomPolicy, RawBuffer};
///
/// let options = ClientOptions { memory_limit_bytes: 1 << 20, ..Default::default() };
/// let space = Client::new(&options, Arc::new(HostBackend::new()))?.devices()[0].default_memory_space();
/// let first = RawBuffer::allocate(&space, 900 << 10)?;
/// let waits = AllocOptions { oom: OomPolicy::Wait, ..Default::default() };
/// let second = RawBuffer::allocate_with(&space, 900 << 10, &waits)?;
/// assert!(!second.allocation_event().is_ready());
/// drop(first);
/// second.allocation_event().wait()?;
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(i32)]
#[non_exhaustive]
pub enum OomPolicy {
    /// Fail at once. What is only kept for later has been given back before that.
    #[default]
    Fail = 0,
    /// Ask the client's hook to free something, and try again for as long as it says that it may have, a thousand times
    /// at most; then fail. It is not asked where nothing that is freed could make room: more than the space's limit, or
    /// another error than that there is no memory.
    Retry = 1,
    /// Answer with memory that is not there yet: it is provided when enough has been freed, first come, first served.
    /// Fails at once if nothing is in use that could be freed.
    Wait = 2,
}

/// How memory is asked for.
///
/// ```
/// use purlin::{AllocOptions, RawBuffer};
/// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
/// # let space = client.devices()[0].default_memory_space();
///
/// let options = AllocOptions { label: c"weights".into(), alignment_bytes: 4096, ..Default::default() };
/// let memory = RawBuffer::allocate_with(&space, 1000, &options)?;
/// assert_eq!(memory.device_pointer()? % 4096, 0);
/// assert_eq!(space.report().holders[0].label, "weights");
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct AllocOptions {
    /// What it is for, as reports show it.
    pub label: Label,
    /// It begins at a multiple of this power of two, at most 1 GiB; 0: what the space has anyway.
    pub alignment_bytes: usize,
    /// When there is no room.
    pub oom: OomPolicy,
    /// It is not asked for before that. If the event fails, the memory fails with its error.
    pub after: Option<Event>,
}
