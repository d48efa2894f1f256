//! The race detector about kernels, whose accesses are known when they run, and about graphs: see `support::planted`.

#[macro_use]
mod support;

use support::planted::{SIZE, planted, planted_and_breaks, with_streams};
use support::*;

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

/// Whether the device of a stream breaks by what the stream has.
fn breaks(gpu: &Session, stream: usize) -> bool {
    let code = cu!(gpu, cuStreamSynchronize(stream));
    assert!(code == 0 || code == 700, "{code}");
    code == 700
}

#[test]
fn a_kernel_behind_a_free() {
    planted_and_breaks("a_kernel_behind_a_free", &["use of freed memory"], |gpu, is_planted| {
        let stream = gpu.stream(NON_BLOCKING);
        let add_one = gpu.function(gpu.module(TEXT), "add_one");
        let memory = gpu.allocate_async(SIZE, stream);
        gpu.fill(memory, 0, SIZE, stream);
        let launch = || gpu.launch(add_one, 1, 4, stream, &[memory, memory]);
        if !is_planted {
            launch();
        }
        ok!(gpu, cuMemFreeAsync(memory, stream));
        if is_planted {
            launch();
        }
        breaks(gpu, stream)
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

/// A kernel that writes sixteen bytes at `wrong` of a block, or within it.
fn kernel_that_writes(gpu: &Session, is_planted: bool, wrong: impl FnOnce(u64) -> u64) -> bool {
    let add_one = gpu.function(gpu.module(TEXT), "add_one");
    let (memory, stream) = (gpu.allocate(SIZE), gpu.stream(NON_BLOCKING));
    gpu.fill(memory, 0, SIZE, stream);
    let to = if is_planted { wrong(memory) } else { memory + SIZE as u64 - 16 };
    gpu.launch(add_one, 1, 4, stream, &[to, memory]);
    breaks(gpu, stream)
}

#[test]
fn a_kernel_past_the_end() {
    planted_and_breaks("a_kernel_past_the_end", &["out of bounds"], |gpu, is_planted| {
        kernel_that_writes(gpu, is_planted, |memory| memory + SIZE as u64 - 4)
    });
}

#[test]
fn a_kernel_in_the_wild() {
    planted_and_breaks("a_kernel_in_the_wild", &["wild address"], |gpu, is_planted| {
        kernel_that_writes(gpu, is_planted, |_| 8)
    });
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

/// Calls `body` with an executable graph that fills 256 bytes of memory, and that memory, which it destroys and frees.
fn with_a_graph(gpu: &Session, body: impl FnOnce(usize, u64)) {
    let (memory, stream) = (gpu.allocate(SIZE), gpu.stream(NON_BLOCKING));
    let (mut graph, mut exec) = (0, 0);
    gpu.write(memory, &[1; SIZE], 0);
    gpu.sync_all();
    ok!(gpu, cuStreamBeginCapture_v2(stream, 1));
    (0..5).for_each(|fill| gpu.fill(memory, fill, 256, stream));
    ok!(gpu, cuStreamEndCapture(stream, &mut graph));
    ok!(gpu, cuGraphInstantiateWithFlags(&mut exec, graph, 0));
    ok!(gpu, cuGraphDestroy(graph));
    body(exec, memory);
    ok!(gpu, cuGraphExecDestroy(exec));
    ok!(gpu, cuStreamDestroy_v2(stream));
    gpu.free(memory);
}

#[test]
fn a_graph_that_nobody_waits_for() {
    planted("a_graph_that_nobody_waits_for", &Options::default(), &["read/write race"], |gpu, is_planted| {
        with_a_graph(gpu, |exec, memory| {
            with_streams(gpu, |first, second| {
                ok!(gpu, cuGraphLaunch(exec, first));
                if !is_planted {
                    gpu.order(first, second);
                }
                let _ = gpu.read(memory, 256, second);
            });
        });
    });
}

#[test]
fn a_graph_that_does_not_wait() {
    planted("a_graph_that_does_not_wait", &Options::default(), &["write/write race"], |gpu, is_planted| {
        with_a_graph(gpu, |exec, memory| {
            with_streams(gpu, |first, second| {
                gpu.fill(memory, 9, 256, first);
                if !is_planted {
                    gpu.order(first, second);
                }
                ok!(gpu, cuGraphLaunch(exec, second));
            });
        });
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
fn a_kernel_that_reads_what_nothing_wrote() {
    let expected = ["read of bytes that nothing wrote"];
    planted("a_kernel_that_reads_what_nothing_wrote", &Options::default(), &expected, |gpu, is_planted| {
        let module = gpu.module(TEXT);
        let add_one = gpu.function(module, "add_one");
        let memory = gpu.allocate(SIZE);
        with_streams(gpu, |stream, _| {
            gpu.fill(memory, 1, 64, stream);
            gpu.launch(add_one, 1, if is_planted { 17 } else { 16 }, stream, &[memory, memory]);
        });
        ok!(gpu, cuModuleUnload(module));
        gpu.free(memory);
    });
}
