//! Operands: the bytes that a command accesses, and how.

use crate::allocation::Slice;

/// How a command accesses the bytes of an [`Operand`].
///
/// ```
/// use purlin::program::OperandAccess;
///
/// assert!(OperandAccess::ReadWrite.reads() && OperandAccess::ReadWrite.writes());
/// assert!(!OperandAccess::Read.writes());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperandAccess {
    /// Reads the bytes. They must have been written on every path that leads to the command.
    Read,
    /// Writes all of the bytes, and reads none.
    Write,
    /// Reads the bytes, and may write some of them.
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

/// A slice that a command accesses.
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
    /// The bytes.
    pub slice: Slice,
    /// How the command accesses them.
    pub access: OperandAccess,
    /// For an operand that is only read: no operand of the same command writes any of these bytes. Validation enforces
    /// it. Without it, another operand may overwrite them, as in a computation in place.
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

    /// Bytes that the command writes, all of them.
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
