//! The symbols. Nothing here panics: all of it is lookups and writes.

#![allow(unsafe_code, reason = "symbols have names that others could have")]
#![allow(non_snake_case, reason = "the names of the symbols")]

use std::ffi::{c_char, c_uint};

use purlin_fakecuda_options::{Fabric, Identity};

use crate::out::{Out, Text};
use crate::{RESERVED_BYTES, changes, code, initialise, options, ordinal, shut_down, words};

/// nvmlMemory_t.
#[repr(C)]
#[derive(Clone, Copy)]
struct Memory {
    total: u64,
    free: u64,
    used: u64,
}

/// nvmlUtilization_t, in percent.
#[repr(C)]
#[derive(Clone, Copy)]
struct Utilization {
    gpu: c_uint,
    memory: c_uint,
}

/// nvmlGpuFabricInfo_v2_t.
#[repr(C)]
#[derive(Clone, Copy)]
struct FabricInfo {
    version: c_uint,
    cluster: [u8; 16],
    status: c_uint,
    clique: c_uint,
    state: u8,
    health: c_uint,
}

/// nvmlGpuFabricInfo_v2: the number of the struct, and its size.
const FABRIC_VERSION: c_uint = 0x0200_0024;
const _: () = assert!(size_of::<FabricInfo>() == 0x24);

fn answer(result: Result<(), u32>) -> u32 {
    result.err().unwrap_or(0)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlInit_v2() -> u32 {
    answer(changes::with(|changes| changes.fault("nvmlInit_v2")).and_then(|()| {
        initialise();
        options().map(|_| ())
    }))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlShutdown() -> u32 {
    answer(shut_down())
}

#[unsafe(no_mangle)]
extern "C" fn nvmlSystemGetDriverVersion(version: Out<c_char>, size_bytes: c_uint) -> u32 {
    answer(options().and_then(|options| version.set_text(&format!("{}.0-fake", options.driver_version), size_bytes)))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetCount_v2(count: Out<c_uint>) -> u32 {
    answer(options().and_then(|options| count.set(c_uint::try_from(options.devices).unwrap_or(c_uint::MAX))))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, device: Out<usize>) -> u32 {
    let handle = index as usize + 1;
    answer(ordinal(handle).and_then(|_| device.set(handle)))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetHandleByPciBusId_v2(id: Text, device: Out<usize>) -> u32 {
    // NVML's own domains have eight digits, CUDA's four.
    let find = |id: String| {
        let has = |ordinal: &usize| {
            let known = Identity { ordinal: *ordinal }.pci_bus_id();
            id.eq_ignore_ascii_case(&known) || id.eq_ignore_ascii_case(&format!("0000{known}"))
        };
        (0..options()?.devices).find(has).ok_or(code::NOT_FOUND)
    };
    let fault = changes::with(|changes| changes.fault("nvmlDeviceGetHandleByPciBusId_v2"));
    let id = fault.and_then(|()| options()).and_then(|_| id.get());
    answer(id.and_then(find).and_then(|ordinal| device.set(ordinal + 1)))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetGpuFabricInfoV(device: usize, info: Out<FabricInfo>) -> u32 {
    let write = || {
        let (fault, fabric) = changes::with(|changes| (changes.fault("nvmlDeviceGetGpuFabricInfoV"), changes.fabric));
        fault?;
        let (_, options) = ordinal(device)?;
        if info.get()?.version != FABRIC_VERSION {
            return Err(code::ARGUMENT_VERSION_MISMATCH);
        }
        let Fabric { state, status, clique } = fabric.unwrap_or(options.fabric);
        let cluster = if state == 0 { [0; 16] } else { Identity::cluster() };
        info.set(FabricInfo { version: FABRIC_VERSION, cluster, status, clique, state, health: 0 })
    };
    answer(write())
}

/// For tests. Not 0: the text is not understood.
#[unsafe(no_mangle)]
extern "C" fn purlin_fakenvml_set_faults(text: Text) -> u32 {
    let set = |text: String| changes::with(|changes| changes.set_faults(&text));
    answer(text.get().and_then(|text| if set(text) { Ok(()) } else { Err(code::INVALID_ARGUMENT) }))
}

/// For tests: the fabric of each device, from now on. Not 0: the text is not understood.
#[unsafe(no_mangle)]
extern "C" fn purlin_fakenvml_set_fabric(text: Text) -> u32 {
    let fabric = text.get().and_then(|text| Fabric::parse(&text).ok_or(code::INVALID_ARGUMENT));
    answer(fabric.map(|fabric| changes::with(|changes| changes.fabric = Some(fabric))))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetName(device: usize, name: Out<c_char>, size_bytes: c_uint) -> u32 {
    answer(ordinal(device).and_then(|(ordinal, _)| name.set_text(&Identity { ordinal }.name(), size_bytes)))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetMemoryInfo(device: usize, memory: Out<Memory>) -> u32 {
    answer(ordinal(device).and_then(|(_, options)| {
        let total = options.memory_bytes;
        let used = RESERVED_BYTES.min(total);
        memory.set(Memory { total, free: total - used, used })
    }))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetUtilizationRates(device: usize, utilization: Out<Utilization>) -> u32 {
    answer(ordinal(device).and_then(|_| utilization.set(Utilization { gpu: 0, memory: 0 })))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetTemperature(device: usize, sensor: c_uint, degrees: Out<c_uint>) -> u32 {
    // NVML_TEMPERATURE_GPU, the only sensor, is 0.
    let is_known = if sensor == 0 { Ok(()) } else { Err(code::INVALID_ARGUMENT) };
    answer(ordinal(device).and(is_known).and_then(|()| degrees.set(35)))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetPowerUsage(device: usize, milliwatts: Out<c_uint>) -> u32 {
    answer(ordinal(device).and_then(|_| milliwatts.set(70_000)))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlErrorString(code: c_uint) -> *const c_char {
    words(code).as_ptr()
}
