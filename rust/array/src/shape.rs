//! The shape of an array: an element type, dimensions, and the bytes that they need.
//!
//! `[dim0, dim1, ...]`: no dimensions is a scalar (one element), a dimension of 0 an empty array (no bytes). A
//! [`Shape`] says how many elements there are, a [`Layout`](crate::layout::Layout) in which order they stand. A shape
//! exists only if its numbers are sound, so no code behind it has to check again whether a product overflows.
//!
//! There are three sizes. [`size_bytes`](Shape::size_bytes): the elements, packed, on a device.
//! [`on_device_size_bytes`](Shape::on_device_size_bytes): the memory of a buffer; a shape with dynamic dimensions has
//! its actual dimensions behind the elements. [`host_size_bytes`](Shape::host_size_bytes): the elements, dense, in the
//! memory of the host, where types narrower than a byte have a byte each.
//!
//! A dynamic dimension is known when the program runs; the shape has the most that it can be, and memory is for that.
//! Up to rank 4, making a shape without dynamic dimensions allocates nothing; cloning a shape never does.

use std::fmt;
use std::sync::Arc;

use crate::dtype::DType;
use purlin_base::status::{Error, StatusOr};

/// A validated shape: no dimension is negative, all sizes in bytes fit in `usize`, and the number of elements in `i64`.
///
/// ```
/// use purlin::{DType, Shape};
///
/// let shape = Shape::new(DType::F32, &[2, 3])?;
/// assert_eq!((shape.rank(), shape.element_count(), shape.size_bytes()), (2, 6, 24));
/// assert_eq!(shape.to_string(), "f32[2,3]");
/// assert!(Shape::new(DType::F32, &[-1]).is_err());
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Shape {
    dims: Dims,
    /// At most `i64::MAX`.
    element_count: usize,
}

/// How many static dimensions stand in place.
const FEW: usize = 4;

/// Element type and dimensions; of what shape they are says which variant they are.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Dims {
    Few(FewDims),
    Other(Arc<OtherDims>),
}

/// Up to [`FEW`], all of them static; zeros behind them. Copied as a whole, so that a clone goes to its place at once.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct FewDims {
    dtype: DType,
    rank: u8,
    dims: [i64; FEW],
}

#[derive(PartialEq, Eq, Hash)]
struct OtherDims {
    dtype: DType,
    dims: Box<[i64]>,
    /// One for each dimension; none at all if none of them is dynamic.
    dynamic: Box<[bool]>,
}

impl Dims {
    /// `dynamic` is as long as `dims`, or empty.
    fn new(dtype: DType, dims: &[i64], dynamic: &[bool]) -> Self {
        if dims.len() <= FEW && dynamic.is_empty() {
            // One by one, so that they go from registers to their place.
            let few = std::array::from_fn(|axis| dims.get(axis).copied().unwrap_or(0));
            return Self::Few(FewDims { dtype, rank: dims.len() as u8, dims: few });
        }
        Self::Other(Arc::new(OtherDims { dtype, dims: dims.into(), dynamic: dynamic.into() }))
    }
}

/// Bytes of one dimension's actual size, an int32, behind the elements of an array with dynamic dimensions.
const DIMENSION_SIZE_BYTES: usize = 4;

impl Shape {
    /// Checks and keeps the numbers; all dimensions are static.
    ///
    /// # Errors
    /// `InvalidArgument`, naming the shape: a negative dimension, more bytes than an address can count, more elements
    /// than `i64::MAX`, or a token with dimensions. An empty array is sound however large its other dimensions are.
    #[track_caller]
    pub fn new(dtype: DType, dims: &[i64]) -> StatusOr<Self> {
        Self::checked(dtype, dims, &[])
    }

    /// A shape whose dimension `i` is at most `dims[i]` if `dynamic[i]`, else just that.
    ///
    /// # Errors
    /// `InvalidArgument`: as [`new`](Self::new), and if `dynamic.len() != dims.len()`.
    ///
    /// # Examples
    /// ```
    /// use purlin::{DType, Shape};
    ///
    /// let shape = Shape::with_dynamic(DType::F32, &[8, 3], &[true, false])?;
    /// assert!(shape.is_dynamic() && shape.dynamic_dimension(0) && !shape.dynamic_dimension(1));
    /// assert_eq!(shape.dims(), [8, 3], "upper bounds");
    /// # Ok::<(), purlin::Error>(())
    /// ```
    #[track_caller]
    pub fn with_dynamic(dtype: DType, dims: &[i64], dynamic: &[bool]) -> StatusOr<Self> {
        if dynamic.len() != dims.len() {
            return Err(Error::invalid_argument(format!(
                "{} has {} dimensions, but {} were said to be dynamic or not",
                Written { dtype, dims, dynamic: &[] },
                dims.len(),
                dynamic.len()
            )));
        }
        Self::checked(dtype, dims, if dynamic.contains(&true) { dynamic } else { &[] })
    }

    /// The shape of a token: no elements, no bytes.
    #[must_use]
    pub fn token() -> Self {
        Self { dims: Dims::new(DType::Token, &[], &[]), element_count: 0 }
    }

    /// `dynamic` is as long as `dims`, or empty.
    #[track_caller]
    fn checked(dtype: DType, dims: &[i64], dynamic: &[bool]) -> StatusOr<Self> {
        let written = Written { dtype, dims, dynamic };
        if dtype == DType::Token {
            return if dims.is_empty() {
                Ok(Self::token())
            } else {
                Err(Error::invalid_argument(format!("a token has no dimensions, unlike {written}")))
            };
        }
        if let Some(axis) = dims.iter().position(|&dim| dim < 0) {
            return Err(Error::invalid_argument(format!("dimension {axis} of {written} is negative: {}", dims[axis])));
        }
        let Some(element_count) = element_count(dims).filter(|&n| sizes_fit(dtype, n, dims.len(), dynamic)) else {
            return Err(Error::invalid_argument(format!(
                "{written} needs more than {} bytes, the most that an address can count",
                usize::MAX
            )));
        };
        if i64::try_from(element_count).is_err() {
            return Err(Error::invalid_argument(format!(
                "{written} has {element_count} elements, more than {}, the most that an array has",
                i64::MAX
            )));
        }
        Ok(Self { dims: Dims::new(dtype, dims, dynamic), element_count })
    }

    /// Element type.
    #[must_use]
    pub fn dtype(&self) -> DType {
        match &self.dims {
            Dims::Few(FewDims { dtype, .. }) => *dtype,
            Dims::Other(other) => other.dtype,
        }
    }

    /// Dimensions, outermost first; upper bounds where they are dynamic.
    #[must_use]
    pub fn dims(&self) -> &[i64] {
        match &self.dims {
            Dims::Few(FewDims { rank, dims, .. }) => &dims[..usize::from(*rank)],
            Dims::Other(other) => &other.dims,
        }
    }

    /// Number of dimensions.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.dims().len()
    }

    /// `product(dims)`; 1 for a scalar, 0 for a token.
    #[must_use]
    pub fn element_count(&self) -> i64 {
        self.element_count as i64
    }

    /// Whether any dimension is dynamic.
    #[must_use]
    pub fn is_dynamic(&self) -> bool {
        !self.dynamic().is_empty()
    }

    /// Whether that dimension is dynamic; false for a dimension that there is not.
    #[must_use]
    pub fn dynamic_dimension(&self, axis: usize) -> bool {
        self.dynamic().get(axis).is_some_and(|&dynamic| dynamic)
    }

    /// Bytes of the elements on a device, where they are packed: `ceil(element_count * dtype.bits() / 8)`.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        packed_bytes(self.dtype(), self.element_count)
    }

    /// Bytes of a buffer: [`size_bytes`](Self::size_bytes), and behind them, if the shape is dynamic, an int32 for each
    /// dimension (also the static ones) that says its actual size. No padding stands between them.
    #[must_use]
    pub fn on_device_size_bytes(&self) -> usize {
        self.size_bytes() + if self.is_dynamic() { self.rank() * DIMENSION_SIZE_BYTES } else { 0 }
    }

    /// Bytes of the elements in the memory of the host: `element_count * dtype.host_byte_width()`.
    #[must_use]
    pub fn host_size_bytes(&self) -> usize {
        self.element_count * self.dtype().host_byte_width()
    }

    /// One for each dimension, or none.
    fn dynamic(&self) -> &[bool] {
        match &self.dims {
            Dims::Few(_) => &[],
            Dims::Other(other) => &other.dynamic,
        }
    }
}

/// The product of `dims`, none of which is negative; `None` if it does not fit.
fn element_count(dims: &[i64]) -> Option<usize> {
    if dims.contains(&0) {
        return Some(0);
    }
    dims.iter().try_fold(1_usize, |product, &dim| product.checked_mul(usize::try_from(dim).ok()?))
}

/// Bytes of `elements` packed elements, which are known to fit.
fn packed_bytes(dtype: DType, elements: usize) -> usize {
    // Not by their bits, which may be more than usize::MAX.
    if dtype.is_sub_byte() { elements.div_ceil(8 / dtype.bits()) } else { elements * dtype.byte_width() }
}

/// Whether all three sizes fit in `usize`.
fn sizes_fit(dtype: DType, elements: usize, rank: usize, dynamic: &[bool]) -> bool {
    let suffix = if dynamic.is_empty() { 0 } else { rank * DIMENSION_SIZE_BYTES };
    elements.checked_mul(dtype.host_byte_width()).is_some()
        && packed_bytes(dtype, elements).checked_add(suffix).is_some()
}

/// XLA's way to write a shape: `f32[2,3]`, and `f32[<=2,3]` if the first dimension is dynamic.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Written { dtype: self.dtype(), dims: self.dims(), dynamic: self.dynamic() }.fmt(f)
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Numbers that may not be a shape, written as one.
struct Written<'a> {
    dtype: DType,
    dims: &'a [i64],
    dynamic: &'a [bool],
}

impl fmt::Display for Written<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[", self.dtype)?;
        for (axis, dim) in self.dims.iter().enumerate() {
            let comma = if axis == 0 { "" } else { "," };
            let bound = if self.dynamic.get(axis) == Some(&true) { "<=" } else { "" };
            write!(f, "{comma}{bound}{dim}")?;
        }
        f.write_str("]")
    }
}

#[cfg(test)]
mod tests;
