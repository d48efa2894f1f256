//! What a GPU did when, for traces: each submission is a span on a lane of its stream, with the GPU's own times.
//!
//! While a trace is recorded, events with times are recorded before and behind the work of a submission; else there are
//! none. The driver says how far apart two events are. So one of them, the *anchor*, is recorded on an idle stream and
//! waited for at once: its time on the host is known to within that wait, and all others lie so far from it. So what
//! one anchor serves is in the GPU's order, and beside spans of the host it is as right as the anchor. Clocks drift
//! apart, and the driver counts in floats, so an anchor serves for a second.
//!
//! A span has names and numbers alone, so nothing of it is kept for it: modules may be unloaded, and buffers freed.
//! Where the driver refuses a call that is made for a trace, a span is missing, and the operation goes on.

#![allow(unsafe_code, reason = "the driver is called")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use cudarc::driver::sys::CUstream;
use purlin_async::trace::{DeviceLane, Value, is_recording};
use purlin_base::sync::Mutex;
use purlin_device::backend::{Command, CommandList};

use crate::driver::Driver;
use crate::event_pool::{EventPool, Recorded};
use crate::gpu::Gpu;
use crate::operation_name::OperationName;
use crate::stream::{Content, NON_BLOCKING, Role};

/// So long an anchor serves.
const ANCHOR_SERVES: Duration = Duration::from_secs(1);

/// See the module.
pub(crate) struct Tracer {
    lanes: Vec<DeviceLane>,
    events: Arc<EventPool>,
    clock: Mutex<Clock>,
}

#[derive(Default)]
struct Clock {
    /// Made by the first anchor.
    stream: Option<Stream>,
    anchor: Option<Arc<Anchor>>,
}

struct Stream(CUstream);

// SAFETY: handles of the driver may be used from any thread.
unsafe impl Send for Stream {}

struct Anchor {
    event: Recorded,
    at: Instant,
}

/// When the work of a submission begins and ends, and what it is.
pub(crate) struct Times {
    begin: Recorded,
    end: Recorded,
    content: Option<(&'static str, Value)>,
}

impl Tracer {
    /// That of a client's device of that number.
    pub(crate) fn new(driver: &'static Driver, index: usize) -> Self {
        let lanes = Role::ALL.iter().map(|role| DeviceLane::new(format!("cuda:{index}, {}", role.name()))).collect();
        Self { lanes, events: Arc::new(EventPool::with_times(driver)), clock: Mutex::default() }
    }

    /// Events for a submission, if a trace is being recorded. The GPU's context is current.
    pub(crate) fn times(&self, content: Content<'_>) -> Option<Times> {
        if is_recording() { self.new_times(content) } else { None }
    }

    #[cold]
    fn new_times(&self, content: Content<'_>) -> Option<Times> {
        let content = match content {
            Content::Bytes(bytes) => Some(("bytes", Value::Unsigned(bytes as u64))),
            Content::Commands(list) => {
                Some(kernels(list)).filter(|names| !names.is_empty()).map(|names| ("kernels", Value::Text(names)))
            }
            Content::Nothing => None,
        };
        Some(Times { begin: self.events.take().ok()?, end: self.events.take().ok()?, content })
    }

    /// Tells what is over. Blocks for as long as an idle stream needs for nothing.
    #[cold]
    pub(crate) fn tell(&self, gpu: &Gpu, role: Role, name: &OperationName, times: Times) {
        let Some(lane) = self.lanes.get(role as usize).filter(|_| is_recording()) else { return };
        let Ok(_current) = gpu.enter() else { return };
        let Some(anchor) = self.anchor(gpu) else { return };
        let [Some(begin), Some(end)] = [&times.begin, &times.end].map(|event| anchor.time_of(gpu, event)) else {
            return;
        };
        let (name, mut values) = name.span();
        values.extend(times.content);
        lane.span(name, begin..end, values);
    }

    /// One that serves. `None`: the driver has none.
    fn anchor(&self, gpu: &Gpu) -> Option<Arc<Anchor>> {
        let mut clock = self.clock.lock();
        if let Some(anchor) = clock.anchor.as_ref().filter(|anchor| anchor.at.elapsed() < ANCHOR_SERVES) {
            return Some(Arc::clone(anchor));
        }
        let stream = match &clock.stream {
            Some(stream) => stream.0,
            None => {
                let mut stream = std::ptr::null_mut();
                // SAFETY: the driver writes a handle, which is destroyed in destroy().
                if unsafe { (gpu.api().base.create_stream)(&mut stream, NON_BLOCKING) } != 0 {
                    return None;
                }
                clock.stream.insert(Stream(stream)).0
            }
        };
        let event = self.events.take().ok()?;
        let before = Instant::now();
        // SAFETY: both handles are the driver's, and stay until destroy().
        let code = unsafe { (gpu.api().base.record_event)(event.handle(), stream) };
        // SAFETY: as above.
        if code != 0 || unsafe { (gpu.api().base.synchronize_stream)(stream) } != 0 {
            return None;
        }
        let anchor = Arc::new(Anchor { event, at: before + before.elapsed() / 2 });
        clock.anchor = Some(Arc::clone(&anchor));
        Some(anchor)
    }

    /// Nothing is traced any more. The GPU's context is current.
    pub(crate) fn destroy(&self, gpu: &Gpu) {
        let Clock { stream, anchor } = std::mem::take(&mut *self.clock.lock());
        drop(anchor);
        self.events.destroy();
        if let Some(stream) = stream {
            // SAFETY: it is ours, and nothing has it any more. What fails here has nobody to be told.
            unsafe { (gpu.api().base.destroy_stream)(stream.0) };
        }
    }
}

/// The names of the kernels in a list, in its order; of many, the first.
fn kernels(list: &CommandList) -> String {
    /// More tell a reader nothing.
    const MOST: usize = 16;
    let names = || {
        list.commands().iter().filter_map(|command| match command {
            Command::Kernel(command) => Some(command.kernel().name()),
            _ => None,
        })
    };
    let mut text = names().take(MOST).collect::<Vec<_>>().join(", ");
    let others = names().count().saturating_sub(MOST);
    if others > 0 {
        text += &format!(" and {others} more");
    }
    text
}

impl Times {
    /// The work is enqueued behind this. False: the driver refuses.
    pub(crate) fn begin(&self, gpu: &Gpu, stream: CUstream) -> bool {
        // SAFETY: both handles are the driver's, and stay while these times and the GPU do.
        unsafe { (gpu.api().base.record_event)(self.begin.handle(), stream) == 0 }
    }

    /// The work is enqueued. False: the driver refuses.
    pub(crate) fn end(&self, gpu: &Gpu, stream: CUstream) -> bool {
        // SAFETY: as in begin().
        unsafe { (gpu.api().base.record_event)(self.end.handle(), stream) == 0 }
    }
}

impl Anchor {
    /// The host's time of an event that has happened, before or after this one.
    fn time_of(&self, gpu: &Gpu, event: &Recorded) -> Option<Instant> {
        let mut milliseconds = 0.0_f32;
        // SAFETY: the driver writes a number; the handles stay while the records do.
        let code = unsafe { (gpu.api().times?.elapsed)(&mut milliseconds, self.event.handle(), event.handle()) };
        if code != 0 {
            return None;
        }
        let apart = Duration::try_from_secs_f64(f64::from(milliseconds.abs()) / 1e3).ok()?;
        if milliseconds < 0.0 { self.at.checked_sub(apart) } else { self.at.checked_add(apart) }
    }
}
