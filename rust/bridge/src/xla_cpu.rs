//! `purlin/xla_cpu.h`.

use purlin_ffi::handle::{give, give_handle};
use purlin_ffi::panic::guard;
use purlin_ffi::struct_size;
use purlin_program::Executable;
use purlin_xla_cpu::{LoadOptions, check, load_program};

use crate::executable::ExecutableRep;

#[cxx::bridge(namespace = "purlin::ffi")]
pub(crate) mod ffi {
    /// A `purlin::LoadXlaCpuOptions`.
    struct RawLoadXlaCpuOptions {
        /// The caller's, unchecked.
        struct_size: usize,
        trust_code: bool,
        unwind_tables: bool,
    }

    unsafe extern "C++" {
        include!("purlin/internal/abi.h");
        include!("purlin-bridge/src/executable.rs.h");

        #[namespace = "purlin::v0::internal"]
        type StatusRep = crate::status::ffi::StatusRep;
        #[namespace = "purlin::v0::internal"]
        type ExecutableRep = crate::executable::ExecutableRep;
    }

    extern "Rust" {
        /// An executable, C++'s, or null and an error.
        fn xla_cpu_load(
            bytes: &[u8],
            options: &RawLoadXlaCpuOptions,
            error: &mut *const StatusRep,
        ) -> *const ExecutableRep;
        /// Null, or an error, C++'s.
        fn xla_cpu_check(bytes: &[u8]) -> *const StatusRep;
    }
}

/// The first version of `purlin::LoadXlaCpuOptions`.
const SMALLEST_OPTIONS_BYTES: usize = 16;

fn xla_cpu_load(
    bytes: &[u8],
    options: &ffi::RawLoadXlaCpuOptions,
    error: &mut *const ffi::StatusRep,
) -> *const ExecutableRep {
    let loaded = guard(|| {
        struct_size::check("LoadXlaCpuOptions", options.struct_size, SMALLEST_OPTIONS_BYTES)?;
        let ffi::RawLoadXlaCpuOptions { trust_code, unwind_tables, .. } = *options;
        let options = LoadOptions { trust_code, unwind_tables, ..LoadOptions::default() };
        Ok(ExecutableRep(Executable::new(load_program(bytes, &options)?)))
    });
    give_handle(loaded, error)
}

fn xla_cpu_check(bytes: &[u8]) -> *const ffi::StatusRep {
    give(guard(|| check(bytes)))
}
