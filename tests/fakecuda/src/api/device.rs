//! The driver and its devices.

#![allow(unsafe_code, reason = "symbols have names that others could have")]
#![allow(non_snake_case, reason = "the names of the symbols")]

use std::ffi::{c_char, c_int, c_uint};

use purlin_fakecuda_options::Identity;

use crate::attribute;
use crate::boundary::{Out, call};
use crate::code::Code;
use crate::context::ordinal;
use crate::entry::Entry;

#[unsafe(no_mangle)]
extern "C" fn cuInit(flags: c_uint) -> u32 {
    call(Entry::cuInit, |call| {
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        call.driver.initialise();
        if call.driver.options.devices == 0 { Err(Code::NO_DEVICE) } else { Ok(()) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuDriverGetVersion(version: Out<c_int>) -> u32 {
    call(Entry::cuDriverGetVersion, |call| version.set(call.driver.options.driver_version.cast_signed()))
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGetCount(count: Out<c_int>) -> u32 {
    call(Entry::cuDeviceGetCount, |call| count.set(c_int::try_from(call.driver.options.devices).unwrap_or(c_int::MAX)))
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGet(device: Out<c_int>, number: c_int) -> u32 {
    call(Entry::cuDeviceGet, |call| {
        ordinal(call.driver, number)?;
        device.set(number)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGetName(name: Out<c_char>, size_bytes: c_int, device: c_int) -> u32 {
    call(Entry::cuDeviceGetName, |call| {
        let ordinal = ordinal(call.driver, device)?;
        name.required()?;
        name.set_text(&Identity { ordinal }.name(), usize::try_from(size_bytes).map_err(|_| Code::INVALID_VALUE)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGetUuid_v2(uuid: Out<[u8; 16]>, device: c_int) -> u32 {
    call(Entry::cuDeviceGetUuid_v2, |call| uuid.set(Identity { ordinal: ordinal(call.driver, device)? }.uuid()))
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceTotalMem_v2(bytes: Out<usize>, device: c_int) -> u32 {
    call(Entry::cuDeviceTotalMem_v2, |call| {
        ordinal(call.driver, device)?;
        bytes.set(usize::try_from(call.driver.options.memory_bytes).unwrap_or(usize::MAX))
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGetAttribute(value: Out<c_int>, number: c_uint, device: c_int) -> u32 {
    call(Entry::cuDeviceGetAttribute, |call| {
        let device = ordinal(call.driver, device)?;
        value.set(attribute::of_device(&call.driver.options, number, device)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGetPCIBusId(id: Out<c_char>, size_bytes: c_int, device: c_int) -> u32 {
    call(Entry::cuDeviceGetPCIBusId, |call| {
        let ordinal = ordinal(call.driver, device)?;
        id.required()?;
        id.set_text(&Identity { ordinal }.pci_bus_id(), usize::try_from(size_bytes).map_err(|_| Code::INVALID_VALUE)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceCanAccessPeer(can: Out<c_int>, device: c_int, peer: c_int) -> u32 {
    call(Entry::cuDeviceCanAccessPeer, |call| {
        let (device, peer) = (ordinal(call.driver, device)?, ordinal(call.driver, peer)?);
        can.set(c_int::from(device != peer && !call.driver.options.without_peers))
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGetP2PAttribute(value: Out<c_int>, number: c_uint, source: c_int, destination: c_int) -> u32 {
    call(Entry::cuDeviceGetP2PAttribute, |call| {
        if ordinal(call.driver, source)? == ordinal(call.driver, destination)? {
            return Err(Code::INVALID_DEVICE);
        }
        value.set(attribute::between(&call.driver.options, number)?)
    })
}
