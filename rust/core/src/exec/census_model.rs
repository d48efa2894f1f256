//! Nobody asks in a model.

use std::sync::Weak;

/// See `census.rs`.
#[derive(Default)]
pub(crate) struct Occupation {
    pub(crate) text: String,
    pub(crate) running: Option<usize>,
    pub(crate) queued: Vec<usize>,
    pub(crate) standstill: Option<(usize, usize)>,
}

/// See `census.rs`.
pub(crate) trait Occupied: Send + Sync {
    fn occupation(&self) -> Occupation;
}

pub(crate) fn enlist(_executor: Weak<dyn Occupied>) {}
