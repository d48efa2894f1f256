//! How an array stands in the memory of the host, and which bytes that are.

use std::fmt;
use std::ops::Range;

use smallvec::SmallVec;

use crate::layout::Layout;
use crate::shape::Shape;
use purlin_base::status::{Error, StatusOr};

/// A shape and byte strides, without an address. Element `[i0, i1, ...]` stands at the bytes
/// `[sum(i_d * byte_strides[d]), ... + dtype.host_byte_width())` from the address of element `[0, 0, ...]`. Strides may
/// be negative, zero, and no multiple of the element's size. Strides of dimensions with one entry mean nothing.
///
/// ```
/// use purlin::{DType, HostArray, Shape};
///
/// // Read backwards: the first element is the last in memory.
/// let shape = Shape::new(DType::F32, &[3])?;
/// let array = HostArray::new(&shape, Some(&[-4]))?;
/// assert_eq!(array.extent(), -8..4);
/// assert!(!array.is_row_major() && HostArray::new(&shape, None)?.is_row_major());
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostArray {
    shape: Shape,
    byte_strides: SmallVec<[i64; 8]>,
    lowest: isize,
    size_bytes: usize,
}

impl HostArray {
    /// Checks and keeps the description. Without `byte_strides`: dense, row-major.
    ///
    /// # Errors
    /// `InvalidArgument`, with shape and strides: `byte_strides.len() != shape.rank()`, a shape with dynamic dimensions
    /// (what is in memory has sizes), or elements that are more than `isize::MAX` bytes apart, as in no memory.
    #[track_caller]
    pub fn new(shape: &Shape, byte_strides: Option<&[i64]>) -> StatusOr<Self> {
        if shape.is_dynamic() {
            return Err(Error::invalid_argument(format!(
                "an array in host memory has the dimensions that it has, so {shape} describes none"
            )));
        }
        let byte_strides: SmallVec<[i64; 8]> = match byte_strides {
            Some(strides) if strides.len() != shape.rank() => {
                return Err(Error::invalid_argument(format!(
                    "{shape} has {} dimensions, but there are {} byte strides: {strides:?}",
                    shape.rank(),
                    strides.len()
                )));
            }
            Some(strides) => strides.into(),
            None => dense_strides(shape),
        };
        let Some((lowest, size_bytes)) = extent(shape, &byte_strides) else {
            return Err(Error::invalid_argument(format!(
                "{shape} with byte strides {byte_strides:?} reaches over more than {} bytes, more than any memory has",
                isize::MAX
            )));
        };
        Ok(Self { shape: shape.clone(), byte_strides, lowest, size_bytes })
    }

    /// Element type and dimensions.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Bytes from one entry of each dimension to the next, outermost first.
    #[must_use]
    pub fn byte_strides(&self) -> &[i64] {
        &self.byte_strides
    }

    /// The bytes that the elements span, relative to the address of element `[0, 0, ...]`: the smallest range that
    /// holds all of them. Starts below 0 if strides are negative; empty if the array is. Its length is at most
    /// `isize::MAX`.
    #[must_use]
    pub fn extent(&self) -> Range<isize> {
        self.lowest..self.lowest + self.size_bytes as isize
    }

    /// Whether the bytes are just those of a device in that layout, so that one memcpy of `shape().size_bytes()` from
    /// the address of element `[0, 0, ...]` is all. Never for types narrower than a byte, unless the array is empty.
    /// False for a layout of another rank.
    #[must_use]
    pub fn is_dense(&self, layout: &Layout) -> bool {
        if layout.rank() != self.shape.rank() {
            return false;
        }
        self.is_dense_along(layout.minor_to_major().iter().map(|&axis| axis as usize))
    }

    /// [`is_dense`](Self::is_dense) in the row-major layout.
    #[must_use]
    pub fn is_row_major(&self) -> bool {
        self.is_dense_along((0..self.shape.rank()).rev())
    }

    fn is_dense_along(&self, mut minor_to_major: impl Iterator<Item = usize>) -> bool {
        if self.shape.element_count() == 0 {
            return true;
        }
        let mut stride = self.shape.dtype().byte_width() as i64;
        !self.shape.dtype().is_sub_byte()
            && minor_to_major.all(|axis| {
                let (dim, there) = (self.shape.dims()[axis], self.byte_strides[axis]);
                let fits = dim == 1 || there == stride;
                // As long as all fits, this is in the extent; after that it is not used.
                stride = stride.wrapping_mul(dim);
                fits
            })
    }

    /// That no two elements share a byte, so that the array can be written.
    ///
    /// What is asked for is a little more: each dimension steps over all elements of the dimensions with smaller
    /// strides. Arrays whose rows interleave are refused too, because no known program has any.
    ///
    /// # Errors
    /// `InvalidArgument`, naming the dimension.
    #[track_caller]
    pub fn check_writable(&self) -> Result<(), Error> {
        if self.shape.element_count() == 0 {
            return Ok(());
        }
        let mut steps: SmallVec<[(u64, usize); 8]> = (0..self.shape.rank())
            .filter(|&axis| self.shape.dims()[axis] > 1)
            .map(|axis| (self.byte_strides[axis].unsigned_abs(), axis))
            .collect();
        steps.sort_unstable();
        // What the dimensions so far span, at most the extent.
        let mut span = self.shape.dtype().host_byte_width() as u64;
        for (step, axis) in steps {
            if step < span {
                return Err(Error::invalid_argument(format!(
                    "elements of {self} would be written over each other: dimension {axis} steps by {} bytes, and what \
                     it steps over has {span}",
                    self.byte_strides[axis]
                )));
            }
            span += step * (self.shape.dims()[axis] as u64 - 1);
        }
        Ok(())
    }
}

/// Such as `f32[2,3] with byte strides [12, 4]`.
impl fmt::Display for HostArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with byte strides {:?}", self.shape, self.byte_strides)
    }
}

/// Row-major, every element on bytes of its own. Saturates as [`Layout::byte_strides`] does, where it does not matter.
fn dense_strides(shape: &Shape) -> SmallVec<[i64; 8]> {
    let mut strides = SmallVec::from_elem(0, shape.rank());
    let mut stride = shape.dtype().host_byte_width() as i64;
    for (kept, &dim) in strides.iter_mut().zip(shape.dims()).rev() {
        *kept = stride;
        stride = stride.saturating_mul(dim.max(1));
    }
    strides
}

/// Lowest offset and number of bytes of all elements; `None` if that is no memory.
fn extent(shape: &Shape, byte_strides: &[i64]) -> Option<(isize, usize)> {
    if shape.element_count() == 0 {
        return Some((0, 0));
    }
    // In i128, one dimension's reach is exact, and the sum of what is left is small.
    let (mut low, mut high) = (0_i128, shape.dtype().host_byte_width() as i128);
    for (&dim, &stride) in shape.dims().iter().zip(byte_strides) {
        let reach = i128::from(dim - 1) * i128::from(stride);
        *if reach < 0 { &mut low } else { &mut high } += reach;
        if high - low > isize::MAX as i128 {
            return None;
        }
    }
    Some((low as isize, (high - low) as usize))
}

#[cfg(test)]
mod tests;
