//! `purlin/internal/abi.h`: what belongs to no public header.

use std::ffi::{CStr, c_char};
use std::mem::offset_of;
use std::pin::Pin;

use cxx::CxxString;
use purlin_async::event::abi::EventVTable;
use purlin_base::thread_state::ThreadState;
use purlin_ffi::panic::contain;

#[cxx::bridge(namespace = "purlin::ffi")]
pub(crate) mod ffi {
    unsafe extern "C++" {
        include!("purlin/internal/abi.h");

        #[namespace = "purlin::v0::internal"]
        type EventHeader;
    }

    extern "Rust" {
        /// Appends Rust's view of the shared memory, as `name=value` lines.
        fn abi_layout(text: Pin<&mut CxxString>);
        /// The version of this crate; static, ends with a NUL.
        fn version() -> *const c_char;
        /// Reports that an exception escaped from a C++ closure, on stderr and to the subscribers of `tracing`.
        unsafe fn report_exception(place: *const c_char, what: *const c_char);
    }
}

fn abi_layout(text: Pin<&mut CxxString>) {
    contain("abi_layout", (), || {
        text.push_str(
            &(purlin_base::slab::layout() + &purlin_async::event::abi::layout() + &purlin_async::task::node::layout()),
        );
    })
}

// Beside what the core asserts of its structs. The fields of ThreadState are its own: tests/cpp/layout_test.cc compares
// them.
const _: () = {
    assert!(size_of::<EventVTable>() == 24 && offset_of!(EventVTable, abi_size) == 0);
    assert!(offset_of!(EventVTable, free) == 8 && offset_of!(EventVTable, payload_type) == 16);
    assert!(size_of::<ThreadState>() == 96);
};

fn version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// # Safety
/// `place` ends with a NUL; `what` is null or does.
unsafe fn report_exception(place: *const c_char, what: *const c_char) {
    contain("report_exception", (), || {
        // SAFETY: the caller's promise.
        let place = unsafe { CStr::from_ptr(place) }.to_string_lossy();
        let what = if what.is_null() {
            "not a std::exception".into()
        } else {
            // SAFETY: the caller's promise.
            unsafe { CStr::from_ptr(what) }.to_string_lossy()
        };
        tracing::error!(target: "purlin", %place, %what, "exception");
        purlin_base::stderr::tell(&format!("purlin: exception in {place}: {what}\n"));
    })
}
