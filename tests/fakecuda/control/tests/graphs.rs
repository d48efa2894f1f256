//! Captures, and the graphs that come of them.

#[macro_use]
mod support;

use std::ffi::c_void;
use std::ptr;

use support::*;

const THREAD_LOCAL: u32 = 1;

fn status(gpu: &Session, stream: usize) -> u32 {
    let mut status = 7;
    ok!(gpu, cuStreamIsCapturing(stream, &mut status));
    status
}

fn capture(gpu: &Session, stream: usize, body: impl FnOnce()) -> usize {
    let mut graph = 0;
    ok!(gpu, cuStreamBeginCapture_v2(stream, THREAD_LOCAL));
    assert_eq!(status(gpu, stream), 1);
    body();
    ok!(gpu, cuStreamEndCapture(stream, &mut graph));
    assert_eq!(status(gpu, stream), 0);
    graph
}

fn instantiate(gpu: &Session, graph: usize) -> usize {
    let mut exec = 0;
    ok!(gpu, cuGraphInstantiateWithFlags(&mut exec, graph, 0));
    exec
}

#[test]
fn what_was_captured_runs_when_it_is_launched() {
    process::run("what_was_captured_runs_when_it_is_launched", &Options::default(), || {
        let gpu = Session::new();
        let (stream, memory, module) = (gpu.stream(NON_BLOCKING), gpu.allocate(256), gpu.module(TEXT));
        let add_one = gpu.function(module, "add_one");
        gpu.fill(memory, 0, 256, stream);
        let graph = capture(&gpu, stream, || {
            gpu.launch(add_one, 1, 4, stream, &[memory, memory]);
            gpu.launch(add_one, 1, 4, stream, &[memory, memory]);
            gpu.d2d(memory + 128, memory, 16, stream);
        });
        let exec = instantiate(&gpu, graph);
        assert_eq!(gpu.read(memory, 1, stream), [0], "nothing has run");
        ok!(gpu, cuGraphUpload(exec, stream));
        for _ in 0..5 {
            ok!(gpu, cuGraphLaunch(exec, stream));
        }
        // The same again at once, elsewhere: behind the last one.
        let other = gpu.stream(NON_BLOCKING);
        ok!(gpu, cuGraphLaunch(exec, other));
        assert_eq!(gpu.read(memory + 128, 1, other), [12]);
        gpu.sync(stream);

        // The second node adds to other memory from now on.
        let (mut nodes, mut count) = ([0; 8], 8);
        ok!(gpu, cuGraphGetNodes(graph, nodes.as_mut_ptr(), &mut count));
        assert_eq!(count, 3);
        gpu.fill(memory + 64, 0, 16, stream);
        let argument = memory + 64;
        let mut each: [*mut c_void; 2] = [ptr::from_ref(&argument).cast_mut().cast(); 2];
        // CUDA_KERNEL_NODE_PARAMS: function, shape, shared bytes, arguments, extra, kernel, context.
        let node = Node { function: add_one, shape: [1, 1, 1, 4, 1, 1, 0], each: each.as_mut_ptr(), rest: [0; 3] };
        let parameters = ptr::from_ref(&node).cast();
        ok!(gpu, cuGraphExecKernelNodeSetParams_v2(exec, nodes[1], parameters));
        assert_eq!(cu!(gpu, cuGraphExecKernelNodeSetParams_v2(exec, nodes[2], parameters)), 1, "a copy");
        ok!(gpu, cuGraphLaunch(exec, stream));
        assert_eq!((gpu.read(memory, 1, stream), gpu.read(memory + 64, 1, stream)), (vec![13], vec![1]));

        ok!(gpu, cuGraphDestroy(graph));
        ok!(gpu, cuGraphExecDestroy(exec));
        assert_eq!(cu!(gpu, cuGraphLaunch(exec, stream)), 1);
        ok!(gpu, cuModuleUnload(module));
        [stream, other].into_iter().for_each(|stream| ok!(gpu, cuStreamDestroy_v2(stream)));
        gpu.free(memory);
        gpu.end();
    });
}

#[repr(C)]
struct Node {
    function: usize,
    shape: [u32; 7],
    each: *mut *mut c_void,
    rest: [usize; 3],
}

#[test]
fn graphs_of_one_shape_are_updated() {
    process::run("graphs_of_one_shape_are_updated", &Options::default(), || {
        let gpu = Session::new();
        let (stream, memory) = (gpu.stream(NON_BLOCKING), gpu.allocate(256));
        let fill =
            |byte, times: usize| capture(&gpu, stream, || (0..times).for_each(|_| gpu.fill(memory, byte, 256, stream)));
        let (one, two, three) = (fill(1, 1), fill(2, 1), fill(3, 2));
        let copy = capture(&gpu, stream, || gpu.d2d(memory, memory + 128, 8, stream));
        let exec = instantiate(&gpu, one);
        let mut result = [9_u64; 3];
        let mut update = |graph| {
            let code = cu!(gpu, cuGraphExecUpdate_v2(exec, graph, ptr::from_mut(&mut result).cast()));
            (code, result[0] & 0xFFFF_FFFF)
        };
        assert_eq!(update(two), (0, 0));
        assert_eq!(update(three), (910, 2), "another topology");
        assert_eq!(update(copy), (910, 3), "another kind of node");
        ok!(gpu, cuGraphLaunch(exec, stream));
        assert_eq!(gpu.read(memory, 256, stream), [2; 256]);
        [one, two, three, copy].into_iter().for_each(|graph| ok!(gpu, cuGraphDestroy(graph)));
        ok!(gpu, cuGraphExecDestroy(exec));
        ok!(gpu, cuStreamDestroy_v2(stream));
        gpu.free(memory);
        gpu.end();
    });
}

#[test]
fn other_streams_join_by_events() {
    process::run("other_streams_join_by_events", &Options::default(), || {
        let gpu = Session::new();
        let (stream, other, memory) = (gpu.stream(NON_BLOCKING), gpu.stream(NON_BLOCKING), gpu.allocate(64));
        let (fork, join, mut graph) = (gpu.event(), gpu.event(), 0);
        let begin = || {
            ok!(gpu, cuStreamBeginCapture_v2(stream, THREAD_LOCAL));
            gpu.fill(memory, 1, 64, stream);
            gpu.record(fork, stream);
            gpu.wait(other, fork);
            assert_eq!(status(&gpu, other), 1);
            gpu.fill(memory, 2, 32, other);
            gpu.record(join, other);
        };
        begin();
        gpu.wait(stream, join);
        ok!(gpu, cuStreamEndCapture(stream, &mut graph));
        let exec = instantiate(&gpu, graph);
        ok!(gpu, cuGraphLaunch(exec, stream));
        assert_eq!(gpu.read(memory, 64, stream), [[2; 32], [1; 32]].concat());
        ok!(gpu, cuGraphDestroy(graph));
        ok!(gpu, cuGraphExecDestroy(exec));
        begin();
        assert_eq!((cu!(gpu, cuStreamEndCapture(stream, &mut graph)), graph), (904, 0), "nobody waited for the other");
        assert_eq!(status(&gpu, other), 0);
        assert_eq!(cu!(gpu, cuStreamEndCapture(stream, &mut graph)), 401, "it does not capture");
        begin();
        assert_eq!(cu!(gpu, cuEventQuery(join)), 907);
        assert_eq!(cu!(gpu, cuStreamWaitEvent(stream, join, 0)), 901, "and that spoilt it");
        assert_eq!((cu!(gpu, cuStreamEndCapture(stream, &mut graph)), graph), (901, 0));
        begin();
        assert_eq!(cu!(gpu, cuStreamEndCapture(other, &mut graph)), 903, "it did not begin there");
        assert_eq!(cu!(gpu, cuStreamWaitEvent(stream, join, 0)), 901, "and that spoilt it");
        assert_eq!((cu!(gpu, cuStreamEndCapture(stream, &mut graph)), graph), (901, 0));
        [fork, join].into_iter().for_each(|event| ok!(gpu, cuEventDestroy_v2(event)));
        [stream, other].into_iter().for_each(|stream| ok!(gpu, cuStreamDestroy_v2(stream)));
        gpu.free(memory);
        gpu.end();
    });
}

#[test]
fn what_a_capture_forbids_spoils_it() {
    process::run("what_a_capture_forbids_spoils_it", &Options::default(), || {
        let gpu = Session::new();
        let (stream, blocking, event) = (gpu.stream(NON_BLOCKING), gpu.stream(BLOCKING), gpu.event());
        let (mut address, mut graph) = (0, 0);
        gpu.record(event, blocking);
        let spoils = |stream: usize, expected: u32, call: &mut dyn FnMut() -> u32| {
            ok!(gpu, cuStreamBeginCapture_v2(stream, THREAD_LOCAL));
            assert_eq!(call(), expected);
            let mut graph = 7;
            let ended = cu!(gpu, cuStreamEndCapture(stream, &mut graph));
            assert_eq!((ended, graph), (901, 0));
        };
        spoils(stream, 900, &mut || cu!(gpu, cuStreamSynchronize(stream)));
        spoils(stream, 900, &mut || cu!(gpu, cuStreamQuery(stream)));
        spoils(stream, 900, &mut || cu!(gpu, cuMemAlloc_v2(&mut address, 64)));
        spoils(stream, 900, &mut || cu!(gpu, cuCtxSynchronize()));
        spoils(blocking, 906, &mut || cu!(gpu, cuEventRecord(event, 0)));
        ok!(gpu, cuStreamBeginCapture_v2(stream, THREAD_LOCAL));
        assert_eq!(cu!(gpu, cuStreamBeginCapture_v2(stream, THREAD_LOCAL)), 401);
        assert_eq!(status(&gpu, stream), 1, "it captures on");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                gpu.make_current(0);
                let memory = gpu.allocate(64);
                gpu.free(memory);
                let mut graph = 0;
                assert_eq!(cu!(gpu, cuStreamEndCapture(stream, &mut graph)), 908, "another thread's");
            });
        });
        assert_eq!(cu!(gpu, cuStreamEndCapture(stream, &mut graph)), 401, "and that ended it");
        spoils(stream, 905, &mut || cu!(gpu, cuStreamWaitEvent(stream, event, 0)));
        assert_eq!(cu!(gpu, cuStreamBeginCapture_v2(0, THREAD_LOCAL)), 900);
        assert_eq!(cu!(gpu, cuStreamBeginCapture_v2(stream, 3)), 1);
        ok!(gpu, cuEventDestroy_v2(event));
        [stream, blocking].into_iter().for_each(|stream| ok!(gpu, cuStreamDestroy_v2(stream)));
        gpu.end();
    });
}
