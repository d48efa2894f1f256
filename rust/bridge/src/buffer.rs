//! `purlin/buffer.h`: typed buffers.

use purlin::{Buffer, DType, HostBufferSemantics, Status};

use crate::device::{DeviceRep, MemorySpaceRep};
use crate::handle::{self, give_handle, share};
use crate::panic::guard;
use crate::raw_buffer::{RawBufferRep, give_event};

/// What a `purlin::Buffer` points to.
pub struct BufferRep(pub(crate) Buffer);

#[cxx::bridge(namespace = "purlin::ffi")]
pub(crate) mod ffi {
    unsafe extern "C++" {
        include!("purlin/buffer.h");
        include!("cpp/generated/device.rs.h");
        include!("cpp/generated/raw_buffer.rs.h");

        #[namespace = "purlin::v0::internal"]
        type StatusRep = crate::status::ffi::StatusRep;
        #[namespace = "purlin::v0::internal"]
        type EventHeader = crate::raw_buffer::ffi::EventHeader;
        #[namespace = "purlin::v0::internal"]
        type DeviceRep = crate::device::DeviceRep;
        #[namespace = "purlin::v0::internal"]
        type MemorySpaceRep = crate::device::MemorySpaceRep;
        #[namespace = "purlin::v0::internal"]
        type RawBufferRep = crate::raw_buffer::RawBufferRep;
    }

    extern "Rust" {
        #[namespace = "purlin::v0::internal"]
        type BufferRep;

        /// A new buffer, or null and an error. `dtype` and `semantics` are C++'s numbers, unchecked.
        unsafe fn buffer_from_host(
            data: *const u8,
            size_bytes: usize,
            dtype: u8,
            dims: &[i64],
            space: &MemorySpaceRep,
            semantics: i32,
            error: &mut *const StatusRep,
        ) -> *const BufferRep;
        unsafe fn buffer_retain(buffer: *const BufferRep);
        unsafe fn buffer_release(buffer: *const BufferRep);
        fn buffer_dtype(buffer: &BufferRep) -> u8;
        /// Lives as long as the buffer.
        fn buffer_dims(buffer: &BufferRep) -> &[i64];
        fn buffer_size_bytes(buffer: &BufferRep) -> usize;
        fn buffer_memory_space(buffer: &BufferRep) -> *const MemorySpaceRep;
        fn buffer_device(buffer: &BufferRep) -> *const DeviceRep;
        fn buffer_ready_event(buffer: &BufferRep) -> *mut EventHeader;
        unsafe fn buffer_copy_to_host(buffer: &BufferRep, destination: *mut u8, size_bytes: usize) -> *mut EventHeader;
        /// A new buffer, or null and an error.
        fn buffer_copy_to_device(
            buffer: &BufferRep,
            device: &DeviceRep,
            error: &mut *const StatusRep,
        ) -> *const BufferRep;
        /// A new buffer, or null and an error.
        fn buffer_copy_to_memory_space(
            buffer: &BufferRep,
            space: &MemorySpaceRep,
            error: &mut *const StatusRep,
        ) -> *const BufferRep;
        /// The bytes, or null and an error.
        fn buffer_raw_alias(buffer: &BufferRep, error: &mut *const StatusRep) -> *const RawBufferRep;
        fn buffer_delete(buffer: &BufferRep);
        fn buffer_is_deleted(buffer: &BufferRep) -> bool;
    }
}

/// # Safety
/// `data` is null or `size_bytes` bytes, readable and unchanged for as long as `semantics` says.
unsafe fn buffer_from_host(
    data: *const u8,
    size_bytes: usize,
    dtype: u8,
    dims: &[i64],
    space: &MemorySpaceRep,
    semantics: i32,
    error: &mut *const ffi::StatusRep,
) -> *const BufferRep {
    let made = guard(|| {
        let dtype = DType::from_raw(dtype)
            .ok_or_else(|| Status::invalid_argument(format!("Buffer::FromHost: {dtype} is no DType")))?;
        let semantics = host_buffer_semantics(semantics)?;
        // SAFETY: the caller's promise.
        unsafe { Buffer::from_host(data, size_bytes, dtype, dims, &space.0, semantics) }.map(BufferRep)
    });
    give_handle(made, error)
}

fn host_buffer_semantics(raw: i32) -> Result<HostBufferSemantics, Status> {
    match raw {
        0 => Ok(HostBufferSemantics::ImmutableOnlyDuringCall),
        1 => Ok(HostBufferSemantics::ImmutableUntilTransferCompletes),
        _ => Err(Status::invalid_argument(format!("Buffer::FromHost: {raw} is no HostBufferSemantics"))),
    }
}

/// # Safety
/// C++ holds a reference.
unsafe fn buffer_retain(buffer: *const BufferRep) {
    // SAFETY: the caller's promise.
    unsafe { handle::retain(buffer) };
}

/// # Safety
/// C++ gives its reference up.
unsafe fn buffer_release(buffer: *const BufferRep) {
    // SAFETY: the caller's promise.
    unsafe { handle::release(buffer) };
}

fn buffer_dtype(buffer: &BufferRep) -> u8 {
    buffer.0.dtype() as u8
}

fn buffer_dims(buffer: &BufferRep) -> &[i64] {
    buffer.0.dims()
}

fn buffer_size_bytes(buffer: &BufferRep) -> usize {
    buffer.0.size_bytes()
}

fn buffer_memory_space(buffer: &BufferRep) -> *const MemorySpaceRep {
    share(MemorySpaceRep(buffer.0.memory_space()))
}

fn buffer_device(buffer: &BufferRep) -> *const DeviceRep {
    share(DeviceRep(buffer.0.device()))
}

fn buffer_ready_event(buffer: &BufferRep) -> *mut ffi::EventHeader {
    buffer.0.ready_event().into_raw().cast()
}

/// # Safety
/// `destination` is null or `size_bytes` bytes that stay writable and untouched until the event.
unsafe fn buffer_copy_to_host(buffer: &BufferRep, destination: *mut u8, size_bytes: usize) -> *mut ffi::EventHeader {
    // SAFETY: the caller's promise.
    give_event(|| Ok(unsafe { buffer.0.copy_to_host(destination, size_bytes) }))
}

fn buffer_copy_to_device(
    buffer: &BufferRep,
    device: &DeviceRep,
    error: &mut *const ffi::StatusRep,
) -> *const BufferRep {
    give_handle(guard(|| buffer.0.copy_to_device(&device.0).map(BufferRep)), error)
}

fn buffer_copy_to_memory_space(
    buffer: &BufferRep,
    space: &MemorySpaceRep,
    error: &mut *const ffi::StatusRep,
) -> *const BufferRep {
    give_handle(guard(|| buffer.0.copy_to_memory_space(&space.0).map(BufferRep)), error)
}

fn buffer_raw_alias(buffer: &BufferRep, error: &mut *const ffi::StatusRep) -> *const RawBufferRep {
    give_handle(guard(|| buffer.0.raw_alias().map(RawBufferRep)), error)
}

fn buffer_delete(buffer: &BufferRep) {
    buffer.0.delete();
}

fn buffer_is_deleted(buffer: &BufferRep) -> bool {
    buffer.0.is_deleted()
}
