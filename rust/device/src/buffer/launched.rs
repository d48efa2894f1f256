//! Buffers that a launch writes.

use super::Buffer;
use crate::memory::MemorySpace;
use crate::raw_buffer::RawBuffer;
use purlin_array::layout::Layout;
use purlin_array::shape::Shape;
use purlin_async::event::Event;
use purlin_base::status::{Error, StatusOr};

impl Buffer {
    /// `memory` as an array that is ready when `launched` is, which is the event of a
    /// [launch](crate::Device::launch) that has this memory among its ranges. Without memory it has failed, and so has
    /// `launched`. Others may use the memory until `free`: of donated memory, what [`DonationHold::free`] has said.
    ///
    /// As [`from_raw`](Self::from_raw), at the cost of the buffer alone: the launch keeps the memory, and fails with
    /// its client.
    ///
    /// # Errors
    /// `InvalidArgument`: `memory.size_bytes() != shape.on_device_size_bytes()`, both named, or a layout of another
    /// rank.
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
            return Ok(Self::new(shape.clone(), layout, memory_space.clone(), None, launched.clone()));
        };
        if memory.size_bytes() != shape.on_device_size_bytes() {
            return Err(Error::invalid_argument(format!(
                "{shape} is {} bytes, and cannot be {memory:?}",
                shape.on_device_size_bytes()
            )));
        }
        // A launch that fails with its client is over before what it waited for.
        if free.is_ready() {
            return Ok(Self::new(shape.clone(), layout, memory.memory_space(), Some(memory), launched.clone()));
        }
        Ok(Self::with_uses(shape.clone(), layout, memory, launched.clone(), std::iter::once(free.clone()).collect()))
    }
}
