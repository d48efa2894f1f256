//! The builder of programs. Only [`ProgramBuilder::build`] can fail.

use std::sync::Arc;

use crate::allocation::{Allocation, AllocationKind, Slice};
use crate::command::{Command, Sequence};
use crate::constant::Constant;
use crate::plan::PARALLEL_BYTES;
use crate::program::Program;
use crate::signature::{Alias, ArraySpec, ProgramSignature};
use crate::unbound::UnboundProgram;
use purlin_base::StatusOr;

/// Collects the parts of a [`Program`]. Nothing is validated before [`build`](Self::build).
///
/// ```
/// use purlin::program::{ArraySpec, Command, Kernel, Operand, ProgramBuilder};
/// use purlin::{DType, Shape};
///
/// let vector = ArraySpec::new(Shape::new(DType::U8, &[8])?);
/// let mut builder = ProgramBuilder::new("increment");
/// let (x, y) = (builder.parameter(vector.clone()), builder.result(vector));
/// let kernel = Kernel::from_fn("add_one", |call| {
///     call.writes[0].iter_mut().zip(call.reads[0]).for_each(|(to, from)| *to = from.wrapping_add(1));
///     Ok(())
/// });
/// builder.push(Command::Kernel {
///     kernel,
///     workgroups: [1, 1, 1],
///     operands: vec![Operand::invariant(x), Operand::write(y)],
/// });
/// let program = builder.build()?;
/// assert_eq!(program.signature().to_string(), "(u8[8]) -> (u8[8])");
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Debug, Default)]
#[must_use = "a builder does nothing before it builds"]
pub struct ProgramBuilder {
    pub(crate) name: Arc<str>,
    pub(crate) signature: ProgramSignature,
    pub(crate) allocations: Vec<Allocation>,
    pub(crate) commands: Vec<Command>,
    parallel_from_bytes: Option<usize>,
}

impl ProgramBuilder {
    /// An empty program of that name.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// A program with that signature. The caller [adds](Self::allocate) its allocations one by one, as a compiler's
    /// planner does.
    pub fn with_signature(name: impl Into<Arc<str>>, signature: ProgramSignature) -> Self {
        Self { name: name.into(), signature, ..Self::default() }
    }

    /// Adds an allocation, and returns its number, as [`Slice::allocation`] holds it.
    pub fn allocate(&mut self, allocation: Allocation) -> u32 {
        self.add(allocation).allocation
    }

    /// Adds a command after those that were added before.
    pub fn push(&mut self, command: Command) -> &mut Self {
        self.commands.push(command);
        self
    }

    /// What is worth a thread of its own: commands that cost as much as a copy of `bytes` bytes run side by side if
    /// they are independent, and workgroups of native kernels are given out in parts of that cost. Without this call it
    /// is a number that was measured. 0: all that may be parallel is; `usize::MAX`: nothing is. The results are the
    /// same.
    pub fn parallel_from_bytes(&mut self, bytes: usize) -> &mut Self {
        self.parallel_from_bytes = Some(bytes);
        self
    }

    /// Adds a parameter, and returns the slice of all its bytes.
    pub fn parameter(&mut self, spec: ArraySpec) -> Slice {
        let kind = AllocationKind::Parameter { number: self.signature.parameters.len(), result: None };
        let allocation = Allocation { size_bytes: spec.size_bytes(), kind };
        self.signature.parameters.push(spec);
        self.add(allocation)
    }

    /// Adds a result, and returns the slice of all its bytes.
    pub fn result(&mut self, spec: ArraySpec) -> Slice {
        let kind = AllocationKind::Output { number: self.signature.results.len() };
        let allocation = Allocation { size_bytes: spec.size_bytes(), kind };
        self.signature.results.push(spec);
        self.add(allocation)
    }

    /// Adds a parameter and a result that share memory, and returns the slice of all its bytes. Bytes that no command
    /// writes have the argument's values in the result.
    pub fn donated_parameter(&mut self, spec: ArraySpec) -> Slice {
        let alias = Alias { parameter: self.signature.parameters.len(), result: self.signature.results.len() };
        let kind = AllocationKind::Parameter { number: alias.parameter, result: Some(alias.result) };
        let allocation = Allocation { size_bytes: spec.size_bytes(), kind };
        self.signature.parameters.push(spec.clone());
        self.signature.results.push(spec);
        self.signature.aliases.push(alias);
        self.add(allocation)
    }

    /// Adds a constant: bytes that are the same in all runs.
    pub fn constant(&mut self, bytes: &[u8]) -> Slice {
        let kind = AllocationKind::Constant(Constant::new(bytes));
        self.add(Allocation { size_bytes: bytes.len(), kind })
    }

    /// Adds a temporary: memory that lasts as long as a run.
    pub fn temporary(&mut self, size_bytes: usize) -> Slice {
        self.add(Allocation { size_bytes, kind: AllocationKind::Temporary })
    }

    fn add(&mut self, allocation: Allocation) -> Slice {
        // build() refuses more allocations than a u32 counts.
        let number = u32::try_from(self.allocations.len()).unwrap_or(u32::MAX);
        let all = Slice { allocation: number, offset_bytes: 0, size_bytes: allocation.size_bytes };
        self.allocations.push(allocation);
        all
    }

    /// Validates the parts, and returns the program.
    ///
    /// # Errors
    /// `InvalidArgument`: a part that no run could execute. The message names the command by its place, the operand and
    /// the numbers. The module `validate` lists the rules. Also, a kernel has no code ([`Kernel::unbound`]).
    ///
    /// [`Kernel::unbound`]: crate::Kernel::unbound
    pub fn build(self) -> StatusOr<Program> {
        self.build_unbound()?.bind(|_| None)
    }

    /// Validates the parts, in which kernels may have no code. So code can be loaded for a valid program alone.
    ///
    /// # Errors
    /// As [`build`](Self::build), except for the kernels without code.
    pub fn build_unbound(self) -> StatusOr<UnboundProgram> {
        let Self { name, signature, allocations, commands, parallel_from_bytes } = self;
        let from_bytes = parallel_from_bytes.unwrap_or(PARALLEL_BYTES);
        UnboundProgram::checked(name, signature, allocations, Sequence::new(commands), from_bytes)
    }
}
