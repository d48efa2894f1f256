//! `purlin/raw_buffer.h`: untyped bytes, slices and copies. What takes a closure, or an array of ranges, is a plain
//! function.
//!
//! In the safety sections, "`dependencies`" stands for: `count` words, each null or an event that C++ keeps alive,
//! unchanged for the length of the call.

use std::ffi::c_void;
use std::mem::offset_of;
use std::ptr::{self, NonNull};

use purlin_async::Event;
use purlin_base::Error;
use purlin_base::status::StatusRep;
use purlin_device::{Mutability, RawBuffer};
use purlin_ffi::handle::{self, elements, give_handle, give_or, share};
use purlin_ffi::number::known;
use purlin_ffi::panic::{contain, guard, guard_at};
use purlin_ffi::words::{self, borrowed};

use crate::alloc_options::RawAllocOptions;
use crate::callback::Callback;
use crate::device::MemorySpaceRep;
use crate::source_location::Place;

/// What a `purlin::RawBuffer` points to.
pub struct RawBufferRep(pub(crate) RawBuffer);

/// A `purlin::ByteRange`, as `purlin/raw_buffer.h` declares it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ByteRange {
    offset_bytes: usize,
    size_bytes: usize,
}

const _: () = assert!(size_of::<ByteRange>() == 16);
const _: () = assert!(offset_of!(ByteRange, offset_bytes) == 0 && offset_of!(ByteRange, size_bytes) == 8);

#[cxx::bridge(namespace = "purlin::ffi")]
pub(crate) mod ffi {
    unsafe extern "C++" {
        include!("purlin/internal/abi.h");
        include!("purlin-bridge/src/alloc_options.rs.h");
        include!("purlin-bridge/src/device.rs.h");

        #[namespace = "purlin::v0::internal"]
        type StatusRep = crate::status::ffi::StatusRep;
        #[namespace = "purlin::v0::internal"]
        type EventHeader = crate::abi::ffi::EventHeader;
        #[namespace = "purlin::v0::internal"]
        type MemorySpaceRep = crate::device::MemorySpaceRep;
        #[namespace = "purlin::v0"]
        type SourceLocation = crate::source_location::Place;
        #[namespace = "purlin::v0::internal"]
        type RawAllocOptions = crate::alloc_options::RawAllocOptions;
    }

    extern "Rust" {
        #[namespace = "purlin::v0::internal"]
        #[derive(ExternType)]
        type RawBufferRep;

        unsafe fn raw_buffer_retain(buffer: *const RawBufferRep);
        unsafe fn raw_buffer_release(buffer: *const RawBufferRep);
        fn raw_buffer_size_bytes(buffer: &RawBufferRep) -> usize;
        fn raw_buffer_memory_space(buffer: &RawBufferRep) -> *const MemorySpaceRep;
        fn raw_buffer_allocation_event(buffer: &RawBufferRep) -> *mut EventHeader;
        fn raw_buffer_is_mutable(buffer: &RawBufferRep) -> bool;
        /// Null where the host cannot reach the memory, and while it is not there.
        fn raw_buffer_host_pointer(buffer: &RawBufferRep) -> *mut u8;
        /// The address, or an error.
        fn raw_buffer_device_pointer(buffer: &RawBufferRep, error: &mut *const StatusRep) -> usize;
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
        unsafe fn raw_buffer_copy_range_to(
            buffer: &RawBufferRep,
            offset_bytes: usize,
            destination: &RawBufferRep,
            destination_offset_bytes: usize,
            size_bytes: usize,
            dependencies: *const *mut EventHeader,
            count: usize,
        ) -> *mut EventHeader;
        unsafe fn raw_buffer_retain_until(buffer: &RawBufferRep, event: *mut EventHeader);
        /// New memory, C++'s, or null and an error.
        unsafe fn raw_buffer_allocate(
            space: &MemorySpaceRep,
            size_bytes: usize,
            options: &RawAllocOptions,
            location: &SourceLocation,
            error: &mut *const StatusRep,
        ) -> *const RawBufferRep;
    }
}

/// Hands an event to C++. A panic becomes an event that has failed.
pub(crate) fn give_event(make: impl FnOnce() -> Result<Event, Error>) -> *mut ffi::EventHeader {
    words::give_event(make).cast()
}

/// # Safety
/// `options` and `location` are what their structs say.
unsafe fn raw_buffer_allocate(
    space: &MemorySpaceRep,
    size_bytes: usize,
    options: &RawAllocOptions,
    location: &Place,
    error: &mut *const ffi::StatusRep,
) -> *const RawBufferRep {
    // SAFETY: the caller's promises.
    let made = unsafe { guard_at(location.0, || RawBuffer::allocate_with(&space.0, size_bytes, &options.get()?)) };
    give_handle(made.map(RawBufferRep), error)
}

/// Memory of C++'s as a buffer, C++'s, or null and an error. `on_release`, if it is not null, is taken over, and called
/// once when the memory is no longer used, or destroyed on an error.
///
/// # Safety
/// `address` is null or `size_bytes` bytes that stay readable (and writable, if `mutability` is 1) until `on_release`
/// is called, without it for ever; `on_release` is null or a callback that the caller gives up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_raw_buffer_import(
    space: &MemorySpaceRep,
    address: *mut c_void,
    size_bytes: usize,
    mutability: i32,
    on_release: *const Callback,
    error: &mut *const StatusRep,
) -> *const RawBufferRep {
    // SAFETY: the caller gives it up, so this is the only one.
    let on_release = (!on_release.is_null()).then(|| unsafe { on_release.read() });
    let made = guard(|| {
        let values = [("kImmutable", Mutability::Immutable), ("kMutable", Mutability::Mutable)];
        let mutability = known("Mutability", mutability, &values)?;
        let release = on_release.map(|callback| move || callback.call(Ok(()), ptr::null()));
        // SAFETY: the caller's promise.
        unsafe { RawBuffer::import_notifying(&space.0, address.cast(), size_bytes, mutability, release) }
    });
    give_handle(made.map(RawBufferRep), error)
}

/// Slices, one per range, written to `slices`, C++'s. Null, or an error, C++'s; then nothing is written.
///
/// # Safety
/// `ranges` points to `count` ranges, and `slices` to as many pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_raw_buffer_slices(
    buffer: &RawBufferRep,
    ranges: *const ByteRange,
    count: usize,
    slices: *mut *const RawBufferRep,
) -> *const StatusRep {
    let made = guard(|| {
        // SAFETY: the caller's promise.
        let ranges = unsafe { elements(ranges, count) };
        let ranges: Vec<_> = ranges.iter().map(|range| (range.offset_bytes, range.size_bytes)).collect();
        let made = buffer.0.slices(&ranges)?;
        for (index, slice) in made.into_iter().enumerate() {
            // SAFETY: there is a slice per range, so the index is less than `count`.
            unsafe { slices.add(index).write(share(RawBufferRep(slice))) };
        }
        Ok(())
    });
    handle::give(made)
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
    contain("raw_buffer_release", (), || {
        // SAFETY: the caller's promise.
        unsafe { handle::release(buffer) };
    })
}

fn raw_buffer_size_bytes(buffer: &RawBufferRep) -> usize {
    buffer.0.size_bytes()
}

fn raw_buffer_memory_space(buffer: &RawBufferRep) -> *const MemorySpaceRep {
    contain("raw_buffer_memory_space", ptr::null(), || share(MemorySpaceRep(buffer.0.memory_space())))
}

fn raw_buffer_allocation_event(buffer: &RawBufferRep) -> *mut ffi::EventHeader {
    give_event(|| Ok(buffer.0.allocation_event())).cast()
}

fn raw_buffer_is_mutable(buffer: &RawBufferRep) -> bool {
    contain("raw_buffer_is_mutable", false, || buffer.0.is_mutable())
}

fn raw_buffer_device_pointer(buffer: &RawBufferRep, error: &mut *const ffi::StatusRep) -> usize {
    give_or(guard(|| buffer.0.device_pointer()), 0, error)
}

fn raw_buffer_host_pointer(buffer: &RawBufferRep) -> *mut u8 {
    contain("raw_buffer_host_pointer", ptr::null_mut(), || {
        buffer.0.host_pointer().map_or(ptr::null_mut(), NonNull::as_ptr)
    })
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

/// # Safety
/// As [`raw_buffer_copy_to`].
unsafe fn raw_buffer_copy_range_to(
    buffer: &RawBufferRep,
    offset_bytes: usize,
    destination: &RawBufferRep,
    destination_offset_bytes: usize,
    size_bytes: usize,
    dependencies: *const *mut ffi::EventHeader,
    count: usize,
) -> *mut ffi::EventHeader {
    // SAFETY: the caller's promises.
    give_event(|| unsafe {
        let dependencies = borrowed(dependencies.cast(), count);
        Ok(buffer.0.copy_range_to(offset_bytes, &destination.0, destination_offset_bytes, size_bytes, dependencies))
    })
}

/// # Safety
/// `event` is null or alive.
unsafe fn raw_buffer_retain_until(buffer: &RawBufferRep, event: *mut ffi::EventHeader) {
    contain("raw_buffer_retain_until", (), || {
        // SAFETY: the caller's promise.
        buffer.0.retain_until(&unsafe { Event::from_borrowed_raw(event.cast()) });
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use purlin_base::StatusOr;
    use purlin_device::backend::{Backend, Extent, Memory, NullBackend, Operation, Schedule};
    use purlin_device::{Client, ClientOptions, MemorySpace};
    use purlin_ffi::words::Location;

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

        fn run(&self, operation: Operation, _schedule: &Schedule<'_>) -> Event {
            panic!("cannot do the {operation:?}")
        }
    }

    impl Memory for Buggy {
        fn map(&self, size_bytes: usize, alignment_bytes: usize) -> StatusOr<Arc<dyn Extent>> {
            panic!("cannot map {size_bytes} bytes at a multiple of {alignment_bytes}")
        }
    }

    /// Of a client whose device 0 panics when memory is asked for, and the others when it is copied.
    pub(crate) fn memory_of_device(id: i32) -> MemorySpace {
        let client =
            Client::new(&ClientOptions { device_count: 2, worker_count: 1, ..Default::default() }, Arc::new(Buggy))
                .unwrap();
        client.lookup_device(id).unwrap().default_memory_space()
    }

    #[test]
    fn a_panicking_allocation_is_an_error_and_no_handle() {
        let mut error = ptr::null();
        let (options, location) = (RawAllocOptions::plain(), Place(Location { file: c"".as_ptr(), line: 0 }));
        let space = MemorySpaceRep(memory_of_device(0));
        // SAFETY: both structs are what they say.
        let handle = unsafe { raw_buffer_allocate(&space, 8, &options, &location, &mut error) };
        assert!(handle.is_null());
        // SAFETY: the call has given us its error.
        let error = unsafe { Error::from_raw(error.cast()) }.unwrap();
        assert!(error.message().starts_with("a call into Purlin panicked: cannot map "), "{error}");
    }

    #[test]
    fn a_panicking_copy_is_an_event_that_failed() {
        let buffer = RawBufferRep(RawBuffer::allocate(&memory_of_device(1), 8).unwrap());
        let bytes = [0; 8];
        // SAFETY: there are no dependencies; the bytes live until the end of the test; the event is given to us.
        let event =
            unsafe { Event::from_raw(raw_buffer_copy_from_host(&buffer, bytes.as_ptr(), 0, 8, ptr::null(), 0).cast()) };
        let error = event.wait().unwrap_err();
        assert!(error.message().starts_with("a call into Purlin panicked: cannot do the copy of 8 bytes"), "{error}");
    }
}
