//! Counts of a program's commands and bytes, and the estimated cost of a run.

use std::collections::BTreeMap;
use std::fmt;

use crate::allocation::{Allocation, AllocationKind};
use crate::command::{Command, Sequence};

/// The cost of a command beside the bytes that it accesses, in bytes copied.
const COMMAND_BYTES: usize = 256;

/// Counts of a program's commands and bytes, and its estimated cost. `Display` writes three lines: commands, memory,
/// cost.
///
/// ```
/// use purlin::program::{ArraySpec, Command, ProgramBuilder};
/// use purlin::{DType, Shape};
///
/// let mut builder = ProgramBuilder::new("zeros");
/// let to = builder.result(ArraySpec::new(Shape::new(DType::F32, &[16])?));
/// builder.push(Command::Fill { pattern: vec![0], to });
/// let program = builder.build()?;
/// let summary = program.summary();
/// assert_eq!((summary.command_counts["fill"], summary.result_bytes, summary.flops), (1, 64, 0));
/// assert!(summary.to_string().contains("commands: 1 fill"), "{summary}");
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProgramSummary {
    /// The number of commands of each kind. A command inside another one is counted once.
    pub command_counts: BTreeMap<&'static str, usize>,
    /// Bytes of parameters.
    pub parameter_bytes: usize,
    /// Bytes of results.
    pub result_bytes: usize,
    /// Bytes that a parameter and a result share. They are counted in both of the fields above, too.
    pub alias_bytes: usize,
    /// Bytes of constants.
    pub constant_bytes: usize,
    /// Bytes of the one block of temporaries that a run takes.
    pub temporary_bytes: usize,
    /// The estimated cost of a run: as long as a copy of this many bytes takes. It is `usize::MAX` if a loop has no
    /// trip count, because the cost is then unknown.
    pub cost_bytes: usize,
    /// Floating-point operations of a run, summed over the library calls that report theirs.
    pub flops: u64,
}

impl ProgramSummary {
    pub(crate) fn of(allocations: &[Allocation], sequence: &Sequence, temporary_bytes: usize) -> Self {
        let mut summary = Self { temporary_bytes, ..Self::default() };
        for Allocation { size_bytes, kind } in allocations {
            let counts: &mut [&mut usize] = match kind {
                AllocationKind::Parameter { result: None, .. } => &mut [&mut summary.parameter_bytes],
                AllocationKind::Parameter { result: Some(_), .. } => {
                    &mut [&mut summary.parameter_bytes, &mut summary.result_bytes, &mut summary.alias_bytes]
                }
                AllocationKind::Output { .. } => &mut [&mut summary.result_bytes],
                AllocationKind::Constant(_) => &mut [&mut summary.constant_bytes],
                AllocationKind::Temporary | AllocationKind::ThreadLocal => &mut [],
            };
            counts.iter_mut().for_each(|count| **count = count.saturating_add(*size_bytes));
        }
        let cost = summary.count(sequence);
        summary.cost_bytes = cost.bytes;
        summary.flops = cost.flops;
        summary
    }

    /// Counts the commands, and returns their cost.
    fn count(&mut self, sequence: &Sequence) -> Cost {
        sequence.commands().iter().fold(Cost::default(), |sum, command| sum.plus(self.count_command(command)))
    }

    fn count_command(&mut self, command: &Command) -> Cost {
        *self.command_counts.entry(command.kind()).or_default() += 1;
        let touched = |bytes: usize| Cost { bytes: bytes.saturating_add(COMMAND_BYTES), flops: 0 };
        let sum = |operands: &[crate::Operand]| {
            operands.iter().fold(0_usize, |sum, operand| sum.saturating_add(operand.slice.size_bytes))
        };
        match command {
            Command::Kernel { operands, workgroups, .. } => {
                let calls = workgroups.iter().product::<u64>();
                touched(sum(operands)).plus(touched(0).times(calls))
            }
            Command::Library { call, operands } => {
                let bytes = call.cost_bytes().unwrap_or_else(|| sum(operands));
                Cost { flops: call.flops().unwrap_or(0), ..touched(bytes) }
            }
            Command::Copy { to, .. } | Command::Fill { to, .. } => touched(to.size_bytes),
            Command::ReplicaId { .. } | Command::PartitionId { .. } => touched(0),
            Command::Call(body) => self.count(body),
            Command::Repeat { trip_count, body } => touched(0).plus(self.count(body)).times(*trip_count),
            Command::While { condition, body, .. } => {
                let once = self.count(condition).plus(self.count(body));
                Cost { bytes: usize::MAX, ..once }
            }
            Command::Conditional { branches, .. } => {
                let most = branches.iter().map(|branch| self.count(branch)).fold(Cost::default(), Cost::or);
                most.plus(touched(0))
            }
        }
    }
}

/// The cost of commands.
#[derive(Clone, Copy, Default)]
struct Cost {
    bytes: usize,
    flops: u64,
}

impl Cost {
    fn plus(self, other: Self) -> Self {
        Self { bytes: self.bytes.saturating_add(other.bytes), flops: self.flops.saturating_add(other.flops) }
    }

    fn times(self, count: u64) -> Self {
        let bytes = usize::try_from(count).map_or(usize::MAX, |count| self.bytes.saturating_mul(count));
        Self { bytes, flops: self.flops.saturating_mul(count) }
    }

    fn or(self, other: Self) -> Self {
        Self { bytes: self.bytes.max(other.bytes), flops: self.flops.max(other.flops) }
    }
}

impl fmt::Display for ProgramSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts: Vec<_> = self.command_counts.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        writeln!(f, "commands: {}", counts.join(", "))?;
        writeln!(
            f,
            "memory: {} bytes of parameters, {} of results, {} of both, {} of constants, {} of temporaries",
            self.parameter_bytes, self.result_bytes, self.alias_bytes, self.constant_bytes, self.temporary_bytes
        )?;
        match self.cost_bytes {
            usize::MAX => write!(f, "a run: as long as its loops say"),
            cost => write!(f, "a run: as a copy of {cost} bytes"),
        }?;
        if self.flops > 0 {
            write!(f, ", {} flops in library calls", self.flops)?;
        }
        Ok(())
    }
}
