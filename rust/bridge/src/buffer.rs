//! `purlin/buffer.h`: typed buffers, once there are some (`buffer_create` makes them).
//!
//! In the safety sections, "the structs are what they say" stands for the contracts of [`RawShape`], [`RawLayout`]
//! and [`Place`]; a layout may also be null.

use std::mem;
use std::ptr;

use purlin_array::HostArray;
use purlin_async::{Event, Promise};
use purlin_base::slab::SlabBox;
use purlin_base::status::{self, called_from};
use purlin_device::Buffer;
use purlin_device::buffer::HostAddress;
use purlin_ffi::handle::{give, give_handle, give_or, own, owned, share};
use purlin_ffi::panic::{contain, guard, guard_at};

use crate::buffer_create::give_buffer;
pub(crate) use crate::buffer_rep::BufferRep;
use crate::device::{DeviceRep, MemorySpaceRep};
use crate::layout::RawLayout;
use crate::raw_buffer::{RawBufferRep, give_event};
use crate::shape::RawShape;
use crate::source_location::Place;

/// What gives `purlin::Buffer::CopyRawToHostWhen` the address: C++'s alone.
pub struct HostAddressRep(Promise<HostAddress>);

#[cxx::bridge(namespace = "purlin::ffi")]
pub(crate) mod ffi {
    unsafe extern "C++" {
        include!("purlin/internal/abi.h");
        include!("purlin-bridge/src/device.rs.h");
        include!("purlin-bridge/src/layout.rs.h");
        include!("purlin-bridge/src/raw_buffer.rs.h");
        include!("purlin-bridge/src/shape.rs.h");

        #[namespace = "purlin::v0::internal"]
        type StatusRep = crate::status::ffi::StatusRep;
        #[namespace = "purlin::v0::internal"]
        type EventHeader = crate::abi::ffi::EventHeader;
        #[namespace = "purlin::v0::internal"]
        type DeviceRep = crate::device::DeviceRep;
        #[namespace = "purlin::v0::internal"]
        type MemorySpaceRep = crate::device::MemorySpaceRep;
        #[namespace = "purlin::v0::internal"]
        type RawBufferRep = crate::raw_buffer::RawBufferRep;
        #[namespace = "purlin::v0"]
        type SourceLocation = crate::source_location::Place;
        #[namespace = "purlin::v0::internal"]
        type RawShape = crate::shape::RawShape;
        #[namespace = "purlin::v0::internal"]
        type RawLayout = crate::layout::RawLayout;
    }

    extern "Rust" {
        #[namespace = "purlin::v0::internal"]
        #[derive(ExternType)]
        type BufferRep;
        #[namespace = "purlin::v0::internal"]
        type HostAddressRep;

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
        unsafe fn buffer_copy_raw_to_host(
            buffer: &BufferRep,
            destination: *mut u8,
            offset_bytes: usize,
            size_bytes: usize,
        ) -> *mut EventHeader;
        /// The bytes, or null and an error.
        fn buffer_raw_alias(buffer: &BufferRep, error: &mut *const StatusRep) -> *const RawBufferRep;
        fn buffer_is_deleted(buffer: &BufferRep) -> bool;
        /// Writes a flag for each dimension, true if it is dynamic; true if any is.
        fn buffer_dynamic(buffer: &BufferRep, flags: &mut [bool]) -> bool;
        /// Writes the layout, an entry for each dimension.
        fn buffer_layout(buffer: &BufferRep, minor_to_major: &mut [i64]);
        /// Writes the actual dimensions. Null, or an error, C++'s: then nothing is written. Blocks.
        fn buffer_logical_dims(buffer: &BufferRep, dims: &mut [i64]) -> *const StatusRep;
        /// The event, with one reference, C++'s.
        unsafe fn buffer_copy_to_host_strided(
            buffer: &BufferRep,
            destination: *mut u8,
            byte_strides: &[i64],
        ) -> *mut EventHeader;
        /// Writes the numbers of usage holds and of external references.
        fn buffer_hold_counts(buffer: &BufferRep, usage: &mut usize, external: &mut usize);
        /// The event, with one reference, C++'s. Writes the receiver of the address, C++'s, or null if the copy does
        /// not wait for one.
        unsafe fn buffer_copy_raw_to_host_when(
            buffer: &BufferRep,
            offset_bytes: usize,
            size_bytes: usize,
            address: &mut *mut HostAddressRep,
        ) -> *mut EventHeader;
        /// Gives the address, or why there is none.
        unsafe fn host_address_set(address: *mut HostAddressRep, destination: *mut u8, error: *const StatusRep);
        /// A new buffer, C++'s, or null and an error.
        unsafe fn buffer_copy_to_device(
            buffer: &BufferRep,
            device: &DeviceRep,
            location: &SourceLocation,
            error: &mut *const StatusRep,
        ) -> *const BufferRep;
        /// A new buffer, C++'s, or null and an error.
        unsafe fn buffer_copy_to_memory_space(
            buffer: &BufferRep,
            space: &MemorySpaceRep,
            location: &SourceLocation,
            error: &mut *const StatusRep,
        ) -> *const BufferRep;
        /// A new buffer, C++'s, or null and an error.
        unsafe fn buffer_copy_into(
            buffer: &BufferRep,
            destination: &BufferRep,
            location: &SourceLocation,
            error: &mut *const StatusRep,
        ) -> *const BufferRep;
        /// A new buffer, C++'s, or null and an error.
        unsafe fn buffer_donate_after(
            buffer: &BufferRep,
            event: *mut EventHeader,
            location: &SourceLocation,
            error: &mut *const StatusRep,
        ) -> *const BufferRep;
        /// A new buffer, C++'s, or null and an error.
        unsafe fn buffer_bitcast(
            buffer: &BufferRep,
            shape: &RawShape,
            layout: *const RawLayout,
            location: &SourceLocation,
            error: &mut *const StatusRep,
        ) -> *const BufferRep;
        /// Gives the memory up.
        unsafe fn buffer_delete(buffer: &BufferRep, location: &SourceLocation);
        /// The memory, C++'s, and the event when it is free, with one reference, C++'s; or null, and nothing is
        /// written.
        unsafe fn buffer_release_memory(
            buffer: &BufferRep,
            location: &SourceLocation,
            free: &mut *mut EventHeader,
        ) -> *const RawBufferRep;
        /// The memory, C++'s; or null and an error; or null. May block.
        unsafe fn buffer_release_ownership(
            buffer: &BufferRep,
            waits: bool,
            location: &SourceLocation,
            error: &mut *const StatusRep,
        ) -> *const RawBufferRep;
    }
}

/// # Safety
/// C++ holds a reference.
unsafe fn buffer_retain(buffer: *const BufferRep) {
    // SAFETY: the caller's promise; the new reference is C++'s.
    mem::forget(Buffer::clone(&unsafe { &*buffer }.get()));
}

/// # Safety
/// C++ gives its reference up.
unsafe fn buffer_release(buffer: *const BufferRep) {
    contain("buffer_release", (), || {
        // SAFETY: the caller's promise.
        drop(unsafe { Buffer::from_pointer(buffer.cast()) });
    })
}

fn buffer_dtype(buffer: &BufferRep) -> u8 {
    buffer.get().dtype() as u8
}

fn buffer_dims(buffer: &BufferRep) -> &[i64] {
    buffer.array().shape().dims()
}

fn buffer_size_bytes(buffer: &BufferRep) -> usize {
    buffer.get().size_bytes()
}

fn buffer_memory_space(buffer: &BufferRep) -> *const MemorySpaceRep {
    contain("buffer_memory_space", ptr::null(), || share(MemorySpaceRep(buffer.get().memory_space())))
}

fn buffer_device(buffer: &BufferRep) -> *const DeviceRep {
    contain("buffer_device", ptr::null(), || share(DeviceRep(buffer.get().device())))
}

fn buffer_ready_event(buffer: &BufferRep) -> *mut ffi::EventHeader {
    buffer.get().ready_event().into_raw().cast()
}

/// # Safety
/// `destination` is null or `size_bytes` bytes that stay writable and untouched until the event.
unsafe fn buffer_copy_to_host(buffer: &BufferRep, destination: *mut u8, size_bytes: usize) -> *mut ffi::EventHeader {
    // SAFETY: the caller's promise.
    give_event(|| Ok(unsafe { buffer.get().copy_to_host(destination, size_bytes) }))
}

/// # Safety
/// As [`buffer_copy_to_host`].
unsafe fn buffer_copy_raw_to_host(
    buffer: &BufferRep,
    destination: *mut u8,
    offset_bytes: usize,
    size_bytes: usize,
) -> *mut ffi::EventHeader {
    // SAFETY: the caller's promise.
    give_event(|| Ok(unsafe { buffer.get().copy_raw_to_host(destination, offset_bytes, size_bytes) }))
}

fn buffer_raw_alias(buffer: &BufferRep, error: &mut *const ffi::StatusRep) -> *const RawBufferRep {
    give_handle(guard(|| buffer.get().raw_alias().map(RawBufferRep)), error)
}

fn buffer_is_deleted(buffer: &BufferRep) -> bool {
    buffer.get().is_deleted()
}

fn buffer_dynamic(buffer: &BufferRep, flags: &mut [bool]) -> bool {
    contain("buffer_dynamic", false, || {
        let shape = buffer.array().shape();
        for (axis, flag) in flags.iter_mut().enumerate() {
            *flag = shape.dynamic_dimension(axis);
        }
        shape.is_dynamic()
    })
}

fn buffer_layout(buffer: &BufferRep, minor_to_major: &mut [i64]) {
    contain("buffer_layout", (), || {
        for (entry, &axis) in minor_to_major.iter_mut().zip(buffer.get().layout().minor_to_major()) {
            *entry = axis;
        }
    })
}

fn buffer_logical_dims(buffer: &BufferRep, dims: &mut [i64]) -> *const ffi::StatusRep {
    give(guard(|| {
        dims.copy_from_slice(&buffer.get().logical_dims()?);
        Ok(())
    }))
}

/// # Safety
/// Until the event is terminal, any thread may write the elements from `destination`, unless that is null, and nothing
/// else touches them.
unsafe fn buffer_copy_to_host_strided(
    buffer: &BufferRep,
    destination: *mut u8,
    byte_strides: &[i64],
) -> *mut ffi::EventHeader {
    give_event(|| {
        let array = HostArray::new(buffer.get().shape(), Some(byte_strides))?;
        // SAFETY: the caller's promise.
        Ok(unsafe { buffer.get().copy_to_host_array(destination, &array) })
    })
}

/// # Safety
/// From when the address is given until the event is terminal, any thread may write `size_bytes` bytes there, and
/// nothing else touches them.
unsafe fn buffer_copy_raw_to_host_when(
    buffer: &BufferRep,
    offset_bytes: usize,
    size_bytes: usize,
    address: &mut *mut HostAddressRep,
) -> *mut ffi::EventHeader {
    let promise = Promise::new(c"host address");
    let copied = give_event(|| {
        // SAFETY: the caller's promise.
        Ok(unsafe { buffer.get().copy_raw_to_host_when(&promise.future(), offset_bytes, size_bytes) })
    });
    let is_awaited = promise.is_observed();
    *address = if is_awaited { own(HostAddressRep(promise)) } else { ptr::null_mut() };
    copied
}

/// # Safety
/// C++ gives `address` up; `error` is null or owned by the caller, which gives it up; `destination` is what
/// [`buffer_copy_raw_to_host_when`] asks for.
unsafe fn host_address_set(address: *mut HostAddressRep, destination: *mut u8, error: *const ffi::StatusRep) {
    contain("host_address_set", (), || {
        // SAFETY: the caller's promises.
        let (promise, outcome) = unsafe { (SlabBox::into_inner(owned(address)).0, status::from_raw(error.cast())) };
        let found = outcome.map(|()| HostAddress(destination));
        // No other thread has the promise, so this is the first and only time.
        let _ = promise.set(found);
    })
}

/// # Safety
/// `location` is what its struct says.
unsafe fn buffer_copy_to_device(
    buffer: &BufferRep,
    device: &DeviceRep,
    location: &Place,
    error: &mut *const ffi::StatusRep,
) -> *const BufferRep {
    // SAFETY: the caller's promise.
    give_buffer(unsafe { guard_at(location.0, || buffer.get().copy_to_device(&device.0)) }, error)
}

/// # Safety
/// `location` is what its struct says.
unsafe fn buffer_copy_to_memory_space(
    buffer: &BufferRep,
    space: &MemorySpaceRep,
    location: &Place,
    error: &mut *const ffi::StatusRep,
) -> *const BufferRep {
    // SAFETY: the caller's promise.
    give_buffer(unsafe { guard_at(location.0, || buffer.get().copy_to_memory_space(&space.0)) }, error)
}

/// # Safety
/// `location` is what its struct says.
unsafe fn buffer_copy_into(
    buffer: &BufferRep,
    destination: &BufferRep,
    location: &Place,
    error: &mut *const ffi::StatusRep,
) -> *const BufferRep {
    // SAFETY: the caller's promise.
    give_buffer(unsafe { guard_at(location.0, || buffer.get().copy_into(&destination.get())) }, error)
}

/// # Safety
/// `event` is null or alive; `location` is what its struct says.
unsafe fn buffer_donate_after(
    buffer: &BufferRep,
    event: *mut ffi::EventHeader,
    location: &Place,
    error: &mut *const ffi::StatusRep,
) -> *const BufferRep {
    // SAFETY: the caller's promise.
    let event = unsafe { Event::from_borrowed_raw(event.cast()) };
    // SAFETY: the caller's promise.
    give_buffer(unsafe { guard_at(location.0, || buffer.get().donate_after(&event)) }, error)
}

/// # Safety
/// The structs are what they say.
unsafe fn buffer_bitcast(
    buffer: &BufferRep,
    shape: &RawShape,
    layout: *const RawLayout,
    location: &Place,
    error: &mut *const ffi::StatusRep,
) -> *const BufferRep {
    let bitcast = || {
        // SAFETY: the caller's promises.
        let (shape, layout) = unsafe { (shape.get()?, RawLayout::get(layout)?) };
        buffer.get().bitcast(&shape, layout.as_ref())
    };
    // SAFETY: the caller's promise.
    give_buffer(unsafe { guard_at(location.0, bitcast) }, error)
}

fn buffer_hold_counts(buffer: &BufferRep, usage: &mut usize, external: &mut usize) {
    contain("buffer_hold_counts", (), || {
        (*usage, *external) = buffer.get().hold_counts();
    })
}

/// # Safety
/// `location` is what its struct says.
unsafe fn buffer_delete(buffer: &BufferRep, location: &Place) {
    contain("buffer_delete", (), || {
        // SAFETY: the caller's promise.
        called_from(unsafe { location.0.get() }, || buffer.get().delete());
    })
}

/// # Safety
/// `location` is what its struct says.
unsafe fn buffer_release_memory(
    buffer: &BufferRep,
    location: &Place,
    free: &mut *mut ffi::EventHeader,
) -> *const RawBufferRep {
    contain("buffer_release_memory", ptr::null(), || {
        // SAFETY: the caller's promise.
        let released = called_from(unsafe { location.0.get() }, || buffer.get().release());
        let Some((memory, event)) = released else { return ptr::null() };
        *free = event.into_raw().cast();
        share(RawBufferRep(memory))
    })
}

/// # Safety
/// `location` is what its struct says.
unsafe fn buffer_release_ownership(
    buffer: &BufferRep,
    waits: bool,
    location: &Place,
    error: &mut *const ffi::StatusRep,
) -> *const RawBufferRep {
    // SAFETY: the caller's promise.
    let memory = unsafe { guard_at(location.0, || buffer.get().release_ownership(waits)) };
    let memory = memory.map(|memory| memory.map_or(ptr::null(), |memory| share(RawBufferRep(memory))));
    give_or(memory, ptr::null(), error)
}
