//! `purlin/host_buffer.h`: arrays from the memory of the host. Plain functions, as they take closures.

use purlin_array::{HostArray, Shape};
use purlin_base::status::StatusRep;
use purlin_base::{Error, StatusOr};
use purlin_device::{Aliasing, Buffer, FromHostOptions, HostBufferSemantics};
use purlin_ffi::handle::elements;
use purlin_ffi::number::known;
use purlin_ffi::panic::guard_at;
use purlin_ffi::words::Location;

use crate::alloc_options::RawAllocOptions;
use crate::buffer::BufferRep;
use crate::buffer_create::give_buffer;
use crate::callback::{Callback, CallbackOnce};
use crate::device::MemorySpaceRep;
use crate::layout::RawLayout;
use crate::shape::dtype;

/// An array in the memory of the host. Borrowed, and unchecked.
#[repr(C)]
pub struct RawHostArray {
    data: *const u8,
    dims: *const i64,
    rank: usize,
    byte_strides: *const i64,
    stride_count: usize,
    has_byte_strides: bool,
    dtype: u8,
}

impl RawHostArray {
    /// # Errors
    /// `InvalidArgument`: no array.
    ///
    /// # Safety
    /// `dims` points to `rank` numbers, and `byte_strides` to `stride_count`.
    pub(crate) unsafe fn get(&self) -> StatusOr<HostArray> {
        // SAFETY: the caller's promises.
        let (shape, strides) = unsafe { (self.shape()?, elements(self.byte_strides, self.stride_count)) };
        HostArray::new(&shape, self.has_byte_strides.then_some(strides))
    }

    /// # Errors
    /// `InvalidArgument`: no array.
    ///
    /// # Safety
    /// As [`get`](Self::get).
    unsafe fn shape(&self) -> StatusOr<Shape> {
        // SAFETY: the caller's promises.
        Shape::new(dtype(self.dtype)?, unsafe { elements(self.dims, self.rank) })
    }

    /// Where the array's element `[0, 0, ...]` is.
    pub(crate) fn data(&self) -> *const u8 {
        self.data
    }
}

/// What C++ says of an array.
enum Described {
    /// Dense and row-major, on the host and on the device.
    Dense(Shape),
    Strided(HostArray),
}

/// A `purlin::HostBufferSemantics`.
pub(crate) fn semantics(number: i32) -> StatusOr<HostBufferSemantics> {
    use HostBufferSemantics as S;
    const ALL: &[(&str, S)] = &[
        ("kImmutableOnlyDuringCall", S::ImmutableOnlyDuringCall),
        ("kImmutableUntilTransferCompletes", S::ImmutableUntilTransferCompletes),
        ("kImmutableZeroCopy", S::ImmutableZeroCopy),
        ("kMutableZeroCopy", S::MutableZeroCopy),
    ];
    known("HostBufferSemantics", number, ALL)
}

/// A new buffer, C++'s, and whether it is the host's memory; or null and an error. `on_done`, if it is not null, is
/// taken over, and called once, for errors before this returns.
///
/// # Safety
/// The structs are what they say; until `on_done` is called (without it, for as long as `semantics` says), the memory
/// at `array.data` is what [`Buffer::from_host_array`] asks for; `on_done` is null or a callback that the caller gives
/// up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_buffer_from_host_array(
    array: &RawHostArray,
    space: &MemorySpaceRep,
    number: i32,
    layout: *const RawLayout,
    alloc: &RawAllocOptions,
    on_done: *const Callback,
    location: Location,
    is_aliased: &mut bool,
    error: &mut *const StatusRep,
) -> *const BufferRep {
    // SAFETY: the caller gives it up.
    let on_done = unsafe { CallbackOnce::take(on_done) };
    let make = move || {
        let checked = (|| {
            // SAFETY: the caller's promises.
            let (layout, alloc) = unsafe { (RawLayout::get(layout)?, alloc.get()?) };
            let host = if array.has_byte_strides || layout.is_some() {
                // SAFETY: the caller's promise.
                Described::Strided(unsafe { array.get()? })
            } else {
                // SAFETY: the caller's promise.
                Described::Dense(unsafe { array.shape()? })
            };
            Ok((host, semantics(number)?, layout, alloc))
        })();
        let (host, semantics, layout, alloc) = match checked {
            Ok(checked) => checked,
            Err(error) => {
                let error: Error = error;
                if let Some(on_done) = on_done {
                    on_done.tell(Err(error.clone()));
                }
                return Err(error);
            }
        };
        match host {
            Described::Dense(shape) => {
                let on_done = on_done.map(CallbackOnce::into_closure);
                // SAFETY: the caller's promise.
                unsafe { Buffer::from_host_dense(array.data, &shape, &space.0, semantics, &alloc, on_done) }
            }
            Described::Strided(host) => {
                let options =
                    FromHostOptions { semantics, layout, alloc, on_done: on_done.map(CallbackOnce::into_on_done) };
                // SAFETY: the caller's promise.
                unsafe { Buffer::from_host_array(array.data, &host, &space.0, options) }
            }
        }
    };
    // SAFETY: the caller's promise.
    let made = unsafe { guard_at(location, make) };
    let made = made.map(|(buffer, aliasing)| {
        *is_aliased = aliasing == Aliasing::Aliased;
        buffer
    });
    give_buffer(made, error)
}

#[cfg(test)]
mod tests {
    use std::mem::ManuallyDrop;
    use std::ptr;
    use std::sync::{Arc, Mutex};

    use purlin_base::StatusCode;

    use super::*;
    use crate::raw_buffer::tests::memory_of_device;

    #[test]
    fn a_panic_on_the_way_is_an_error_and_told_once() {
        let bytes = [0_u8; 8];
        for (device, says) in
            [(0, "a call into Purlin panicked: cannot map "), (1, "a call into Purlin panicked: cannot do the copy ")]
        {
            for number in 0..2 {
                let told = Arc::new(Mutex::new(Vec::new()));
                let on_done = ManuallyDrop::new(Callback::collecting(&told));
                let array = RawHostArray {
                    data: bytes.as_ptr(),
                    dims: [8].as_ptr(),
                    rank: 1,
                    byte_strides: ptr::null(),
                    stride_count: 0,
                    has_byte_strides: false,
                    dtype: purlin_array::DType::U8 as u8,
                };
                let (space, options) = (MemorySpaceRep(memory_of_device(device)), RawAllocOptions::plain());
                let location = Location { file: c"".as_ptr(), line: 0 };
                let (mut is_aliased, mut error) = (false, ptr::null());
                // SAFETY: the structs are what they say, the bytes outlive the client, and the callback is given up.
                let (buffer, error) = unsafe {
                    let on_done = &raw const *on_done;
                    let buffer = purlin_buffer_from_host_array(
                        &array,
                        &space,
                        number,
                        ptr::null(),
                        &options,
                        on_done,
                        location,
                        &mut is_aliased,
                        &mut error,
                    );
                    (buffer, Error::from_raw(error).unwrap())
                };
                assert!(buffer.is_null());
                assert!(error.message().starts_with(says), "{error}");
                let told = told.lock().unwrap();
                assert_eq!(told.len(), 1, "{told:?}");
                assert_eq!(
                    told[0].as_ref().unwrap_err().code(),
                    StatusCode::Cancelled,
                    "what was given up is told as that: {told:?}"
                );
            }
        }
    }
}
