//! A program: immutable, validated, shared.

use std::fmt;
use std::sync::Arc;

use crate::allocation::Allocation;
use crate::command::Sequence;
use crate::places::Places;
use crate::plan::Pays;
use crate::signature::ProgramSignature;
use crate::summary::ProgramSummary;

/// The output of a compiler for one computation, validated. Clones share it. A
/// [`ProgramBuilder`](crate::ProgramBuilder) makes it.
///
/// ```
/// use purlin::program::{ArraySpec, Command, ProgramBuilder, Slice};
/// use purlin::{DType, Shape, StatusCode};
///
/// let mut builder = ProgramBuilder::new("wrong");
/// let to = builder.result(ArraySpec::new(Shape::new(DType::F32, &[16])?));
/// builder.push(Command::Fill { pattern: vec![0], to: Slice { offset_bytes: 32, ..to } });
/// let error = builder.build().unwrap_err();
/// assert_eq!(error.code(), StatusCode::InvalidArgument);
/// assert!(
///     error.message().ends_with("operand 0: bytes [32, 96) do not lie in allocation 0 of 64 bytes"),
///     "{error}"
/// );
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone)]
pub struct Program(Arc<Parts>);

pub(crate) struct Parts {
    pub(crate) name: Arc<str>,
    pub(crate) signature: ProgramSignature,
    pub(crate) allocations: Vec<Allocation>,
    pub(crate) sequence: Sequence,
    pub(crate) places: Places,
    pub(crate) summary: ProgramSummary,
    pub(crate) pays: Pays,
    pub(crate) is_straight: bool,
}

impl Program {
    /// A program of these parts, which are valid, and whose kernels have code.
    pub(crate) fn new(parts: Parts) -> Self {
        Self(Arc::new(parts))
    }

    /// The name, which errors and traces show.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The parameters and the results.
    #[must_use]
    pub fn signature(&self) -> &ProgramSignature {
        &self.0.signature
    }

    /// The memory that its commands name, by number.
    #[must_use]
    pub fn allocations(&self) -> &[Allocation] {
        &self.0.allocations
    }

    /// The commands.
    #[must_use]
    pub fn sequence(&self) -> &Sequence {
        &self.0.sequence
    }

    /// Counts of its commands and bytes, and its estimated cost.
    #[must_use]
    pub fn summary(&self) -> &ProgramSummary {
        &self.0.summary
    }

    pub(crate) fn places(&self) -> &Places {
        &self.0.places
    }

    /// What is executed in parallel.
    pub(crate) fn pays(&self) -> Pays {
        self.0.pays
    }

    /// Whether devices of one launch exchange arrays.
    pub(crate) fn has_collectives(&self) -> bool {
        self.0.summary.command_counts.contains_key("collective")
    }

    /// Whether a run is short, and calls nothing that may wait: it is executed on one thread, and no stall report could
    /// show it.
    pub(crate) fn is_straight(&self) -> bool {
        self.0.is_straight
    }
}

/// `Program('step': (f32[8]) -> (f32[8]))`
impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Program('{}': {})", self.0.name, self.0.signature)
    }
}
