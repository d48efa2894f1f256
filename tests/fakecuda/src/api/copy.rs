//! Copies and fills.

#![allow(unsafe_code, reason = "symbols have names that others could have")]
#![allow(non_snake_case, reason = "the names of the symbols")]

use std::ffi::{c_uchar, c_uint, c_ushort, c_void};

use crate::boundary::{In, call_or_nothing};
use crate::code::Code;
use crate::context;
use crate::copy::{self, Place};
use crate::entry::Entry;
use crate::operation::Rows;

/// CUDA_MEMCPY2D.
#[repr(C)]
#[derive(Clone, Copy)]
struct Copy2D {
    from: Side,
    to: Side,
    width_bytes: usize,
    height: usize,
}

/// One half of it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Side {
    x_bytes: usize,
    y: usize,
    /// HOST 1, DEVICE 2, ARRAY 3, UNIFIED 4.
    kind: c_uint,
    host: *const c_void,
    device: u64,
    array: usize,
    pitch: usize,
}

// As a C compiler lays CUDA_MEMCPY2D out.
const _: () = assert!(size_of::<Copy2D>() == 128 && size_of::<Side>() == 56);

impl Side {
    fn place(&self) -> Result<Place, Code> {
        let offset = self.y.checked_mul(self.pitch).and_then(|rows| rows.checked_add(self.x_bytes));
        let offset = offset.ok_or(Code::INVALID_VALUE)? as u64;
        match self.kind {
            1 => Ok(Place::Host((self.host.expose_provenance() as u64).wrapping_add(offset))),
            2 => Ok(Place::Device(self.device.wrapping_add(offset))),
            4 => Ok(Place::Unified(self.device.wrapping_add(offset))),
            3 => Err(Code::NOT_SUPPORTED),
            _ => Err(Code::INVALID_VALUE),
        }
    }
}

fn row(size_bytes: usize) -> Rows {
    let width = size_bytes as u64;
    Rows { width, height: u64::from(width > 0), from_pitch: width, to_pitch: width }
}

fn host(address: *const c_void) -> Place {
    Place::Host(address.expose_provenance() as u64)
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpyHtoDAsync_v2(to: u64, from: *const c_void, size_bytes: usize, stream: usize) -> u32 {
    call_or_nothing(Entry::cuMemcpyHtoDAsync_v2, |call| {
        copy::copy(call, host(from), Place::Device(to), row(size_bytes), stream)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpyDtoHAsync_v2(to: *mut c_void, from: u64, size_bytes: usize, stream: usize) -> u32 {
    call_or_nothing(Entry::cuMemcpyDtoHAsync_v2, |call| {
        copy::copy(call, Place::Device(from), host(to), row(size_bytes), stream)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, size_bytes: usize, stream: usize) -> u32 {
    call_or_nothing(Entry::cuMemcpyDtoDAsync_v2, |call| {
        copy::copy(call, Place::Device(from), Place::Device(to), row(size_bytes), stream)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpyPeerAsync(
    to: u64,
    to_context: usize,
    from: u64,
    from_context: usize,
    size_bytes: usize,
    stream: usize,
) -> u32 {
    call_or_nothing(Entry::cuMemcpyPeerAsync, |call| {
        context::device_of(call.driver, to_context)?;
        context::device_of(call.driver, from_context)?;
        copy::copy(call, Place::Device(from), Place::Device(to), row(size_bytes), stream)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpy2DAsync_v2(copy: In<Copy2D>, stream: usize) -> u32 {
    call_or_nothing(Entry::cuMemcpy2DAsync_v2, |call| {
        let Copy2D { from, to, width_bytes, height } = copy.get()?;
        let (width, height) = (width_bytes as u64, height as u64);
        // A pitch of 0 is that of rows without gaps; a row does not reach into the next one.
        let pitch = |side: &Side| if side.pitch == 0 { width } else { side.pitch as u64 };
        let (from_pitch, to_pitch) = (pitch(&from), pitch(&to));
        if height > 1 && (from_pitch < width || to_pitch < width) {
            return Err(Code::INVALID_VALUE);
        }
        copy::copy(call, from.place()?, to.place()?, Rows { width, height, from_pitch, to_pitch }, stream)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemsetD8Async(to: u64, value: c_uchar, count: usize, stream: usize) -> u32 {
    call_or_nothing(Entry::cuMemsetD8Async, |call| copy::fill(call, to, &[value], count, stream))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemsetD16Async(to: u64, value: c_ushort, count: usize, stream: usize) -> u32 {
    call_or_nothing(Entry::cuMemsetD16Async, |call| copy::fill(call, to, &value.to_ne_bytes(), count, stream))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemsetD32Async(to: u64, value: c_uint, count: usize, stream: usize) -> u32 {
    call_or_nothing(Entry::cuMemsetD32Async, |call| copy::fill(call, to, &value.to_ne_bytes(), count, stream))
}
