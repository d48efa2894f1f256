//! Copies of buffers: to other memory spaces, and into memory that another buffer gives.

#![allow(unsafe_code, reason = "copies are ordered by their events")]

use super::{Buffer, UsageHold};
use crate::device::Device;
use crate::memory::MemorySpace;
use crate::raw_buffer::RawBuffer;
use purlin_async::event::Event;
use purlin_base::label::Label;
use purlin_base::status::{Error, StatusOr};
use purlin_base::sync::PinnedArc;

impl Buffer {
    /// A new buffer in the default memory space of `device` that becomes ready after this one and the copy, or fails
    /// with this one's error. Never blocks.
    ///
    /// # Errors
    /// As [`copy_to_memory_space`](Self::copy_to_memory_space).
    ///
    /// # Examples
    /// ```
    /// use std::sync::Arc;
    ///
    /// use purlin::host::HostBackend;
    /// use purlin::{Buffer, Client, ClientOptions};
    ///
    /// let options = ClientOptions { device_count: 2, ..Default::default() };
    /// let devices = Client::new(&options, Arc::new(HostBackend::new()))?.devices();
    /// let buffer = Buffer::from_slice(&[1.0_f32, 2.0], &[2], &devices[0].default_memory_space())?;
    /// let copy = buffer.copy_to_device(&devices[1])?;
    /// assert_eq!(copy.device(), devices[1]);
    /// assert_eq!(copy.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), purlin::Error>(())
    /// ```
    #[track_caller]
    pub fn copy_to_device(&self, device: &Device) -> StatusOr<Self> {
        self.copy_to_memory_space(&device.default_memory_space())
    }

    /// A new buffer in `memory_space`, which may be this one's, that becomes ready after this one and the copy, or
    /// fails with this one's error. Blocks only while this one is being donated.
    ///
    /// # Errors
    /// `InvalidArgument`: this one is gone, or another client's space. `ResourceExhausted`: no memory there.
    ///
    /// # Examples
    /// ```
    /// use purlin::Buffer;
    /// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
    /// # let space = client.devices()[0].default_memory_space();
    ///
    /// let pinned = client.devices()[0].memory_space("pinned_host")?;
    /// let copy = Buffer::from_slice(&[7_u16], &[1], &space)?.copy_to_memory_space(&pinned)?;
    /// assert_eq!((copy.memory_space(), copy.to_vec::<u16>()?), (pinned, vec![7]));
    /// # Ok::<(), purlin::Error>(())
    /// ```
    #[track_caller]
    pub fn copy_to_memory_space(&self, memory_space: &MemorySpace) -> StatusOr<Self> {
        self.check_client(memory_space)?;
        if !self.0.state.has_memory() && !self.is_deleted() {
            let (shape, layout) = (self.0.shape.clone(), self.0.layout.clone());
            return Ok(Self::without_memory(shape, layout, memory_space.clone(), self.0.ready.clone()));
        }
        let hold = self.usage_hold()?;
        let options = crate::AllocOptions { label: Label::new(c"copy"), ..Default::default() };
        let destination = RawBuffer::allocate_with(memory_space, self.size_bytes(), &options)?;
        let copied = copy(hold, &destination, &[]);
        Ok(Self::new(|| self.0.shape.clone(), self.0.layout.clone(), destination, copied))
    }

    /// Donates `destination`; the new buffer is a copy of this one in its memory, and becomes ready after both and the
    /// copy, or fails with this one's error. Everything is checked before `destination` is touched. Blocks for usage
    /// holds only.
    ///
    /// # Errors
    /// `InvalidArgument`, and `destination` stays as it is: another shape, layout or client; the same buffer; memory
    /// that may not be written; either is gone; `destination` has an external reference. This buffer's error, or that
    /// of `destination`, if it never had memory.
    #[track_caller]
    pub fn copy_into(&self, destination: &Self) -> StatusOr<Self> {
        self.check_client(&destination.0.memory_space)?;
        if PinnedArc::ptr_eq(&self.0, &destination.0) {
            return Err(Error::invalid_argument(format!("cannot copy {self:?} into itself")));
        }
        let (from, to) = (&self.0, &destination.0);
        if from.shape != to.shape || from.layout != to.layout {
            return Err(Error::invalid_argument(format!(
                "cannot copy {} in layout {} into {} in layout {}: shapes and layouts must be equal",
                from.shape,
                self.layout(),
                to.shape,
                destination.layout()
            )));
        }
        // One order for all, so that two copies into one another's sources do not wait for each other.
        let is_first = self.identity() < destination.identity();
        let hold = if is_first { Some(self.usage_hold()?) } else { None };
        let donation = destination.donate(c"CopyInto")?;
        let hold = match hold {
            Some(hold) => hold,
            None => self.usage_hold()?,
        };
        if !donation.memory().is_mutable() {
            return Err(Error::invalid_argument(format!(
                "{destination:?} may not be written: it was imported read-only"
            )));
        }
        let free = donation.free();
        let memory = donation.confirm();
        let copied = copy(hold, &memory, &[free]);
        Ok(Self::new(|| from.shape.clone(), from.layout.clone(), memory, copied))
    }

    fn check_client(&self, memory_space: &MemorySpace) -> Result<(), Error> {
        if memory_space.same_client(&self.0.memory_space) {
            return Ok(());
        }
        Err(Error::invalid_argument(format!("cannot copy {self:?} to {memory_space} of another client")))
    }
}

/// Copies all that is held to `destination`, after the array is ready and `after`.
#[track_caller]
fn copy(hold: UsageHold, destination: &RawBuffer, after: &[Event]) -> Event {
    let ready = hold.ready_event();
    let copied = match after {
        // SAFETY: the destination has no other user, and had none since `after`; the source does not change once it is
        // ready, and code that writes through a raw alias of it has promised (RawBuffer) that nothing reads it
        // meanwhile.
        [] => unsafe { hold.memory().copy_to(destination, std::slice::from_ref(&ready)) },
        // SAFETY: as above.
        _ => unsafe { hold.memory().copy_to(destination, &[&[ready], after].concat()) },
    };
    hold.release_after_operation(&copied);
    copied
}
