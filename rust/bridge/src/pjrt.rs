//! `purlin/adapters/pjrt_tables.h`: what takes a handle of the bridge. The rest is in `purlin_pjrt`.

use std::ffi::c_void;
use std::ptr;

use purlin_ffi::panic::contain;

use crate::raw_buffer::RawBufferRep;

/// A raw buffer of PJRT's with one reference, C's, which answers `memory` when it is asked where it is.
///
/// # Safety
/// `buffer` is alive; `memory` is whatever the user knows it to be, and is not looked into.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_pjrt_give_raw_buffer(
    buffer: &RawBufferRep,
    memory: *mut c_void,
) -> *mut purlin_pjrt::RawBuffer {
    contain("purlin_pjrt_give_raw_buffer", ptr::null_mut(), || purlin_pjrt::give_raw_buffer(buffer.0.clone(), memory))
}
