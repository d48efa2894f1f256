//! What a pointer is: device or host, whose, how far it reaches.

use std::ffi::c_void;

use crate::boundary::{Answer, Call, In, Out};
use crate::code::Code;
use crate::context;
use crate::detector::shadow::Span;
use crate::memory::{Block, Found, Kind};

/// Numbers of CUpointer_attribute.
mod attribute {
    pub(super) const CONTEXT: u32 = 1;
    pub(super) const MEMORY_TYPE: u32 = 2;
    pub(super) const DEVICE_POINTER: u32 = 3;
    pub(super) const HOST_POINTER: u32 = 4;
    pub(super) const SYNC_MEMOPS: u32 = 6;
    pub(super) const BUFFER_ID: u32 = 7;
    pub(super) const IS_MANAGED: u32 = 8;
    pub(super) const DEVICE_ORDINAL: u32 = 9;
    pub(super) const IPC_CAPABLE: u32 = 10;
    pub(super) const RANGE_START: u32 = 11;
    pub(super) const RANGE_SIZE: u32 = 12;
    pub(super) const MAPPED: u32 = 13;
    pub(super) const HANDLE_TYPES: u32 = 14;
    pub(super) const RDMA_CAPABLE: u32 = 15;
    pub(super) const ACCESS_FLAGS: u32 = 16;
    pub(super) const MEMPOOL: u32 = 17;
}

const HOST: u32 = 1;
const DEVICE: u32 = 2;

/// Writes one attribute each to the places of `data`. For a pointer that the driver does not know they are 0, the
/// device is -2, and its range's size is not written, as driver 580 does it.
pub(crate) fn attributes(call: &Call, count: u32, numbers: In<u32>, data: In<*mut c_void>, pointer: u64) -> Answer {
    let count = count as usize;
    if count == 0 {
        return Err(Code::INVALID_VALUE);
    }
    let (numbers, places) = (numbers.get_all(count)?, data.get_all(count)?);
    if crate::thread::current().is_none() {
        return Err(Code::INVALID_CONTEXT);
    }
    let state = call.driver.state.lock();
    let block = match state.memory.find(Span::new(pointer, 1)) {
        Found::Inside(block) if block.life.freed.is_none() => Some(block),
        _ => None,
    };
    for (number, place) in numbers.into_iter().zip(places) {
        write(number, place, block, pointer)?;
    }
    Ok(())
}

fn write(number: u32, place: *mut c_void, block: Option<&Block>, pointer: u64) -> Answer {
    let word = |value: u32| Out::new(place.cast::<u32>()).set(value);
    let wide = |value: u64| Out::new(place.cast::<u64>()).set(value);
    let is_host = block.is_some_and(|block| block.kind.is_host());
    match number {
        attribute::CONTEXT => wide(block.map_or(0, |block| context::handle(block.device) as u64)),
        attribute::MEMORY_TYPE => word(block.map_or(0, |_| if is_host { HOST } else { DEVICE })),
        attribute::DEVICE_POINTER => wide(block.map_or(0, |_| pointer)),
        attribute::HOST_POINTER => wide(if is_host { pointer } else { 0 }),
        attribute::BUFFER_ID => wide(block.map_or(0, |block| block.life.made.number)),
        attribute::DEVICE_ORDINAL => {
            let ordinal = block.and_then(|block| i32::try_from(block.device).ok()).unwrap_or(-2);
            Out::new(place.cast::<i32>()).set(ordinal)
        }
        attribute::RANGE_START => wide(block.map_or(0, |block| block.life.span.start)),
        attribute::RANGE_SIZE => block.map_or(Ok(()), |block| wide(block.size_bytes())),
        // One byte each, as C's bool.
        attribute::MAPPED => Out::new(place.cast::<u8>()).set(u8::from(block.is_some())),
        attribute::RDMA_CAPABLE | attribute::IPC_CAPABLE => Out::new(place.cast::<u8>()).set(0),
        attribute::SYNC_MEMOPS | attribute::IS_MANAGED => word(0),
        attribute::HANDLE_TYPES => wide(0),
        attribute::ACCESS_FLAGS => word(block.map_or(0, |_| 3)),
        attribute::MEMPOOL => wide(match block.map(|block| block.kind) {
            Some(Kind::Pooled(pool)) => pool as u64,
            _ => 0,
        }),
        _ => Err(Code::INVALID_VALUE),
    }
}

/// Where the device block begins that has the address, and how long it is.
pub(crate) fn range(call: &Call, pointer: u64) -> Answer<(u64, usize)> {
    let (state, _) = context::enter(call)?;
    match state.memory.find(Span::new(pointer, 1)) {
        Found::Inside(block) if block.life.freed.is_none() => {
            Ok((block.life.span.start, usize::try_from(block.size_bytes()).unwrap_or(usize::MAX)))
        }
        _ => Err(Code::NOT_FOUND),
    }
}

/// Free bytes, and all.
pub(crate) fn info(call: &Call) -> Answer<(usize, usize)> {
    let (state, device) = context::enter(call)?;
    let size = |bytes| usize::try_from(bytes).unwrap_or(usize::MAX);
    Ok((size(state.memory.free_bytes(device)), size(call.driver.options.memory_bytes)))
}
