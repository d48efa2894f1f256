//! A fake `libcuda.so.1`, for tests only: it is found in the driver's place through LD_LIBRARY_PATH, so that the code
//! that ships runs unchanged where no GPU is.
//!
//! - `api`: the entry points, by group, as C calls them: convert, call, convert (`boundary`).
//! - `driver`, `state`: the one driver and its books, under one lock; `context`, `stream`, `event`, `memory`, `graph`,
//!   `exec`, `kernel`: what CUDA has, with its rules; `operation`: what a stream runs.
//! - `detector`: missing waits and wrong uses of memory, by the clocks of enqueueing.
//! - `watch`: who calls what.
//! - `api::control`: what tests ask and turn; `purlin-fakecuda` has it for Rust. The environment says the rest
//!   (`purlin-fakecuda-options`; docs/testing.md has the table).
//!
//! Handles are numbers that are never used twice, so what is not a handle, or not any more, is answered as such. Codes
//! and foreign enums are numbers throughout.

#![deny(unsafe_code)]

mod allocation;
mod api;
mod attribute;
mod boundary;
mod code;
mod context;
mod copy;
mod detector;
mod driver;
mod entry;
mod event;
mod exec;
mod fault;
mod graph;
mod kernel;
mod memory;
mod operation;
mod pointer;
mod pool_call;
mod state;
mod stream;
mod stream_call;
mod sync;
mod thread;
mod watch;
