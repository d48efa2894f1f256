//! The memory that a program names: allocations, and slices of them.
//!
//! A program knows memory by the number of an [`Allocation`] in its list, never by address. What an allocation is bound
//! to differs from run to run: an argument, a result, a part of the run's one block of temporaries. Each begins at a
//! multiple of [`ALIGNMENT_BYTES`].

use std::fmt;

use crate::constant::Constant;

/// Every allocation of a run begins at a multiple of this: a cache line, and what XLA's kernels take for granted.
pub const ALIGNMENT_BYTES: usize = 64;

/// Some memory of a program.
///
/// ```
/// use purlin::program::{Allocation, AllocationKind};
///
/// let sum = Allocation { size_bytes: 4, kind: AllocationKind::Temporary };
/// assert_eq!(sum.to_string(), "temporary of 4 bytes");
/// ```
#[derive(Clone, Debug)]
pub struct Allocation {
    /// How long it is; 0 is allowed.
    pub size_bytes: usize,
    /// Where a run finds it.
    pub kind: AllocationKind,
}

/// Where a run finds an [`Allocation`].
///
/// ```
/// use purlin::program::AllocationKind;
///
/// let weights = AllocationKind::Parameter { number: 0, result: Some(2) };
/// assert!(weights.is_writable(), "its memory is that of a result");
/// assert!(!AllocationKind::Parameter { number: 1, result: None }.is_writable());
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AllocationKind {
    /// The bytes of an argument.
    Parameter {
        /// Which argument, from 0.
        number: usize,
        /// The result that has the same memory, if there is one. Where the argument is donated, its memory becomes the
        /// result's; where it is not, the result gets fresh memory, and the argument is copied there before the first
        /// command. Either way the commands find it here, and may write it. The signature lists the pair too
        /// ([`Alias`](crate::Alias)).
        result: Option<usize>,
    },
    /// The bytes of a result that has no parameter's memory. They are unspecified when a run begins.
    Output {
        /// Which result, from 0.
        number: usize,
    },
    /// Bytes that are the same in all runs, and never written.
    Constant(Constant),
    /// Memory that lasts as long as the run; unspecified when it begins.
    Temporary,
    /// Memory that each thread of a kernel would have for itself. Nothing is behind it: its address is null, and only
    /// native kernels may name it.
    ThreadLocal,
}

impl AllocationKind {
    /// Whether commands may write it.
    #[must_use]
    pub const fn is_writable(&self) -> bool {
        matches!(self, Self::Parameter { result: Some(_), .. } | Self::Output { .. } | Self::Temporary)
    }

    /// Whether its bytes are there when a run begins.
    #[must_use]
    pub const fn is_defined_at_start(&self) -> bool {
        matches!(self, Self::Parameter { .. } | Self::Constant(_))
    }
}

/// `parameter 0`, `parameter 0, which becomes result 2`, `result 1`, `constant`
impl fmt::Display for AllocationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parameter { number, result: None } => write!(f, "parameter {number}"),
            Self::Parameter { number, result: Some(result) } => {
                write!(f, "parameter {number}, which becomes result {result},")
            }
            Self::Output { number } => write!(f, "result {number}"),
            Self::Constant(_) => f.write_str("constant"),
            Self::Temporary => f.write_str("temporary"),
            Self::ThreadLocal => f.write_str("thread-local memory"),
        }
    }
}

impl fmt::Display for Allocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} bytes", self.kind, self.size_bytes)
    }
}

/// The bytes `[offset_bytes, offset_bytes + size_bytes)` of an allocation.
///
/// ```
/// use purlin::program::Slice;
///
/// let slice = Slice { allocation: 5, offset_bytes: 64, size_bytes: 64 };
/// assert_eq!(slice.to_string(), "bytes [64, 128) of allocation 5");
/// assert!(slice.overlaps(&Slice { offset_bytes: 127, ..slice }));
/// assert!(!slice.overlaps(&Slice { offset_bytes: 128, ..slice }) && !slice.overlaps(&Slice { allocation: 4, ..slice }));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slice {
    /// The allocation's place in the program's list.
    pub allocation: u32,
    /// Where it begins there.
    pub offset_bytes: usize,
    /// How long it is; an empty slice may stand anywhere in `0..=size_bytes` of the allocation.
    pub size_bytes: usize,
}

impl Slice {
    /// Whether the two have a byte in common.
    #[must_use]
    pub const fn overlaps(&self, other: &Self) -> bool {
        self.allocation == other.allocation
            && self.offset_bytes < other.end_bytes()
            && other.offset_bytes < self.end_bytes()
            && self.size_bytes > 0
            && other.size_bytes > 0
    }

    /// Behind its last byte; of a slice that no allocation can hold, the largest number.
    pub(crate) const fn end_bytes(&self) -> usize {
        self.offset_bytes.saturating_add(self.size_bytes)
    }
}

impl fmt::Display for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bytes [{}, {}) of allocation {}", self.offset_bytes, self.end_bytes(), self.allocation)
    }
}
