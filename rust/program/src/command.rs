//! What a program does: commands, in an order that is always right.
//!
//! Commands are done one after the other, as they stand in their [`Sequence`]. A sequence may hold commands that hold
//! sequences, [`MOST_NESTED`] deep at most.

use std::fmt;
use std::sync::Arc;

use crate::allocation::Slice;
use crate::kernel::Kernel;
use crate::library::LibraryCall;
use crate::operand::Operand;

/// How deep sequences may stand inside one another; the program's own is the first.
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
        /// Which.
        kernel: Kernel,
        /// The size of the grid, the fastest dimension first; with a 0 among them nothing is called.
        workgroups: [u64; 3],
        /// Arguments, then results.
        operands: Vec<Operand>,
    },
    /// Copies bytes; the two are equally long, and may overlap as for memmove.
    Copy {
        /// From here,
        from: Slice,
        /// to here.
        to: Slice,
    },
    /// Writes a pattern again and again; `to` is a multiple of it.
    Fill {
        /// One byte or more.
        pattern: Vec<u8>,
        /// Where.
        to: Slice,
    },
    /// Does the commands of a sequence.
    Call(Sequence),
    /// Does `condition`, which writes `predicate`, then, if that byte is not 0, `body`, and so on.
    While {
        /// Done once more than the body.
        condition: Sequence,
        /// One byte.
        predicate: Slice,
        /// Done as long as the condition holds.
        body: Sequence,
    },
    /// Does `body` as often as is said here: a loop whose trip count is known. XLA's has a condition beside; nobody
    /// needs it.
    Repeat {
        /// How often.
        trip_count: u64,
        /// What.
        body: Sequence,
    },
    /// Does one of several sequences.
    Conditional {
        /// Says which.
        branch: Branch,
        /// At least one; after a predicate two.
        branches: Vec<Sequence>,
    },
    /// Code that no kernel is: dot, sort, fft, rng, custom calls.
    Library {
        /// The code.
        call: Arc<dyn LibraryCall>,
        /// What it touches.
        operands: Vec<Operand>,
    },
    /// Writes the number of the replica that runs, a `u32`.
    ReplicaId {
        /// Four bytes.
        to: Slice,
    },
    /// Writes the number of the partition that runs, a `u32`.
    PartitionId {
        /// Four bytes.
        to: Slice,
    },
}

/// How a conditional chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Branch {
    /// One byte: not 0 is the first sequence, 0 the second.
    Predicate(Slice),
    /// An `i32`: the number of the sequence; one that there is not is the last.
    Index(Slice),
}

impl Branch {
    /// Where the choice stands.
    #[must_use]
    pub const fn slice(&self) -> Slice {
        match self {
            Self::Predicate(slice) | Self::Index(slice) => *slice,
        }
    }
}

impl Command {
    /// Its kind, as reports count it.
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
            Self::ReplicaId { .. } => "replica-id",
            Self::PartitionId { .. } => "partition-id",
        }
    }

    /// The sequences inside it, and what they are to it.
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

    /// Takes those sequences apart, for a drop that needs no stack.
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
            _ => Ok(()),
        }
    }
}

/// Commands, one after the other.
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
}

impl Sequence {
    /// These commands.
    #[must_use]
    pub fn new(commands: Vec<Command>) -> Self {
        let inner = commands.iter().flat_map(Command::sequences).map(|(_, inner)| inner.depth).max();
        Self { depth: inner.unwrap_or(0) + 1, commands }
    }

    /// The commands.
    #[must_use]
    pub fn commands(&self) -> &[Command] {
        &self.commands
    }

    /// How deep sequences stand inside one another here: 1 without commands that have some.
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

// However deep it is: what is too deep for a program has been made, and must be dropped.
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
