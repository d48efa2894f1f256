//! Events: markers that capture a point of a stream at the call. One that was never recorded counts as complete.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::boundary::{Answer, Call};
use crate::code::Code;
use crate::context;
use crate::detector::clock::Clock;
use crate::detector::report::Kind;
use crate::detector::stamp::Stamp;
use crate::operation::{Request, Work};
use crate::state::{Refusal, State};
use crate::stream::Point;
use crate::thread;

/// No time is taken.
const DISABLE_TIMING: u32 = 2;
/// Spinning or not, timing or not, between processes or not.
const ALL_FLAGS: u32 = 7;

/// What was recorded last.
#[derive(Clone)]
struct Record {
    point: Point,
    clock: Clock,
    /// In nanoseconds, 0 until it ran.
    time: Arc<AtomicU64>,
}

/// See the module.
pub(crate) struct Event {
    device: usize,
    made: Arc<Stamp>,
    flags: u32,
    record: Option<Record>,
    /// In a capture: which, and behind how many nodes of which stream.
    pub(crate) captured: Option<(usize, usize, usize)>,
}

impl State {
    /// CAPTURED_EVENT for what an event cannot tell that was recorded in a capture.
    fn forbid_captured(&mut self, call: &Call, event: usize) -> Answer {
        let Some((capture, ..)) = self.event(call, event)?.captured else { return Ok(()) };
        self.spoil(capture);
        Err(Code::CAPTURED_EVENT)
    }

    /// The event; INVALID_HANDLE without one. Its device is in order, and its context retained.
    fn event(&mut self, call: &Call, handle: usize) -> Answer<&mut Event> {
        let device = self.events.get(&handle).ok_or(Code::INVALID_HANDLE)?.device;
        self.is_alive(device)?;
        call.driver.works(device)?;
        self.events.get_mut(&handle).ok_or(Code::INVALID_HANDLE)
    }
}

pub(crate) fn create(call: &Call, flags: u32) -> Answer<usize> {
    let (mut state, device) = context::enter(call)?;
    if flags & !ALL_FLAGS != 0 {
        return Err(Code::INVALID_VALUE);
    }
    let handle = call.driver.new_handle();
    let made = state.detector.host_stamp(call.entry.name(), thread::label());
    state.events.insert(handle, Event { device, made, flags, record: None, captured: None });
    Ok(handle)
}

/// It is gone, also if its device is broken; waits for it go on.
pub(crate) fn destroy(call: &Call, handle: usize) -> Answer {
    let mut state = call.driver.state.lock();
    let event = state.events.remove(&handle).ok_or(Code::INVALID_HANDLE)?;
    call.driver.works(event.device)
}

pub(crate) fn record(call: &Call, handle: usize, stream: usize) -> Answer {
    let mut state = call.driver.state.lock();
    let (stream, device) = state.working_stream(call.driver, stream)?;
    let of = state.event(call, handle)?.device;
    if of != device {
        let why = &format!("an event of device {of} is recorded on a stream of device {device}");
        let beside = Some((Arc::clone(&state.event(call, handle)?.made), None));
        let refusal = Refusal { kind: Kind::StrangersContext, stream: Some(stream), span: None, beside, why };
        state.report(call.entry, refusal);
        return Err(Code::INVALID_HANDLE);
    }
    if let Some(capture) = state.streams[&stream].capture {
        let captured = state.capture_record(capture, stream)?;
        state.event(call, handle)?.captured = Some(captured);
        return Ok(());
    }
    state.forbid_implicit(stream)?;
    let time = Arc::new(AtomicU64::new(0));
    let (point, _) = state.enqueue(call, stream, Request::new(Work::Record(Arc::clone(&time))))?;
    let clock = state.streams[&stream].clock.clone();
    let event = state.event(call, handle)?;
    (event.record, event.captured) = (Some(Record { point, clock, time }), None);
    Ok(())
}

pub(crate) fn query(call: &Call, handle: usize) -> Answer {
    let mut state = call.driver.state.lock();
    state.forbid_captured(call, handle)?;
    let event = state.event(call, handle)?;
    let Some(Record { point, clock, .. }) = event.record.clone() else { return Ok(()) };
    if !state.is_over(point) {
        return Err(Code::NOT_READY);
    }
    state.detector.host_saw(&clock);
    Ok(())
}

pub(crate) fn synchronise(call: &Call, handle: usize) -> Answer {
    let mut state = call.driver.state.lock();
    state.forbid_captured(call, handle)?;
    let event = state.event(call, handle)?;
    let device = event.device;
    let Some(Record { point, clock, .. }) = event.record.clone() else { return Ok(()) };
    let mut state = call.driver.wait_until(state, device, |state| state.is_over(point))?;
    state.detector.host_saw(&clock);
    state.memory.synchronised(device);
    Ok(())
}

/// The stream waits for what the event recorded last. The event may be of another device.
pub(crate) fn wait(call: &Call, stream: usize, handle: usize, flags: u32) -> Answer {
    // CU_EVENT_WAIT_EXTERNAL is 1.
    if flags > 1 {
        return Err(Code::INVALID_VALUE);
    }
    let mut state = call.driver.state.lock();
    let (stream, _) = state.working_stream(call.driver, stream)?;
    let event = state.events.get(&handle).ok_or(Code::INVALID_HANDLE)?;
    if let Some(captured) = event.captured {
        return state.capture_wait(stream, captured);
    }
    let record = event.record.clone();
    if let Some(capture) = state.streams[&stream].capture {
        if record.is_none() {
            return Ok(());
        }
        // Work outside of the capture cannot be waited for inside.
        state.spoil(capture);
        return Err(Code::STREAM_CAPTURE_ISOLATION);
    }
    let Some(Record { point, clock, .. }) = record else { return Ok(()) };
    if state.controls.ignores_wait() {
        return Ok(());
    }
    let request = Request { waits: vec![point], clock: Some(clock), ..Request::new(Work::Nothing) };
    state.enqueue(call, stream, request).map(|_| ())
}

/// Milliseconds between two records.
pub(crate) fn elapsed_ms(call: &Call, start: usize, end: usize) -> Answer<f32> {
    let mut state = call.driver.state.lock();
    let mut time = |handle| {
        let event = state.event(call, handle)?;
        if event.flags & DISABLE_TIMING != 0 {
            return Err(Code::INVALID_HANDLE);
        }
        let record = event.record.as_ref().ok_or(Code::INVALID_HANDLE)?;
        Ok(record.time.load(Ordering::Acquire))
    };
    match (time(start)?, time(end)?) {
        (0, _) | (_, 0) => Err(Code::NOT_READY),
        // A float is exact for far longer than tests run.
        (start, end) => Ok(end.wrapping_sub(start).cast_signed() as f32 / 1e6),
    }
}
