//! How memory is asked for.

use purlin_async::event::Event;
use purlin_base::label::Label;

/// What to do when a space has no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(i32)]
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
