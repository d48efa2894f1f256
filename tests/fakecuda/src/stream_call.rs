//! What programs ask of streams: to be made, waited for and ended; and host functions on them.

use crate::boundary::{Answer, Call};
use crate::code::Code;
use crate::context;
use crate::operation::{HostFunction, Request, Work};
use crate::state::State;
use crate::stream::{Kind, settle};

/// CU_STREAM_NON_BLOCKING.
const NON_BLOCKING: u32 = 1;
/// The least and the greatest priority; greater is lower, and it changes nothing.
pub(crate) const PRIORITIES: (i32, i32) = (0, -5);

pub(crate) fn create(call: &Call, flags: u32) -> Answer<usize> {
    let (mut state, device) = context::enter(call)?;
    let kind = match flags {
        0 => Kind::Blocking,
        NON_BLOCKING => Kind::NonBlocking,
        _ => return Err(Code::INVALID_VALUE),
    };
    let handle = state.open_stream(call.driver, device, kind);
    state.streams.entry(handle).and_modify(|stream| stream.is_made = true);
    Ok(handle)
}

/// The work that it has goes on. The stream is gone, also if its device is broken.
pub(crate) fn destroy(call: &Call, handle: usize) -> Answer {
    let mut state = call.driver.state.lock();
    if handle <= 2 {
        return Err(Code::INVALID_HANDLE);
    }
    let stream = state.stream(call.driver, handle)?;
    let device = state.streams[&stream].device;
    state.abandon_capture(stream);
    state.close_stream(stream);
    drop(state);
    settle(call.driver);
    call.driver.works(device)
}

pub(crate) fn query(call: &Call, handle: usize) -> Answer {
    let mut state = call.driver.state.lock();
    let (stream, _) = state.working_stream(call.driver, handle)?;
    state.forbid_capturing(stream)?;
    let (points, clock) = state.waited_for(stream);
    if !points.iter().all(|point| state.is_over(*point)) {
        return Err(Code::NOT_READY);
    }
    state.detector.host_saw(&clock);
    Ok(())
}

pub(crate) fn synchronise(call: &Call, handle: usize) -> Answer {
    let mut state = call.driver.state.lock();
    let (stream, device) = state.working_stream(call.driver, handle)?;
    state.forbid_capturing(stream)?;
    let (points, clock) = state.waited_for(stream);
    let is_over = |state: &State| points.iter().all(|point| state.is_over(*point));
    let mut state = call.driver.wait_until(state, device, is_over)?;
    state.detector.host_saw(&clock);
    state.memory.synchronised(device);
    Ok(())
}

/// The handle of the stream's context.
pub(crate) fn context_of(call: &Call, handle: usize) -> Answer<usize> {
    let mut state = call.driver.state.lock();
    let (_, device) = state.working_stream(call.driver, handle)?;
    Ok(context::handle(device))
}

/// The function runs on the stream's thread, unless the device breaks before: then it is dropped.
pub(crate) fn launch_host_function(call: &Call, handle: usize, function: Option<HostFunction>) -> Answer {
    let mut state = call.driver.state.lock();
    let (stream, _) = state.working_stream(call.driver, handle)?;
    let function = function.ok_or(Code::INVALID_VALUE)?;
    state.submit(call, stream, Request::new(Work::Host(function))).map(|_| ())
}
