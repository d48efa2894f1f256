//! Graphs.

#![allow(unsafe_code, reason = "symbols have names that others could have")]
#![allow(non_snake_case, reason = "the names of the symbols")]

use std::ffi::{c_uint, c_void};

use purlin_ptx::Launch;

use crate::boundary::{In, Out, call, call_or, call_or_nothing};
use crate::code::Code;
use crate::entry::Entry;
use crate::kernel::call::{self as launch, Arguments};
use crate::{exec, graph};

/// CUDA_KERNEL_NODE_PARAMS, the second.
#[repr(C)]
#[derive(Clone, Copy)]
struct KernelNode {
    function: usize,
    grid: [c_uint; 3],
    block: [c_uint; 3],
    dynamic_shared_bytes: c_uint,
    each: In<*const u8>,
    extra: In<*mut c_void>,
    kernel: usize,
    context: usize,
}

/// CUgraphExecUpdateResultInfo.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct UpdateResult {
    result: c_uint,
    error_node: usize,
    error_from_node: usize,
}

// As a C compiler lays them out.
const _: () = assert!(size_of::<KernelNode>() == 72 && size_of::<UpdateResult>() == 24);

#[unsafe(no_mangle)]
extern "C" fn cuGraphInstantiateWithFlags(out: Out<usize>, graph: usize, _flags: u64) -> u32 {
    call_or(
        Entry::cuGraphInstantiateWithFlags,
        |driver| out.set(driver.new_handle()),
        |call| {
            out.required()?;
            out.set(exec::instantiate(call, graph)?)
        },
    )
}

#[unsafe(no_mangle)]
extern "C" fn cuGraphExecUpdate_v2(handle: usize, graph: usize, result: Out<UpdateResult>) -> u32 {
    call_or_nothing(Entry::cuGraphExecUpdate_v2, |call| match exec::update(call, handle, graph)? {
        Ok(()) => {
            result.set_if_wanted(UpdateResult::default());
            Ok(())
        }
        Err((why, error_node)) => {
            result.set_if_wanted(UpdateResult { result: why, error_node, error_from_node: 0 });
            Err(Code::GRAPH_EXEC_UPDATE_FAILURE)
        }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuGraphExecKernelNodeSetParams_v2(handle: usize, node: usize, parameters: In<KernelNode>) -> u32 {
    call_or_nothing(Entry::cuGraphExecKernelNodeSetParams_v2, |call| {
        let KernelNode { function, grid, block, dynamic_shared_bytes, each, extra, .. } = parameters.get()?;
        let shape = Launch { grid, block, dynamic_shared_bytes };
        launch::set_node(call, (handle, node), function, shape, Arguments { each, extra })
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuGraphLaunch(handle: usize, stream: usize) -> u32 {
    call_or_nothing(Entry::cuGraphLaunch, |call| exec::launch(call, handle, stream))
}

#[unsafe(no_mangle)]
extern "C" fn cuGraphUpload(handle: usize, stream: usize) -> u32 {
    call_or_nothing(Entry::cuGraphUpload, |call| exec::upload(call, handle, stream))
}

#[unsafe(no_mangle)]
extern "C" fn cuGraphDestroy(graph: usize) -> u32 {
    call_or_nothing(Entry::cuGraphDestroy, |call| graph::destroy(call, graph))
}

#[unsafe(no_mangle)]
extern "C" fn cuGraphExecDestroy(handle: usize) -> u32 {
    call_or_nothing(Entry::cuGraphExecDestroy, |call| exec::destroy(call, handle))
}

#[unsafe(no_mangle)]
extern "C" fn cuGraphGetNodes(graph: usize, nodes: Out<usize>, count: Out<usize>) -> u32 {
    // `count` says how many there is room for, and is told how many were written; without room, how many there are.
    call(Entry::cuGraphGetNodes, |call| {
        let found = graph::nodes(call, graph)?;
        if nodes.required().is_err() {
            return count.set(found.len());
        }
        let room = count.get()?.min(found.len());
        found.iter().take(room).enumerate().for_each(|(at, node)| nodes.set_at(at, *node));
        count.set(room)
    })
}
