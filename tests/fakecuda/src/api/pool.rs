//! Pools.

#![allow(unsafe_code, reason = "symbols have names that others could have")]
#![allow(non_snake_case, reason = "the names of the symbols")]

use std::ffi::{c_int, c_uint};

use crate::boundary::{In, Out, call, call_or_nothing};
use crate::context::ordinal;
use crate::entry::Entry;
use crate::pool_call::{self, AccessDescription, Properties};

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGetDefaultMemPool(pool: Out<usize>, device: c_int) -> u32 {
    call(Entry::cuDeviceGetDefaultMemPool, |call| {
        let device = ordinal(call.driver, device)?;
        pool.required()?;
        pool.set(pool_call::default_of(call, device)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceSetMemPool(device: c_int, pool: usize) -> u32 {
    call(Entry::cuDeviceSetMemPool, |call| pool_call::set_current(call, ordinal(call.driver, device)?, pool))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemPoolCreate(pool: Out<usize>, properties: In<Properties>) -> u32 {
    call(Entry::cuMemPoolCreate, |call| {
        pool.required()?;
        pool.set(pool_call::create(call, properties)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemPoolDestroy(pool: usize) -> u32 {
    call(Entry::cuMemPoolDestroy, |call| pool_call::destroy(call, pool))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemPoolSetAttribute(pool: usize, number: c_uint, value: *mut u64) -> u32 {
    call(Entry::cuMemPoolSetAttribute, |call| pool_call::set(call, pool, number, value))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemPoolGetAttribute(pool: usize, number: c_uint, value: *mut u64) -> u32 {
    call(Entry::cuMemPoolGetAttribute, |call| pool_call::get(call, pool, number, value))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemPoolTrimTo(pool: usize, kept: usize) -> u32 {
    call_or_nothing(Entry::cuMemPoolTrimTo, |call| pool_call::trim(call, pool, kept))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemPoolSetAccess(pool: usize, map: In<AccessDescription>, count: usize) -> u32 {
    call(Entry::cuMemPoolSetAccess, |call| pool_call::set_access(call, pool, map, count))
}
