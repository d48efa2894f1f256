//! `purlin/dlpack.h`.

use std::ptr;

use purlin_base::status::StatusRep;
use purlin_ffi::panic::guard;
use purlin_interchange::dlpack::abi::DLManagedTensorVersioned;
use purlin_interchange::{DlpackTensor, import_dlpack};

use crate::buffer::BufferRep;
use crate::device::MemorySpaceRep;
use crate::npy::give_array;

/// A struct, the caller's, or null and an error.
#[unsafe(no_mangle)]
pub extern "C" fn purlin_dlpack_export(
    buffer: &BufferRep,
    error: &mut *const StatusRep,
) -> *mut DLManagedTensorVersioned {
    match guard(|| DlpackTensor::new(&buffer.get())) {
        Ok(tensor) => tensor.into_raw(),
        Err(why) => {
            *error = why.into_raw();
            ptr::null_mut()
        }
    }
}

/// A buffer, C++'s, or null and an error; then the struct stays the caller's.
///
/// # Safety
/// As [`import_dlpack`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_dlpack_import(
    tensor: *mut DLManagedTensorVersioned,
    space: &MemorySpaceRep,
    is_aliased: &mut bool,
    error: &mut *const StatusRep,
) -> *const BufferRep {
    // SAFETY: the caller's promise.
    let read = guard(|| unsafe { import_dlpack(tensor, &space.0) });
    give_array(read, is_aliased, error)
}
