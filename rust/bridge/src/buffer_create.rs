//! `purlin/buffer.h`: new buffers. From arrays with options: `host_buffer`.
//!
//! In the safety sections, "the structs are what they say" stands for the contracts of [`RawShape`], [`RawLayout`],
//! [`RawAllocOptions`] and [`Place`]; a layout may also be null.

use std::ptr;

use purlin_async::Event;
use purlin_base::StatusOr;
use purlin_device::Buffer;
use purlin_ffi::handle::{Record, elements, give_or, valid};
use purlin_ffi::panic::{guard, guard_at};

use crate::alloc_options::RawAllocOptions;
use crate::buffer::BufferRep;
use crate::device::MemorySpaceRep;
use crate::host_buffer::semantics;
use crate::layout::RawLayout;
use crate::raw_buffer::RawBufferRep;
use crate::shape::{RawShape, dtype};
use crate::source_location::Place;
use crate::status::given;

#[cxx::bridge(namespace = "purlin::ffi")]
pub(crate) mod ffi {
    /// A dense array in the memory of the host. Borrowed, and unchecked.
    struct RawDenseArray {
        data: *const u8,
        size_bytes: usize,
        dims: *const i64,
        rank: usize,
        dtype: u8,
    }

    unsafe extern "C++" {
        include!("purlin/internal/abi.h");
        include!("purlin-bridge/src/alloc_options.rs.h");
        include!("purlin-bridge/src/buffer.rs.h");
        include!("purlin-bridge/src/device.rs.h");
        include!("purlin-bridge/src/layout.rs.h");
        include!("purlin-bridge/src/raw_buffer.rs.h");
        include!("purlin-bridge/src/shape.rs.h");

        #[namespace = "purlin::v0::internal"]
        type StatusRep = crate::status::ffi::StatusRep;
        #[namespace = "purlin::v0::internal"]
        type EventHeader = crate::abi::ffi::EventHeader;
        #[namespace = "purlin::v0"]
        type SourceLocation = crate::source_location::Place;
        #[namespace = "purlin::v0::internal"]
        type BufferRep = crate::buffer::BufferRep;
        #[namespace = "purlin::v0::internal"]
        type MemorySpaceRep = crate::device::MemorySpaceRep;
        #[namespace = "purlin::v0::internal"]
        type RawAllocOptions = crate::alloc_options::RawAllocOptions;
        #[namespace = "purlin::v0::internal"]
        type RawBufferRep = crate::raw_buffer::RawBufferRep;
        #[namespace = "purlin::v0::internal"]
        type RawLayout = crate::layout::RawLayout;
        #[namespace = "purlin::v0::internal"]
        type RawShape = crate::shape::RawShape;
    }

    extern "Rust" {
        /// A new buffer, C++'s, or null and an error. `number` is C++'s, unchecked.
        unsafe fn buffer_from_host(
            array: &RawDenseArray,
            space: &MemorySpaceRep,
            number: i32,
            location: &SourceLocation,
            error: &mut *const StatusRep,
        ) -> *const BufferRep;
        /// A new buffer, C++'s, or null and an error.
        unsafe fn buffer_create_uninitialized(
            shape: &RawShape,
            layout: *const RawLayout,
            space: &MemorySpaceRep,
            options: &RawAllocOptions,
            location: &SourceLocation,
            error: &mut *const StatusRep,
        ) -> *const BufferRep;
        /// A new buffer, C++'s, or null and an error.
        unsafe fn buffer_create_error(
            why: *const StatusRep,
            shape: &RawShape,
            space: &MemorySpaceRep,
            error: &mut *const StatusRep,
        ) -> *const BufferRep;
        /// A new buffer, C++'s, or null and an error.
        unsafe fn buffer_create_token(
            space: &MemorySpaceRep,
            ready: *mut EventHeader,
            location: &SourceLocation,
            error: &mut *const StatusRep,
        ) -> *const BufferRep;
        /// A new buffer, C++'s, or null and an error.
        unsafe fn buffer_from_raw(
            memory: &RawBufferRep,
            shape: &RawShape,
            layout: *const RawLayout,
            ready: *mut EventHeader,
            error: &mut *const StatusRep,
        ) -> *const BufferRep;
    }
}

/// Hands a new buffer to C++, or null and an error.
pub(crate) fn give_buffer<R: Record>(made: StatusOr<Buffer>, error: &mut *const R) -> *const BufferRep {
    give_or(made.map(BufferRep::of), ptr::null(), error)
}

/// # Safety
/// `data` is null or `size_bytes` bytes, readable and unchanged for as long as the semantics say; `dims` points to
/// `rank` numbers; `location` is what its struct says.
unsafe fn buffer_from_host(
    array: &ffi::RawDenseArray,
    space: &MemorySpaceRep,
    number: i32,
    location: &Place,
    error: &mut *const ffi::StatusRep,
) -> *const BufferRep {
    let make = || {
        let &ffi::RawDenseArray { data, size_bytes, dims, rank, .. } = array;
        let (dtype, semantics) = (dtype(array.dtype)?, semantics(number)?);
        // SAFETY: the caller's promises.
        unsafe { Buffer::from_host(data, size_bytes, dtype, elements(dims, rank), &space.0, semantics) }
    };
    // SAFETY: the caller's promise.
    give_buffer(unsafe { guard_at(location.0, make) }, error)
}

/// # Safety
/// The structs are what they say.
unsafe fn buffer_create_uninitialized(
    shape: &RawShape,
    layout: *const RawLayout,
    space: &MemorySpaceRep,
    options: &RawAllocOptions,
    location: &Place,
    error: &mut *const ffi::StatusRep,
) -> *const BufferRep {
    let make = || {
        // By reference, so that they stay where they were made.
        // SAFETY: the caller's promises.
        let (shape, layout, options) = unsafe { (&shape.get(), &RawLayout::get(layout), &options.get()) };
        Buffer::uninitialized(valid(shape)?, valid(layout)?.as_ref(), &space.0, valid(options)?)
    };
    // SAFETY: the caller's promise.
    give_buffer(unsafe { guard_at(location.0, make) }, error)
}

/// # Safety
/// The structs are what they say; `why` is null or owned by the caller, which gives it up.
unsafe fn buffer_create_error(
    why: *const ffi::StatusRep,
    shape: &RawShape,
    space: &MemorySpaceRep,
    error: &mut *const ffi::StatusRep,
) -> *const BufferRep {
    let made = guard(|| {
        // SAFETY: the caller's promises.
        let (why, shape) = unsafe { (given(why, "Buffer::CreateError"), shape.get()?) };
        Ok(Buffer::error(why, &shape, &space.0))
    });
    give_buffer(made, error)
}

/// # Safety
/// `ready` is null or alive; `location` is what its struct says.
unsafe fn buffer_create_token(
    space: &MemorySpaceRep,
    ready: *mut ffi::EventHeader,
    location: &Place,
    error: &mut *const ffi::StatusRep,
) -> *const BufferRep {
    // SAFETY: the caller's promise.
    let ready = unsafe { Event::from_borrowed_raw(ready.cast()) };
    // SAFETY: the caller's promise.
    give_buffer(unsafe { guard_at(location.0, || Buffer::token(&space.0, &ready)) }, error)
}

/// # Safety
/// The structs are what they say; `ready` is null or alive.
unsafe fn buffer_from_raw(
    memory: &RawBufferRep,
    shape: &RawShape,
    layout: *const RawLayout,
    ready: *mut ffi::EventHeader,
    error: &mut *const ffi::StatusRep,
) -> *const BufferRep {
    let made = guard(|| {
        // SAFETY: the caller's promises.
        let (shape, layout) = unsafe { (shape.get()?, RawLayout::get(layout)?) };
        // SAFETY: null or alive.
        let ready = unsafe { Event::from_borrowed_raw(ready.cast()) };
        Buffer::from_raw(memory.0.clone(), &shape, layout.as_ref(), &ready)
    });
    give_buffer(made, error)
}
