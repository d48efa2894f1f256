//! A loader for executables that stock XLA compiled for CPUs: it parses and links them to Purlin programs, which run
//! without XLA in the process.
//!
//! | module | what it is |
//! |---|---|
//! | `fault` | errors for damaged bytes, with their offset; the list of reasons why a program cannot run here |
//! | `proto` | the serialized executable as messages, by field number |
//! | `fusion` | fused computations without code, read and planned when the program is loaded |
//! | `library` | library calls: sorts, matrix products, convolutions, transforms |
//! | `ffi` | custom calls: a host of XLA's FFI for handlers that the caller gives ([`FfiHandlers`]) |
//! | `module` | the executable as a program without code, before any code is mapped |
//! | `link` | the linker: relocatable files become code in memory |
//! | `load` | [`load_program`]: all of these steps, in order, and validation before code is mapped |
//!
//! The bytes are untrusted. Every number in them is checked before it is used as an index or as a length to allocate. A
//! step, field, symbol or relocation that the loader does not know is a reason to refuse the program. The error lists
//! all reasons, and the loader reports it before it maps any code. The caller can then run the program with XLA
//! instead. The machine code itself cannot be checked: the loader loads it only if the caller vouches for it
//! ([`LoadOptions::trust_code`]).
//!
//! All steps run on the calling thread, and none runs any of the executable's code. Handlers of custom calls are asked
//! to `instantiate` before code is mapped.
//!
//! ```
//! use purlin::StatusCode;
//! use purlin_xla_cpu::{LoadOptions, check, load_program};
//!
//! let options = LoadOptions { trust_code: true, ..Default::default() };
//! assert_eq!(load_program(b"not an executable", &options).unwrap_err().code(), StatusCode::DataLoss);
//! assert_eq!(check(b"").unwrap_err().message(), "XLA:CPU executable, byte 0: the bytes end inside a number");
//! ```
//!
//! `examples/python/export_xla.py` writes executables with stock JAX, and the example `run_xla` runs them.

#![deny(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod fault;
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, unused_imports, reason = "no program is loaded there"))]
mod ffi;
#[cfg(target_arch = "x86_64")]
mod fusion;
#[cfg(all(test, target_arch = "x86_64"))]
mod fuzz;
#[cfg(target_arch = "x86_64")]
mod library;
#[cfg(target_arch = "x86_64")]
mod link;
#[cfg_attr(not(target_arch = "x86_64"), path = "load_disabled.rs")]
mod load;
#[cfg(target_arch = "x86_64")]
mod module;
#[cfg(target_arch = "x86_64")]
mod proto;
#[cfg(all(test, target_arch = "x86_64"))]
mod random_arrays;

pub use ffi::{FfiBundle, FfiDeleter, FfiFunction, FfiHandlers, FfiUserData, ffi_api, register_ffi_type};
pub use load::{LoadOptions, check, donated_parameters, load_program};
