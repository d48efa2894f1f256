//! What every crate of Purlin is built on.
//!
//! Nothing in here knows of events, executors or devices. Users of Rust see of it what the crate `purlin` re-exports.
//! Bottom up; a module may only use those above it in this list:
//!
//! | module | what it is |
//! |---|---|
//! | [`sync`] | locks, atomics and threads, from std, loom, shuttle or parking_lot; they keep clear of `fork` |
//! | [`stderr`] | what Purlin itself says there |
//! | `static_text` | static strings known by one pointer |
//! | [`status`] | [`Error`]: absl's codes, one word, cheap to share |
//! | [`label`] | [`Label`]: the name of an event or a task |
//! | [`fault`] | places that fail on purpose, in tests |
//! | [`panics`] | panics of callbacks, contained |
//! | [`quoted`] | strings of JSON |
//! | [`replaced_file`] | files that appear whole or not at all |
//! | [`clock`] | milliseconds that cost one load |
//! | [`thread_state`] | what each thread keeps for itself, shared with C++ |
//! | [`slab`] | the memory of events, waiters, tasks and small counted values |
//! | [`turns`] | queues that are served by one thread at a time |

#![deny(unsafe_code)]

pub mod clock;
pub mod fault;
pub mod label;
pub mod panics;
pub mod quoted;
// Its numbers are of the process, which models do not have.
#[cfg(not(purlin_model))]
pub mod replaced_file;
#[doc(hidden)]
pub mod slab;
pub mod static_text;
pub mod status;
pub mod stderr;
pub mod sync;
#[doc(hidden)]
pub mod thread_state;
pub mod turns;

pub use label::Label;
pub use status::{Error, SourceLocation, StatusCode, StatusOr};
