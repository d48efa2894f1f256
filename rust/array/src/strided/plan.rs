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
use crate::strided::narrow::{move_narrow, move_narrow_runs};
use crate::strided::pack::Packing;
use crate::strided::section::{Section, Sections, Steps};
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

pub(super) type Dims = SmallVec<[Dim; 8]>;

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

    /// The plan for `size_bytes` bytes that stand together on both sides: as an array of so many `u8`.
    ///
    /// # Panics
    /// `size_bytes > isize::MAX`, more than any memory has.
    #[must_use]
    pub fn dense(size_bytes: usize) -> Self {
        assert!(isize::try_from(size_bytes).is_ok(), "no memory has {size_bytes} bytes");
        let dims = if size_bytes > 1 {
            Dims::from_slice(&[Dim { count: size_bytes, host_stride: 1, device_stride: 1 }])
        } else {
            Dims::new()
        };
        Self { dims, element_bytes: 1, packing: None, element_count: size_bytes }
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

    /// Parts that together are the array, each of which has at most `most_bytes` bytes in the device's memory: for a
    /// road that leads through blocks of so many bytes. They may be moved in any order, or by several threads at once.
    /// An array of at most `most_bytes` bytes is one run. An empty array has no parts.
    ///
    /// The runs of a part are as long as the host's order permits: a part reads, or writes, whole cache lines of the
    /// host, however different its order is.
    ///
    /// ```
    /// use purlin::{DType, HostArray, Layout, Shape, StridedPlan};
    ///
    /// let nibbles = HostArray::new(&Shape::new(DType::U4, &[100])?, None)?;
    /// let plan = StridedPlan::new(&nibbles, &Layout::row_major(1))?;
    /// let host: Vec<u8> = (0..100).map(|at| at % 16).collect();
    /// let (mut block, mut device) = ([0_u8; 16], [0_u8; 50]);
    /// for section in plan.sections(16) {
    ///     // SAFETY: the array is in `host`, and the section in `block`.
    ///     unsafe { plan.gather_section(host.as_ptr(), block.as_mut_ptr(), &section) };
    ///     let mut begin = 0;
    ///     for run in section.runs() {
    ///         let to = plan.device_bytes(&run);
    ///         device[to.clone()].copy_from_slice(&block[begin..begin + to.len()]);
    ///         begin += to.len();
    ///     }
    /// }
    /// assert_eq!(device[..9], [0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe, 0x10]);
    /// # Ok::<(), purlin::Error>(())
    /// ```
    ///
    /// # Panics
    /// `most_bytes < 16`, the size of the largest element.
    #[must_use]
    pub fn sections(&self, most_bytes: usize) -> Sections {
        assert!(most_bytes >= 16, "a part of {most_bytes} bytes has no room for an element");
        let per_byte = self.packing.map_or(1, Packing::elements_per_byte);
        let most = most_bytes.saturating_mul(per_byte) / self.element_bytes.max(1);
        if self.element_count <= most {
            return Sections::of_runs(self.element_count, most.max(1));
        }
        let near = self.near().map(|(_, steps)| steps);
        // A run may end wherever a byte does, and the rows of a transposition must begin on bytes.
        let rows_begin_on_bytes = self.dims.first().is_some_and(|first| first.count.is_multiple_of(per_byte));
        match near {
            Some(near) if near.inside.saturating_mul(near.side) > most && rows_begin_on_bytes => {
                Sections::of_steps(self.element_count, near, most, per_byte, tile::SIDE_BYTES)
            }
            _ => {
                // Whole sides of tiles, where they fit.
                let unit = near.map_or(per_byte, |near| near.inside.saturating_mul(near.side));
                let unit = unit.checked_next_multiple_of(per_byte).unwrap_or(usize::MAX);
                Sections::of_runs(self.element_count, if unit <= most { most / unit * unit } else { most })
            }
        }
    }

    /// The loop to run by tiles with the first.
    fn near(&self) -> Option<(Dim, Steps)> {
        let near = self.dims[across(&self.dims)? + 1];
        let inside = near.device_stride / self.element_bytes;
        let side = near.count.min(tile::SIDE_BYTES / self.element_bytes);
        Some((near, Steps { inside, count: near.count, side }))
    }

    /// Moves the elements of a part from the host's order to a block of memory, in which its runs stand one after the
    /// other.
    ///
    /// # Panics
    /// `section` is no part of this array.
    ///
    /// # Safety
    /// As [`gather`](Self::gather), with the elements of the part; `block` has as many writable bytes as the
    /// [bytes](Self::device_bytes) of all of its runs are.
    pub unsafe fn gather_section(&self, host: *const u8, block: *mut u8, section: &Section) {
        // SAFETY: the caller's promise.
        unsafe { self.move_section::<true>(Ends { host: host.cast_mut(), device: block }, section) };
    }

    /// Moves the elements of a part from a block of memory, in which its runs stand one after the other, to the host's
    /// order. The host's bytes between elements stay as they are.
    ///
    /// # Panics
    /// As [`gather_section`](Self::gather_section).
    ///
    /// # Safety
    /// As [`scatter`](Self::scatter), with the elements of the part; `block` has as many readable bytes as the
    /// [bytes](Self::device_bytes) of all of its runs are.
    pub unsafe fn scatter_section(&self, block: *const u8, host: *mut u8, section: &Section) {
        // SAFETY: the caller's promise.
        unsafe { self.move_section::<false>(Ends { host, device: block.cast_mut() }, section) };
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

    /// # Safety
    /// As [`gather_section`](Self::gather_section) or [`scatter_section`](Self::scatter_section).
    unsafe fn move_section<const GATHER: bool>(&self, ends: Ends, section: &Section) {
        let mut runs = section.runs();
        let Some(first) = runs.next() else { return };
        self.check(&first);
        let Some(last) = runs.next_back() else {
            // SAFETY: the caller's promise.
            return unsafe { self.move_range::<GATHER>(ends, first) };
        };
        self.check(&last);
        let loops = self.near().filter(|(_, steps)| section.is_of(*steps));
        let (near, _) = loops.unwrap_or_else(|| panic!("{section:?} is no part of this array"));
        // The same loop, with the next run of the block for the next step.
        let near = Dim { count: section.runs().len(), device_stride: first.len() * self.element_bytes, ..near };
        if let Some(packing) = self.packing {
            // SAFETY: the caller's promise.
            return unsafe { move_narrow_runs::<GATHER>(self, packing, ends, first, near) };
        }
        let device = ends.device.wrapping_sub(first.start * self.element_bytes);
        self.boxes(Ends { device, ..ends }, first, &mut |dims, ends| {
            // SAFETY: the caller's promise: together, the boxes are the first run, and with the loop all of them.
            unsafe { move_box::<GATHER>(&with_loop(dims, near, self.element_bytes), self.element_bytes, ends) };
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

/// A box that is repeated by another loop. Its first loop is the device's contiguous one, as those of a plan.
pub(super) fn with_loop(dims: &[Dim], outer: Dim, element_bytes: usize) -> Dims {
    let mut dims = Dims::from_slice(dims);
    if dims.is_empty() {
        dims.push(Dim { count: 1, host_stride: 0, device_stride: element_bytes });
    }
    dims.push(outer);
    dims
}
