//! A buffer that becomes another one: the same memory, without a copy.

use super::Buffer;
use super::holds::both;
use super::state::Taken;
use purlin_array::layout::Layout;
use purlin_array::shape::Shape;
use purlin_async::event::Event;
use purlin_base::label::Label;
use purlin_base::status::{Error, StatusOr};

impl Buffer {
    /// Donates this buffer; the new one has its memory and becomes ready after this one and `event`, or fails with the
    /// error of either. Blocks for usage holds only. A buffer that failed before it had memory gives another one that
    /// failed like it.
    ///
    /// # Errors
    /// As [`donate`](Self::donate). `FailedPrecondition`, and this buffer is as before: the client has shut down, and
    /// `event` has not happened.
    ///
    /// # Examples
    /// ```
    /// use purlin::{Buffer, EventPromise};
    /// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
    /// # let space = client.devices()[0].default_memory_space();
    ///
    /// let (input, kernel) = (Buffer::from_slice(&[1_i32], &[1], &space)?, EventPromise::new(c"kernel"));
    /// let output = input.donate_after(&kernel.event())?;
    /// assert!(input.is_deleted() && !output.ready_event().is_ready());
    /// kernel.set_ready();
    /// assert_eq!(output.to_vec::<i32>()?, [1]);
    /// # Ok::<(), purlin::Error>(())
    /// ```
    #[track_caller]
    pub fn donate_after(&self, event: &Event) -> StatusOr<Self> {
        let ready = || {
            let event = self.0.memory_space.until_end(event, Label::new(c"definition of a buffer"))?;
            Ok(both(&self.0.ready, &event))
        };
        let (shape, layout) = (self.0.shape.clone(), self.0.layout.clone());
        self.become_other(Label::new(c"DonateAfter"), shape, layout, ready)
    }

    /// Donates this buffer; the new one has its memory, read as `shape` in `layout` (`None`: row-major). Blocks for
    /// usage holds only.
    ///
    /// # Errors
    /// `InvalidArgument`, and this buffer stays as it is: `shape.on_device_size_bytes() != self.size_bytes()`, both
    /// named; a token or a dynamic shape on either side; a layout of another rank. Otherwise as
    /// [`donate`](Self::donate).
    ///
    /// # Examples
    /// ```
    /// use purlin::{Buffer, DType, Shape};
    /// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
    /// # let space = client.devices()[0].default_memory_space();
    ///
    /// let bits = Buffer::from_slice(&[1.0_f32], &[1], &space)?.bitcast(&Shape::new(DType::U32, &[1])?, None)?;
    /// assert_eq!(bits.to_vec::<u32>()?, [0x3f80_0000]);
    /// # Ok::<(), purlin::Error>(())
    /// ```
    #[track_caller]
    pub fn bitcast(&self, shape: &Shape, layout: Option<&Layout>) -> StatusOr<Self> {
        let from = &self.0.shape;
        let is_array = |shape: &Shape| shape.dtype() != purlin_array::DType::Token && !shape.is_dynamic();
        if !is_array(from) || !is_array(shape) {
            return Err(Error::invalid_argument(format!(
                "only arrays of static shape can be bitcast, not {from} to {shape}"
            )));
        }
        if from.size_bytes() != shape.size_bytes() {
            return Err(Error::invalid_argument(format!(
                "cannot bitcast {from} of {} bytes to {shape} of {} bytes",
                from.size_bytes(),
                shape.size_bytes()
            )));
        }
        let layout = checked_layout(shape, layout)?;
        let ready = || Ok(self.0.ready.clone());
        self.become_other(Label::new(c"Bitcast"), shape.clone(), layout, ready)
    }

    /// `ready` says when the new one is; asked while this one is held.
    #[track_caller]
    fn become_other(
        &self,
        by: Label,
        shape: Shape,
        layout: Option<Box<Layout>>,
        ready: impl FnOnce() -> StatusOr<Event>,
    ) -> StatusOr<Self> {
        if !self.0.state.has_memory() && !self.is_deleted() {
            self.delete();
            // It has failed already, whatever else would have to happen.
            return Ok(Self::without_memory(shape, layout, self.memory_space(), self.0.ready.clone()));
        }
        let donation = self.donate(by)?;
        let ready = ready()?;
        let Taken { memory, uses } = donation.into_taken();
        Ok(Self::with_uses(|| shape, layout, memory, ready, uses))
    }
}

/// `layout` as a buffer keeps it.
///
/// # Errors
/// `InvalidArgument`: another rank.
pub(super) fn checked_layout(shape: &Shape, layout: Option<&Layout>) -> StatusOr<Option<Box<Layout>>> {
    let Some(layout) = layout else { return Ok(None) };
    layout.check_rank(shape)?;
    Ok((!layout.is_row_major()).then(|| Box::new(layout.clone())))
}
