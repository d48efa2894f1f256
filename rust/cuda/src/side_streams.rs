//! Streams of a GPU that wait for work of others, such as a `CUevent` that another library has recorded.
//!
//! An import is nothing but such a wait, with a record behind it: an event that others may record anew or destroy
//! becomes a submission like any other, for which streams wait and which the poller sees end.
//!
//! A stream does one thing after another, so two imports on one stream would be in an order that no caller has asked
//! for. Where the first waits for work that others enqueue only when the second is over, neither would end. So each
//! import has a stream to itself, a side stream, until it is over; then the side stream is used again. There are as
//! many side streams as imports were pending at once.

#![allow(unsafe_code, reason = "the driver is called")]

use std::sync::{Arc, Weak};

use purlin_base::StatusOr;
use purlin_base::sync::Mutex;

use crate::driver::Driver;
use crate::gpu::Gpu;
use crate::stream::Stream;

/// See the module.
pub(crate) struct SideStream {
    driver: &'static Driver,
    /// No other side stream of the GPU has had it.
    number: u32,
    stream: Stream,
}

/// All side streams of a GPU.
#[derive(Default)]
pub(crate) struct SideStreams(Mutex<State>);

#[derive(Default)]
struct State {
    made: u32,
    idle: Vec<Arc<SideStream>>,
    /// Each has an import, or will have one in a moment.
    busy: Vec<Arc<SideStream>>,
}

/// A side stream that its import has to itself until that is over. Dropped before, the side stream may have something
/// of which nothing tells the end, and is used no more.
#[must_use]
pub(crate) struct Lease {
    /// `None` once it is given back.
    gpu: Option<Weak<Gpu>>,
    number: u32,
}

impl SideStream {
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }
}

impl Drop for SideStream {
    fn drop(&mut self) {
        if self.driver.is_here() {
            // SAFETY: it is ours, and nothing has it any more; what it still waits for is waited for. What fails here
            // has nobody to be told.
            unsafe { (self.driver.api.base.destroy_stream)(self.stream.handle()) };
        }
    }
}

impl SideStreams {
    /// A side stream that nothing is pending on. The GPU's context is current.
    ///
    /// # Errors
    /// What the driver says: there is no stream.
    pub(crate) fn take(gpu: &Arc<Gpu>) -> StatusOr<(Arc<SideStream>, Lease)> {
        let mut state = gpu.side_streams.0.lock();
        let side_stream = match state.idle.pop() {
            Some(side_stream) => side_stream,
            None => {
                state.made += 1;
                let number = state.made;
                drop(state);
                let side_stream = SideStream { driver: gpu.driver, number, stream: Stream::new(gpu.api())? };
                state = gpu.side_streams.0.lock();
                Arc::new(side_stream)
            }
        };
        state.busy.push(Arc::clone(&side_stream));
        let number = side_stream.number;
        Ok((side_stream, Lease { gpu: Some(Arc::downgrade(gpu)), number }))
    }

    /// Those that may have an import.
    pub(crate) fn busy(&self) -> Vec<Arc<SideStream>> {
        self.0.lock().busy.clone()
    }

    fn leave(&self, number: u32) -> Option<Arc<SideStream>> {
        let mut state = self.0.lock();
        let at = state.busy.iter().position(|side_stream| side_stream.number == number)?;
        Some(state.busy.swap_remove(at))
    }

    /// Destroys all. What is pending never ends: its end is dropped.
    pub(crate) fn destroy(&self) {
        let side_streams = std::mem::take(&mut *self.0.lock());
        drop(side_streams);
    }
}

impl Lease {
    /// The import is over: the side stream is for others.
    pub(crate) fn give_back(mut self) {
        if let Some(gpu) = self.take()
            && let Some(side_stream) = gpu.side_streams.leave(self.number)
        {
            gpu.side_streams.0.lock().idle.push(side_stream);
        }
    }

    /// The GPU, unless it is gone or this was given back.
    fn take(&mut self) -> Option<Arc<Gpu>> {
        self.gpu.take().and_then(|gpu| gpu.upgrade())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // With the GPU all are gone.
        if let Some(gpu) = self.take() {
            drop(gpu.side_streams.leave(self.number));
        }
    }
}
