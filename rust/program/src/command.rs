//! Commands: the steps of a program, in an order that respects every dependency.
//!
//! A run executes commands as if one after the other, in the order of their [`Sequence`]. A command may contain
//! sequences, nested at most [`MOST_NESTED`] deep. Nothing here is validated (`validate` does that), and nothing here
//! can fail.

use std::fmt;
use std::sync::Arc;

use crate::allocation::Slice;
use crate::collective::{Collective, CollectiveArray};
use crate::kernel::Kernel;
use crate::library::LibraryCall;
use crate::operand::Operand;
use crate::plan::Wave;

/// How deep sequences of a program may be nested. The program's own sequence is level 1.
pub const MOST_NESTED: usize = 64;

/// One step of a program.
///
/// ```
/// use purlin::program::{Command, Sequence, Slice};
///
/// let counter = Slice { allocation: 0, offset_bytes: 0, size_bytes: 4 };
/// let clear = Command::Fill { pattern: vec![0], to: counter };
/// let loops = Command::Repeat { trip_count: 3, body: Sequence::new(vec![clear]) };
/// assert_eq!((loops.kind(), loops.sequences().count()), ("repeat", 1));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Command {
    /// Calls a kernel, once for each workgroup.
    Kernel {
        /// The code.
        kernel: Kernel,
        /// The size of the grid, the fastest dimension first. If one of them is 0, the kernel is not called.
        workgroups: [u64; 3],
        /// Arguments, then results.
        operands: Vec<Operand>,
    },
    /// Copies bytes. Both slices have the same length, and may overlap, as for memmove.
    Copy {
        /// The source.
        from: Slice,
        /// The destination.
        to: Slice,
    },
    /// Writes a pattern repeatedly. The length of `to` is a multiple of the pattern's.
    Fill {
        /// One byte or more.
        pattern: Vec<u8>,
        /// The destination.
        to: Slice,
    },
    /// Executes a sequence.
    Call(Sequence),
    /// A loop. Each iteration executes `condition`, which writes `predicate`, and then `body` if that byte is not 0.
    /// The loop ends when the byte is 0.
    While {
        /// Executed once more than the body.
        condition: Sequence,
        /// One byte.
        predicate: Slice,
        /// Executed while the predicate is not 0.
        body: Sequence,
    },
    /// A loop whose trip count is known. XLA's form of it also has a condition, which is not needed.
    Repeat {
        /// How often the body is executed.
        trip_count: u64,
        /// The body.
        body: Sequence,
    },
    /// Executes one of several sequences.
    Conditional {
        /// The choice.
        branch: Branch,
        /// The sequences: two for a predicate, at least one for an index.
        branches: Vec<Sequence>,
    },
    /// Work other than kernels: dot, sort, fft, rng, custom calls.
    Library {
        /// The code.
        call: Arc<dyn LibraryCall>,
        /// The bytes that the code accesses.
        operands: Vec<Operand>,
    },
    /// Exchanges arrays with the other devices of the launch.
    Collective {
        /// The operation and its groups.
        collective: Collective,
        /// The arrays, the same number on all devices.
        arrays: Vec<CollectiveArray>,
    },
    /// Writes the number of the replica that executes the command, as a `u32`.
    ReplicaId {
        /// Four bytes.
        to: Slice,
    },
    /// Writes the number of the partition that executes the command, as a `u32`.
    PartitionId {
        /// Four bytes.
        to: Slice,
    },
}

/// How a conditional chooses its sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Branch {
    /// One byte: any value but 0 chooses the first sequence, 0 the second.
    Predicate(Slice),
    /// An `i32`: the number of the sequence. A number out of range chooses the last one.
    Index(Slice),
}

impl Branch {
    /// The bytes that hold the choice.
    #[must_use]
    pub const fn slice(&self) -> Slice {
        match self {
            Self::Predicate(slice) | Self::Index(slice) => *slice,
        }
    }
}

impl Command {
    /// The kind of the command, as `ProgramSummary` counts it.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Kernel { .. } => "kernel",
            Self::Copy { .. } => "copy",
            Self::Fill { .. } => "fill",
            Self::Call(_) => "call",
            Self::While { .. } => "while",
            Self::Repeat { .. } => "repeat",
            Self::Conditional { .. } => "conditional",
            Self::Library { .. } => "library",
            Self::Collective { .. } => "collective",
            Self::ReplicaId { .. } => "replica-id",
            Self::PartitionId { .. } => "partition-id",
        }
    }

    /// The sequences inside the command, each with its role.
    pub fn sequences(&self) -> impl Iterator<Item = (&'static str, &Sequence)> {
        let (first, second, branches): (Option<_>, Option<_>, &[Sequence]) = match self {
            Self::Call(body) => (Some(("call", body)), None, &[]),
            Self::While { condition, body, .. } => (Some(("condition", condition)), Some(("body", body)), &[]),
            Self::Repeat { body, .. } => (Some(("body", body)), None, &[]),
            Self::Conditional { branches, .. } => (None, None, branches),
            _ => (None, None, &[]),
        };
        first.into_iter().chain(second).chain(branches.iter().map(|branch| ("branch", branch)))
    }

    /// The sequences inside the command.
    pub(crate) fn sequences_mut(&mut self) -> impl Iterator<Item = &mut Sequence> {
        let (first, second, branches): (Option<_>, Option<_>, &mut [Sequence]) = match self {
            Self::Call(body) | Self::Repeat { body, .. } => (Some(body), None, &mut []),
            Self::While { condition, body, .. } => (Some(condition), Some(body), &mut []),
            Self::Conditional { branches, .. } => (None, None, branches),
            _ => (None, None, &mut []),
        };
        first.into_iter().chain(second).chain(branches)
    }

    /// Moves the commands of those sequences to `into`, for a drop without recursion.
    fn take_sequences(&mut self, into: &mut Vec<Command>) {
        match self {
            Self::Call(body) | Self::Repeat { body, .. } => into.append(&mut body.commands),
            Self::While { condition, body, .. } => {
                into.append(&mut condition.commands);
                into.append(&mut body.commands);
            }
            Self::Conditional { branches, .. } => {
                branches.iter_mut().for_each(|branch| into.append(&mut branch.commands));
            }
            _ => {}
        }
    }
}

/// `kernel 'add'`, `copy`, `library 'dot'`
impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())?;
        match self {
            Self::Kernel { kernel, .. } => write!(f, " '{}'", kernel.name()),
            Self::Library { call, .. } => write!(f, " '{}'", call.name()),
            Self::Collective { collective, .. } => write!(f, " '{collective}'"),
            _ => Ok(()),
        }
    }
}

/// Commands, executed one after the other.
///
/// ```
/// use purlin::program::{Command, Sequence};
///
/// let nested = Sequence::new(vec![Command::Call(Sequence::default())]);
/// assert_eq!((nested.commands().len(), nested.depth()), (1, 2));
/// ```
#[derive(Debug)]
pub struct Sequence {
    commands: Vec<Command>,
    depth: usize,
    /// The number of the first command among all commands of the program. The others of the sequence follow.
    first: u32,
    /// Commands that run side by side. Empty: they run one after the other, in their order.
    waves: Vec<Wave>,
}

impl Sequence {
    /// A sequence of these commands.
    #[must_use]
    pub fn new(commands: Vec<Command>) -> Self {
        let inner = commands.iter().flat_map(Command::sequences).map(|(_, inner)| inner.depth).max();
        Self { depth: inner.unwrap_or(0) + 1, commands, first: 0, waves: Vec::new() }
    }

    /// The commands.
    #[must_use]
    pub fn commands(&self) -> &[Command] {
        &self.commands
    }

    pub(crate) fn commands_mut(&mut self) -> &mut [Command] {
        &mut self.commands
    }

    /// Records the plan of a valid sequence.
    pub(crate) fn planned(&mut self, first: u32, waves: Vec<Wave>) {
        (self.first, self.waves) = (first, waves);
    }

    pub(crate) fn first(&self) -> u32 {
        self.first
    }

    pub(crate) fn waves(&self) -> &[Wave] {
        &self.waves
    }

    /// The path of command `number` of the program, as errors show it, such as `3.body.1 (kernel 'add')`.
    pub(crate) fn path_of(&self, number: u32) -> Option<String> {
        let within = number.wrapping_sub(self.first) as usize;
        if let Some(command) = self.commands.get(within) {
            return Some(format!("{within} ({command})"));
        }
        self.commands.iter().enumerate().find_map(|(index, command)| {
            let inside = |(name, inner): (&str, &Self)| Some(format!("{index}.{name}.{}", inner.path_of(number)?));
            command.sequences().find_map(inside)
        })
    }

    /// How deep sequences are nested: 1 if no command of this one contains a sequence.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.depth
    }
}

impl Default for Sequence {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

impl From<Vec<Command>> for Sequence {
    fn from(commands: Vec<Command>) -> Self {
        Self::new(commands)
    }
}

// Without recursion, at any depth: a sequence that is too deep for a program can exist, and must be dropped.
impl Drop for Sequence {
    fn drop(&mut self) {
        if self.depth <= MOST_NESTED {
            return;
        }
        let mut left = std::mem::take(&mut self.commands);
        while let Some(mut command) = left.pop() {
            command.take_sequences(&mut left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_of_any_depth_can_be_dropped() {
        let mut nested = Sequence::default();
        for _ in 0..100_000 {
            nested = Sequence::new(vec![Command::Repeat { trip_count: 1, body: nested }]);
        }
        assert_eq!(nested.depth(), 100_001);
        drop(nested);
    }
}
