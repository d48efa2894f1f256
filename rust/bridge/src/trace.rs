//! `purlin/trace.h`.

use std::ffi::{CStr, c_char};

use purlin_async::trace;
use purlin_ffi::handle::give;
use purlin_ffi::panic::{contain, guard};
use purlin_ffi::words::path_of;

#[cxx::bridge(namespace = "purlin::ffi")]
pub(crate) mod ffi {
    unsafe extern "C++" {
        include!("purlin/internal/abi.h");

        #[namespace = "purlin::v0::internal"]
        type StatusRep = crate::status::ffi::StatusRep;
    }

    extern "Rust" {
        /// Null, or an error.
        fn trace_start(path: &[u8]) -> *const StatusRep;
        /// Null, or an error.
        fn trace_stop() -> *const StatusRep;
        /// A span's number, 0 if nothing is recorded. `name` is static and ends with a NUL.
        unsafe fn trace_begin_span(name: *const c_char) -> u64;
        fn trace_end_span(id: u64);
    }
}

fn trace_start(path: &[u8]) -> *const ffi::StatusRep {
    give(guard(|| trace::start(path_of(path))))
}

fn trace_stop() -> *const ffi::StatusRep {
    give(guard(trace::stop))
}

/// # Safety
/// `name` is static and ends with a NUL.
unsafe fn trace_begin_span(name: *const c_char) -> u64 {
    contain("trace_begin_span", 0, || {
        // SAFETY: the caller's promise.
        trace::begin_span(unsafe { CStr::from_ptr(name) })
    })
}

fn trace_end_span(id: u64) {
    contain("trace_end_span", (), || {
        trace::end_span(id);
    })
}
