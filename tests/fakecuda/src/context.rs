//! Primary contexts: one a device, shared by all that retain it. Which one is current is the calling thread's own.

use std::collections::HashSet;

use crate::boundary::{Answer, Call};
use crate::code::Code;
use crate::driver::Driver;
use crate::state::State;
use crate::stream::{Kind, Point, Stream, settle};
use crate::sync::Guard;
use crate::thread;

/// The first handle of a context; they go up by 0x10 with the devices.
const FIRST_HANDLE: usize = 0x100;

/// Its books.
#[derive(Default)]
pub(crate) struct Context {
    pub(crate) retained: usize,
    /// Devices whose memory its kernels may use.
    pub(crate) peers: HashSet<usize>,
    /// The stream with the handle 0, once it was used.
    legacy: Option<usize>,
}

/// The handle of a device's context.
pub(crate) const fn handle(device: usize) -> usize {
    FIRST_HANDLE + 0x10 * device
}

/// The device whose context that is; INVALID_CONTEXT without one.
pub(crate) fn device_of(driver: &Driver, handle: usize) -> Answer<usize> {
    let device = handle.checked_sub(FIRST_HANDLE).filter(|offset| offset % 0x10 == 0).map(|offset| offset / 0x10);
    device.filter(|device| *device < driver.options.devices).ok_or(Code::INVALID_CONTEXT)
}

/// The number of a device as C has it; INVALID_DEVICE without one.
pub(crate) fn ordinal(driver: &Driver, device: i32) -> Answer<usize> {
    usize::try_from(device).ok().filter(|device| *device < driver.options.devices).ok_or(Code::INVALID_DEVICE)
}

/// The lock, and the device whose context is current and in order.
pub(crate) fn enter(call: &Call) -> Answer<(Guard<'static, State>, usize)> {
    let (state, device) = enter_any(call)?;
    call.driver.works(device)?;
    Ok((state, device))
}

/// As [`enter`], though the device may be broken: for what frees.
pub(crate) fn enter_any(call: &Call) -> Answer<(Guard<'static, State>, usize)> {
    let device = thread::current().ok_or(Code::INVALID_CONTEXT)?;
    let state = call.driver.state.lock();
    state.is_alive(device)?;
    Ok((state, device))
}

impl State {
    /// CONTEXT_IS_DESTROYED if nobody retains the device's context.
    pub(crate) fn is_alive(&self, device: usize) -> Answer {
        if self.contexts[device].retained == 0 { Err(Code::CONTEXT_IS_DESTROYED) } else { Ok(()) }
    }

    /// The stream that a handle of the program means: 0 and 1 are the legacy default stream of the current context, 2
    /// is the thread's. INVALID_HANDLE without one, INVALID_CONTEXT if it takes a context and none is current.
    pub(crate) fn stream(&mut self, driver: &Driver, handle: usize) -> Answer<usize> {
        if handle > 2 {
            let stream = self.streams.get(&handle).filter(|stream| !stream.is_closed).ok_or(Code::INVALID_HANDLE)?;
            self.is_alive(stream.device)?;
            return Ok(handle);
        }
        let device = thread::current().ok_or(Code::INVALID_CONTEXT)?;
        self.is_alive(device)?;
        if handle == 2 {
            let is_open = |stream: &usize| self.streams.get(stream).is_some_and(|stream| !stream.is_closed);
            return Ok(thread::default_stream(device).filter(is_open).unwrap_or_else(|| {
                let stream = self.open_stream(driver, device, Kind::Blocking);
                thread::set_default_stream(device, stream);
                stream
            }));
        }
        if let Some(legacy) = self.contexts[device].legacy {
            return Ok(legacy);
        }
        let legacy = self.open_stream(driver, device, Kind::Legacy);
        self.contexts[device].legacy = Some(legacy);
        Ok(legacy)
    }

    /// As [`stream`](Self::stream), with its device, which must be in order.
    pub(crate) fn working_stream(&mut self, driver: &Driver, handle: usize) -> Answer<(usize, usize)> {
        let stream = self.stream(driver, handle)?;
        let device = self.streams[&stream].device;
        driver.works(device)?;
        Ok((stream, device))
    }

    /// Whether kernels of the device may use memory of that other one.
    pub(crate) fn may_use(&self, device: usize, other: usize) -> bool {
        device == other || self.contexts[device].peers.contains(&other)
    }
}

/// The context, retained once more.
pub(crate) fn retain(call: &Call, device: usize) -> Answer<usize> {
    call.driver.works(device)?;
    call.driver.state.lock().contexts[device].retained += 1;
    Ok(handle(device))
}

/// Retained once less. With the last one the default streams end; what else was made in the context stays in the books,
/// since it was forgotten.
pub(crate) fn release(call: &Call, device: usize) -> Answer {
    let mut state = call.driver.state.lock();
    let context = &mut state.contexts[device];
    context.retained = context.retained.checked_sub(1).ok_or(Code::INVALID_CONTEXT)?;
    if context.retained > 0 {
        return Ok(());
    }
    context.peers.clear();
    context.legacy = None;
    let is_default = |stream: &Stream| stream.device == device && !stream.is_made;
    let defaults = state.streams.iter().filter(|(_, stream)| is_default(stream)).map(|(handle, _)| *handle);
    let defaults: Vec<usize> = defaults.collect();
    defaults.into_iter().for_each(|stream| state.close_stream(stream));
    // What destroyed streams still have runs to its end, as far as it may.
    let is_busy = |state: &State| state.streams.values().any(|stream| stream.device == device && stream.is_closed);
    while is_busy(&state) && !state.controls.is_held {
        state = call.driver.changed.wait(state);
    }
    drop(state);
    settle(call.driver);
    Ok(())
}

/// Waits for all that the device has.
pub(crate) fn synchronise(call: &Call) -> Answer {
    let (mut state, device) = enter(call)?;
    state.forbid_while_capturing()?;
    drop(wait_for_all(call, state, device)?);
    Ok(())
}

/// Waits for all that the device's streams have now, and the host has seen it then. The lock is given up meanwhile.
pub(crate) fn wait_for_all<'a>(call: &Call, state: Guard<'static, State>, device: usize) -> Answer<Guard<'a, State>>
where
    'static: 'a,
{
    let streams = state.streams.values().filter(|stream| stream.device == device);
    let clocks: Vec<_> = streams.map(|stream| stream.clock.clone()).collect();
    let mut state = wait_unseen(call, state, device)?;
    clocks.iter().for_each(|clock| state.detector.host_saw(clock));
    state.memory.synchronised(device);
    Ok(state)
}

/// As [`wait_for_all`], of which the detector learns nothing: what the manual does not promise orders nothing.
pub(crate) fn wait_unseen<'a>(call: &Call, state: Guard<'static, State>, device: usize) -> Answer<Guard<'a, State>>
where
    'static: 'a,
{
    let streams = state.streams.iter().filter(|(_, stream)| stream.device == device);
    let point = |(handle, stream): (&usize, &Stream)| Point { stream: *handle, sequence: stream.tail };
    let points: Vec<Point> = streams.map(point).collect();
    call.driver.wait_until(state, device, |state| points.iter().all(|point| state.is_over(*point)))
}

/// Kernels of the current context may use memory of that other one.
pub(crate) fn enable_peer(call: &Call, other: usize, flags: u32) -> Answer {
    let other = device_of(call.driver, other)?;
    let (mut state, device) = enter(call)?;
    state.is_alive(other)?;
    if flags != 0 {
        return Err(Code::INVALID_VALUE);
    }
    if device == other {
        return Err(Code::INVALID_DEVICE);
    }
    if call.driver.options.without_peers {
        return Err(Code::PEER_ACCESS_UNSUPPORTED);
    }
    if state.contexts[device].peers.insert(other) { Ok(()) } else { Err(Code::PEER_ACCESS_ALREADY_ENABLED) }
}
