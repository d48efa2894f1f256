//! What a report says: both operations, each with its stream, its label and its bytes, for every kind of report and
//! wherever the mistake is seen: at the call, when a kernel runs, or when memory is freed.

#[macro_use]
mod support;

use std::ffi::c_void;
use std::ptr;

use support::planted::SIZE;
use support::reported::Place::{Host, On, RefusedOn};
use support::reported::{case, label, reported, side};
use support::*;

/// On a device of its own, which may break: two streams, and a kernel of a module whose load is labelled so.
fn on_a_new_device(gpu: &Session, device: usize) -> (usize, usize, usize) {
    gpu.make_current(device);
    let (first, second) = (gpu.stream(NON_BLOCKING), gpu.stream(NON_BLOCKING));
    let module = label(gpu, "loads").module(TEXT);
    (first, second, gpu.function(module, "add_one"))
}

#[test]
fn races_name_both_sides() {
    case("races_name_both_sides", |gpu, first, second| {
        let memory = gpu.allocate(SIZE);
        label(gpu, "one").fill(memory, 1, SIZE, first);
        label(gpu, "two").fill(memory + 8, 1, 16, second);
        reported(
            gpu,
            "write/write race",
            Some((memory + 8, 16)),
            &[
                side("cuMemsetD8Async", On(second, 0), "two", Some((memory + 8, 16))),
                side("cuMemsetD8Async", On(first, 0), "one", Some((memory, SIZE))),
            ],
        );
        // The write is in parts by now; all of it is told nevertheless.
        gpu.sync(second);
        let other = gpu.allocate(SIZE);
        label(gpu, "three").d2d(other, memory, 100, second);
        reported(
            gpu,
            "read/write race",
            Some((memory, 100)),
            &[
                side("cuMemcpyDtoDAsync_v2", On(second, 0), "three", Some((memory, 100))),
                side("cuMemsetD8Async", On(first, 0), "one", Some((memory, SIZE))),
            ],
        );
    });
}

#[test]
fn races_of_kernels_name_both_sides() {
    case("races_of_kernels_name_both_sides", |gpu, first, second| {
        let module = gpu.module(TEXT);
        let add_one = gpu.function(module, "add_one");
        let memory = gpu.allocate(SIZE);
        gpu.write(memory, &[1; SIZE], 0);
        gpu.sync_all();
        gpu.control.hold(true);
        label(gpu, "a launch").launch(add_one, 1, 64, first, &[memory + 1024, memory]);
        label(gpu, "a fill").fill(memory + 1100, 1, 1000, second);
        gpu.control.hold(false);
        gpu.sync_all();
        // The kernel was called first, and is known last.
        reported(
            gpu,
            "write/write race",
            Some((memory + 1100, 180)),
            &[
                side("cuLaunchKernel", On(first, 0), "a launch", Some((memory + 1024, 256))),
                side("cuMemsetD8Async", On(second, 0), "a fill", Some((memory + 1100, 1000))),
            ],
        );
    });
}

#[test]
fn branches_of_a_graph_name_both_sides() {
    case("branches_of_a_graph_name_both_sides", |gpu, first, second| {
        let (memory, fork, join) = (gpu.allocate(SIZE), gpu.event(), gpu.event());
        let (mut graph, mut exec) = (0, 0);
        ok!(gpu, cuStreamBeginCapture_v2(first, 1));
        gpu.record(fork, first);
        gpu.wait(second, fork);
        label(gpu, "a branch").fill(memory, 1, 100, second);
        gpu.record(join, second);
        label(gpu, "the trunk").fill(memory + 50, 2, 100, first);
        gpu.wait(first, join);
        ok!(gpu, cuStreamEndCapture(first, &mut graph));
        ok!(gpu, cuGraphInstantiateWithFlags(&mut exec, graph, 0));
        ok!(gpu, cuGraphLaunch(exec, second));
        gpu.sync_all();
        reported(
            gpu,
            "write/write race",
            Some((memory + 50, 50)),
            &[
                side("cuMemsetD8Async", On(second, 0), "the trunk", Some((memory + 50, 100))),
                side("cuMemsetD8Async", On(second, 0), "a branch", Some((memory, 100))),
            ],
        );
    });
}

#[test]
fn uses_of_freed_memory_name_both_sides() {
    case("uses_of_freed_memory_name_both_sides", |gpu, first, second| {
        let kind = "use of freed memory";
        let memory = gpu.allocate_async(SIZE, first);
        ok!(label(gpu, "frees"), cuMemFreeAsync(memory, first));
        gpu.order(first, second);
        label(gpu, "uses").fill(memory + 4, 1, 8, second);
        reported(
            gpu,
            kind,
            Some((memory + 4, 8)),
            &[
                side("cuMemsetD8Async", On(second, 0), "uses", Some((memory + 4, 8))),
                side("cuMemFreeAsync", On(first, 0), "frees", Some((memory, SIZE))),
            ],
        );
        assert_eq!(cu!(label(gpu, "again"), cuMemFreeAsync(memory, second)), 1);
        reported(
            gpu,
            kind,
            Some((memory, 1)),
            &[
                side("cuMemFreeAsync", RefusedOn(second, 0), "again", Some((memory, 1))),
                side("cuMemFreeAsync", On(first, 0), "frees", Some((memory, SIZE))),
            ],
        );
        let memory = gpu.allocate(SIZE);
        label(gpu, "frees").free(memory);
        let freed = || side("cuMemFree_v2", Host, "frees", Some((memory, SIZE)));
        assert_eq!(cu!(label(gpu, "uses"), cuMemsetD8Async(memory + 4, 1, 8, first)), 1);
        let used = side("cuMemsetD8Async", RefusedOn(first, 0), "uses", Some((memory + 4, 8)));
        reported(gpu, kind, Some((memory + 4, 8)), &[used, freed()]);
        assert_eq!(cu!(label(gpu, "again"), cuMemFree_v2(memory)), 1);
        reported(gpu, kind, Some((memory, 1)), &[side("cuMemFree_v2", Host, "again", Some((memory, 1))), freed()]);
        // A kernel finds it when it runs.
        let (first, second, add_one) = on_a_new_device(gpu, 1);
        let memory = gpu.allocate_async(SIZE, first);
        ok!(label(gpu, "frees"), cuMemFreeAsync(memory, first));
        gpu.order(first, second);
        label(gpu, "a launch").launch(add_one, 1, 4, second, &[memory, memory]);
        assert_eq!(cu!(gpu, cuStreamSynchronize(second)), 700);
        reported(
            gpu,
            kind,
            Some((memory, 4)),
            &[
                side("cuLaunchKernel", On(second, 1), "a launch", Some((memory, 4))),
                side("cuMemFreeAsync", On(first, 1), "frees", Some((memory, SIZE))),
            ],
        );
    });
}

#[test]
fn frees_before_a_use_name_both_sides() {
    case("frees_before_a_use_name_both_sides", |gpu, first, second| {
        let kind = "free not ordered behind a use";
        let memory = gpu.allocate_async(SIZE, first);
        gpu.order(first, second);
        label(gpu, "uses").fill(memory + 4, 1, 8, second);
        ok!(label(gpu, "frees"), cuMemFreeAsync(memory, first));
        reported(
            gpu,
            kind,
            Some((memory + 4, 8)),
            &[
                side("cuMemFreeAsync", On(first, 0), "frees", Some((memory, SIZE))),
                side("cuMemsetD8Async", On(second, 0), "uses", Some((memory + 4, 8))),
            ],
        );
        let (memory, pinned) = (gpu.allocate(SIZE), gpu.pinned(SIZE));
        let address = pinned.address.expose_provenance() as u64;
        label(gpu, "uploads").write(memory, &[1], first);
        pinned.to_device(memory, first);
        label(gpu, "frees");
        pinned.free();
        reported(
            gpu,
            kind,
            Some((address, SIZE)),
            &[
                side("cuMemFreeHost", Host, "frees", Some((address, SIZE))),
                side("cuMemcpyHtoDAsync_v2", On(first, 0), "uploads", Some((address, SIZE))),
            ],
        );
        // A use that is asked for when the free is, and not ordered with it.
        let memory = gpu.allocate_async(SIZE, first);
        gpu.order(first, second);
        ok!(label(gpu, "frees"), cuMemFreeAsync(memory, first));
        label(gpu, "uses").fill(memory + 4, 1, 8, second);
        reported(
            gpu,
            kind,
            Some((memory + 4, 8)),
            &[
                side("cuMemsetD8Async", On(second, 0), "uses", Some((memory + 4, 8))),
                side("cuMemFreeAsync", On(first, 0), "frees", Some((memory, SIZE))),
            ],
        );
    });
}

#[test]
fn uses_before_the_allocation_name_both_sides() {
    case("uses_before_the_allocation_name_both_sides", |gpu, first, second| {
        let memory = label(gpu, "allocates").allocate_async(SIZE, first);
        label(gpu, "uses").fill(memory + 4, 1, 8, second);
        reported(
            gpu,
            "use not ordered behind the allocation",
            Some((memory + 4, 8)),
            &[
                side("cuMemsetD8Async", On(second, 0), "uses", Some((memory + 4, 8))),
                side("cuMemAllocAsync", On(first, 0), "allocates", Some((memory, SIZE))),
            ],
        );
    });
}

#[test]
fn ends_out_of_bounds_name_both_sides() {
    case("ends_out_of_bounds_name_both_sides", |gpu, first, second| {
        let kind = "out of bounds";
        let memory = label(gpu, "allocates").allocate_async(SIZE, second);
        gpu.order(second, first);
        assert_eq!(cu!(label(gpu, "fills"), cuMemsetD8Async(memory + 1, 1, SIZE, first)), 1);
        reported(
            gpu,
            kind,
            Some((memory + 1, SIZE)),
            &[
                side("cuMemsetD8Async", RefusedOn(first, 0), "fills", Some((memory + 1, SIZE))),
                side("cuMemAllocAsync", On(second, 0), "allocates", Some((memory, SIZE))),
            ],
        );
        let (stream, _, add_one) = on_a_new_device(gpu, 1);
        let memory = label(gpu, "allocates").allocate(SIZE);
        gpu.fill(memory, 1, SIZE, stream);
        label(gpu, "a launch").launch(add_one, 1, 4, stream, &[memory + 4092, memory]);
        assert_eq!(cu!(gpu, cuStreamSynchronize(stream)), 700);
        reported(
            gpu,
            kind,
            Some((memory + 4096, 4)),
            &[
                side("cuLaunchKernel", On(stream, 1), "a launch", Some((memory + 4096, 4))),
                side("cuMemAlloc_v2", Host, "allocates", Some((memory, SIZE))),
            ],
        );
    });
}

#[test]
fn wild_addresses_name_what_there_is() {
    case("wild_addresses_name_what_there_is", |gpu, first, _| {
        let kind = "wild address";
        let memory = label(gpu, "allocates").allocate(SIZE);
        let made = || side("cuMemAlloc_v2", Host, "allocates", Some((memory, SIZE)));
        // Nothing is there that could be named.
        let wild = memory + (1 << 22);
        assert_eq!(cu!(label(gpu, "fills"), cuMemsetD8Async(wild, 1, 8, first)), 1);
        let filled = side("cuMemsetD8Async", RefusedOn(first, 0), "fills", Some((wild, 8)));
        reported(gpu, kind, Some((wild, 8)), &[filled]);
        assert_eq!(cu!(label(gpu, "frees"), cuMemFree_v2(memory + 16)), 1);
        let freed = side("cuMemFree_v2", Host, "frees", Some((memory + 16, 1)));
        reported(gpu, kind, Some((memory + 16, 1)), &[freed, made()]);
        // A device's address where the host's is meant.
        let other = gpu.allocate(SIZE);
        let host = ptr::with_exposed_provenance::<c_void>(usize::try_from(memory).unwrap());
        assert_eq!(cu!(label(gpu, "uploads"), cuMemcpyHtoDAsync_v2(other, host, 8, first)), 1);
        let copied = side("cuMemcpyHtoDAsync_v2", RefusedOn(first, 0), "uploads", Some((memory, 8)));
        reported(gpu, kind, Some((memory, 8)), &[copied, made()]);
        let (stream, _, add_one) = on_a_new_device(gpu, 1);
        label(gpu, "a launch").launch(add_one, 1, 1, stream, &[8, 8]);
        assert_eq!(cu!(gpu, cuStreamSynchronize(stream)), 700);
        reported(gpu, kind, Some((8, 4)), &[side("cuLaunchKernel", On(stream, 1), "a launch", Some((8, 4)))]);
    });
}

#[test]
fn unwritten_bytes_name_both_sides() {
    case("unwritten_bytes_name_both_sides", |gpu, first, second| {
        let kind = "read of bytes that nothing wrote";
        let memory = label(gpu, "allocates").allocate_async(SIZE, first);
        gpu.order(first, second);
        gpu.fill(memory, 1, 100, second);
        let _ = label(gpu, "reads").read(memory, 200, second);
        reported(
            gpu,
            kind,
            Some((memory + 100, 100)),
            &[
                side("cuMemcpyDtoHAsync_v2", On(second, 0), "reads", Some((memory, 200))),
                side("cuMemAllocAsync", On(first, 0), "allocates", Some((memory, SIZE))),
            ],
        );
        let module = gpu.module(TEXT);
        label(gpu, "a launch").launch(gpu.function(module, "add_one"), 1, 26, second, &[memory + 1024, memory]);
        gpu.sync(second);
        reported(
            gpu,
            kind,
            Some((memory + 100, 4)),
            &[
                side("cuLaunchKernel", On(second, 0), "a launch", Some((memory, 104))),
                side("cuMemAllocAsync", On(first, 0), "allocates", Some((memory, SIZE))),
            ],
        );
    });
}

#[test]
fn strangers_contexts_name_both_sides() {
    case("strangers_contexts_name_both_sides", |gpu, first, _| {
        let kind = "a stranger's context";
        let event = label(gpu, "makes").event();
        let (there, _, add_one) = on_a_new_device(gpu, 1);
        assert_eq!(cu!(label(gpu, "records"), cuEventRecord(event, there)), 400);
        reported(
            gpu,
            kind,
            None,
            &[side("cuEventRecord", RefusedOn(there, 1), "records", None), side("cuEventCreate", Host, "makes", None)],
        );
        assert_eq!(label(gpu, "a launch").try_launch(add_one, 1, 1, first, &[8, 8]), 400);
        reported(
            gpu,
            kind,
            None,
            &[
                side("cuLaunchKernel", RefusedOn(first, 0), "a launch", None),
                side("cuModuleLoadDataEx", Host, "loads", None),
            ],
        );
        // Memory of a device that is no peer.
        gpu.make_current(0);
        let memory = label(gpu, "allocates").allocate(SIZE);
        gpu.fill(memory, 1, SIZE, first);
        gpu.sync(first);
        gpu.make_current(1);
        label(gpu, "a launch").launch(add_one, 1, 1, there, &[memory, memory]);
        assert_eq!(cu!(gpu, cuStreamSynchronize(there)), 700);
        reported(
            gpu,
            kind,
            Some((memory, 4)),
            &[
                side("cuLaunchKernel", On(there, 1), "a launch", Some((memory, 4))),
                side("cuMemAlloc_v2", Host, "allocates", Some((memory, SIZE))),
            ],
        );
    });
}

extern "C" fn calls_back(driver: *mut c_void) {
    // SAFETY: the test gives its driver, and waits for this.
    let driver = unsafe { &*driver.cast::<Driver>() };
    assert_eq!(cu!(driver, cuStreamQuery(0)), 800);
}

#[test]
fn calls_in_host_functions_name_both_sides() {
    case("calls_in_host_functions_name_both_sides", |gpu, first, _| {
        let driver = ptr::from_ref(&gpu.driver).cast_mut().cast();
        ok!(label(gpu, "calls back"), cuLaunchHostFunc(first, Some(calls_back), driver));
        gpu.sync(first);
        reported(
            gpu,
            "a CUDA call in a host function",
            None,
            &[
                side("cuStreamQuery", RefusedOn(first, 0), "calls back", None),
                side("cuLaunchHostFunc", On(first, 0), "calls back", None),
            ],
        );
    });
}
