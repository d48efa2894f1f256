//! Runs programs that stock JAX compiled without XLA, and compares the results with those of stock XLA.
//!
//! `PURLIN_XLA_CORPUS` names the folder that `examples/python/export_xla.py` has written, which needs wheels of PyPI.
//! So the test is ignored. `make interop` runs the programs from Python (`examples/corpus.rs`), with the handlers of
//! LAPACK; here custom calls are refused. Results must have the same bits, unless the program has a dot, a convolution
//! or an fft, whose sums are in another order. Then they may differ by 1e-5 of the largest element (1e-2 if elements
//! have 16 bits). `PURLIN_XLA_NATIVE_PERCENT` is the percentage of the programs compiled without YNNPACK that must run
//! (80).

#![allow(unsafe_code, reason = "bytes are copied from buffers")]

#[path = "fixture/programs.rs"]
mod programs;

use std::env;
use std::path::PathBuf;

use purlin_xla_cpu::LoadOptions;

#[test]
#[ignore = "needs programs of stock JAX: make interop"]
fn programs_of_stock_jax_run_without_xla() {
    let folder = env::var_os("PURLIN_XLA_CORPUS").map(PathBuf::from);
    let folder = folder.expect("PURLIN_XLA_CORPUS names a folder that examples/python/export_xla.py has written");
    let percent = env::var("PURLIN_XLA_NATIVE_PERCENT").map_or(80, |text| text.parse().unwrap());
    let options = LoadOptions { trust_code: true, unwind_tables: true, ..Default::default() };
    programs::run_all(&folder, &options, percent).unwrap();
}
