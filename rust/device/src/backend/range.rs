//! A range of bytes that is known to lie inside what it was checked against.

use std::fmt;

use purlin_base::status::{Error, StatusOr};

/// `[offset_bytes, offset_bytes + size_bytes)`. The sum never overflows.
///
/// ```
/// use purlin::StatusCode;
/// use purlin::backend::ByteRange;
///
/// let upper = ByteRange::all(100).slice(60, 40)?;
/// let part = upper.slice(10, 5)?;
/// assert_eq!((part.offset_bytes(), part.size_bytes()), (70, 5));
/// assert_eq!(upper.slice(10, 31).unwrap_err().code(), StatusCode::OutOfRange);
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ByteRange {
    offset_bytes: usize,
    size_bytes: usize,
}

impl ByteRange {
    /// All of `size_bytes` bytes.
    #[must_use]
    pub const fn all(size_bytes: usize) -> Self {
        Self { offset_bytes: 0, size_bytes }
    }

    /// `size_bytes` bytes at `offset_bytes` of this range, in the coordinates of what this range lies in. An empty
    /// range may begin anywhere in `0..=self.size_bytes()`.
    ///
    /// # Errors
    /// `OutOfRange`, naming the three numbers, unless `offset_bytes + size_bytes <= self.size_bytes()`.
    pub fn slice(self, offset_bytes: usize, size_bytes: usize) -> StatusOr<Self> {
        if size_bytes > self.size_bytes || offset_bytes > self.size_bytes - size_bytes {
            return Err(Error::out_of_range(format!(
                "{size_bytes} bytes at offset {offset_bytes} do not lie within {} bytes",
                self.size_bytes
            )));
        }
        Ok(Self { offset_bytes: self.offset_bytes + offset_bytes, size_bytes })
    }

    /// Where it begins.
    #[must_use]
    pub const fn offset_bytes(self) -> usize {
        self.offset_bytes
    }

    /// How long it is.
    #[must_use]
    pub const fn size_bytes(self) -> usize {
        self.size_bytes
    }
}

/// `[4, 12)`
impl fmt::Debug for ByteRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {})", self.offset_bytes, self.offset_bytes + self.size_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use purlin_base::status::StatusCode;

    #[test]
    fn slices_add_their_offsets() {
        let inner = ByteRange::all(100).slice(10, 50).unwrap().slice(5, 20).unwrap();
        assert_eq!(format!("{inner:?}"), "[15, 35)");
    }

    #[test]
    fn the_whole_and_the_empty_end_are_inside() {
        let range = ByteRange::all(8);
        assert_eq!(range.slice(0, 8).unwrap(), range);
        assert_eq!(range.slice(8, 0).unwrap().size_bytes(), 0);
        assert_eq!(ByteRange::all(usize::MAX).slice(usize::MAX, 0).unwrap().offset_bytes(), usize::MAX);
    }

    #[test]
    fn sums_that_overflow_are_outside() {
        let range = ByteRange::all(100).slice(90, 10).unwrap();
        for (offset_bytes, size_bytes) in
            [(0, 11), (11, 0), (10, 1), (usize::MAX, 1), (1, usize::MAX), (usize::MAX, usize::MAX), (usize::MAX, 0)]
        {
            let error = range.slice(offset_bytes, size_bytes).unwrap_err();
            assert_eq!(error.code(), StatusCode::OutOfRange);
            assert_eq!(
                error.message(),
                format!("{size_bytes} bytes at offset {offset_bytes} do not lie within 10 bytes")
            );
        }
    }
}
