//! The fake CUDA driver (tests/fakecuda) in the hands of tests.
//!
//! - [`process::run`] runs the rest of a test in a process of its own, with a fake driver as [`Options`] say, and a
//!   limit.
//! - [`Driver`] is the library, opened by its name as a stranger would: the entry points of [`Cuda`], and the controls
//!   of [`Control`] with the counters, the ledger, the reports and the faults.
//! - [`Nvrtc`] is the fake compiler of CUDA C (tests/fakecuda/nvrtc): where it is, what it counts, what it holds.
//! - [`links`] makes a folder with `libcuda.so.1` and `libnvidia-ml.so.1`, for LD_LIBRARY_PATH of other programs.
//!
//! ```no_run
//! use purlin_fakecuda::{Driver, Options, process};
//!
//! process::run("copies_are_ordered", &Options::default(), || {
//!     let driver = Driver::open();
//!     // SAFETY: `cuInit` may be called at any time.
//!     assert_eq!(unsafe { (driver.cuda.cuInit)(0) }, 0);
//!     driver.control.no_reports();
//! });
//! ```

#![deny(unsafe_code)]

mod abi;
mod control;
mod library;
mod nvrtc;
pub mod process;

pub use abi::{Cuda, Nvml};
pub use control::{Control, Watched};
pub use library::{Driver, LEFT, find, links, on_a_gpu};
pub use nvrtc::Nvrtc;
pub use purlin_fakecuda_options::{Effect, Fabric, Fault, Ignored, OnReport, Options};
