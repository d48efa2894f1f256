//! The memory that a program names: allocations, and slices of them.
//!
//! A program refers to memory by the number of an [`Allocation`] in its list, never by address. Each run binds an
//! allocation to memory of its own: an argument, a result, or a part of the run's one block of temporaries. Each begins
//! at a multiple of [`ALIGNMENT_BYTES`].

use std::fmt;

use crate::constant::Constant;

/// Every allocation of a run begins at a multiple of this: a cache line, and the alignment that XLA's kernels assume.
pub const ALIGNMENT_BYTES: usize = 64;

/// Memory that a program names.
///
/// ```
/// use purlin::program::{Allocation, AllocationKind};
///
/// let sum = Allocation { size_bytes: 4, kind: AllocationKind::Temporary };
/// assert_eq!(sum.to_string(), "temporary of 4 bytes");
/// ```
#[derive(Clone, Debug)]
pub struct Allocation {
    /// The length; 0 is allowed.
    pub size_bytes: usize,
    /// The memory that a run binds it to.
    pub kind: AllocationKind,
}

/// The memory that a run binds an [`Allocation`] to.
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
        /// The number of the argument, from 0.
        number: usize,
        /// The result that has the same memory, if there is one. If the argument is donated, its memory becomes the
        /// result's. If it is not, the result gets other memory, and the argument is copied there before the first
        /// command. In both cases this allocation is the result's memory, and commands may write it. The signature
        /// lists the pair, too ([`Alias`](crate::Alias)).
        result: Option<usize>,
    },
    /// The bytes of a result that shares no parameter's memory. They are unspecified when a run begins.
    Output {
        /// The number of the result, from 0.
        number: usize,
    },
    /// Bytes that are the same in all runs. No command writes them.
    Constant(Constant),
    /// Memory that lasts as long as the run. Its bytes are unspecified when the run begins.
    Temporary,
    /// Memory that each thread of a kernel would have for itself. No memory is bound to it: its address is null, and
    /// only native kernels may name it.
    ThreadLocal,
}

impl AllocationKind {
    /// Whether commands may write the memory.
    #[must_use]
    pub const fn is_writable(&self) -> bool {
        matches!(self, Self::Parameter { result: Some(_), .. } | Self::Output { .. } | Self::Temporary)
    }

    /// Whether the bytes have a value when a run begins.
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
    /// The number of the allocation in the program's list.
    pub allocation: u32,
    /// The first byte, from the beginning of the allocation.
    pub offset_bytes: usize,
    /// The length. An empty slice may begin anywhere in `0..=size_bytes` of the allocation.
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

    /// The end: one more than the last byte. It saturates for a slice that no allocation can hold.
    pub(crate) const fn end_bytes(&self) -> usize {
        self.offset_bytes.saturating_add(self.size_bytes)
    }
}

impl fmt::Display for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bytes [{}, {}) of allocation {}", self.offset_bytes, self.end_bytes(), self.allocation)
    }
}
