//! What stock XLA compiled for CPUs, as programs of Purlin's: read, linked and run without XLA in the process.
//!
//! | module | what it is |
//! |---|---|
//! | `fault` | why bytes are refused, and where; all reasons why a program cannot run here |
//! | `proto` | the serialized executable as messages, by field number |
//! | `library` | sorts, products, convolutions, transforms, which kernels leave to a library |
//! | `module` | an executable in the terms of programs, before any code is mapped |
//! | `link` | relocatable files as code in memory |
//! | `load` | [`load_program`]: all of it, in order |
//!
//! The bytes are a stranger's: nothing in them is believed before it was checked, no number of theirs is a length to
//! allocate, and what nobody here knows (a step, a field, a symbol, a relocation) is a reason to refuse, told with all
//! others before any code is mapped. Whoever embeds this then leaves the program to XLA. The machine code itself cannot
//! be checked: it is loaded only where the caller vouches for it ([`LoadOptions::trust_code`]).
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

pub use load::{LoadOptions, check, load_program};
