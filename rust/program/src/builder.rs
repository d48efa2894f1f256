//! How a program is made.

use std::sync::Arc;

use crate::allocation::{Allocation, AllocationKind, Slice};
use crate::command::{Command, Sequence};
use crate::constant::Constant;
use crate::program::Program;
use crate::signature::{Alias, ArraySpec, ProgramSignature};
use purlin_base::StatusOr;

/// Collects what a [`Program`] is made of. Nothing is checked before [`build`](Self::build).
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
}

impl ProgramBuilder {
    /// A program of that name without anything in it.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// A program with that signature, whose allocations are [added](Self::allocate) one by one: for planners.
    pub fn with_signature(name: impl Into<Arc<str>>, signature: ProgramSignature) -> Self {
        Self { name: name.into(), signature, ..Self::default() }
    }

    /// Adds an allocation; its number is that of [`Slice::allocation`].
    pub fn allocate(&mut self, allocation: Allocation) -> u32 {
        self.add(allocation).allocation
    }

    /// Adds a command behind those that are there.
    pub fn push(&mut self, command: Command) -> &mut Self {
        self.commands.push(command);
        self
    }

    /// Adds a parameter; all of its bytes.
    pub fn parameter(&mut self, spec: ArraySpec) -> Slice {
        let kind = AllocationKind::Parameter { number: self.signature.parameters.len(), result: None };
        let allocation = Allocation { size_bytes: spec.size_bytes(), kind };
        self.signature.parameters.push(spec);
        self.add(allocation)
    }

    /// Adds a result; all of its bytes.
    pub fn result(&mut self, spec: ArraySpec) -> Slice {
        let kind = AllocationKind::Output { number: self.signature.results.len() };
        let allocation = Allocation { size_bytes: spec.size_bytes(), kind };
        self.signature.results.push(spec);
        self.add(allocation)
    }

    /// Adds a parameter and a result of the same memory; all of its bytes. What is not written comes out as it went in.
    pub fn donated_parameter(&mut self, spec: ArraySpec) -> Slice {
        let alias = Alias { parameter: self.signature.parameters.len(), result: self.signature.results.len() };
        let kind = AllocationKind::Parameter { number: alias.parameter, result: Some(alias.result) };
        let allocation = Allocation { size_bytes: spec.size_bytes(), kind };
        self.signature.parameters.push(spec.clone());
        self.signature.results.push(spec);
        self.signature.aliases.push(alias);
        self.add(allocation)
    }

    /// Adds bytes that are the same in all runs.
    pub fn constant(&mut self, bytes: &[u8]) -> Slice {
        let kind = AllocationKind::Constant(Constant::new(bytes));
        self.add(Allocation { size_bytes: bytes.len(), kind })
    }

    /// Adds memory that lasts as long as a run.
    pub fn temporary(&mut self, size_bytes: usize) -> Slice {
        self.add(Allocation { size_bytes, kind: AllocationKind::Temporary })
    }

    fn add(&mut self, allocation: Allocation) -> Slice {
        // More than a u32 counts is refused when it is built.
        let number = u32::try_from(self.allocations.len()).unwrap_or(u32::MAX);
        let all = Slice { allocation: number, offset_bytes: 0, size_bytes: allocation.size_bytes };
        self.allocations.push(allocation);
        all
    }

    /// The program, checked.
    ///
    /// # Errors
    /// `InvalidArgument`, naming the command by its place, the operand and the numbers: what no run could do. The
    /// module `validate` has the rules.
    pub fn build(self) -> StatusOr<Program> {
        let Self { name, signature, allocations, commands } = self;
        Program::checked(name, signature, allocations, Sequence::new(commands))
    }
}
