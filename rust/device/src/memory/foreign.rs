//! Foreign memory: where it is, and how to notify its owner that it is no longer used.

#![allow(unsafe_code, reason = "foreign memory is known by its address; its owner's type is erased")]

use std::ptr::NonNull;
use std::sync::Arc;

use crate::backend::Extent;
use purlin_async::event::Event;
use purlin_base::label::Label;
use purlin_base::panics::contained;
use purlin_base::slab::SlabBox;

/// Foreign memory.
pub(crate) trait Foreign: Send + Sync {
    /// Where it is.
    fn extent(&self) -> &dyn Extent;
}

/// Whose memory it is.
pub(crate) trait Owner: Send + Sync + 'static {
    /// The memory is no longer used.
    fn take_back(self);
}

/// Called once, when imported memory is no longer used: before the drop of the last use returns, unless that is itself
/// called, more than 32 deep, by callbacks of Purlin's; then when they have returned.
pub type Release = Box<dyn FnOnce() + Send + Sync>;

/// An owner that is notified by a call.
pub(crate) struct Notified<F: FnOnce() + Send + Sync + 'static>(pub(crate) F);

impl<F: FnOnce() + Send + Sync + 'static> Owner for Notified<F> {
    fn take_back(self) {
        (self.0)();
    }
}

/// See the module. The owner stands in place: one block of memory, whatever it is.
pub(crate) struct Imported<O: Owner> {
    extent: ForeignExtent,
    owner: Option<O>,
}

/// What the backend has made of the memory.
enum ForeignExtent {
    Made(Arc<dyn Extent>),
    /// Nothing.
    InPlace(InPlace),
    /// The end has begun.
    Gone,
}

/// Memory that device and host reach at its own address.
struct InPlace(NonNull<u8>);

// SAFETY: the caller that imports memory promises that any thread may use it.
unsafe impl Send for InPlace {}
// SAFETY: as above; a shared reference gives away only the address.
unsafe impl Sync for InPlace {}

impl Extent for InPlace {
    fn address(&self) -> usize {
        self.0.as_ptr().expose_provenance()
    }

    fn host_address(&self) -> Option<NonNull<u8>> {
        Some(self.0)
    }
}

impl<O: Owner> Imported<O> {
    /// Memory at `address`, of which the backend has made `extent`.
    pub(crate) fn new(address: NonNull<u8>, extent: Option<Arc<dyn Extent>>, owner: Option<O>) -> Self {
        let extent = extent.map_or(ForeignExtent::InPlace(InPlace(address)), ForeignExtent::Made);
        Self { extent, owner }
    }

    /// In memory of its own.
    pub(crate) fn boxed(self) -> SlabBox<dyn Foreign> {
        let own = SlabBox::into_raw(SlabBox::new(self));
        // SAFETY: it is that box's.
        unsafe { SlabBox::from_raw(own as NonNull<dyn Foreign>) }
    }
}

impl<O: Owner> Foreign for Imported<O> {
    fn extent(&self) -> &dyn Extent {
        match &self.extent {
            ForeignExtent::Made(extent) => &**extent,
            ForeignExtent::InPlace(extent) => extent,
            ForeignExtent::Gone => unreachable!("nobody refers to what is being dropped"),
        }
    }
}

impl<O: Owner> Drop for Imported<O> {
    fn drop(&mut self) {
        // First the backend forgets the memory, then its owner may.
        self.extent = ForeignExtent::Gone;
        if let Some(owner) = self.owner.take() {
            // As a waiter, because it may release other memory, whose owner does too, and so on: then they take turns,
            // and the stack stays flat.
            Event::ready().on_ready(move |_outcome| {
                contained("release of imported memory", Label::default, || owner.take_back());
            });
        }
    }
}
