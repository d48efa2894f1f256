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
        perf_map: bool,
        /// Null, or alive during the call.
        handlers: *const XlaFfiHandlersRep,
    }

    unsafe extern "C++" {
        include!("purlin/internal/abi.h");
        include!("purlin-bridge/src/executable.rs.h");
        include!("purlin-bridge/src/xla_ffi_host.rs.h");

        #[namespace = "purlin::v0::internal"]
        type StatusRep = crate::status::ffi::StatusRep;
        #[namespace = "purlin::v0::internal"]
        type ExecutableRep = crate::executable::ExecutableRep;
        #[namespace = "purlin::v0::internal"]
        type XlaFfiHandlersRep = crate::xla_ffi_host::XlaFfiHandlersRep;
    }

    extern "Rust" {
        /// An executable, C++'s, or null and an error.
        unsafe fn xla_cpu_load(
            bytes: &[u8],
            options: &RawLoadXlaCpuOptions,
            error: &mut *const StatusRep,
        ) -> *const ExecutableRep;
        /// Null, or an error, C++'s.
        fn xla_cpu_check(bytes: &[u8]) -> *const StatusRep;
    }
}

/// The first version of `purlin::LoadXlaCpuOptions`.
const SMALLEST_OPTIONS_BYTES: usize = 24;

/// # Safety
/// `options` is what its struct says.
unsafe fn xla_cpu_load(
    bytes: &[u8],
    options: &ffi::RawLoadXlaCpuOptions,
    error: &mut *const ffi::StatusRep,
) -> *const ExecutableRep {
    let loaded = guard(|| {
        struct_size::check("LoadXlaCpuOptions", options.struct_size, SMALLEST_OPTIONS_BYTES)?;
        let ffi::RawLoadXlaCpuOptions { trust_code, unwind_tables, perf_map, handlers, .. } = *options;
        // SAFETY: the caller's promise.
        let handlers = unsafe { handlers.as_ref() }.map(|handlers| handlers.0.clone()).unwrap_or_default();
        let options = LoadOptions { trust_code, unwind_tables, perf_map, handlers };
        Ok(ExecutableRep(Executable::new(load_program(bytes, &options)?)))
    });
    give_handle(loaded, error)
}

fn xla_cpu_check(bytes: &[u8]) -> *const ffi::StatusRep {
    give(guard(|| check(bytes)))
}
