//! What ends a kernel other than its end.

use std::fmt;

use crate::Fault;

/// Where a kernel was when it ended: the first thread for which that was known.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// The kernel's name.
    pub kernel: String,
    /// The function's, which is another where the kernel calls some.
    pub function: String,
    /// The line of the PTX text, from 1.
    pub line: usize,
    /// The instruction, with its modifiers.
    pub instruction: String,
    /// `%ctaid`.
    pub block: [u32; 3],
    /// `%tid`.
    pub thread: [u32; 3],
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel, function, line, instruction, block: [bx, by, bz], thread: [tx, ty, tz] } = self;
        write!(f, "kernel {kernel}, ")?;
        if function != kernel {
            write!(f, "function {function}, ")?;
        }
        write!(f, "line {line}, {instruction}, block ({bx}, {by}, {bz}), thread ({tx}, {ty}, {tz})")
    }
}

/// Why a kernel did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trap {
    /// The caller's flag was raised.
    Stopped,
    /// Nothing has run: dimensions, sizes or parameters that the kernel cannot be launched with, in words.
    Launch {
        /// The kernel's name.
        kernel: String,
        /// Which, with the numbers.
        why: String,
    },
    /// `trap`.
    Trapped(Box<Place>),
    /// An address that is nobody's, or may not be used so.
    Memory {
        /// Where.
        place: Box<Place>,
        /// The address, within its space.
        address: u64,
        /// How many bytes.
        size_bytes: usize,
        /// Whether they were to be written.
        writes: bool,
        /// What is wrong with it.
        fault: Fault,
    },
    /// An address that is no multiple of the access's size.
    Misaligned {
        /// Where.
        place: Box<Place>,
        /// The address, within its space.
        address: u64,
        /// What it must be a multiple of.
        alignment: usize,
    },
    /// Two threads of a block touch the same shared memory, one of them writes, and no barrier is between.
    Race {
        /// Of the later access.
        place: Box<Place>,
        /// The address in shared memory.
        address: u64,
        /// How many bytes.
        size_bytes: usize,
        /// Whether the later access writes.
        writes: bool,
        /// The earlier access, in words: which thread, and in which line.
        other: String,
    },
    /// Threads of a block wait at a barrier to which others do not come any more.
    Barrier {
        /// The first that waits.
        place: Box<Place>,
        /// Which others are where.
        why: String,
    },
    /// Threads of a warp wait for others of it that do not come, or an instruction that a warp executes together is
    /// used as it may not be.
    Warp {
        /// The first that waits.
        place: Box<Place>,
        /// What is wrong.
        why: String,
    },
    /// Calls are nested too deeply, or local memory is too large.
    Stack(Box<Place>),
    /// A jump through a table beyond its end.
    Jump {
        /// Where.
        place: Box<Place>,
        /// Which entry was asked for.
        index: u64,
        /// How many there are.
        entries: usize,
    },
}

impl Trap {
    /// Where it happened; `None` if nothing has run, or anywhere.
    #[must_use]
    pub fn place(&self) -> Option<&Place> {
        match self {
            Self::Stopped | Self::Launch { .. } => None,
            Self::Trapped(place) | Self::Stack(place) => Some(place),
            Self::Memory { place, .. } | Self::Misaligned { place, .. } | Self::Barrier { place, .. } => Some(place),
            Self::Warp { place, .. } | Self::Jump { place, .. } | Self::Race { place, .. } => Some(place),
        }
    }
}

impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => f.write_str("the kernel was stopped"),
            Self::Launch { kernel, why } => write!(f, "kernel {kernel}: {why}"),
            Self::Trapped(place) => write!(f, "{place}: trap"),
            Self::Memory { place, address, size_bytes, writes, fault } => {
                let verb = if *writes { "writes" } else { "reads" };
                write!(f, "{place}: {verb} {size_bytes} bytes at {address:#x}: {fault}")
            }
            Self::Misaligned { place, address, alignment } => {
                write!(f, "{place}: {address:#x} is no multiple of {alignment}")
            }
            Self::Race { place, address, size_bytes, writes, other } => {
                let verb = if *writes { "writes" } else { "reads" };
                write!(f, "{place}: {verb} {size_bytes} bytes of shared memory at {address:#x}; ")?;
                write!(f, "{other}, and no barrier is between")
            }
            Self::Barrier { place, why } | Self::Warp { place, why } => write!(f, "{place}: {why}"),
            Self::Stack(place) => write!(f, "{place}: calls are nested too deeply, or local memory is too large"),
            Self::Jump { place, index, entries } => {
                write!(f, "{place}: entry {index} of a table of {entries}")
            }
        }
    }
}

impl std::error::Error for Trap {}
