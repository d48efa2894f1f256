//! Custom calls: a host of XLA's FFI, version 0.3, so that handlers compiled against XLA's own header run in programs
//! that Purlin loads.
//!
//! | module | what it is |
//! |---|---|
//! | `abi` | the structs of XLA's C header |
//! | `text`, `numbers` | attributes, read from MLIR's text |
//! | `attributes` | attributes, and their form in C |
//! | `errors` | errors and futures: the objects that cross by address |
//! | `state` | types of the user's; states of handlers |
//! | `handlers` | what users meet: handlers by name, their versions, the data of a run |
//! | `context` | what a handler can ask about its call: run, device, memory, threads, states |
//! | `api` | the table of functions that handlers call |
//! | `call` | a custom call as a library call of a program |
//!
//! Stages: `instantiate` is called when the program is loaded, once for each custom call; `prepare`, `initialize` and
//! `execute` in each run, one after the other, on the thread of the run. A handler that returns a future keeps its
//! command until the future is complete. The thread of the run waits for it; if it is one of the client's pool, another
//! thread takes its place, so that the pool has as many threads as before.
//!
//! A handler is code that the caller vouches for. What it returns is checked where that is possible: versions, sizes of
//! structs, type ids, scratch memory.

mod abi;
mod api;
mod attributes;
mod call;
mod context;
mod errors;
mod handlers;
mod numbers;
mod state;
#[cfg(all(test, target_arch = "x86_64"))]
pub(crate) mod tests;
mod text;

pub(crate) use self::abi::TOKEN;
#[cfg(test)]
pub(crate) use self::attributes::Lowered;
pub(crate) use self::call::{BufferType, CustomCall};
pub(crate) use self::text::parse as parse_attributes;
pub use handlers::{FfiBundle, FfiDeleter, FfiFunction, FfiHandlers, FfiUserData, ffi_api, register_ffi_type};
