//! Host memory that holds an array, and how its elements are copied to a device's memory in a layout.

#![allow(unsafe_code, reason = "host memory is read by address")]

use std::panic::Location;

use super::Buffer;
use super::donate::checked_layout;
use crate::backend::{HostSource, Operation};
use crate::memory::MemorySpace;
use crate::raw_buffer::{CopyOrder, RawBuffer};
use purlin_array::layout::Layout;
use purlin_array::shape::Shape;
use purlin_array::strided::{HostArray, StridedPlan};
use purlin_async::event::Event;
use purlin_base::fault::{self, Site};
use purlin_base::status::{Error, StatusOr};

/// Host memory that holds an array, checked against the layout that it is to have on the device.
pub(crate) struct ArraySource<'a> {
    pub(super) data: *const u8,
    shape: &'a Shape,
    /// `None`: dense, row-major, whole bytes.
    array: Option<&'a HostArray>,
    layout: Option<Box<Layout>>,
    /// The bytes on the host are those on the device.
    pub(super) is_dense: bool,
}

impl<'a> ArraySource<'a> {
    pub(crate) fn new(data: *const u8, array: &'a HostArray, layout: Option<&Layout>) -> StatusOr<Self> {
        let shape = array.shape();
        let layout = checked_layout(shape, layout)?;
        Self::check_pointer(data, shape)?;
        let is_dense = match &layout {
            Some(layout) => array.is_dense(layout),
            None => array.is_row_major(),
        };
        let is_dense = is_dense && !shape.dtype().is_sub_byte();
        Ok(Self { data, shape, array: Some(array), layout, is_dense })
    }

    /// A dense, row-major array whose elements are whole bytes.
    #[inline]
    pub(super) fn dense(data: *const u8, shape: &'a Shape) -> StatusOr<Self> {
        Self::check_pointer(data, shape)?;
        Ok(Self { data, shape, array: None, layout: None, is_dense: true })
    }

    fn check_pointer(data: *const u8, shape: &Shape) -> Result<(), Error> {
        if data.is_null() && shape.element_count() > 0 {
            return Err(Error::invalid_argument(format!(
                "the host pointer for the {} bytes of {shape} is null",
                shape.host_size_bytes()
            )));
        }
        Ok(())
    }

    pub(super) fn shape(&self) -> &'a Shape {
        self.shape
    }

    /// The buffer of which `memory` has the bytes once `copied` has happened.
    pub(super) fn into_buffer(self, memory: RawBuffer, copied: Event) -> Buffer {
        Buffer::new(|| self.shape.clone(), self.layout, memory, copied)
    }

    /// Whether a device can use the bytes as they are.
    pub(super) fn can_be_aliased(&self, memory_space: &MemorySpace) -> bool {
        let alignment_bytes = memory_space.properties().import_alignment_bytes;
        self.is_dense && self.shape().element_count() > 0 && self.data.addr().is_multiple_of(alignment_bytes)
    }

    /// Starts to copy all elements to `memory`.
    ///
    /// # Safety
    /// As [`Buffer::from_host_array`]; `memory` is new, and has no other user.
    #[track_caller]
    pub(crate) unsafe fn start(&self, memory: &RawBuffer, caller_waits: bool) -> Event {
        let size_bytes = self.shape().size_bytes();
        if self.is_dense || size_bytes == 0 {
            // SAFETY: the caller's promises; dense bytes begin at the first element.
            return unsafe {
                memory.copy_from_host_ordered(
                    self.data,
                    0,
                    size_bytes,
                    CopyOrder { dependencies: &[], caller_waits, location: Location::caller() },
                )
            };
        }
        let row_major;
        let layout = match self.layout.as_deref() {
            Some(layout) => layout,
            None => {
                row_major = Layout::row_major(self.shape().rank());
                &row_major
            }
        };
        let array = self.array.expect("an array without a description is dense");
        let plan = match StridedPlan::new(array, layout) {
            Ok(plan) => plan,
            Err(error) => return Event::from_error(error),
        };
        // SAFETY: the caller's promises.
        unsafe { gather(self.data, plan, memory, caller_waits) }
    }
}

/// Moves strided elements to `memory`: by its backend, or by way of a block of the host's.
///
/// # Safety
/// As [`ArraySource::start`].
#[track_caller]
unsafe fn gather(data: *const u8, plan: StridedPlan, memory: &RawBuffer, caller_waits: bool) -> Event {
    let order = CopyOrder { dependencies: &[], caller_waits, location: Location::caller() };
    if memory.space().properties().has_strided_work() {
        // SAFETY: the caller's promise, of all elements of the plan.
        let from = unsafe { HostSource::new(data) };
        return memory.run(|| Operation::gather(from, plan, memory.whole_range()), order);
    }
    let size_bytes = memory.size_bytes();
    let mut staged = match staging(size_bytes) {
        Ok(staged) => staged,
        Err(error) => return Event::from_error(error),
    };
    let gathered = {
        // SAFETY: the caller's promise holds at least until this call returns.
        unsafe { plan.gather(data, staged.as_mut_ptr(), plan.elements()) };
        staged
    };
    // SAFETY: the block lives until the copy is over: the waiter below keeps it.
    let copied = unsafe { memory.copy_from_host_ordered(gathered.as_ptr(), 0, size_bytes, order) };
    copied.on_ready(move |_outcome| drop(gathered));
    copied
}

/// A block of the host's, of zeros.
///
/// # Errors
/// `ResourceExhausted`: there is not so much.
pub(super) fn staging(size_bytes: usize) -> StatusOr<Vec<u8>> {
    fault::point(Site::Stage)?;
    let mut block = Vec::new();
    block.try_reserve_exact(size_bytes).map_err(|_| no_staging(size_bytes))?;
    block.resize(size_bytes, 0);
    Ok(block)
}

pub(super) fn no_staging(size_bytes: usize) -> Error {
    Error::resource_exhausted(format!("no host memory for a copy of {size_bytes} bytes"))
}
