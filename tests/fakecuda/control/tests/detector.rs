//! The race detector about copies, frees, contexts and host functions: see `support::planted`.

#[macro_use]
mod support;

use std::ffi::c_void;
use std::ptr;

use support::planted::{SIZE, planted, with_streams};
use support::*;

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
fn bytes_that_nothing_wrote() {
    planted(
        "bytes_that_nothing_wrote",
        &Options::default(),
        &["read of bytes that nothing wrote"],
        |gpu, is_planted| {
            let memory = gpu.allocate(SIZE);
            with_streams(gpu, |stream, _| {
                gpu.fill(memory, 1, if is_planted { 100 } else { SIZE }, stream);
                let _ = gpu.read(memory, 200, stream);
            });
            gpu.free(memory);
        },
    );
}

#[test]
fn unwritten_bytes_that_were_copied_about() {
    let expected = ["read of bytes that nothing wrote"];
    planted("unwritten_bytes_that_were_copied_about", &Options::default(), &expected, |gpu, is_planted| {
        let (memory, other) = (gpu.allocate(SIZE), gpu.allocate(SIZE));
        with_streams(gpu, |stream, _| {
            gpu.fill(memory, 1, 100, stream);
            // No mistake: nobody looks at them.
            gpu.d2d(other, memory, SIZE, stream);
            let _ = gpu.read(other, if is_planted { 101 } else { 100 }, stream);
        });
        gpu.free(memory);
        gpu.free(other);
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
