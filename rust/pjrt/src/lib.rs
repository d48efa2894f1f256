//! PJRT's C API in Rust: events, promises, errors and raw buffers as the tables of C functions by which XLA's plugins
//! pass them to each other, and theirs as ours; the objects of a plugin, reached through its `PJRT_Api`.
//!
//! Every table of ours is static, whole and never changes; its slots are plain functions, and each takes null for what
//! has already happened or for nothing at all. A foreign table is read no further than its `struct_size` goes.
//!
//! One file per kind of object, with the same names in each: `give` hands one of ours to C, which owns a reference;
//! `take` takes over a reference to one of theirs, or to one that was given. Errors that a slot cannot return become
//! the error of the event that it makes; nothing that a slot was given is lost.
//!
//! Threads: every slot may be called from every thread; callbacks run on the thread that completes.
//!
//! The bridge gives these functions names for C++ (`purlin/adapters/pjrt_tables.h`); `rust/plugin` is made of them.
//! This crate exports no symbol.

pub mod abi;
pub mod device_event;
pub mod error;
pub mod event;
pub mod foreign;
pub mod promise;
pub mod raw_buffer;
#[cfg(test)]
mod tests;
pub mod vector;

use purlin_base::label::Label;

/// What imported events are called in reports.
const fn label() -> Label {
    Label::new(c"PJRT event")
}
