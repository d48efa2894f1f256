//! The race detector: each planted defect is found each time, whatever the timing, and its mended twin never.
//!
//! A case does the same with and without the defect. It runs 100 times in each way, under delays by a seed of its own.

#[macro_use]
mod support;

use std::ffi::c_void;
use std::{env, ptr};

use support::*;

const SIZE: usize = 4096;

/// How often, if the environment does not say.
fn rounds(otherwise: u64) -> u64 {
    env::var("PURLIN_FAKECUDA_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(otherwise)
}

/// For defects that break a device: a new one each time.
fn many_devices() -> Options {
    Options { devices: 100, address_bytes: 1 << 24, ..Options::default() }
}

/// Runs the case with and without its defect. `expected` is how its report begins.
fn planted(name: &str, options: &Options, expected: &[&str], case: impl Fn(&Session, bool)) {
    process::run(name, options, || {
        let gpu = Session::new();
        let mut found = 0;
        let rounds = rounds(100);
        for seed in 0..rounds {
            for is_planted in [true, false] {
                gpu.control.set_delays(seed, 50);
                gpu.make_current(0);
                case(&gpu, is_planted);
                let reports = gpu.control.reports();
                gpu.control.clear_reports();
                if is_planted {
                    let is_it = |report: &String| expected.iter().any(|begin| report.starts_with(begin));
                    assert!(reports.iter().all(is_it), "{reports:#?}");
                    found += u64::from(!reports.is_empty());
                } else {
                    assert_eq!(reports, [""; 0]);
                }
            }
        }
        println!("{name}: planted {rounds}, found {found}");
        assert_eq!(found, rounds);
    });
}

/// Two streams that go when the case is over.
fn with_streams(gpu: &Session, body: impl FnOnce(usize, usize)) {
    let (first, second) = (gpu.stream(NON_BLOCKING), gpu.stream(NON_BLOCKING));
    body(first, second);
    gpu.sync(first);
    gpu.sync(second);
    [first, second].into_iter().for_each(|stream| ok!(gpu, cuStreamDestroy_v2(stream)));
}

#[test]
fn writes_without_a_wait() {
    planted("writes_without_a_wait", &Options::default(), &["write/write race"], |gpu, is_planted| {
        let memory = gpu.allocate(SIZE);
        with_streams(gpu, |first, second| {
            gpu.fill(memory, 1, SIZE, first);
            if !is_planted {
                gpu.order(first, second);
            }
            gpu.fill(memory + 100, 2, 100, second);
        });
        gpu.free(memory);
    });
}

#[test]
fn a_read_without_a_wait() {
    planted("a_read_without_a_wait", &Options::default(), &["read/write race"], |gpu, is_planted| {
        let (from, to) = (gpu.allocate(SIZE), gpu.allocate(SIZE));
        gpu.write(from, &[1; SIZE], 0);
        gpu.sync_all();
        with_streams(gpu, |first, second| {
            gpu.fill(from, 1, SIZE, first);
            if !is_planted {
                gpu.order(first, second);
            }
            gpu.d2d(to, from, SIZE, second);
        });
        gpu.free(from);
        gpu.free(to);
    });
}

#[test]
fn a_write_over_what_is_read() {
    planted("a_write_over_what_is_read", &Options::default(), &["read/write race"], |gpu, is_planted| {
        let (memory, pinned) = (gpu.allocate(SIZE), gpu.pinned(SIZE));
        pinned.set(5);
        with_streams(gpu, |first, second| {
            pinned.to_device(memory, first);
            if !is_planted {
                gpu.order(first, second);
            }
            // Its source is still read.
            ok!(gpu, cuMemsetD8Async(pinned.address.expose_provenance() as u64, 0, SIZE, second));
        });
        gpu.free(memory);
        pinned.free();
    });
}

#[test]
fn a_kernel_that_nobody_waits_for() {
    planted("a_kernel_that_nobody_waits_for", &Options::default(), &["read/write race"], |gpu, is_planted| {
        let module = gpu.module(TEXT);
        let add_one = gpu.function(module, "add_one");
        let memory = gpu.allocate(SIZE);
        gpu.write(memory, &[1; SIZE], 0);
        gpu.sync_all();
        with_streams(gpu, |first, second| {
            gpu.launch(add_one, 1, 64, first, &[memory + 1024, memory]);
            if !is_planted {
                gpu.order(first, second);
            }
            let _ = gpu.read(memory + 1024, 256, second);
        });
        ok!(gpu, cuModuleUnload(module));
        gpu.free(memory);
    });
}

#[test]
fn one_kernel_over_another() {
    let expected = ["write/write race", "read/write race"];
    planted("one_kernel_over_another", &Options::default(), &expected, |gpu, is_planted| {
        let module = gpu.module(TEXT);
        let add_one = gpu.function(module, "add_one");
        let memory = gpu.allocate(SIZE);
        gpu.write(memory, &[1; SIZE], 0);
        gpu.sync_all();
        with_streams(gpu, |first, second| {
            gpu.launch(add_one, 1, 32, first, &[memory + 256, memory]);
            gpu.launch(add_one, 1, 32, second, &[memory + if is_planted { 380 } else { 384 }, memory]);
        });
        ok!(gpu, cuModuleUnload(module));
        gpu.free(memory);
    });
}

#[test]
fn a_use_behind_its_free() {
    planted("a_use_behind_its_free", &Options::default(), &["use of freed memory"], |gpu, is_planted| {
        with_streams(gpu, |first, second| {
            let memory = gpu.allocate_async(SIZE, first);
            if !is_planted {
                gpu.fill(memory, 1, SIZE, first);
            }
            ok!(gpu, cuMemFreeAsync(memory, first));
            gpu.order(first, second);
            if is_planted {
                gpu.fill(memory, 1, SIZE, second);
            }
        });
        let memory = gpu.allocate(SIZE);
        gpu.free(memory);
        if is_planted {
            assert_eq!(cu!(gpu, cuMemsetD8Async(memory, 1, SIZE, 0)), 1);
            assert_eq!(cu!(gpu, cuMemFree_v2(memory)), 1, "the second time");
        }
    });
}

#[test]
fn a_kernel_behind_a_free() {
    let name = "a_kernel_behind_a_free";
    process::run(name, &many_devices(), || {
        let gpu = Session::new();
        // The device breaks, so each time is another one's.
        for device in 0..100 {
            gpu.make_current(device);
            let stream = gpu.stream(NON_BLOCKING);
            let module = gpu.module(TEXT);
            let add_one = gpu.function(module, "add_one");
            let memory = gpu.allocate_async(SIZE, stream);
            gpu.fill(memory, 0, SIZE, stream);
            ok!(gpu, cuMemFreeAsync(memory, stream));
            gpu.launch(add_one, 1, 4, stream, &[memory, memory]);
            assert_eq!(cu!(gpu, cuStreamSynchronize(stream)), 700);
            let reports = gpu.control.reports();
            assert!(reports.len() == 1 && reports[0].starts_with("use of freed memory"), "{reports:#?}");
            gpu.control.clear_reports();
        }
    });
}

#[test]
fn a_free_before_a_use_is_over() {
    let expected = ["free not ordered behind a use"];
    planted("a_free_before_a_use_is_over", &Options::default(), &expected, |gpu, is_planted| {
        with_streams(gpu, |first, second| {
            let memory = gpu.allocate_async(SIZE, first);
            gpu.order(first, second);
            gpu.fill(memory, 1, SIZE, second);
            if !is_planted {
                gpu.order(second, first);
            }
            ok!(gpu, cuMemFreeAsync(memory, first));
        });
        let (memory, pinned) = (gpu.allocate(SIZE), gpu.pinned(SIZE));
        with_streams(gpu, |first, _| {
            pinned.set(1);
            pinned.to_device(memory, first);
            if !is_planted {
                gpu.sync(first);
            }
            pinned.free();
        });
        gpu.free(memory);
    });
}

#[test]
fn a_free_under_a_kernel() {
    let expected = ["free not ordered behind a use"];
    planted("a_free_under_a_kernel", &Options::default(), &expected, |gpu, is_planted| {
        let module = gpu.module(TEXT);
        let add_one = gpu.function(module, "add_one");
        with_streams(gpu, |first, second| {
            let memory = gpu.allocate_async(SIZE, first);
            gpu.fill(memory, 0, SIZE, first);
            gpu.order(first, second);
            gpu.control.hold(true);
            gpu.launch(add_one, 1, 4, second, &[memory, memory]);
            if !is_planted {
                gpu.order(second, first);
            }
            ok!(gpu, cuMemFreeAsync(memory, first));
            gpu.control.hold(false);
        });
        ok!(gpu, cuModuleUnload(module));
    });
}

#[test]
fn a_use_before_its_allocation() {
    let expected = ["use not ordered behind the allocation"];
    planted("a_use_before_its_allocation", &Options::default(), &expected, |gpu, is_planted| {
        with_streams(gpu, |first, second| {
            let memory = gpu.allocate_async(SIZE, first);
            if !is_planted {
                gpu.order(first, second);
            }
            gpu.fill(memory, 1, SIZE, second);
            gpu.order(second, first);
            ok!(gpu, cuMemFreeAsync(memory, first));
        });
    });
}

#[test]
fn a_copy_past_the_end() {
    planted("a_copy_past_the_end", &Options::default(), &["out of bounds"], |gpu, is_planted| {
        let memory = gpu.allocate(SIZE);
        let code = cu!(gpu, cuMemsetD8Async(memory + 1, 1, SIZE - usize::from(!is_planted), 0));
        assert_eq!(code, u32::from(is_planted));
        gpu.free(memory);
    });
}

#[test]
fn a_wild_address() {
    planted("a_wild_address", &Options::default(), &["wild address"], |gpu, is_planted| {
        let memory = gpu.allocate(SIZE);
        let wild = if is_planted { memory + (1 << 30) } else { memory };
        assert_eq!(cu!(gpu, cuMemsetD8Async(wild, 1, 8, 0)), u32::from(is_planted));
        gpu.free(memory);
    });
}

#[test]
fn kernels_past_the_end_and_in_the_wild() {
    let name = "kernels_past_the_end_and_in_the_wild";
    process::run(name, &many_devices(), || {
        let gpu = Session::new();
        for device in 0..100 {
            gpu.make_current(device);
            let module = gpu.module(TEXT);
            let add_one = gpu.function(module, "add_one");
            let (memory, stream) = (gpu.allocate(SIZE), gpu.stream(NON_BLOCKING));
            gpu.fill(memory, 0, SIZE, stream);
            let is_near = device % 2 == 0;
            let (to, expected) = if is_near { (memory + 4092, "out of bounds") } else { (8, "wild address") };
            gpu.launch(add_one, 1, 4, stream, &[to, memory]);
            assert_eq!(cu!(gpu, cuStreamSynchronize(stream)), 700);
            let reports = gpu.control.reports();
            assert!(reports.len() == 1 && reports[0].starts_with(expected), "{reports:#?}");
            gpu.control.clear_reports();
        }
    });
}

#[test]
fn bytes_that_nothing_wrote() {
    planted(
        "bytes_that_nothing_wrote",
        &Options::default(),
        &["read of bytes that nothing wrote"],
        |gpu, is_planted| {
            let module = gpu.module(TEXT);
            let add_one = gpu.function(module, "add_one");
            let (memory, other) = (gpu.allocate(SIZE), gpu.allocate(SIZE));
            with_streams(gpu, |stream, _| {
                gpu.fill(memory, 1, if is_planted { 100 } else { SIZE }, stream);
                // Copied about, the bytes stay unwritten.
                gpu.d2d(other, memory, SIZE, stream);
                let _ = gpu.read(other, 200, stream);
                gpu.launch(add_one, 1, 64, stream, &[memory, memory]);
            });
            ok!(gpu, cuModuleUnload(module));
            gpu.free(memory);
            gpu.free(other);
        },
    );
}

#[test]
fn a_read_before_the_kernel_that_writes() {
    let expected = ["read of bytes that nothing wrote"];
    planted("a_read_before_the_kernel_that_writes", &Options::default(), &expected, |gpu, is_planted| {
        let module = gpu.module(TEXT);
        let add_one = gpu.function(module, "add_one");
        let (memory, pinned) = (gpu.allocate(SIZE), gpu.pinned(256));
        with_streams(gpu, |stream, _| {
            gpu.fill(memory, 1, 256, stream);
            if !is_planted {
                gpu.launch(add_one, 1, 64, stream, &[memory + 1024, memory]);
            }
            pinned.read_from(memory + 1024, stream);
            gpu.launch(add_one, 1, 64, stream, &[memory + 1024, memory]);
        });
        ok!(gpu, cuModuleUnload(module));
        gpu.free(memory);
        pinned.free();
    });
}

#[test]
fn a_strangers_context() {
    planted("a_strangers_context", &Options::default(), &["a stranger's context"], |gpu, is_planted| {
        let event = gpu.event();
        let module = gpu.module(TEXT);
        let bump = gpu.function(module, "bump");
        let device = usize::from(is_planted);
        gpu.make_current(device);
        let stream = gpu.stream(NON_BLOCKING);
        let expected = if is_planted { 400 } else { 0 };
        assert_eq!(cu!(gpu, cuEventRecord(event, stream)), expected);
        assert_eq!(gpu.try_launch(bump, 1, 1, stream, &[]), expected);
        gpu.sync(stream);
        ok!(gpu, cuStreamDestroy_v2(stream));
        ok!(gpu, cuEventDestroy_v2(event));
        ok!(gpu, cuModuleUnload(module));
    });
}

extern "C" fn calls_back(driver: *mut c_void) {
    // SAFETY: the case gives its driver, and waits for this.
    let driver = unsafe { &*driver.cast::<Driver>() };
    assert_eq!(cu!(driver, cuStreamQuery(0)), 800);
}

extern "C" fn does_nothing(_: *mut c_void) {}

#[test]
fn a_call_in_a_host_function() {
    let expected = ["a CUDA call in a host function"];
    planted("a_call_in_a_host_function", &Options::default(), &expected, |gpu, is_planted| {
        let function = if is_planted { calls_back } else { does_nothing };
        with_streams(gpu, |stream, _| {
            ok!(gpu, cuLaunchHostFunc(stream, Some(function), ptr::from_ref(&gpu.driver).cast_mut().cast()));
        });
    });
}

#[test]
fn a_wait_that_is_ignored() {
    planted("a_wait_that_is_ignored", &Options::default(), &["write/write race"], |gpu, is_planted| {
        let memory = gpu.allocate(SIZE);
        gpu.control.ignore_waits(if is_planted { "other,mine" } else { "other" });
        with_streams(gpu, |first, second| {
            gpu.fill(memory, 1, SIZE, first);
            gpu.control.set_label("mine");
            gpu.order(first, second);
            gpu.fill(memory, 2, SIZE, second);
            gpu.control.set_label("");
        });
        gpu.free(memory);
    });
}

#[test]
fn branches_of_a_graph_without_an_edge() {
    planted("branches_of_a_graph_without_an_edge", &Options::default(), &["write/write race"], |gpu, is_planted| {
        let (memory, fork, join) = (gpu.allocate(SIZE), gpu.event(), gpu.event());
        let (mut graph, mut exec) = (0, 0);
        with_streams(gpu, |first, second| {
            ok!(gpu, cuStreamBeginCapture_v2(first, 1));
            gpu.fill(memory, 0, SIZE, first);
            gpu.record(fork, first);
            gpu.wait(second, fork);
            gpu.fill(memory, 1, 100, second);
            gpu.record(join, second);
            if !is_planted {
                gpu.wait(first, join);
            }
            gpu.fill(memory, 2, 100, first);
            gpu.wait(first, join);
            gpu.fill(memory, 3, 100, first);
            ok!(gpu, cuStreamEndCapture(first, &mut graph));
            ok!(gpu, cuGraphInstantiateWithFlags(&mut exec, graph, 0));
            for stream in [second, first, first] {
                ok!(gpu, cuGraphLaunch(exec, stream));
            }
            gpu.sync(first);
            ok!(gpu, cuGraphExecDestroy(exec));
            ok!(gpu, cuGraphDestroy(graph));
        });
        [fork, join].into_iter().for_each(|event| ok!(gpu, cuEventDestroy_v2(event)));
        gpu.free(memory);
    });
}

#[test]
fn a_report_names_both_sides() {
    process::run("a_report_names_both_sides", &Options::default(), || {
        let gpu = Session::new();
        let (first, second, memory) = (gpu.stream(NON_BLOCKING), gpu.stream(NON_BLOCKING), gpu.allocate(SIZE));
        gpu.control.set_label("the first");
        gpu.fill(memory, 1, SIZE, first);
        gpu.control.set_label("the second");
        gpu.fill(memory + 8, 1, 16, second);
        let reports = gpu.control.reports();
        assert_eq!(reports.len(), 1);
        let start = memory + 8;
        for part in [
            format!("write/write race of 16 bytes at {start:#x}..{:#x}", start + 16),
            format!("on stream {first:#x} of device 0, its operation 1 [the first]"),
            format!("on stream {second:#x} of device 0, its operation 1 [the second]"),
            "cuMemsetD8Async #".to_owned(),
            "nothing orders the two".to_owned(),
        ] {
            assert!(reports[0].contains(&part), "{part} is not in {}", reports[0]);
        }
    });
}
