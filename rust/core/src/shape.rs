//! The shape of an array: an element type, dimensions, and the bytes that they need.
//!
//! Dense and row-major: `[dim0, dim1, ...]`, the last dimension contiguous. No dimensions is a scalar (one element), a
//! dimension of 0 an empty array (no bytes). A [`Shape`] exists only if its numbers are sound, so nobody behind it has to
//! ask again whether a product overflows.

use std::fmt;

use crate::dtype::DType;
use crate::status::{Status, StatusOr};

/// A validated shape: no dimension is negative, and `product(dims) * dtype.byte_width()` fits in `usize`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    dtype: DType,
    dims: Box<[i64]>,
    element_count: usize,
}

impl Shape {
    /// Checks and keeps the numbers.
    ///
    /// # Errors
    /// `InvalidArgument`, naming the shape: a negative dimension, or more bytes than an address can count. An empty
    /// array is sound however large its other dimensions are.
    #[track_caller]
    pub fn new(dtype: DType, dims: &[i64]) -> StatusOr<Self> {
        if let Some(axis) = dims.iter().position(|&dim| dim < 0) {
            return Err(Status::invalid_argument(format!(
                "dimension {axis} of {} is negative: {}",
                Written(dtype, dims),
                dims[axis]
            )));
        }
        let Some(element_count) = element_count(dims).filter(|&n| n.checked_mul(dtype.byte_width()).is_some()) else {
            return Err(Status::invalid_argument(format!(
                "{} needs more than {} bytes, the most that an address can count",
                Written(dtype, dims),
                usize::MAX
            )));
        };
        Ok(Self { dtype, dims: dims.into(), element_count })
    }

    /// Element type.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Dimensions, outermost first.
    #[must_use]
    pub fn dims(&self) -> &[i64] {
        &self.dims
    }

    /// `product(dims)`; 1 for a scalar.
    #[must_use]
    pub fn element_count(&self) -> usize {
        self.element_count
    }

    /// `product(dims) * dtype.byte_width()`.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.element_count * self.dtype.byte_width()
    }
}

/// The product of `dims`, none of which is negative; `None` if it does not fit.
fn element_count(dims: &[i64]) -> Option<usize> {
    if dims.contains(&0) {
        return Some(0);
    }
    dims.iter().try_fold(1_usize, |product, &dim| product.checked_mul(usize::try_from(dim).ok()?))
}

/// XLA's way to write a shape: `f32[2,3]`.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Written(self.dtype, &self.dims).fmt(f)
    }
}

/// Numbers that may not be a shape, written as one.
struct Written<'a>(DType, &'a [i64]);

impl fmt::Display for Written<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[", self.0)?;
        for (axis, dim) in self.1.iter().enumerate() {
            let comma = if axis == 0 { "" } else { "," };
            write!(f, "{comma}{dim}")?;
        }
        f.write_str("]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::StatusCode;

    fn bytes(dtype: DType, dims: &[i64]) -> usize {
        Shape::new(dtype, dims).unwrap().size_bytes()
    }

    #[test]
    fn sizes_are_products() {
        assert_eq!(bytes(DType::F32, &[]), 4);
        assert_eq!(bytes(DType::F32, &[2, 3]), 24);
        assert_eq!(bytes(DType::C128, &[1, 1, 5]), 80);
        assert_eq!(Shape::new(DType::U8, &[7, 2]).unwrap().element_count(), 14);
        assert_eq!(Shape::new(DType::U8, &[]).unwrap().element_count(), 1);
    }

    #[test]
    fn a_zero_dimension_empties_the_array_wherever_it_stands() {
        assert_eq!(bytes(DType::F64, &[0]), 0);
        assert_eq!(bytes(DType::F64, &[0, i64::MAX, i64::MAX]), 0);
        assert_eq!(bytes(DType::F64, &[i64::MAX, i64::MAX, 0]), 0);
    }

    #[test]
    fn the_largest_shape_is_sound_and_one_more_element_is_not() {
        let most = i64::try_from(usize::MAX / 16).unwrap();
        assert_eq!(bytes(DType::C128, &[most]), usize::MAX / 16 * 16);
        for (dtype, dims) in [
            (DType::C128, vec![most + 1]),
            (DType::U16, vec![i64::MAX, 2]),
            (DType::U8, vec![i64::MAX, 3]),
            (DType::U8, vec![1 << 32, 1 << 32]),
        ] {
            let error = Shape::new(dtype, &dims).unwrap_err();
            assert_eq!(error.code(), StatusCode::InvalidArgument, "{error}");
            assert!(error.message().starts_with(&Written(dtype, &dims).to_string()), "{error}");
        }
    }

    #[test]
    fn a_negative_dimension_is_named() {
        let error = Shape::new(DType::F32, &[2, -3]).unwrap_err();
        assert_eq!(error.code(), StatusCode::InvalidArgument);
        assert_eq!(error.message(), "dimension 1 of f32[2,-3] is negative: -3");
        assert!(Shape::new(DType::F32, &[i64::MIN, 0]).is_err());
    }

    #[test]
    fn a_shape_is_written_as_xla_writes_it() {
        assert_eq!(Shape::new(DType::BF16, &[4, 0, 2]).unwrap().to_string(), "bf16[4,0,2]");
        assert_eq!(Shape::new(DType::Pred, &[]).unwrap().to_string(), "pred[]");
    }
}
