//! Primary contexts.

#![allow(unsafe_code, reason = "symbols have names that others could have")]
#![allow(non_snake_case, reason = "the names of the symbols")]

use std::ffi::{c_int, c_uint};

use crate::boundary::{Out, call, call_or_nothing};
use crate::context::{self, ordinal};
use crate::entry::Entry;
use crate::{stream_call, thread};

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxRetain(context: Out<usize>, device: c_int) -> u32 {
    call(Entry::cuDevicePrimaryCtxRetain, |call| {
        let device = ordinal(call.driver, device)?;
        context.required()?;
        context.set(context::retain(call, device)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxRelease_v2(device: c_int) -> u32 {
    call(Entry::cuDevicePrimaryCtxRelease_v2, |call| context::release(call, ordinal(call.driver, device)?))
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxGetState(device: c_int, flags: Out<c_uint>, active: Out<c_int>) -> u32 {
    call(Entry::cuDevicePrimaryCtxGetState, |call| {
        let device = ordinal(call.driver, device)?;
        flags.set(0)?;
        active.set(c_int::from(call.driver.state.lock().contexts[device].retained > 0))
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxGetCurrent(context: Out<usize>) -> u32 {
    call(Entry::cuCtxGetCurrent, |_| context.set(thread::current().map_or(0, context::handle)))
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSetCurrent(context: usize) -> u32 {
    call(Entry::cuCtxSetCurrent, |call| {
        let device = if context == 0 { None } else { Some(context::device_of(call.driver, context)?) };
        thread::set_current(device);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSynchronize() -> u32 {
    call_or_nothing(Entry::cuCtxSynchronize, context::synchronise)
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxGetStreamPriorityRange(least: Out<c_int>, greatest: Out<c_int>) -> u32 {
    call(Entry::cuCtxGetStreamPriorityRange, |call| {
        drop(context::enter(call)?);
        least.set_if_wanted(stream_call::PRIORITIES.0);
        greatest.set_if_wanted(stream_call::PRIORITIES.1);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxEnablePeerAccess(peer: usize, flags: c_uint) -> u32 {
    call(Entry::cuCtxEnablePeerAccess, |call| context::enable_peer(call, peer, flags))
}
