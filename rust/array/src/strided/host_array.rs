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
mod tests {
    use super::*;
    use crate::dtype::DType;
    use purlin_base::status::StatusCode;

    fn array(dtype: DType, dims: &[i64], strides: &[i64]) -> HostArray {
        HostArray::new(&Shape::new(dtype, dims).unwrap(), Some(strides)).unwrap()
    }

    #[test]
    fn without_strides_an_array_is_dense_and_row_major() {
        let shape = Shape::new(DType::F32, &[2, 3, 5]).unwrap();
        let dense = HostArray::new(&shape, None).unwrap();
        assert_eq!(dense.byte_strides(), [60, 20, 4]);
        assert_eq!(dense.extent(), 0..120);
        assert!(dense.is_dense(&Layout::row_major(3)));
        let narrow = HostArray::new(&Shape::new(DType::S4, &[2, 3]).unwrap(), None).unwrap();
        assert_eq!((narrow.byte_strides(), narrow.extent()), (&[3, 1][..], 0..6));
        assert_eq!(HostArray::new(&Shape::token(), None).unwrap().extent(), 0..0);
    }

    #[test]
    fn the_extent_is_from_the_lowest_byte_to_the_highest() {
        assert_eq!(array(DType::F32, &[], &[]).extent(), 0..4);
        assert_eq!(array(DType::F32, &[2, 3], &[100, 8]).extent(), 0..120);
        assert_eq!(array(DType::F32, &[2, 3], &[-100, 8]).extent(), -100..20);
        assert_eq!(array(DType::U8, &[5], &[-1]).extent(), -4..1);
        assert_eq!(array(DType::C128, &[1 << 40, 2], &[0, -3]).extent(), -3..16);
        assert_eq!(array(DType::U4, &[3], &[7]).extent(), 0..15);
    }

    #[test]
    fn strides_that_lead_nowhere_are_any() {
        let lone = array(DType::F32, &[1, 2, 1], &[i64::MIN, 4, i64::MAX]);
        assert_eq!(lone.extent(), 0..8);
        assert!(lone.is_dense(&Layout::row_major(3)));
        assert!(lone.is_dense(&Layout::new(&[0, 1, 2]).unwrap()));
        lone.check_writable().unwrap();
        let empty = array(DType::F32, &[0, i64::MAX], &[i64::MIN, i64::MIN]);
        assert_eq!(empty.extent(), 0..0);
        assert!(empty.is_dense(&Layout::row_major(2)));
        empty.check_writable().unwrap();
    }

    #[test]
    fn a_reach_over_more_than_any_memory_is_refused() {
        for (dims, strides) in [
            (&[2][..], &[i64::MAX][..]),
            (&[2], &[i64::MIN]),
            (&[3], &[i64::MAX]),
            (&[i64::MAX], &[i64::MIN]),
            (&[2, 2], &[i64::MAX, i64::MIN]),
            (&[2, 2, 2, 2], &[1 << 61, 1 << 61, 1 << 61, -(1 << 61)]),
            (&[i64::MAX / 2, 2], &[2, 4]),
        ] {
            let shape = Shape::new(DType::U8, dims).unwrap();
            let error = HostArray::new(&shape, Some(strides)).unwrap_err();
            assert_eq!(error.code(), StatusCode::InvalidArgument, "{error}");
            assert!(error.message().starts_with(&format!("{shape} with byte strides {strides:?} reaches")), "{error}");
        }
        assert_eq!(array(DType::U8, &[2], &[i64::MAX - 1]).extent(), 0..isize::MAX);
        assert_eq!(array(DType::U8, &[2], &[-i64::MAX + 1]).extent(), -isize::MAX + 1..1);
    }

    #[test]
    fn a_dense_array_too_large_for_memory_is_refused_without_strides_too() {
        for (dtype, dims) in
            [(DType::F64, &[1 << 60][..]), (DType::U16, &[i64::MAX]), (DType::U16, &[1 << 31, 1 << 31])]
        {
            let error = HostArray::new(&Shape::new(dtype, dims).unwrap(), None).unwrap_err();
            assert_eq!(error.code(), StatusCode::InvalidArgument, "{error}");
        }
        let most = HostArray::new(&Shape::new(DType::U8, &[1, i64::MAX]).unwrap(), None).unwrap();
        assert!(most.is_dense(&Layout::row_major(2)));
    }

    #[test]
    fn other_numbers_of_strides_and_dynamic_shapes_are_refused() {
        let shape = Shape::new(DType::F32, &[2, 3]).unwrap();
        let error = HostArray::new(&shape, Some(&[4])).unwrap_err();
        assert_eq!(error.message(), "f32[2,3] has 2 dimensions, but there are 1 byte strides: [4]");
        let dynamic = Shape::with_dynamic(DType::F32, &[2], &[true]).unwrap();
        let error = HostArray::new(&dynamic, None).unwrap_err();
        assert_eq!(
            error.message(),
            "an array in host memory has the dimensions that it has, so f32[<=2] describes none"
        );
    }

    #[test]
    fn dense_is_a_question_of_the_layout() {
        let (row, column) = (Layout::row_major(2), Layout::new(&[0, 1]).unwrap());
        let transposed = array(DType::F32, &[2, 3], &[4, 8]);
        assert!(!transposed.is_dense(&row) && transposed.is_dense(&column));
        assert!(!array(DType::F32, &[2, 3], &[16, 4]).is_dense(&row));
        assert!(!array(DType::F32, &[2, 3], &[12, 0]).is_dense(&row));
        assert!(!array(DType::F32, &[2], &[-4]).is_dense(&Layout::row_major(1)));
        assert!(!array(DType::S4, &[2, 3], &[3, 1]).is_dense(&row));
        assert!(array(DType::S4, &[0, 3], &[3, 1]).is_dense(&row));
        assert!(!array(DType::F32, &[2, 3], &[12, 4]).is_dense(&Layout::row_major(3)));
        // One element, broadcast to more bytes than memory has.
        assert!(!array(DType::C128, &[1 << 59], &[0]).is_dense(&Layout::row_major(1)));
    }

    #[test]
    fn descriptions_up_to_rank_eight_live_where_they_stand() {
        let dense = HostArray::new(&Shape::new(DType::F32, &[2; 8]).unwrap(), None).unwrap();
        assert!(!dense.byte_strides.spilled());
        assert_eq!(HostArray::new(&Shape::new(DType::F32, &[2; 9]).unwrap(), None).unwrap().extent(), 0..2048);
    }

    #[test]
    fn elements_over_each_other_cannot_be_written() {
        for (dims, strides) in [(&[2][..], &[0][..]), (&[4], &[3]), (&[2, 3], &[4, 4]), (&[2, 3], &[-8, 4])] {
            let error = array(DType::F32, dims, strides).check_writable().unwrap_err();
            assert_eq!(error.code(), StatusCode::InvalidArgument, "{error}");
            assert!(error.message().contains("written over each other"), "{error}");
        }
        for (dims, strides) in [(&[4][..], &[-4][..]), (&[2, 3], &[4, 8]), (&[2, 3], &[-12, 4]), (&[2, 3], &[13, -4])] {
            array(DType::F32, dims, strides).check_writable().unwrap();
        }
        let error = array(DType::F32, &[2, 3], &[12, 0]).check_writable().unwrap_err();
        assert_eq!(
            error.message(),
            "elements of f32[2,3] with byte strides [12, 0] would be written over each other: dimension 1 steps by 0 \
             bytes, and what it steps over has 4"
        );
    }
}
