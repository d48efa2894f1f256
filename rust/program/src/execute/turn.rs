//! A run's turn in its execution stream.
//!
//! A stream is an event for each number: it is ready after the last run with that number. A run exchanges it for one of
//! its own, and begins after the event from before. With several devices, a call has one turn for all of them, so runs
//! that wait for each other's collectives are in the same order on each device.

use super::Execution;
use purlin_async::event::{Event, EventPromise, after_all};
use purlin_device::Device;

/// A place in the order of a stream. A call that starts nothing must end it, too.
pub(super) struct Turn {
    device: Device,
    stream: usize,
    before: Event,
    over: EventPromise,
}

impl Turn {
    /// The turn after all that were taken before.
    pub(super) fn take(device: &Device, stream: i64) -> Self {
        // One stream for each number.
        let stream = stream as usize;
        let over = EventPromise::guarding(c"execution stream");
        let before = device.execution_streams().exchange(stream, over.event());
        Self { device: device.clone(), stream, before, over }
    }

    /// Ready when the turn begins. It does not fail.
    pub(super) fn before(&self) -> &Event {
        &self.before
    }

    /// The turn ends when these runs are over, whether they succeed or fail.
    pub(super) fn end_after(self, executions: &[Execution]) {
        let Self { device, stream, before, over } = self;
        let mut events: Vec<Event> = executions.iter().map(|execution| execution.done.clone()).collect();
        events.push(before);
        after_all(&events).on_ready(move |_outcome| {
            device.execution_streams().forget_if_last(stream, &over.event());
            over.set_ready();
        });
    }
}
