//! Counts of a program's commands and bytes, and the estimated cost of a run.

use std::collections::BTreeMap;
use std::fmt;

use crate::allocation::{Allocation, AllocationKind};
use crate::command::{Command, Sequence};
use crate::cost::{Cost, operand_bytes};

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
    /// The library calls by their names.
    pub library_calls: BTreeMap<String, LibraryWork>,
}

/// What the library calls of one name do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LibraryWork {
    /// The number of calls; one inside a loop is counted once.
    pub count: usize,
    /// Bytes of the operands of the largest.
    pub largest_bytes: usize,
    /// Floating-point operations of the largest; 0 where it reports none.
    pub largest_flops: u64,
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
        summary.count(sequence);
        let cost = Cost::of_sequence(sequence);
        summary.cost_bytes = cost.bytes;
        summary.flops = cost.flops;
        summary
    }

    /// Counts the commands by their kind.
    fn count(&mut self, sequence: &Sequence) {
        for command in sequence.commands() {
            *self.command_counts.entry(command.kind()).or_default() += 1;
            if let Command::Library { call, operands } = command {
                let work = self.library_calls.entry(call.name().to_owned()).or_default();
                work.count += 1;
                work.largest_bytes = work.largest_bytes.max(operand_bytes(operands));
                work.largest_flops = work.largest_flops.max(call.flops().unwrap_or(0));
            }
            command.sequences().for_each(|(_, inner)| self.count(inner));
        }
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
