//! Streams.

#![allow(unsafe_code, reason = "symbols have names that others could have")]
#![allow(non_snake_case, reason = "the names of the symbols")]

use std::ffi::{c_int, c_uint, c_void};

use crate::boundary::{Out, call_or, call_or_nothing};
use crate::entry::Entry;
use crate::operation::HostFunction;
use crate::{event, graph, stream_call, thread};

#[unsafe(no_mangle)]
extern "C" fn cuStreamCreate(stream: Out<usize>, flags: c_uint) -> u32 {
    call_or(
        Entry::cuStreamCreate,
        |driver| stream.set(driver.new_handle()),
        |call| {
            stream.required()?;
            stream.set(stream_call::create(call, flags)?)
        },
    )
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamCreateWithPriority(stream: Out<usize>, flags: c_uint, _priority: c_int) -> u32 {
    // A priority out of range is moved into it, and it changes nothing here.
    call_or(
        Entry::cuStreamCreateWithPriority,
        |driver| stream.set(driver.new_handle()),
        |call| {
            stream.required()?;
            stream.set(stream_call::create(call, flags)?)
        },
    )
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamDestroy_v2(stream: usize) -> u32 {
    call_or_nothing(Entry::cuStreamDestroy_v2, |call| stream_call::destroy(call, stream))
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamSynchronize(stream: usize) -> u32 {
    call_or_nothing(Entry::cuStreamSynchronize, |call| stream_call::synchronise(call, stream))
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamQuery(stream: usize) -> u32 {
    call_or_nothing(Entry::cuStreamQuery, |call| stream_call::query(call, stream))
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamWaitEvent(stream: usize, event: usize, flags: c_uint) -> u32 {
    call_or_nothing(Entry::cuStreamWaitEvent, |call| event::wait(call, stream, event, flags))
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamGetCtx(stream: usize, context: Out<usize>) -> u32 {
    call_or(
        Entry::cuStreamGetCtx,
        |_| context.set(thread::current().map_or(0, crate::context::handle)),
        |call| context.set(stream_call::context_of(call, stream)?),
    )
}

#[unsafe(no_mangle)]
extern "C" fn cuLaunchHostFunc(
    stream: usize,
    function: Option<unsafe extern "C" fn(*mut c_void)>,
    data: *mut c_void,
) -> u32 {
    let function = function.map(|function| HostFunction { function, data: data.expose_provenance() });
    call_or(
        Entry::cuLaunchHostFunc,
        |_| {
            function.into_iter().for_each(|function| function.run(None));
            Ok(())
        },
        |call| stream_call::launch_host_function(call, stream, function),
    )
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamBeginCapture_v2(stream: usize, mode: c_uint) -> u32 {
    call_or_nothing(Entry::cuStreamBeginCapture_v2, |call| graph::begin(call, stream, mode))
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamEndCapture(stream: usize, graph: Out<usize>) -> u32 {
    call_or(
        Entry::cuStreamEndCapture,
        |driver| graph.set(driver.new_handle()),
        |call| {
            graph.required()?;
            graph.set(graph::end(call, stream).inspect_err(|_| graph.set_if_wanted(0))?)
        },
    )
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamIsCapturing(stream: usize, status: Out<c_uint>) -> u32 {
    call_or(Entry::cuStreamIsCapturing, |_| status.set(0), |call| status.set(graph::status(call, stream)?))
}
