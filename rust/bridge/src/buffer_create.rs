//! `purlin/buffer.h`: new buffers. From arrays with options: `host_buffer`.
//!
//! In the safety sections, "the structs are what they say" stands for the contracts of [`RawShape`], [`RawLayout`],
//! [`RawAllocOptions`] and [`Location`]; a layout may also be null.

use std::ptr;

use purlin_async::Event;
use purlin_async::event::abi::EventHeader;
use purlin_base::StatusOr;
use purlin_base::status::StatusRep;
use purlin_device::Buffer;
use purlin_ffi::handle::{Record, elements, give_or};
use purlin_ffi::panic::{guard, guard_at};
use purlin_ffi::words::Location;

use crate::alloc_options::RawAllocOptions;
use crate::buffer::BufferRep;
use crate::device::MemorySpaceRep;
use crate::host_buffer::semantics;
use crate::layout::RawLayout;
use crate::raw_buffer::RawBufferRep;
use crate::shape::{RawShape, dtype};
use crate::status::given;

/// Hands a new buffer to C++, or null and an error.
pub(crate) fn give_buffer<R: Record>(made: StatusOr<Buffer>, error: &mut *const R) -> *const BufferRep {
    give_or(made.map(BufferRep::of), ptr::null(), error)
}

/// A new buffer, C++'s, or null and an error. `number` and `semantics_number` are C++'s, unchecked.
///
/// # Safety
/// `data` is null or `size_bytes` bytes, readable and unchanged for as long as the semantics say; `dims` points to
/// `rank` numbers; `location` is what its struct says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_buffer_from_host(
    data: *const u8,
    size_bytes: usize,
    number: u8,
    dims: *const i64,
    rank: usize,
    space: &MemorySpaceRep,
    semantics_number: i32,
    location: Location,
    error: &mut *const StatusRep,
) -> *const BufferRep {
    let make = || {
        let (dtype, semantics) = (dtype(number)?, semantics(semantics_number)?);
        // SAFETY: the caller's promises.
        unsafe { Buffer::from_host(data, size_bytes, dtype, elements(dims, rank), &space.0, semantics) }
    };
    // SAFETY: the caller's promise.
    give_buffer(unsafe { guard_at(location, make) }, error)
}

/// A new buffer, C++'s, or null and an error.
///
/// # Safety
/// The structs are what they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_buffer_create_uninitialized(
    shape: &RawShape,
    layout: *const RawLayout,
    space: &MemorySpaceRep,
    options: &RawAllocOptions,
    location: Location,
    error: &mut *const StatusRep,
) -> *const BufferRep {
    let make = || {
        // SAFETY: the caller's promises.
        let (shape, layout, options) = unsafe { (shape.get()?, RawLayout::get(layout)?, options.get()?) };
        Buffer::uninitialized(&shape, layout.as_ref(), &space.0, &options)
    };
    // SAFETY: the caller's promise.
    give_buffer(unsafe { guard_at(location, make) }, error)
}

/// A new buffer, C++'s, or null and an error.
///
/// # Safety
/// The structs are what they say; `why` is null or owned by the caller, which gives it up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_buffer_create_error(
    why: *const StatusRep,
    shape: &RawShape,
    space: &MemorySpaceRep,
    error: &mut *const StatusRep,
) -> *const BufferRep {
    let made = guard(|| {
        // SAFETY: the caller's promises.
        let (why, shape) = unsafe { (given(why, "Buffer::CreateError"), shape.get()?) };
        Ok(Buffer::error(why, &shape, &space.0))
    });
    give_buffer(made, error)
}

/// A new buffer, C++'s, or null and an error.
///
/// # Safety
/// `ready` is null or alive; `location` is what its struct says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_buffer_create_token(
    space: &MemorySpaceRep,
    ready: *mut EventHeader,
    location: Location,
    error: &mut *const StatusRep,
) -> *const BufferRep {
    // SAFETY: the caller's promise.
    let ready = unsafe { Event::from_borrowed_raw(ready) };
    // SAFETY: the caller's promise.
    give_buffer(unsafe { guard_at(location, || Buffer::token(&space.0, &ready)) }, error)
}

/// A new buffer, C++'s, or null and an error.
///
/// # Safety
/// The structs are what they say; `ready` is null or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_buffer_from_raw(
    memory: &RawBufferRep,
    shape: &RawShape,
    layout: *const RawLayout,
    ready: *mut EventHeader,
    error: &mut *const StatusRep,
) -> *const BufferRep {
    let made = guard(|| {
        // SAFETY: the caller's promises.
        let (shape, layout) = unsafe { (shape.get()?, RawLayout::get(layout)?) };
        // SAFETY: null or alive.
        let ready = unsafe { Event::from_borrowed_raw(ready) };
        Buffer::from_raw(memory.0.clone(), &shape, layout.as_ref(), &ready)
    });
    give_buffer(made, error)
}
