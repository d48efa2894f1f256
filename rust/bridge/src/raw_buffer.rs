//! `purlin/raw_buffer.h`: untyped bytes, slices and copies.
//!
//! In the safety sections, "`dependencies`" stands for: `count` words, each null or an event that C++ keeps alive, unchanged
//! for the length of the call.

use std::ptr::{self, NonNull};

use purlin::{Event, RawBuffer, Status};

use crate::device::MemorySpaceRep;
use crate::event::borrowed;
use crate::handle::{self, give_handle, share};
use crate::panic::guard;

/// What a `purlin::RawBuffer` points to.
pub struct RawBufferRep(pub(crate) RawBuffer);

#[cxx::bridge(namespace = "purlin::ffi")]
pub(crate) mod ffi {
    unsafe extern "C++" {
        include!("purlin/raw_buffer.h");
        include!("cpp/generated/device.rs.h");

        #[namespace = "purlin::v0::internal"]
        type StatusRep = crate::status::ffi::StatusRep;
        #[namespace = "purlin::v0::internal"]
        type EventHeader;
        #[namespace = "purlin::v0::internal"]
        type MemorySpaceRep = crate::device::MemorySpaceRep;
    }

    extern "Rust" {
        #[namespace = "purlin::v0::internal"]
        #[derive(ExternType)]
        type RawBufferRep;

        /// New memory, or null and an error.
        fn raw_buffer_allocate(
            space: &MemorySpaceRep,
            size_bytes: usize,
            error: &mut *const StatusRep,
        ) -> *const RawBufferRep;
        unsafe fn raw_buffer_retain(buffer: *const RawBufferRep);
        unsafe fn raw_buffer_release(buffer: *const RawBufferRep);
        fn raw_buffer_size_bytes(buffer: &RawBufferRep) -> usize;
        fn raw_buffer_memory_space(buffer: &RawBufferRep) -> *const MemorySpaceRep;
        /// Null where the host cannot reach the memory.
        fn raw_buffer_host_pointer(buffer: &RawBufferRep) -> *mut u8;
        /// A part of the memory, or null and an error.
        fn raw_buffer_slice(
            buffer: &RawBufferRep,
            offset_bytes: usize,
            size_bytes: usize,
            error: &mut *const StatusRep,
        ) -> *const RawBufferRep;
        unsafe fn raw_buffer_copy_from_host(
            buffer: &RawBufferRep,
            source: *const u8,
            offset_bytes: usize,
            size_bytes: usize,
            dependencies: *const *mut EventHeader,
            count: usize,
        ) -> *mut EventHeader;
        unsafe fn raw_buffer_copy_to_host(
            buffer: &RawBufferRep,
            destination: *mut u8,
            offset_bytes: usize,
            size_bytes: usize,
            dependencies: *const *mut EventHeader,
            count: usize,
        ) -> *mut EventHeader;
        unsafe fn raw_buffer_copy_to(
            buffer: &RawBufferRep,
            destination: &RawBufferRep,
            dependencies: *const *mut EventHeader,
            count: usize,
        ) -> *mut EventHeader;
    }
}

/// Hands an event to C++. A panic becomes an event that has failed.
pub(crate) fn give_event(make: impl FnOnce() -> Result<Event, Status>) -> *mut ffi::EventHeader {
    guard(make).unwrap_or_else(Event::from_error).into_raw().cast()
}

fn raw_buffer_allocate(
    space: &MemorySpaceRep,
    size_bytes: usize,
    error: &mut *const ffi::StatusRep,
) -> *const RawBufferRep {
    give_handle(guard(|| RawBuffer::allocate(&space.0, size_bytes).map(RawBufferRep)), error)
}

/// # Safety
/// C++ holds a reference.
unsafe fn raw_buffer_retain(buffer: *const RawBufferRep) {
    // SAFETY: the caller's promise.
    unsafe { handle::retain(buffer) };
}

/// # Safety
/// C++ gives its reference up.
unsafe fn raw_buffer_release(buffer: *const RawBufferRep) {
    // SAFETY: the caller's promise.
    unsafe { handle::release(buffer) };
}

fn raw_buffer_size_bytes(buffer: &RawBufferRep) -> usize {
    buffer.0.size_bytes()
}

fn raw_buffer_memory_space(buffer: &RawBufferRep) -> *const MemorySpaceRep {
    share(MemorySpaceRep(buffer.0.memory_space()))
}

fn raw_buffer_host_pointer(buffer: &RawBufferRep) -> *mut u8 {
    buffer.0.host_pointer().map_or(ptr::null_mut(), NonNull::as_ptr)
}

fn raw_buffer_slice(
    buffer: &RawBufferRep,
    offset_bytes: usize,
    size_bytes: usize,
    error: &mut *const ffi::StatusRep,
) -> *const RawBufferRep {
    give_handle(guard(|| buffer.0.slice(offset_bytes, size_bytes).map(RawBufferRep)), error)
}

/// # Safety
/// `dependencies`; `source` is null or `size_bytes` bytes that stay readable and unchanged until the event.
unsafe fn raw_buffer_copy_from_host(
    buffer: &RawBufferRep,
    source: *const u8,
    offset_bytes: usize,
    size_bytes: usize,
    dependencies: *const *mut ffi::EventHeader,
    count: usize,
) -> *mut ffi::EventHeader {
    // SAFETY: the caller's promises.
    give_event(|| unsafe {
        let dependencies = borrowed(dependencies.cast(), count);
        Ok(buffer.0.copy_from_host(source, offset_bytes, size_bytes, dependencies))
    })
}

/// # Safety
/// `dependencies`; `destination` is null or `size_bytes` bytes that stay writable and untouched until the event.
unsafe fn raw_buffer_copy_to_host(
    buffer: &RawBufferRep,
    destination: *mut u8,
    offset_bytes: usize,
    size_bytes: usize,
    dependencies: *const *mut ffi::EventHeader,
    count: usize,
) -> *mut ffi::EventHeader {
    // SAFETY: the caller's promises.
    give_event(|| unsafe {
        let dependencies = borrowed(dependencies.cast(), count);
        Ok(buffer.0.copy_to_host(destination, offset_bytes, size_bytes, dependencies))
    })
}

/// # Safety
/// `dependencies`; they order this copy with all others that touch the same bytes.
unsafe fn raw_buffer_copy_to(
    buffer: &RawBufferRep,
    destination: &RawBufferRep,
    dependencies: *const *mut ffi::EventHeader,
    count: usize,
) -> *mut ffi::EventHeader {
    // SAFETY: the caller's promises.
    give_event(|| unsafe { Ok(buffer.0.copy_to(&destination.0, borrowed(dependencies.cast(), count))) })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use purlin::backend::{Backend, CopyOperation, CopySchedule, Extent, Memory, NullBackend};
    use purlin::{Client, ClientOptions, MemorySpace, StatusOr};

    use super::*;

    /// A backend with bugs: no copy works, and device 0 has no memory.
    struct Buggy;

    impl Backend for Buggy {
        fn platform_name(&self) -> &'static str {
            "buggy"
        }

        fn memory_kinds(&self) -> &'static [&'static str] {
            &["device"]
        }

        fn open_memory(&self, device: usize, kind: &'static str) -> StatusOr<Box<dyn Memory>> {
            if device == 0 { Ok(Box::new(Self)) } else { NullBackend::new().open_memory(device, kind) }
        }

        fn copy(&self, operation: CopyOperation, _schedule: &CopySchedule<'_>) -> Event {
            panic!("cannot do the {operation:?}")
        }
    }

    impl Memory for Buggy {
        fn map(&self, size_bytes: usize, alignment_bytes: usize) -> StatusOr<Arc<dyn Extent>> {
            panic!("cannot map {size_bytes} bytes at a multiple of {alignment_bytes}")
        }
    }

    fn memory_of_device(id: i32) -> MemorySpace {
        let client =
            Client::new(&ClientOptions { device_count: 2, worker_count: 1, ..Default::default() }, Arc::new(Buggy))
                .unwrap();
        client.lookup_device(id).unwrap().default_memory_space()
    }

    #[test]
    fn a_panicking_allocation_is_an_error_and_no_handle() {
        let mut error = ptr::null();
        let handle = raw_buffer_allocate(&MemorySpaceRep(memory_of_device(0)), 8, &mut error);
        assert!(handle.is_null());
        // SAFETY: the call has given us its error.
        let status = unsafe { Status::from_raw(error.cast()) };
        assert!(status.message().starts_with("panic: cannot map "), "{status}");
    }

    #[test]
    fn a_panicking_copy_is_an_event_that_failed() {
        let buffer = RawBufferRep(RawBuffer::allocate(&memory_of_device(1), 8).unwrap());
        let bytes = [0; 8];
        // SAFETY: there are no dependencies; the bytes live until the end of the test; the event is given to us.
        let event =
            unsafe { Event::from_raw(raw_buffer_copy_from_host(&buffer, bytes.as_ptr(), 0, 8, ptr::null(), 0).cast()) };
        let error = event.wait().unwrap_err();
        assert!(error.message().starts_with("panic: cannot do the copy of 8 bytes"), "{error}");
    }
}
