//! Memory: made, freed, asked about; what faults and what does not.

#[macro_use]
mod support;

use std::ffi::c_void;
use std::ptr;

use support::*;

const MIB: usize = 1 << 20;

fn free_bytes(gpu: &Session) -> usize {
    let (mut free, mut total) = (0, 0);
    ok!(gpu, cuMemGetInfo_v2(&mut free, &mut total));
    free
}

#[test]
fn memory_ends_and_comes_back() {
    let options = Options { memory_bytes: 64 << 20, ..Options::default() };
    process::run("memory_ends_and_comes_back", &options, || {
        let gpu = Session::new();
        let (first, mut second) = (gpu.allocate(40 * MIB), 0);
        assert_eq!(free_bytes(&gpu), 24 * MIB);
        assert_eq!(cu!(gpu, cuMemAlloc_v2(&mut second, 25 * MIB)), 2);
        assert_eq!(cu!(gpu, cuMemAlloc_v2(&mut second, 0)), 1);
        assert_eq!(cu!(gpu, cuMemAlloc_v2(ptr::null_mut(), 1)), 1);
        gpu.free(first);
        ok!(gpu, cuMemFree_v2(0));
        let third = gpu.allocate(64);
        assert_eq!(cu!(gpu, cuMemFree_v2(third + 8)), 1);
        gpu.free(third);
        let reports = gpu.control.take_reports();
        assert!(reports.len() == 1 && reports[0].starts_with("wild address"), "{reports:#?}");
        let again = gpu.allocate(40 * MIB);
        assert_ne!(first, again, "an address is not used twice while the detector is on");
        gpu.free(again);
        gpu.end();
    });
}

#[test]
fn without_the_detector_addresses_are_used_again() {
    process::run(
        "without_the_detector_addresses_are_used_again",
        &Options { detector: false, ..Options::default() },
        || {
            let gpu = Session::new();
            let first = gpu.allocate(1000);
            gpu.fill(first, 1, 1000, 0);
            gpu.free(first);
            let second = gpu.allocate(1000);
            assert_eq!(first, second);
            assert_eq!(gpu.read(second, 3, 0), [0xCB; 3], "fresh memory is a pattern");
            gpu.free(second);
            gpu.end();
        },
    );
}

#[test]
fn addresses_are_used_again_when_there_are_no_others() {
    let options = Options { address_bytes: 4 << 20, ..Options::default() };
    process::run("addresses_are_used_again_when_there_are_no_others", &options, || {
        let gpu = Session::new();
        let stream = gpu.stream(NON_BLOCKING);
        for round in 0..100 {
            let (memory, pooled) = (gpu.allocate(MIB), gpu.allocate_async(MIB / 2, stream));
            gpu.write(memory, &[round; 100], stream);
            gpu.d2d(pooled, memory, 100, stream);
            assert_eq!(gpu.read(pooled, 100, stream), [round; 100]);
            ok!(gpu, cuMemFreeAsync(pooled, stream));
            gpu.sync(stream);
            gpu.free(memory);
        }
        let mut memory = 0;
        assert_eq!(cu!(gpu, cuMemAlloc_v2(&mut memory, 5 * MIB)), 2);
        assert_eq!(free_bytes(&gpu), 4 << 30);
        ok!(gpu, cuStreamDestroy_v2(stream));
        gpu.end();
    });
}

#[test]
fn free_waits_for_the_context() {
    process::run("free_waits_for_the_context", &Options::default(), || {
        let gpu = Session::new();
        let (stream, event) = (gpu.stream(NON_BLOCKING), gpu.event());
        let (one, other) = (gpu.allocate(64), gpu.allocate(64));
        gpu.control.set_delays(1, 2000);
        for _ in 0..8 {
            gpu.fill(one, 1, 64, stream);
        }
        gpu.record(event, stream);
        gpu.free(other);
        assert_eq!(cu!(gpu, cuEventQuery(event)), 0, "it is over");
        let pinned = gpu.pinned(64);
        for _ in 0..8 {
            gpu.fill(one, 1, 64, stream);
        }
        gpu.record(event, stream);
        pinned.free();
        assert_eq!(cu!(gpu, cuEventQuery(event)), 0, "it is over");
        gpu.sync_all();
        gpu.free(one);
        ok!(gpu, cuEventDestroy_v2(event));
        ok!(gpu, cuStreamDestroy_v2(stream));
        gpu.end();
    });
}

#[test]
fn the_host_faults_on_device_memory() {
    process::run("the_host_faults_on_device_memory", &Options::default(), || {
        let gpu = Session::new();
        let memory = gpu.allocate(64);
        gpu.fill(memory, 1, 64, 0);
        gpu.sync_all();
        // SAFETY: the child only reads one byte, which is what is asked here, and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: nothing keeps this from faulting: that is the test.
            unsafe {
                let byte = ptr::with_exposed_provenance::<u8>(usize::try_from(memory).unwrap()).read_volatile();
                libc::_exit(i32::from(byte));
            }
        }
        let mut status = 0;
        // SAFETY: the child is ours, and the place is for its status.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSEGV, "status {status}");
        gpu.free(memory);
        gpu.end();
    });
}

/// CUmemPoolProps: pinned memory of a device.
fn pool_of(device: i32) -> [u32; 22] {
    let mut properties = [0; 22];
    (properties[0], properties[2], properties[3]) = (1, 1, device.cast_unsigned());
    properties
}

#[test]
fn pools_keep_what_their_thresholds_say() {
    let options = Options { memory_bytes: 64 << 20, ..Options::default() };
    process::run("pools_keep_what_their_thresholds_say", &options, || {
        let gpu = Session::new();
        let (stream, mut pool) = (gpu.stream(NON_BLOCKING), 0);
        ok!(gpu, cuDeviceGetDefaultMemPool(&mut pool, 0));
        let attribute = |number| {
            let mut value = 0_u64;
            ok!(gpu, cuMemPoolGetAttribute(pool, number, ptr::from_mut(&mut value).cast()));
            value
        };
        let cycle = || {
            let memory = gpu.allocate_async(16 * MIB, stream);
            assert_eq!(attribute(7), 16 << 20);
            ok!(gpu, cuMemFreeAsync(memory, stream));
        };
        cycle();
        assert_eq!((attribute(5), attribute(7), free_bytes(&gpu)), (16 << 20, 0, 48 * MIB), "kept until a sync");
        gpu.sync(stream);
        assert_eq!((attribute(5), free_bytes(&gpu)), (0, 64 * MIB));
        cycle();
        gpu.sync_all();
        assert_eq!(attribute(5), 0, "by any sync");
        let mut threshold = u64::MAX;
        ok!(gpu, cuMemPoolSetAttribute(pool, 4, ptr::from_mut(&mut threshold).cast()));
        cycle();
        gpu.sync(stream);
        assert_eq!((attribute(5), attribute(6), attribute(8)), (16 << 20, 16 << 20, 16 << 20));
        gpu.sync_all();
        assert_eq!(attribute(5), 16 << 20);
        ok!(gpu, cuMemPoolTrimTo(pool, 4 * MIB));
        assert_eq!(attribute(5), 4 << 20);
        let large = gpu.allocate(62 * MIB);
        assert_eq!(attribute(5), 0, "the device needed it");
        gpu.free(large);
        let mut memory = 0;
        assert_eq!(cu!(gpu, cuMemAllocAsync(&mut memory, 0, stream)), 1);
        assert_eq!(cu!(gpu, cuMemAllocAsync(&mut memory, 65 * MIB, stream)), 2);
        assert_eq!(cu!(gpu, cuMemPoolDestroy(pool)), 1, "the device's own");
        let plain = gpu.allocate(64);
        assert_eq!(cu!(gpu, cuMemFreeAsync(plain, stream)), 1, "it is of no pool");
        gpu.free(plain);
        ok!(gpu, cuStreamDestroy_v2(stream));
        gpu.end();
    });
}

#[test]
fn a_thousand_cycles_on_one_stream_need_one_block() {
    let options = Options { memory_bytes: 192 << 20, ..Options::default() };
    process::run("a_thousand_cycles_on_one_stream_need_one_block", &options, || {
        let gpu = Session::new();
        let stream = gpu.stream(NON_BLOCKING);
        for _ in 0..1000 {
            let memory = gpu.allocate_async(64 * MIB, stream);
            gpu.fill(memory, 1, 64, stream);
            ok!(gpu, cuMemFreeAsync(memory, stream));
        }
        assert_eq!(free_bytes(&gpu), 128 * MIB);
        gpu.sync(stream);
        ok!(gpu, cuStreamDestroy_v2(stream));
        gpu.end();
    });
}

#[test]
fn allocations_that_name_no_pool_come_from_the_current_one() {
    process::run("allocations_that_name_no_pool_come_from_the_current_one", &Options::default(), || {
        let gpu = Session::new();
        let (mut own, mut pool) = (0, 0);
        ok!(gpu, cuDeviceGetDefaultMemPool(&mut own, 0));
        ok!(gpu, cuMemPoolCreate(&mut pool, pool_of(0).as_ptr().cast()));
        assert_eq!(cu!(gpu, cuDeviceSetMemPool(1, pool)), 1, "it is of another device");
        ok!(gpu, cuDeviceSetMemPool(0, pool));
        let pool_of = |address| {
            let (mut found, asked) = (0_usize, [17]);
            let mut answers = [ptr::from_mut(&mut found).cast()];
            ok!(gpu, cuPointerGetAttributes(1, asked.as_ptr(), answers.as_mut_ptr(), address));
            found
        };
        let first = gpu.allocate_async(64, 0);
        ok!(gpu, cuMemPoolDestroy(pool));
        // The device's own is the current one again.
        let second = gpu.allocate_async(64, 0);
        assert_eq!([pool_of(first), pool_of(second)], [pool, own]);
        for memory in [first, second] {
            ok!(gpu, cuMemFreeAsync(memory, 0));
        }
        gpu.sync_all();
        gpu.end();
    });
}

#[test]
fn own_pools_are_shared_with_peers_that_were_named() {
    process::run("own_pools_are_shared_with_peers_that_were_named", &Options::default(), || {
        let gpu = Session::new();
        let (mut pool, mut memory) = (0, 0);
        ok!(gpu, cuMemPoolCreate(&mut pool, pool_of(0).as_ptr().cast()));
        assert_eq!(cu!(gpu, cuMemPoolCreate(&mut pool, pool_of(7).as_ptr().cast())), 1);
        ok!(gpu, cuMemAllocFromPoolAsync(&mut memory, 256, pool, 0));
        gpu.fill(memory, 0, 256, 0);
        gpu.sync_all();
        gpu.make_current(1);
        let stream = gpu.stream(NON_BLOCKING);
        let access = [1_u32, 1, 3];
        ok!(gpu, cuMemPoolSetAccess(pool, access.as_ptr().cast(), 1));
        let module = gpu.module(TEXT);
        let add_one = gpu.function(module, "add_one");
        gpu.launch(add_one, 1, 4, stream, &[memory, memory]);
        gpu.sync(stream);
        ok!(gpu, cuModuleUnload(module));
        assert_eq!(gpu.read(memory, 8, stream), [1, 0, 0, 0, 1, 0, 0, 0]);
        gpu.make_current(0);
        ok!(gpu, cuMemFreeAsync(memory, 0));
        ok!(gpu, cuMemPoolDestroy(pool));
        assert_eq!(cu!(gpu, cuMemPoolTrimTo(pool, 0)), 1);
        ok!(gpu, cuStreamDestroy_v2(stream));
        gpu.sync_all();
        gpu.end();
    });
}

#[test]
fn a_peer_that_was_not_enabled_is_a_stranger() {
    process::run("a_peer_that_was_not_enabled_is_a_stranger", &Options::default(), || {
        let gpu = Session::new();
        let memory = gpu.allocate(64);
        gpu.fill(memory, 0, 64, 0);
        gpu.sync_all();
        gpu.make_current(1);
        let module = gpu.module(TEXT);
        let add_one = gpu.function(module, "add_one");
        gpu.launch(add_one, 1, 4, 0, &[memory, memory]);
        assert_eq!(cu!(gpu, cuCtxSynchronize()), 700);
        let reports = gpu.control.take_reports();
        assert!(reports.len() == 1 && reports[0].starts_with("a stranger's context"), "{reports:#?}");
    });
}

#[test]
fn host_memory_is_registered_once() {
    process::run("host_memory_is_registered_once", &Options::default(), || {
        let gpu = Session::new();
        let mut page = vec![7_u8; 4096];
        let place: *mut c_void = page.as_mut_ptr().cast();
        ok!(gpu, cuMemHostRegister_v2(place, 4096, 0));
        assert_eq!(gpu.control.ledger("pinned_bytes"), 4096);
        assert_eq!(cu!(gpu, cuMemHostRegister_v2(place, 10, 0)), 712);
        assert_eq!(cu!(gpu, cuMemFreeHost(place)), 1, "it was not allocated so");
        let memory = gpu.allocate(4096);
        ok!(gpu, cuMemcpyHtoDAsync_v2(memory, place, 4096, 0));
        gpu.sync_all();
        ok!(gpu, cuMemHostUnregister(place));
        assert_eq!(cu!(gpu, cuMemHostUnregister(place)), 713);
        assert_eq!(cu!(gpu, cuMemHostRegister_v2(ptr::null_mut(), 10, 0)), 1);
        assert_eq!(cu!(gpu, cuMemHostRegister_v2(place, 0, 0)), 1);
        // Freed by the program and registered again, it is another block.
        ok!(gpu, cuMemHostRegister_v2(place, 4096, 0));
        ok!(gpu, cuMemHostUnregister(place));
        assert_eq!(gpu.read(memory, 4, 0), [7; 4]);
        gpu.free(memory);
        gpu.end();
    });
}

#[test]
fn unregistering_does_not_wait_for_what_has_not_begun() {
    process::run("unregistering_does_not_wait_for_what_has_not_begun", &Options::default(), || {
        let gpu = Session::new();
        let (mut page, memory, stream) = (vec![7_u8; 4096], gpu.allocate(4096), gpu.stream(NON_BLOCKING));
        let place: *mut c_void = page.as_mut_ptr().cast();
        ok!(gpu, cuMemHostRegister_v2(place, 4096, 0));
        gpu.control.hold(true);
        ok!(gpu, cuMemcpyHtoDAsync_v2(memory, place, 4096, stream));
        ok!(gpu, cuMemHostUnregister(place));
        drop(page);
        gpu.control.hold(false);
        assert_eq!(gpu.read(memory, 4, stream), [0xDD; 4], "the program's memory is not touched any more");
        let reports = gpu.control.take_reports();
        assert!(reports.len() == 1 && reports[0].starts_with("free not ordered behind a use"), "{reports:#?}");
        gpu.free(memory);
        ok!(gpu, cuStreamDestroy_v2(stream));
        gpu.end();
    });
}

#[test]
fn pointers_are_told_apart() {
    process::run("pointers_are_told_apart", &Options::default(), || {
        let gpu = Session::new();
        let (memory, pinned) = (gpu.allocate(4096), gpu.pinned(64));
        let ask = |pointer: u64| {
            let (mut kind, mut ordinal, mut context, mut size) = (9_u32, 9_i32, 9_u64, 9_u64);
            let numbers = [2, 9, 1, 12];
            let mut places: [*mut c_void; 4] = [
                ptr::from_mut(&mut kind).cast(),
                ptr::from_mut(&mut ordinal).cast(),
                ptr::from_mut(&mut context).cast(),
                ptr::from_mut(&mut size).cast(),
            ];
            ok!(gpu, cuPointerGetAttributes(4, numbers.as_ptr(), places.as_mut_ptr(), pointer));
            (kind, ordinal, context, size)
        };
        let context = gpu.contexts[0] as u64;
        assert_eq!(ask(memory + 5), (2, 0, context, 4096));
        assert_eq!(ask(pinned.address.expose_provenance() as u64), (1, 0, context, 64));
        assert_eq!(ask(ptr::from_ref(&context).expose_provenance() as u64), (0, -2, 0, 9), "the size is not written");
        let (mut start, mut size) = (0, 0);
        ok!(gpu, cuMemGetAddressRange_v2(&mut start, &mut size, memory + 4095));
        assert_eq!((start, size), (memory, 4096));
        assert_eq!(cu!(gpu, cuMemGetAddressRange_v2(&mut start, &mut size, memory + 4096)), 500);
        gpu.free(memory);
        pinned.free();
        gpu.end();
    });
}
