//! Buffers whose memory a launch writes.

use super::Buffer;
use crate::memory::MemorySpace;
use crate::raw_buffer::RawBuffer;
use purlin_array::layout::Layout;
use purlin_array::shape::Shape;
use purlin_async::event::Event;
use purlin_base::status::{Error, StatusOr};

impl Buffer {
    /// A buffer over `memory` that is ready when `launched` is. `launched` is the event of a
    /// [launch](crate::Device::launch) that has this memory among its ranges. Without memory the buffer, in
    /// `memory_space`, has failed, and `launched` must have failed, too. Earlier uses of the memory may last until
    /// `free`: for donated memory, that is the event of [`DonationHold::free`].
    ///
    /// It is as [`from_raw`](Self::from_raw), but costs the buffer alone: the launch itself keeps the memory alive, and
    /// fails if its client ends.
    ///
    /// # Errors
    /// `InvalidArgument`: `memory.size_bytes() != shape.on_device_size_bytes()` (the message names both), or the layout
    /// has another rank than the shape.
    ///
    /// [`DonationHold::free`]: crate::DonationHold::free
    pub fn launched(
        shape: &Shape,
        layout: Option<&Layout>,
        memory_space: &MemorySpace,
        memory: Option<RawBuffer>,
        launched: &Event,
        free: &Event,
    ) -> StatusOr<Self> {
        let layout = super::donate::checked_layout(shape, layout)?;
        let Some(memory) = memory else {
            return Ok(Self::without_memory(shape.clone(), layout, memory_space.clone(), launched.clone()));
        };
        if memory.size_bytes() != shape.on_device_size_bytes() {
            return Err(Error::invalid_argument(format!(
                "{shape} is {} bytes, and cannot be {memory:?}",
                shape.on_device_size_bytes()
            )));
        }
        // If its client ends, a launch can fail before its dependencies are terminal. So `free` remains a pending use,
        // unless it is terminal already.
        if free.is_ready() {
            return Ok(Self::new(|| shape.clone(), layout, memory, launched.clone()));
        }
        Ok(Self::with_uses(|| shape.clone(), layout, memory, launched.clone(), std::iter::once(free.clone()).collect()))
    }
}
