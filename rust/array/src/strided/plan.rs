//! What is moved: the loops of an array, and the boxes of them that a range of its elements falls apart into.
//!
//! Elements are numbered in the order of the device. The loops go from the device's contiguous dimension outward;
//! dimensions with one entry are left out, and two that are one on the host too (the outer steps over just all of the
//! inner) are joined, so a dense array is one loop. A range of numbers is at most two boxes per loop: a beginning that
//! does not fill the next loop, whole steps, an end.

#![allow(unsafe_code, reason = "elements are moved by address")]

use std::ops::Range;

use smallvec::SmallVec;

use crate::layout::Layout;
use crate::strided::host_array::HostArray;
use crate::strided::kernel::{Dim, Ends, across, move_box};
use crate::strided::narrow::move_narrow;
use crate::strided::pack::Packing;
use crate::strided::tile;
use purlin_base::status::StatusOr;

/// How the elements of one [`HostArray`] are put into one layout. Cheap to make, and good for any number of arrays of
/// that description.
///
/// A range of elements is numbers in the device's order, `usize` as the positions in a slice. Where several elements
/// share a byte, it begins on a byte and ends on one, or at the end; [`pieces`](Self::pieces) are such ranges.
///
/// ```
/// use purlin::{DType, HostArray, Layout, Shape, StridedPlan};
///
/// let nibbles = HostArray::new(&Shape::new(DType::U4, &[4])?, None)?;
/// let plan = StridedPlan::new(&nibbles, &Layout::row_major(1))?;
/// let (host, mut device) = ([1_u8, 2, 3, 4], [0_u8; 2]);
/// // SAFETY: both have the bytes that the plan reads and writes.
/// unsafe { plan.gather(host.as_ptr(), device.as_mut_ptr(), plan.elements()) };
/// assert_eq!(device, [0x21, 0x43], "two elements to a byte");
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct StridedPlan {
    dims: Dims,
    /// Bytes of an element on the host, and on the device before it is packed.
    element_bytes: usize,
    packing: Option<Packing>,
    /// At most `i64::MAX`.
    element_count: usize,
}

type Dims = SmallVec<[Dim; 8]>;

impl StridedPlan {
    /// The plan for moving `array` to a device's memory in `layout` and back.
    ///
    /// # Errors
    /// `InvalidArgument`: a layout of another rank.
    #[track_caller]
    pub fn new(array: &HostArray, layout: &Layout) -> StatusOr<Self> {
        let shape = array.shape();
        layout.check_rank(shape)?;
        let element_bytes = shape.dtype().host_byte_width();
        let mut dims = Dims::new();
        let mut device_stride = element_bytes;
        for &axis in layout.minor_to_major() {
            let (count, stride) = (shape.dims()[axis as usize] as usize, array.byte_strides()[axis as usize] as isize);
            if count == 1 || shape.element_count() == 0 {
                continue;
            }
            match dims.last_mut() {
                Some(inner) if inner.host_stride.checked_mul(inner.count as isize) == Some(stride) => {
                    inner.count *= count
                }
                _ => dims.push(Dim { count, host_stride: stride, device_stride }),
            }
            device_stride *= count;
        }
        let packing = Packing::of(shape.dtype());
        Ok(Self { dims, element_bytes, packing, element_count: shape.element_count() as usize })
    }

    /// Number of elements.
    #[must_use]
    pub fn element_count(&self) -> i64 {
        self.element_count as i64
    }

    /// The range of all elements.
    #[must_use]
    pub fn elements(&self) -> Range<usize> {
        0..self.element_count
    }

    /// The bytes of those elements in the device's memory, from the array's first.
    #[must_use]
    pub fn device_bytes(&self, elements: &Range<usize>) -> Range<usize> {
        match self.packing {
            None => elements.start * self.element_bytes..elements.end * self.element_bytes,
            Some(packing) => {
                let per_byte = packing.elements_per_byte();
                elements.start / per_byte..elements.end.div_ceil(per_byte)
            }
        }
    }

    /// Ranges of elements, one after another, that together are the array: to be moved in any order, or by several
    /// threads at once. Each has about `target_bytes` bytes of the host, and more where the host's order is so
    /// different that smaller pieces would read each cache line several times. An empty array has no pieces.
    #[must_use]
    pub fn pieces(&self, target_bytes: usize) -> impl ExactSizeIterator<Item = Range<usize>> + use<> {
        let (count, step) = (self.element_count, self.piece_elements(target_bytes));
        (0..count.div_ceil(step)).map(move |index| index * step..count.min((index + 1).saturating_mul(step)))
    }

    /// A whole number of steps of a loop, so that a piece is few boxes, and of tiles if it is transposed; at least 1.
    fn piece_elements(&self, target_bytes: usize) -> usize {
        let elements_before = |dim: &Dim| dim.device_stride / self.element_bytes;
        let target = (target_bytes / self.element_bytes.max(1)).max(1);
        let whole = self.dims.iter().map(elements_before).filter(|&elements| elements <= target).max().unwrap_or(1);
        let near = across(&self.dims).map_or(1, |outer| {
            let near = &self.dims[outer + 1];
            elements_before(near) * near.count.min(tile::SIDE_BYTES / self.element_bytes)
        });
        let step = target / whole * whole;
        let step = step.checked_next_multiple_of(near).unwrap_or(step);
        // A step that cannot be rounded up is more than the array has.
        step.checked_next_multiple_of(self.packing.map_or(1, Packing::elements_per_byte)).unwrap_or(step)
    }

    /// Moves the elements of that range from the host's order to the device's.
    ///
    /// # Panics
    /// `elements` is no range of this array, or does not begin and end on bytes.
    ///
    /// # Safety
    /// `host` is the address of element `[0, 0, ...]`; the elements of that range, which lie in the
    /// [extent](HostArray::extent), are readable, and nothing writes them meanwhile. `device` is the address of the
    /// range's first byte in the device's order; [`device_bytes`](Self::device_bytes)`(&elements).len()` bytes from
    /// there are writable, and nothing else touches them. The two are disjoint. For no elements, both may be null.
    pub unsafe fn gather(&self, host: *const u8, device: *mut u8, elements: Range<usize>) {
        self.check(&elements);
        if elements.is_empty() {
            return; // Then the addresses may be null.
        }
        // SAFETY: the caller's promise.
        unsafe { self.move_range::<true>(Ends { host: host.cast_mut(), device }, elements) };
    }

    /// Moves the elements of that range from the device's order to the host's. The host's bytes between elements stay
    /// as they are.
    ///
    /// # Panics
    /// As [`gather`](Self::gather).
    ///
    /// # Safety
    /// The array is [writable](HostArray::check_writable). `host` and `device` are as in [`gather`](Self::gather), with
    /// reading and writing exchanged.
    pub unsafe fn scatter(&self, device: *const u8, host: *mut u8, elements: Range<usize>) {
        self.check(&elements);
        if elements.is_empty() {
            return; // Then the addresses may be null.
        }
        // SAFETY: the caller's promise.
        unsafe { self.move_range::<false>(Ends { host, device: device.cast_mut() }, elements) };
    }

    #[cfg(test)]
    pub(super) fn allocates(&self) -> bool {
        self.dims.spilled()
    }

    fn check(&self, elements: &Range<usize>) {
        let per_byte = self.packing.map_or(1, Packing::elements_per_byte);
        let on_byte = |number: usize| number.is_multiple_of(per_byte) || number == self.element_count;
        assert!(
            elements.start <= elements.end
                && elements.end <= self.element_count
                && on_byte(elements.start)
                && on_byte(elements.end),
            "{elements:?} are no elements of an array of {}, or do not fill bytes of {per_byte}",
            self.element_count
        );
    }

    /// The loops, the device's contiguous one first.
    pub(super) fn dims(&self) -> &[Dim] {
        &self.dims
    }

    /// Whether the host has the elements in the device's order, one next to the other.
    pub(super) fn is_dense_on_host(&self) -> bool {
        match *self.dims {
            [] => true,
            [only] => only.host_stride == self.element_bytes as isize,
            _ => false,
        }
    }

    /// # Safety
    /// As [`gather`](Self::gather) or [`scatter`](Self::scatter), for at least one element.
    unsafe fn move_range<const GATHER: bool>(&self, ends: Ends, elements: Range<usize>) {
        if let Some(packing) = self.packing {
            // SAFETY: the caller's promise.
            return unsafe { move_narrow::<GATHER>(self, packing, ends, elements) };
        }
        // Where number 0 would be; the boxes are in the range again.
        let device = ends.device.wrapping_sub(elements.start * self.element_bytes);
        self.boxes(Ends { device, ..ends }, elements, &mut |dims, ends| {
            // SAFETY: the caller's promise: together, the boxes are the range.
            unsafe { move_box::<GATHER>(dims, self.element_bytes, ends) };
        });
    }

    /// Calls `body` for the boxes that a range of at least one element falls apart into: their loops, and where their
    /// first element is. `ends` is where number 0 is, on a device where every element has `element_bytes`.
    pub(super) fn boxes(&self, ends: Ends, elements: Range<usize>, body: &mut impl FnMut(&[Dim], Ends)) {
        self.boxes_of(self.dims.len(), ends, elements, body);
    }

    /// As [`boxes`](Self::boxes), of the numbers that the first `depth` loops count.
    fn boxes_of(&self, depth: usize, ends: Ends, numbers: Range<usize>, body: &mut impl FnMut(&[Dim], Ends)) {
        let Some(&dim) = self.dims[..depth].last() else {
            return body(&[], ends);
        };
        let inside = dim.device_stride / self.element_bytes;
        let (mut step, begin) = (numbers.start / inside, numbers.start % inside);
        let (last, end) = (numbers.end / inside, numbers.end % inside);
        if step == last {
            return self.boxes_of(depth - 1, ends.at(dim, step), begin..end, body);
        }
        if begin > 0 {
            self.boxes_of(depth - 1, ends.at(dim, step), begin..inside, body);
            step += 1;
        }
        match last - step {
            0 => {}
            // A loop of one step would only be in the way of those inside.
            1 => body(&self.dims[..depth - 1], ends.at(dim, step)),
            count => {
                let mut dims = Dims::from_slice(&self.dims[..depth]);
                dims[depth - 1].count = count;
                body(&dims, ends.at(dim, step));
            }
        }
        if end > 0 {
            self.boxes_of(depth - 1, ends.at(dim, last), 0..end, body);
        }
    }
}
