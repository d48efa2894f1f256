//! A program: immutable, validated, shared.

use std::fmt;
use std::sync::Arc;

use crate::allocation::Allocation;
use crate::command::Sequence;
use crate::places::Places;
use crate::plan::{Pays, plan};
use crate::signature::ProgramSignature;
use crate::summary::ProgramSummary;
use crate::validate::validate;
use purlin_base::{Error, StatusOr};
use purlin_device::backend::INLINE_LIMIT_BYTES;

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

struct Parts {
    name: Arc<str>,
    signature: ProgramSignature,
    allocations: Vec<Allocation>,
    sequence: Sequence,
    places: Places,
    summary: ProgramSummary,
    pays: Pays,
    is_straight: bool,
}

impl Program {
    /// A program of these parts, which are validated here.
    ///
    /// # Errors
    /// `InvalidArgument`: a rule of [`validate`](crate::validate) is broken, or the temporaries have more bytes than an
    /// address counts.
    pub(crate) fn checked(
        name: Arc<str>,
        signature: ProgramSignature,
        allocations: Vec<Allocation>,
        mut sequence: Sequence,
        parallel_from_bytes: usize,
    ) -> StatusOr<Self> {
        let named =
            |error: Error| Error::new(error.code(), format!("the program '{name}' cannot run: {}", error.message()));
        validate(&signature, &allocations, &sequence).map_err(named)?;
        let places = Places::of(&allocations, signature.parameters.len(), signature.results.len()).map_err(named)?;
        let summary = ProgramSummary::of(&allocations, &sequence, places.temporary_bytes);
        let pays = plan(&mut sequence, parallel_from_bytes);
        let is_straight = !pays.is_parallel
            && summary.cost_bytes <= INLINE_LIMIT_BYTES
            && !["library", "collective"].iter().any(|kind| summary.command_counts.contains_key(kind));
        Ok(Self(Arc::new(Parts { name, signature, allocations, sequence, places, summary, pays, is_straight })))
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
