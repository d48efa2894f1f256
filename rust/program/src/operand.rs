//! What a command touches, and how.

use crate::allocation::Slice;

/// What a command does with the bytes of an [`Operand`].
///
/// ```
/// use purlin::program::OperandAccess;
///
/// assert!(OperandAccess::ReadWrite.reads() && OperandAccess::ReadWrite.writes());
/// assert!(!OperandAccess::Read.writes());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperandAccess {
    /// Reads them. They must have been written on every path that leads here.
    Read,
    /// Writes all of them, and reads none.
    Write,
    /// Reads them and writes some.
    ReadWrite,
}

impl OperandAccess {
    /// Whether the bytes are read.
    #[must_use]
    pub const fn reads(self) -> bool {
        matches!(self, Self::Read | Self::ReadWrite)
    }

    /// Whether the bytes are written.
    #[must_use]
    pub const fn writes(self) -> bool {
        matches!(self, Self::Write | Self::ReadWrite)
    }
}

/// A slice that a command touches.
///
/// ```
/// use purlin::program::{Operand, OperandAccess, Slice};
///
/// let slice = Slice { allocation: 0, offset_bytes: 0, size_bytes: 4 };
/// assert_eq!(Operand::read(slice), Operand { slice, access: OperandAccess::Read, is_invariant: false });
/// assert!(Operand::invariant(slice).is_invariant);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    /// Which bytes.
    pub slice: Slice,
    /// What is done with them.
    pub access: OperandAccess,
    /// Of what is only read: no operand of the same command writes any of these bytes. Validation holds the command to
    /// it; without this, a command may be computed in place.
    pub is_invariant: bool,
}

impl Operand {
    /// Bytes that are read, and that the same command may overwrite by another operand.
    #[must_use]
    pub const fn read(slice: Slice) -> Self {
        Self { slice, access: OperandAccess::Read, is_invariant: false }
    }

    /// Bytes that are read, and that the same command does not write.
    #[must_use]
    pub const fn invariant(slice: Slice) -> Self {
        Self { slice, access: OperandAccess::Read, is_invariant: true }
    }

    /// Bytes that are written, all of them.
    #[must_use]
    pub const fn write(slice: Slice) -> Self {
        Self { slice, access: OperandAccess::Write, is_invariant: false }
    }

    /// Bytes that are read and written.
    #[must_use]
    pub const fn read_write(slice: Slice) -> Self {
        Self { slice, access: OperandAccess::ReadWrite, is_invariant: false }
    }
}
