//! Memory of devices and of the host.

#![allow(unsafe_code, reason = "symbols have names that others could have")]
#![allow(non_snake_case, reason = "the names of the symbols")]

use std::ffi::{c_uint, c_void};

use crate::boundary::{In, Out, call, call_or, call_or_nothing};
use crate::entry::Entry;
use crate::{allocation, pointer};

#[unsafe(no_mangle)]
extern "C" fn cuMemGetInfo_v2(free: Out<usize>, total: Out<usize>) -> u32 {
    call(Entry::cuMemGetInfo_v2, |call| {
        let info = pointer::info(call)?;
        free.set(info.0)?;
        total.set(info.1)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemAlloc_v2(address: Out<u64>, size_bytes: usize) -> u32 {
    call_or(
        Entry::cuMemAlloc_v2,
        |driver| address.set(driver.empty_address(size_bytes as u64)),
        |call| {
            address.required()?;
            address.set(allocation::allocate(call, size_bytes)?)
        },
    )
}

#[unsafe(no_mangle)]
extern "C" fn cuMemFree_v2(address: u64) -> u32 {
    call_or_nothing(Entry::cuMemFree_v2, |call| allocation::free(call, address))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemAllocAsync(address: Out<u64>, size_bytes: usize, stream: usize) -> u32 {
    call_or(
        Entry::cuMemAllocAsync,
        |driver| address.set(driver.empty_address(size_bytes as u64)),
        |call| {
            address.required()?;
            address.set(allocation::allocate_async(call, size_bytes, None, stream)?)
        },
    )
}

#[unsafe(no_mangle)]
extern "C" fn cuMemAllocFromPoolAsync(address: Out<u64>, size_bytes: usize, pool: usize, stream: usize) -> u32 {
    call_or(
        Entry::cuMemAllocFromPoolAsync,
        |driver| address.set(driver.empty_address(size_bytes as u64)),
        |call| {
            address.required()?;
            address.set(allocation::allocate_async(call, size_bytes, Some(pool), stream)?)
        },
    )
}

#[unsafe(no_mangle)]
extern "C" fn cuMemFreeAsync(address: u64, stream: usize) -> u32 {
    call_or_nothing(Entry::cuMemFreeAsync, |call| allocation::free_async(call, address, stream))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemHostAlloc(address: Out<usize>, size_bytes: usize, flags: c_uint) -> u32 {
    call(Entry::cuMemHostAlloc, |call| {
        address.required()?;
        address.set(allocation::allocate_host(call, size_bytes, flags)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemFreeHost(address: *mut c_void) -> u32 {
    call(Entry::cuMemFreeHost, |call| allocation::free_host(call, address.expose_provenance()))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemHostRegister_v2(address: *mut c_void, size_bytes: usize, flags: c_uint) -> u32 {
    call(Entry::cuMemHostRegister_v2, |call| allocation::register(call, address.expose_provenance(), size_bytes, flags))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemHostUnregister(address: *mut c_void) -> u32 {
    call(Entry::cuMemHostUnregister, |call| allocation::unregister(call, address.expose_provenance()))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemGetAddressRange_v2(start: Out<u64>, size_bytes: Out<usize>, address: u64) -> u32 {
    call(Entry::cuMemGetAddressRange_v2, |call| {
        let range = pointer::range(call, address)?;
        start.set_if_wanted(range.0);
        size_bytes.set_if_wanted(range.1);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuPointerGetAttributes(count: c_uint, numbers: In<c_uint>, data: In<*mut c_void>, address: u64) -> u32 {
    call(Entry::cuPointerGetAttributes, |call| pointer::attributes(call, count, numbers, data, address))
}
