//! What the detector found, with both places.

use std::fmt;

/// A kind of mistake in how work was ordered or memory used.
///
/// ```
/// use purlin::sim::{Defect, SimBackend, SimOptions};
///
/// let backend = SimBackend::new(SimOptions::default());
/// assert!(!backend.reports().iter().any(|report| report.defect == Defect::UnorderedWrites));
/// # backend.shutdown();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Defect {
    /// Bytes reach the host that were not written since their block was allocated.
    ReadBeforeWrite,
    /// Two copies write the same bytes, and no event orders them. A missing wait; after a donation, a write of the old
    /// owner's that the new one did not wait for.
    UnorderedWrites,
    /// One copy reads what another writes, and no event orders them. A missing wait; after a donation, a read of the
    /// old owner's that the new one did not wait for.
    UnorderedReadAndWrite,
    /// A copy begins on memory that has been given back: its host end lies in a block that is gone.
    UseAfterFree,
    /// Memory is given back under a copy in flight, whose host end lies in it.
    FreedInUse,
}

impl Defect {
    const fn sentence(self) -> &'static str {
        match self {
            Self::ReadBeforeWrite => "read before write",
            Self::UnorderedWrites => "unordered writes",
            Self::UnorderedReadAndWrite => "unordered read and write",
            Self::UseAfterFree => "use after free",
            Self::FreedInUse => "freed while in use",
        }
    }
}

/// One side of a [`SimReport`].
///
/// ```
/// use std::sync::Arc;
///
/// use purlin::sim::{Party, SimBackend, SimOptions};
/// use purlin::{AllocOptions, Buffer, Client, ClientOptions, DType, Shape};
///
/// let backend = Arc::new(SimBackend::new(SimOptions { fail_on_report: false, ..Default::default() }));
/// let client = Client::new(&ClientOptions::default(), backend.clone())?;
/// let (space, shape) = (client.devices()[0].default_memory_space(), Shape::new(DType::U8, &[4])?);
/// Buffer::uninitialized(&shape, None, &space, &AllocOptions::default())?.to_vec::<u8>()?;
/// let report = &backend.reports()[0];
/// assert!(matches!(report.earlier, Party::Allocation { .. }), "read before it was written: {report}");
/// # backend.shutdown();
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Party {
    /// A copy.
    Copy {
        /// Copies are numbered from 0 in the order in which the backend was asked for them.
        number: u64,
        /// What it copies.
        what: String,
        /// `true` if the bytes in question are those that it writes.
        writes: bool,
        /// Simulated time at which it was asked for.
        asked_ns: u64,
    },
    /// A block was allocated.
    Allocation {
        /// Blocks are numbered from 0 in the order in which they were handed out.
        number: u64,
        /// Simulated time.
        at_ns: u64,
    },
    /// A block was given back.
    Release {
        /// That of its allocation.
        number: u64,
        /// Simulated time.
        at_ns: u64,
    },
}

impl Party {
    /// This one, and whether the bytes in question are those that it writes.
    pub(crate) fn that_writes(mut self, does: bool) -> Self {
        if let Self::Copy { writes, .. } = &mut self {
            *writes = does;
        }
        self
    }
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Copy { number, what, writes, asked_ns } => {
                let does = if *writes { "writes" } else { "reads" };
                write!(f, "copy #{number} ({what}, asked for at {asked_ns} ns) {does} them")
            }
            Self::Allocation { number, at_ns } => write!(f, "allocation #{number} at {at_ns} ns left them unwritten"),
            Self::Release { number, at_ns } => write!(f, "allocation #{number} was given back at {at_ns} ns"),
        }
    }
}

/// A mistake of the program under test.
///
/// ```
/// use std::sync::Arc;
///
/// use purlin::sim::{Defect, SimBackend, SimOptions};
/// use purlin::{AllocOptions, Buffer, Client, ClientOptions, DType, Shape};
///
/// let backend = Arc::new(SimBackend::new(SimOptions { fail_on_report: false, ..Default::default() }));
/// let client = Client::new(&ClientOptions::default(), backend.clone())?;
/// let (space, shape) = (client.devices()[0].default_memory_space(), Shape::new(DType::U8, &[4])?);
/// Buffer::uninitialized(&shape, None, &space, &AllocOptions::default())?.to_vec::<u8>()?;
/// assert_eq!(backend.reports()[0].defect, Defect::ReadBeforeWrite);
/// # backend.shutdown();
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SimReport {
    /// Of which kind.
    pub defect: Defect,
    /// Address of the first byte in question.
    pub address: usize,
    /// How many bytes.
    pub size_bytes: usize,
    /// The party that was second.
    pub later: Party,
    /// The party that was first.
    pub earlier: Party,
    /// When it was found, in simulated time.
    pub found_ns: u64,
}

/// One line, with both places.
impl fmt::Display for SimReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { defect, address, size_bytes, later, earlier, found_ns } = self;
        write!(
            f,
            "{} of {size_bytes} bytes at {address:#x}, found at {found_ns} ns: {later}; {earlier}",
            defect.sentence()
        )?;
        match defect {
            Defect::UnorderedWrites | Defect::UnorderedReadAndWrite => f.write_str("; no event orders the two"),
            _ => Ok(()),
        }
    }
}
