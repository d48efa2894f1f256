//! Runs programs of stock JAX from Python, with handlers for their custom calls: a shared library for `ctypes`.
//!
//! Handlers such as jaxlib's LAPACK are in modules of Python, which only a process of Python can load.
//! `tests/interop/python/purlin_corpus.py` is the other side.

#![allow(unsafe_code, reason = "Python calls functions of C")]

#[path = "../tests/fixture/programs.rs"]
mod programs;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;
use std::sync::Arc;

use purlin_base::panics;
use purlin_xla_cpu::{FfiBundle, FfiFunction, FfiHandlers, LoadOptions, ffi_api};

/// The table of functions, for modules that register types.
#[unsafe(no_mangle)]
pub extern "C" fn purlin_ffi_api() -> *const c_void {
    ffi_api()
}

/// Runs the programs in `folder` as the test `corpus` does, with `count` handlers: the name of each, and its functions
/// for the stages `instantiate`, `prepare`, `initialize` and `execute`. 0: all results are right.
///
/// # Safety
/// `folder` and the names are text of C. The functions are handlers of XLA's FFI, and stay.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_run_corpus(
    folder: *const c_char,
    count: usize,
    names: *const *const c_char,
    functions: *const [Option<FfiFunction>; 4],
    percent: usize,
) -> c_int {
    let run = || -> Result<(), String> {
        // SAFETY: the caller's promise.
        let text = |text: *const c_char| unsafe { CStr::from_ptr(text) }.to_str().map_err(|error| error.to_string());
        let mut handlers = FfiHandlers::default();
        for at in 0..count {
            // SAFETY: the caller gives as many names and functions, and promises the rest.
            unsafe {
                let name = text(*names.add(at))?;
                let [instantiate, prepare, initialize, execute] = *functions.add(at);
                let execute = execute.ok_or_else(|| format!("'{name}' has no function for the stage 'execute'"))?;
                let bundle = FfiBundle { instantiate, prepare, initialize, execute };
                handlers.register(name, bundle, Arc::new(())).map_err(|error| error.to_string())?;
            }
        }
        let options = LoadOptions { trust_code: true, unwind_tables: true, handlers, ..Default::default() };
        programs::run_all(Path::new(text(folder)?), &options, percent)
    };
    match panics::caught(run).and_then(|outcome| outcome) {
        Ok(()) => 0,
        Err(why) => {
            println!("{why}");
            1
        }
    }
}
