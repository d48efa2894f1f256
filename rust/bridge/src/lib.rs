//! Purlin for C++: converts, calls, converts. No logic, no threads, no state of its own.
//!
//! One module per public header. Functions cross by the module's `#[cxx::bridge]`, whose C++ half `build.rs` writes and
//! compiles. Those that inline C++ and the hottest paths call ([`status`], [`slab`], [`event`]), and those that take
//! closures, callbacks, tasks or structs of other libraries, are plain `extern "C"` functions, which cbindgen declares
//! for C++. `docs/ffi.md` has the rules; in short:
//!
//! - Handles are pointers to counted values (`purlin_ffi::handle`); C++ retains and releases, Rust makes and frees.
//! - Nothing fallible returns a `Result` to C++ (cxx would throw): an error leaves through a status pointer, null for
//!   OK.
//! - Nothing unwinds into C++: every function runs inside `purlin_ffi::panic::guard`, and a panic is a status like any
//!   other, or, where there is no status to give, inside `purlin_ffi::panic::contain`: it is reported, and the answer
//!   is nothing. `.ci/check/guards` looks that it is so, and names those that cannot panic, with the reasons.
//! - Text is received as bytes and is checked here, because `rust::Str` throws on what is not UTF-8.

#![allow(unreachable_pub, reason = "cxx writes pub before everything that it generates")]
#![allow(missing_debug_implementations, reason = "no Rust program sees its types, many of which cxx writes")]

pub mod abi;
pub mod alloc_options;
pub mod buffer;
pub mod buffer_create;
pub mod buffer_holds;
pub mod buffer_promise;
mod buffer_rep;
pub mod callback;
pub mod cancel;
pub mod client;
#[cfg(feature = "cuda")]
pub mod compile_cache;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod device;
#[cfg(feature = "interchange")]
pub mod dlpack;
pub mod dma;
pub mod dtype;
pub mod elastic_pool;
pub mod event;
pub mod executable;
pub mod executor;
pub mod foreign_executor;
pub mod host_buffer;
pub mod host_memory_allocator;
pub mod host_shards;
pub mod kernel;
pub mod kernel_symbol;
pub mod layout;
pub mod loaded_kernel;
pub mod memory_hook;
pub mod memory_report;
#[cfg(feature = "interchange")]
pub mod npy;
pub mod piece_callback;
#[cfg(feature = "pjrt")]
pub mod pjrt;
pub mod program;
pub mod raw_buffer;
pub mod raw_buffer_promise;
#[cfg(feature = "interchange")]
pub mod safetensors;
pub mod semaphore;
pub mod serial_queue;
pub mod shape;
pub mod slab;
pub mod source_location;
pub mod staging;
pub mod stall;
pub mod status;
pub mod task_options;
pub mod timer;
pub mod trace;
pub mod transfer;
pub mod user_context;
#[cfg(feature = "xla-cpu")]
pub mod xla_cpu;
#[cfg(feature = "xla-cpu")]
pub mod xla_ffi_host;
