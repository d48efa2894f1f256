//! The symbols. Names, numbers and types are those of CUDA's header; handles and foreign enums are plain numbers.

mod context;
pub(crate) mod control;
mod copy;
mod device;
mod error;
mod event;
mod graph;
mod kernel;
mod memory;
mod pool;
mod stream;
