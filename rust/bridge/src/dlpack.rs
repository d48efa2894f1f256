//! `purlin/dlpack.h`.

use std::ptr;

use purlin_ffi::handle::give_or;
use purlin_ffi::panic::guard;
use purlin_interchange::{DlpackStream, DlpackTensor, import_dlpack, import_dlpack_behind};

use crate::buffer::BufferRep;
use crate::device::MemorySpaceRep;
use crate::npy::give_array;

#[cxx::bridge(namespace = "purlin::ffi")]
pub(crate) mod ffi {
    unsafe extern "C++" {
        include!("purlin/internal/abi.h");
        include!("purlin/internal/dlpack.h");
        include!("purlin-bridge/src/buffer.rs.h");
        include!("purlin-bridge/src/device.rs.h");

        #[namespace = ""]
        type DLManagedTensorVersioned;
        #[namespace = "purlin::v0::internal"]
        type StatusRep = crate::status::ffi::StatusRep;
        #[namespace = "purlin::v0::internal"]
        type BufferRep = crate::buffer::BufferRep;
        #[namespace = "purlin::v0::internal"]
        type MemorySpaceRep = crate::device::MemorySpaceRep;
    }

    extern "Rust" {
        /// A struct, the caller's, or null and an error.
        fn dlpack_export(buffer: &BufferRep, error: &mut *const StatusRep) -> *mut DLManagedTensorVersioned;
        /// As above, for a reader on that stream. May block.
        unsafe fn dlpack_export_for_stream(
            buffer: &BufferRep,
            stream: i64,
            error: &mut *const StatusRep,
        ) -> *mut DLManagedTensorVersioned;
        /// A buffer, C++'s, or null and an error; then the struct stays the caller's.
        unsafe fn dlpack_import(
            tensor: *mut DLManagedTensorVersioned,
            space: &MemorySpaceRep,
            is_aliased: &mut bool,
            error: &mut *const StatusRep,
        ) -> *const BufferRep;
        /// As above, of an array that is written on that stream.
        unsafe fn dlpack_import_behind(
            tensor: *mut DLManagedTensorVersioned,
            space: &MemorySpaceRep,
            stream: i64,
            is_aliased: &mut bool,
            error: &mut *const StatusRep,
        ) -> *const BufferRep;
    }
}

fn dlpack_export(buffer: &BufferRep, error: &mut *const ffi::StatusRep) -> *mut ffi::DLManagedTensorVersioned {
    let tensor = guard(|| Ok(DlpackTensor::new(&buffer.get())?.into_raw()));
    give_or(tensor, ptr::null_mut(), error).cast()
}

/// # Safety
/// The stream is what [`DlpackStream::new`] wants.
unsafe fn dlpack_export_for_stream(
    buffer: &BufferRep,
    stream: i64,
    error: &mut *const ffi::StatusRep,
) -> *mut ffi::DLManagedTensorVersioned {
    let tensor = guard(|| {
        // SAFETY: the caller's promise.
        let stream = unsafe { DlpackStream::new(stream) }?;
        Ok(DlpackTensor::for_stream(&buffer.get(), stream)?.into_raw())
    });
    give_or(tensor, ptr::null_mut(), error).cast()
}

/// # Safety
/// As [`import_dlpack`].
unsafe fn dlpack_import(
    tensor: *mut ffi::DLManagedTensorVersioned,
    space: &MemorySpaceRep,
    is_aliased: &mut bool,
    error: &mut *const ffi::StatusRep,
) -> *const BufferRep {
    // SAFETY: the caller's promise.
    give_array(guard(|| unsafe { import_dlpack(tensor.cast(), &space.0) }), is_aliased, error)
}

/// # Safety
/// As [`import_dlpack_behind`]; the stream is what [`DlpackStream::new`] wants.
unsafe fn dlpack_import_behind(
    tensor: *mut ffi::DLManagedTensorVersioned,
    space: &MemorySpaceRep,
    stream: i64,
    is_aliased: &mut bool,
    error: &mut *const ffi::StatusRep,
) -> *const BufferRep {
    // SAFETY: the caller's promises.
    let made = guard(|| unsafe { import_dlpack_behind(tensor.cast(), &space.0, DlpackStream::new(stream)?) });
    give_array(made, is_aliased, error)
}
