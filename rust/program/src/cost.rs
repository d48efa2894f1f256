//! The estimated cost of commands: as long as a copy of so many bytes takes.

use crate::command::{Command, Sequence};
use crate::operand::Operand;

/// The cost of a command beside the bytes that it accesses, in bytes copied.
const COMMAND_BYTES: usize = 256;

/// The cost of commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    /// Bytes copied in the same time. It is `usize::MAX` if a loop has no trip count.
    pub(crate) bytes: usize,
    /// Floating-point operations of library calls that report theirs.
    pub(crate) flops: u64,
}

/// The bytes of all operands.
pub(crate) fn operand_bytes(operands: &[Operand]) -> usize {
    operands.iter().fold(0, |sum: usize, operand| sum.saturating_add(operand.slice.size_bytes))
}

impl Cost {
    /// The cost of all commands of `sequence`, once.
    pub(crate) fn of_sequence(sequence: &Sequence) -> Self {
        sequence.commands().iter().fold(Self::default(), |sum, command| sum.plus(Self::of(command)))
    }

    /// The cost of `command`, with the sequences inside it.
    pub(crate) fn of(command: &Command) -> Self {
        let touched = |bytes: usize| Self { bytes: bytes.saturating_add(COMMAND_BYTES), flops: 0 };
        match command {
            Command::Kernel { operands, workgroups, .. } => {
                let calls = workgroups.iter().product::<u64>();
                touched(operand_bytes(operands)).plus(touched(0).times(calls))
            }
            Command::Library { call, operands } => {
                let bytes = call.cost_bytes().unwrap_or_else(|| operand_bytes(operands));
                Self { flops: call.flops().unwrap_or(0), ..touched(bytes) }
            }
            Command::Collective { arrays, .. } => {
                let bytes = arrays.iter().map(|array| array.from.size_bytes.saturating_add(array.to.size_bytes));
                touched(bytes.fold(0, usize::saturating_add))
            }
            Command::Copy { to, .. } | Command::Fill { to, .. } => touched(to.size_bytes),
            Command::ReplicaId { .. } | Command::PartitionId { .. } => touched(0),
            Command::Call(body) => Self::of_sequence(body),
            Command::Repeat { trip_count, body } => touched(0).plus(Self::of_sequence(body)).times(*trip_count),
            Command::While { condition, body, .. } => {
                let once = Self::of_sequence(condition).plus(Self::of_sequence(body));
                Self { bytes: usize::MAX, ..once }
            }
            Command::Conditional { branches, .. } => {
                let most = branches.iter().map(Self::of_sequence).fold(Self::default(), Self::or);
                most.plus(touched(0))
            }
        }
    }

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
