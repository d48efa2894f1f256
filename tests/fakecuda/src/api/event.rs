//! Events.

#![allow(unsafe_code, reason = "symbols have names that others could have")]
#![allow(non_snake_case, reason = "the names of the symbols")]

use std::ffi::c_uint;

use crate::boundary::{Out, call_or, call_or_nothing};
use crate::entry::Entry;
use crate::{event, watch};

#[unsafe(no_mangle)]
extern "C" fn cuEventCreate(event: Out<usize>, flags: c_uint) -> u32 {
    call_or(
        Entry::cuEventCreate,
        |driver| event.set(driver.new_handle()),
        |call| {
            event.required()?;
            event.set(event::create(call, flags)?)
        },
    )
}

#[unsafe(no_mangle)]
extern "C" fn cuEventDestroy_v2(event: usize) -> u32 {
    call_or_nothing(Entry::cuEventDestroy_v2, |call| event::destroy(call, event))
}

#[unsafe(no_mangle)]
extern "C" fn cuEventRecord(event: usize, stream: usize) -> u32 {
    call_or_nothing(Entry::cuEventRecord, |call| event::record(call, event, stream))
}

#[unsafe(no_mangle)]
extern "C" fn cuEventQuery(event: usize) -> u32 {
    watch::call_about(Entry::cuEventQuery, event);
    call_or_nothing(Entry::cuEventQuery, |call| event::query(call, event))
}

#[unsafe(no_mangle)]
extern "C" fn cuEventSynchronize(event: usize) -> u32 {
    call_or_nothing(Entry::cuEventSynchronize, |call| event::synchronise(call, event))
}

#[unsafe(no_mangle)]
extern "C" fn cuEventElapsedTime(milliseconds: Out<f32>, start: usize, end: usize) -> u32 {
    call_or(
        Entry::cuEventElapsedTime,
        |_| milliseconds.set(0.0),
        |call| milliseconds.set(event::elapsed_ms(call, start, end)?),
    )
}

#[unsafe(no_mangle)]
extern "C" fn cuEventElapsedTime_v2(milliseconds: Out<f32>, start: usize, end: usize) -> u32 {
    call_or(
        Entry::cuEventElapsedTime_v2,
        |_| milliseconds.set(0.0),
        |call| milliseconds.set(event::elapsed_ms(call, start, end)?),
    )
}
