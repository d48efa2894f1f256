//! Faults: by number and code, sticky or not, at the call or when the operation runs; and what a broken device does.

#[macro_use]
mod support;

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use purlin_fakecuda::{Cuda, Effect, Fault};
use support::*;

fn fault(entry: &str, number: u64, code: u32, effect: Effect) -> Fault {
    Fault { entry: entry.to_owned(), number, code, effect }
}

#[test]
fn a_fault_comes_at_its_call() {
    let options = Options { faults: vec![fault("cuMemAlloc_v2", 2, 9999, Effect::Once)], ..Options::default() };
    process::run("a_fault_comes_at_its_call", &options, || {
        let gpu = Session::new();
        let (first, mut second) = (gpu.allocate(64), 0);
        assert_eq!((cu!(gpu, cuMemAlloc_v2(&mut second, 64)), second), (9999, 0), "nothing was done");
        let third = gpu.allocate(64);
        assert_eq!(gpu.control.calls("cuMemAlloc_v2"), 3);
        gpu.control.reset_calls();
        gpu.control.set_faults("cuMemFree_v2:1:2");
        assert_eq!((cu!(gpu, cuMemFree_v2(first)), cu!(gpu, cuMemFree_v2(first))), (2, 0));
        gpu.free(third);
        assert_eq!(gpu.control.calls("cuMemFree_v2"), 3);
        gpu.end();
    });
}

static RAN: AtomicU32 = AtomicU32::new(0);

extern "C" fn ran(_: *mut c_void) {
    RAN.fetch_add(1, Ordering::Relaxed);
}

/// Device 0 answers the code everywhere, 1 works, and nothing is left when all is destroyed.
fn is_broken(gpu: Session, code: u32, streams: &[usize], events: &[usize], memory: &[u64]) {
    let (mut handle, mut address) = (0, 0);
    gpu.make_current(0);
    assert_eq!(cu!(gpu, cuCtxSynchronize()), code);
    assert_eq!(cu!(gpu, cuStreamCreate(&mut handle, 0)), code);
    assert_eq!(cu!(gpu, cuEventCreate(&mut handle, 0)), code);
    assert_eq!(cu!(gpu, cuMemAlloc_v2(&mut address, 8)), code);
    assert_eq!(cu!(gpu, cuDevicePrimaryCtxRetain(&mut handle, 0)), code);
    for stream in streams {
        assert_eq!(cu!(gpu, cuStreamQuery(*stream)), code);
        assert_eq!(cu!(gpu, cuStreamSynchronize(*stream)), code);
        assert_eq!(cu!(gpu, cuLaunchHostFunc(*stream, Some(ran), ptr::null_mut())), code);
        assert_eq!(cu!(gpu, cuStreamDestroy_v2(*stream)), code);
    }
    for event in events {
        assert_eq!(cu!(gpu, cuEventQuery(*event)), code);
        assert_eq!(cu!(gpu, cuEventDestroy_v2(*event)), code);
    }
    memory.iter().for_each(|memory| assert_eq!(cu!(gpu, cuMemFree_v2(*memory)), code));
    gpu.make_current(1);
    let memory = gpu.allocate(64);
    gpu.fill(memory, 3, 64, 0);
    assert_eq!(gpu.read(memory, 64, 0), [3; 64], "the other device goes on");
    gpu.free(memory);
    gpu.end();
}

#[test]
fn a_sticky_fault_stays() {
    process::run("a_sticky_fault_stays", &Options::default(), || {
        let gpu = Session::new();
        let (stream, event, memory) = (gpu.stream(NON_BLOCKING), gpu.event(), gpu.allocate(64));
        gpu.control.hold(true);
        gpu.fill(memory, 1, 64, stream);
        ok!(gpu, cuLaunchHostFunc(stream, Some(ran), ptr::null_mut()));
        gpu.record(event, stream);
        gpu.control.set_faults("cuMemsetD8Async:2:700:sticky");
        assert_eq!(cu!(gpu, cuMemsetD8Async(memory, 1, 64, stream)), 700);
        gpu.control.hold(false);
        is_broken(gpu, 700, &[stream], &[event], &[memory]);
        assert_eq!(RAN.load(Ordering::Relaxed), 0, "host functions are dropped");
    });
}

#[test]
fn an_asynchronous_fault_shows_at_a_later_call() {
    process::run("an_asynchronous_fault_shows_at_a_later_call", &Options::default(), || {
        let gpu = Session::new();
        let (stream, event, memory) = (gpu.stream(NON_BLOCKING), gpu.event(), gpu.allocate(64));
        gpu.control.set_faults("cuMemsetD8Async:1:719:async");
        gpu.control.hold(true);
        gpu.fill(memory, 1, 64, stream);
        gpu.record(event, stream);
        gpu.control.hold(false);
        assert_eq!(cu!(gpu, cuEventSynchronize(event)), 719);
        is_broken(gpu, 719, &[stream], &[event], &[memory]);
    });
}

#[test]
fn a_device_falls_off() {
    process::run("a_device_falls_off", &Options::default(), || {
        let gpu = Session::new();
        let (stream, event, memory) = (gpu.stream(NON_BLOCKING), gpu.event(), gpu.allocate(64));
        let pooled = gpu.allocate_async(64, stream);
        let module = gpu.module(TEXT);
        let spin = gpu.function(module, "spin");
        let flag = gpu.pinned(4);
        flag.set(0);
        gpu.launch(spin, 1, 1, stream, &[flag.address.expose_provenance() as u64]);
        while flag.get()[0] == 0 {
            std::thread::yield_now();
        }
        gpu.record(event, stream);
        // Another device waits for this one: what never comes is not waited for.
        gpu.make_current(1);
        let other = gpu.stream(NON_BLOCKING);
        gpu.wait(other, event);
        gpu.control.break_device(0, 999);
        gpu.sync(other);
        ok!(gpu, cuStreamDestroy_v2(other));
        gpu.make_current(0);
        assert_eq!(cu!(gpu, cuMemFreeHost(flag.address.cast())), 999);
        assert_eq!(cu!(gpu, cuModuleUnload(module)), 999);
        assert_eq!(cu!(gpu, cuMemFreeAsync(pooled, stream)), 999);
        is_broken(gpu, 999, &[stream], &[event], &[memory]);
    });
}

#[test]
fn traps_are_planted_by_name() {
    process::run(
        "traps_are_planted_by_name",
        &Options { traps: vec![("bump".to_owned(), 710)], ..Options::default() },
        || {
            let gpu = Session::new();
            let module = gpu.module(TEXT);
            let stream = gpu.stream(NON_BLOCKING);
            gpu.launch(gpu.function(module, "bump"), 1, 1, stream, &[]);
            assert_eq!(cu!(gpu, cuStreamSynchronize(stream)), 710);
            assert_eq!(cu!(gpu, cuModuleUnload(module)), 710);
            is_broken(gpu, 710, &[stream], &[], &[]);
        },
    );
}

#[test]
fn a_pageable_download_of_a_broken_device_returns() {
    process::run("a_pageable_download_of_a_broken_device_returns", &Options::default(), || {
        let gpu = Session::new();
        let (stream, memory) = (gpu.stream(NON_BLOCKING), gpu.allocate(64));
        let module = gpu.module(TEXT);
        gpu.fill(memory, 1, 64, stream);
        gpu.launch(gpu.function(module, "stop"), 1, 1, stream, &[]);
        let mut bytes = [0_u8; 64];
        assert_eq!(cu!(gpu, cuMemcpyDtoHAsync_v2(bytes.as_mut_ptr().cast(), memory, 64, stream)), 719);
        assert_eq!(bytes, [0; 64]);
        assert_eq!(cu!(gpu, cuModuleUnload(module)), 719);
        is_broken(gpu, 719, &[stream], &[], &[memory]);
    });
}

#[test]
fn every_entry_point_can_fail_with_any_code() {
    process::run("every_entry_point_can_fail_with_any_code", &Options::default(), || {
        let gpu = Session::new();
        let is_known = |code: &u32| cu!(gpu, cuGetErrorName(*code, &mut ptr::null())) == 0;
        let known: Vec<u32> = (1..1000).filter(is_known).collect();
        assert!(known.len() > 100, "{} codes", known.len());
        for name in Cuda::NAMES {
            for &code in known.iter().chain(&[1000, 4711, u32::MAX]) {
                gpu.control.set_faults(&format!("{name}:0:{code}"));
                assert_eq!(call_by_name(&gpu, name), code, "{name}");
            }
        }
        gpu.control.set_faults("");
        gpu.end();
    });
}

#[test]
fn a_sticky_fault_may_come_from_every_entry_point() {
    let options = Options { devices: 100, address_bytes: 1 << 24, ..Options::default() };
    process::run("a_sticky_fault_may_come_from_every_entry_point", &options, || {
        let gpu = Session::new();
        for (device, name) in Cuda::NAMES.iter().enumerate() {
            gpu.make_current(device);
            gpu.control.set_faults(&format!("{name}:0:4711:sticky"));
            assert_eq!(call_by_name(&gpu, name), 4711, "{name}");
            gpu.control.set_faults("");
            assert_eq!(cu!(gpu, cuCtxSynchronize()), 4711, "after {name}");
            gpu.make_current(device + 1);
            gpu.sync_all();
        }
        gpu.end();
    });
}

/// Calls an entry point with nothing: a fault is answered before anything is looked at.
fn call_by_name(gpu: &Driver, name: &str) -> u32 {
    macro_rules! nothing {
        ($($entry:ident($($argument:expr),*))*) => {
            match name {
                $(stringify!($entry) => cu!(gpu, $entry($($argument),*)),)*
                _ => panic!("{name} is not in the list"),
            }
        };
    }
    let (null, none) = (ptr::null_mut(), ptr::null());
    nothing! {
        cuInit(0) cuDriverGetVersion(ptr::null_mut()) cuDeviceGetCount(ptr::null_mut())
        cuDeviceGet(ptr::null_mut(), 0) cuDeviceGetName(ptr::null_mut(), 0, 0)
        cuDeviceGetUuid_v2(ptr::null_mut(), 0) cuDeviceTotalMem_v2(ptr::null_mut(), 0)
        cuDeviceGetAttribute(ptr::null_mut(), 0, 0) cuDeviceGetPCIBusId(ptr::null_mut(), 0, 0)
        cuDeviceCanAccessPeer(ptr::null_mut(), 0, 0) cuDeviceGetP2PAttribute(ptr::null_mut(), 0, 0, 0)
        cuDevicePrimaryCtxRetain(ptr::null_mut(), 0) cuDevicePrimaryCtxRelease_v2(0)
        cuDevicePrimaryCtxGetState(0, ptr::null_mut(), ptr::null_mut()) cuCtxGetCurrent(ptr::null_mut())
        cuCtxSetCurrent(0) cuCtxSynchronize() cuCtxGetStreamPriorityRange(ptr::null_mut(), ptr::null_mut())
        cuCtxEnablePeerAccess(0, 0) cuStreamCreate(ptr::null_mut(), 0)
        cuStreamCreateWithPriority(ptr::null_mut(), 0, 0) cuStreamDestroy_v2(0) cuStreamSynchronize(0)
        cuStreamQuery(0) cuStreamWaitEvent(0, 0, 0) cuStreamGetCtx(0, ptr::null_mut())
        cuLaunchHostFunc(0, None, null) cuStreamBeginCapture_v2(0, 0) cuStreamEndCapture(0, ptr::null_mut())
        cuStreamIsCapturing(0, ptr::null_mut()) cuEventCreate(ptr::null_mut(), 0) cuEventDestroy_v2(0)
        cuEventRecord(0, 0) cuEventQuery(0) cuEventSynchronize(0) cuEventElapsedTime(ptr::null_mut(), 0, 0)
        cuEventElapsedTime_v2(ptr::null_mut(), 0, 0) cuMemGetInfo_v2(ptr::null_mut(), ptr::null_mut())
        cuMemAlloc_v2(ptr::null_mut(), 0) cuMemFree_v2(0) cuMemAllocAsync(ptr::null_mut(), 0, 0)
        cuMemAllocFromPoolAsync(ptr::null_mut(), 0, 0, 0) cuMemFreeAsync(0, 0)
        cuMemHostAlloc(ptr::null_mut(), 0, 0) cuMemFreeHost(null) cuMemHostRegister_v2(null, 0, 0)
        cuMemHostUnregister(null) cuMemGetAddressRange_v2(ptr::null_mut(), ptr::null_mut(), 0)
        cuPointerGetAttributes(0, ptr::null(), ptr::null_mut(), 0) cuDeviceGetDefaultMemPool(ptr::null_mut(), 0)
        cuDeviceSetMemPool(0, 0)
        cuMemPoolCreate(ptr::null_mut(), none) cuMemPoolDestroy(0) cuMemPoolSetAttribute(0, 0, null)
        cuMemPoolGetAttribute(0, 0, null) cuMemPoolTrimTo(0, 0) cuMemPoolSetAccess(0, none, 0)
        cuMemcpyHtoDAsync_v2(0, none, 0, 0) cuMemcpyDtoHAsync_v2(null, 0, 0, 0) cuMemcpyDtoDAsync_v2(0, 0, 0, 0)
        cuMemcpyPeerAsync(0, 0, 0, 0, 0, 0) cuMemcpy2DAsync_v2(none, 0) cuMemsetD8Async(0, 0, 0, 0)
        cuMemsetD16Async(0, 0, 0, 0) cuMemsetD32Async(0, 0, 0, 0)
        cuModuleLoadData(ptr::null_mut(), none) cuModuleLoadDataEx(ptr::null_mut(), none, 0, ptr::null_mut(), ptr::null_mut()) cuModuleUnload(0)
        cuModuleGetFunction(ptr::null_mut(), 0, ptr::null())
        cuModuleGetGlobal_v2(ptr::null_mut(), ptr::null_mut(), 0, ptr::null())
        cuFuncGetAttribute(ptr::null_mut(), 0, 0) cuFuncSetAttribute(0, 0, 0)
        cuFuncGetParamInfo(0, 0, ptr::null_mut(), ptr::null_mut())
        cuLaunchKernel(0, 0, 0, 0, 0, 0, 0, 0, 0, ptr::null_mut(), ptr::null_mut())
        cuGraphInstantiateWithFlags(ptr::null_mut(), 0, 0) cuGraphExecUpdate_v2(0, 0, null)
        cuGraphExecKernelNodeSetParams_v2(0, 0, none) cuGraphLaunch(0, 0) cuGraphUpload(0, 0) cuGraphDestroy(0)
        cuGraphExecDestroy(0) cuGraphGetNodes(0, ptr::null_mut(), ptr::null_mut())
        cuGetErrorName(0, ptr::null_mut()) cuGetErrorString(0, ptr::null_mut())
    }
}

#[test]
fn nothing_given_is_answered_never_a_crash() {
    process::run("nothing_given_is_answered_never_a_crash", &Options::default(), || {
        let gpu = Session::new();
        for name in Cuda::NAMES {
            let code = call_by_name(&gpu, name);
            assert_ne!(code, 999, "{name} panicked");
        }
    });
}
