//! In which order the elements of an array stand in the memory of a device.
//!
//! A [`Layout`] is a permutation of the dimensions, the fastest first, as XLA writes it: `{1,0}` of `f32[2,3]` is
//! row-major (neighbours along dimension 1 are neighbours in memory), `{0,1}` column-major. Arrays on a device are
//! dense: element `[i0, i1, ...]` is number `sum(i_d * product(dims of the dimensions before d in the layout))`, and
//! packed types share bytes along that order. Tiles, which XLA's TPUs use, are not part of it.
//!
//! A layout exists only if it is a permutation. Up to rank 8 it allocates nothing.

use std::fmt;

use smallvec::SmallVec;

use crate::shape::Shape;
use purlin_base::status::{Error, StatusOr};

/// A permutation of the dimensions, from minor (contiguous) to major. Equal if the permutations are.
///
/// ```
/// use purlin::{DType, Layout, Shape};
///
/// let columns = Layout::new(&[0, 1])?;
/// assert!(!columns.is_row_major() && Layout::row_major(2).is_row_major());
/// assert_eq!(columns.byte_strides(&Shape::new(DType::F32, &[2, 3])?)?, [4, 8]);
/// assert!(Layout::new(&[0, 0]).is_err(), "a dimension stands there twice");
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    minor_to_major: SmallVec<[i64; 8]>,
}

impl Layout {
    /// The last dimension contiguous, the first outermost: `{rank-1,...,1,0}`.
    #[must_use]
    pub fn row_major(rank: usize) -> Self {
        Self { minor_to_major: (0..rank as i64).rev().collect() }
    }

    /// Checks and keeps the permutation.
    ///
    /// # Errors
    /// `InvalidArgument`, naming the entry: one that is no dimension (`0 <= entry < minor_to_major.len()`), or that
    /// stands there twice.
    #[track_caller]
    pub fn new(minor_to_major: &[i64]) -> StatusOr<Self> {
        let rank = minor_to_major.len();
        let mut seen: SmallVec<[bool; 32]> = SmallVec::from_elem(false, rank);
        for (position, &entry) in minor_to_major.iter().enumerate() {
            let Some(axis) = usize::try_from(entry).ok().filter(|&axis| axis < rank) else {
                return Err(Error::invalid_argument(format!(
                    "entry {position} of layout {} is {entry}, no dimension of an array of rank {rank}",
                    Written(minor_to_major)
                )));
            };
            if std::mem::replace(&mut seen[axis], true) {
                return Err(Error::invalid_argument(format!(
                    "entry {position} of layout {} is {entry}, which stands there twice",
                    Written(minor_to_major)
                )));
            }
        }
        Ok(Self { minor_to_major: minor_to_major.into() })
    }

    /// Number of dimensions.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.minor_to_major.len()
    }

    /// The permutation, the contiguous dimension first.
    #[must_use]
    pub fn minor_to_major(&self) -> &[i64] {
        &self.minor_to_major
    }

    /// Whether it is [`row_major`](Self::row_major).
    #[must_use]
    pub fn is_row_major(&self) -> bool {
        self.minor_to_major.iter().rev().enumerate().all(|(axis, &entry)| axis as i64 == entry)
    }

    /// Bytes from one entry of each dimension to the next, of a dense array of that shape in this layout. The stride of
    /// a dimension with less than 2 entries leads nowhere; it is `i64::MAX` where it would be more. Allocates the
    /// result.
    ///
    /// # Errors
    /// `InvalidArgument`: another rank than the shape's, or elements that are no whole bytes.
    #[track_caller]
    pub fn byte_strides(&self, shape: &Shape) -> StatusOr<Vec<i64>> {
        self.check_rank(shape)?;
        if shape.dtype().byte_width() == 0 {
            return Err(Error::invalid_argument(format!(
                "elements of {shape} are no whole bytes, so none has a stride"
            )));
        }
        let mut strides = vec![0; self.rank()];
        let mut stride = shape.dtype().byte_width() as i64;
        for &axis in &self.minor_to_major {
            strides[axis as usize] = stride;
            stride = stride.saturating_mul(shape.dims()[axis as usize].max(1));
        }
        Ok(strides)
    }

    /// That `shape` has as many dimensions.
    ///
    /// # Errors
    /// `InvalidArgument`, naming both.
    #[track_caller]
    pub fn check_rank(&self, shape: &Shape) -> Result<(), Error> {
        if self.rank() == shape.rank() {
            return Ok(());
        }
        Err(Error::invalid_argument(format!(
            "layout {self} is for arrays of rank {}, and {shape} is of rank {}",
            self.rank(),
            shape.rank()
        )))
    }
}

/// XLA's way to write a layout: `{1,0}`.
impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Written(&self.minor_to_major).fmt(f)
    }
}

/// Numbers that may not be a permutation, written as a layout.
struct Written<'a, T>(&'a [T]);

impl<T: fmt::Display> fmt::Display for Written<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (position, entry) in self.0.iter().enumerate() {
            let comma = if position == 0 { "" } else { "," };
            write!(f, "{comma}{entry}")?;
        }
        f.write_str("}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use purlin_base::status::StatusCode;

    #[test]
    fn row_major_is_written_as_xla_writes_it() {
        assert_eq!(Layout::row_major(0).to_string(), "{}");
        assert_eq!(Layout::row_major(3).to_string(), "{2,1,0}");
        assert_eq!(Layout::new(&[0, 2, 1]).unwrap().to_string(), "{0,2,1}");
    }

    #[test]
    fn row_major_is_known_however_it_was_made() {
        for rank in 0..12 {
            let entries: Vec<i64> = (0..rank).rev().collect();
            assert_eq!(Layout::new(&entries).unwrap(), Layout::row_major(rank as usize));
            assert!(Layout::row_major(rank as usize).is_row_major());
        }
        assert!(!Layout::new(&[0, 1]).unwrap().is_row_major());
        assert!(!Layout::new(&[1, 2, 0]).unwrap().is_row_major());
    }

    #[test]
    fn what_is_no_permutation_is_named() {
        for (entries, message) in [
            (&[0, 0][..], "entry 1 of layout {0,0} is 0, which stands there twice"),
            (&[1], "entry 0 of layout {1} is 1, no dimension of an array of rank 1"),
            (&[0, -1, 1], "entry 1 of layout {0,-1,1} is -1, no dimension of an array of rank 3"),
            (
                &[i64::MIN],
                "entry 0 of layout {-9223372036854775808} is -9223372036854775808, no dimension of an array of rank 1",
            ),
            (&[1 << 32, 0], "entry 0 of layout {4294967296,0} is 4294967296, no dimension of an array of rank 2"),
        ] {
            let error = Layout::new(entries).unwrap_err();
            assert_eq!((error.code(), error.message()), (StatusCode::InvalidArgument, message));
        }
    }

    #[test]
    fn strides_follow_the_order() {
        let shape = Shape::new(DType::F32, &[2, 3, 5]).unwrap();
        assert_eq!(Layout::row_major(3).byte_strides(&shape).unwrap(), [60, 20, 4]);
        assert_eq!(Layout::new(&[0, 1, 2]).unwrap().byte_strides(&shape).unwrap(), [4, 8, 24]);
        assert_eq!(Layout::new(&[1, 2, 0]).unwrap().byte_strides(&shape).unwrap(), [60, 4, 12]);
        assert!(Layout::row_major(0).byte_strides(&Shape::new(DType::U8, &[]).unwrap()).unwrap().is_empty());
    }

    #[test]
    fn strides_of_empty_and_of_enormous_arrays_do_not_overflow() {
        let empty = Shape::new(DType::F32, &[0, i64::MAX, i64::MAX]).unwrap();
        assert_eq!(Layout::row_major(3).byte_strides(&empty).unwrap(), [i64::MAX, i64::MAX, 4]);
        let long = Shape::new(DType::U16, &[1, i64::MAX]).unwrap();
        assert_eq!(Layout::row_major(2).byte_strides(&long).unwrap(), [i64::MAX, 2]);
        let empty = Shape::new(DType::F32, &[0, 3]).unwrap();
        assert_eq!(Layout::row_major(2).byte_strides(&empty).unwrap(), [12, 4]);
    }

    #[test]
    fn there_are_no_strides_for_another_rank_or_for_parts_of_bytes() {
        let shape = Shape::new(DType::F32, &[2]).unwrap();
        let error = Layout::row_major(2).byte_strides(&shape).unwrap_err();
        assert_eq!(error.message(), "layout {1,0} is for arrays of rank 2, and f32[2] is of rank 1");
        let error = Layout::row_major(1).byte_strides(&Shape::new(DType::S4, &[2]).unwrap()).unwrap_err();
        assert_eq!(error.message(), "elements of s4[2] are no whole bytes, so none has a stride");
        assert!(Layout::row_major(0).byte_strides(&Shape::token()).is_err());
    }

    #[test]
    fn layouts_up_to_rank_eight_live_where_they_stand() {
        assert!(!Layout::row_major(8).minor_to_major.spilled());
        assert!(!Layout::new(&[7, 6, 5, 4, 3, 2, 1, 0]).unwrap().minor_to_major.spilled());
    }
}
