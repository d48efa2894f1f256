//! Plans: which commands of a sequence run side by side, and which kernels are spread over several threads. They are
//! made once, when a program is built, and only if this pays: most programs have none.
//!
//! A command *depends* on an earlier one of its sequence if one of the two writes a byte that the other accesses. Its
//! level is one more than the highest level of the commands that it depends on (`levels.rs`). Commands of one level are
//! independent, so they form a [`Wave`]: they run side by side, and the next wave begins when all of them are over. A
//! command that contains sequences accesses all the bytes that those access. Library calls that are not
//! [pure](crate::LibraryCall::is_pure) keep their order.
//!
//! Small commands of a wave are executed one after the other, because the hop to another thread would cost more than
//! they do. A wave with fewer than two large commands is executed by one thread.

mod levels;

use crate::command::{Command, Sequence};
use crate::cost::{Cost, operand_bytes};

/// A command, or a part of a kernel's workgroups, is worth a thread of its own if it costs as much as a copy of this
/// many bytes: 5 us, which is about what a thread needs to wake up. The example `parallel_cost` measures that (two
/// cores under load, 2026-11-24: writing 256 KiB twice takes 4.8 us on one thread; asking a helper that does not come
/// costs 0.1 to 0.3 us; 4 MiB twice took 84 us on one thread and 44 us on two).
pub(crate) const PARALLEL_BYTES: usize = 256 << 10;

/// The commands of one level, by their numbers: chunks that run side by side, each in its order on one thread.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wave {
    pub(crate) chunks: Vec<Vec<usize>>,
}

/// How the commands of a program are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pays {
    /// What a command costs that is worth a thread of its own.
    pub(crate) from_bytes: usize,
    /// Whether there is anything to run in parallel.
    pub(crate) is_parallel: bool,
}

/// Makes the plans of `sequence` and of all sequences inside it, and numbers their commands. The sequence is valid.
pub(crate) fn plan(sequence: &mut Sequence, from_bytes: usize) -> Pays {
    let mut planner = Planner { from_bytes, is_parallel: false, numbered: 0 };
    planner.sequence(sequence);
    Pays { from_bytes, is_parallel: planner.is_parallel }
}

/// The most workgroups of a kernel that one thread executes at a time; `None`: all of them, because others would not
/// pay.
pub(crate) fn grain(workgroups: u64, bytes: usize, from_bytes: usize) -> Option<usize> {
    let count = usize::try_from(workgroups).ok().filter(|&count| count > 1)?;
    let parts = bytes.checked_div(from_bytes).unwrap_or(count).min(count);
    (parts > 1).then(|| count.div_ceil(parts))
}

struct Planner {
    from_bytes: usize,
    is_parallel: bool,
    /// The number of commands that have a number.
    numbered: u32,
}

impl Planner {
    fn sequence(&mut self, sequence: &mut Sequence) {
        let first = self.numbered;
        // More commands than a u32 counts do not fit into memory.
        self.numbered = first.wrapping_add(sequence.commands().len() as u32);
        let waves = self.waves(sequence.commands());
        self.is_parallel |= !waves.is_empty();
        sequence.planned(first, waves);
        for command in sequence.commands_mut() {
            if let Command::Kernel { kernel, workgroups, operands } = command {
                let count = workgroups.iter().product();
                let is_spread = grain(count, operand_bytes(operands), self.from_bytes).is_some();
                self.is_parallel |= is_spread && kernel.takes_addresses();
            }
            command.sequences_mut().for_each(|inner| self.sequence(inner));
        }
    }

    /// The waves, if one of them has two commands that are worth threads of their own; else none.
    fn waves(&self, commands: &[Command]) -> Vec<Wave> {
        let is_large: Vec<bool> = commands.iter().map(|command| Cost::of(command).bytes >= self.from_bytes).collect();
        if is_large.iter().filter(|is_large| **is_large).count() < 2 {
            return Vec::new();
        }
        let Some(levels) = levels::levels(commands) else { return Vec::new() };
        let count = levels.iter().max().map_or(0, |&most| most as usize);
        let mut waves: Vec<Wave> = (0..count).map(|_| Wave { chunks: Vec::new() }).collect();
        let mut small: Vec<Vec<usize>> = vec![Vec::new(); count];
        for (index, &level) in levels.iter().enumerate() {
            let at = level as usize - 1;
            if is_large[index] {
                waves[at].chunks.push(vec![index]);
            } else {
                small[at].push(index);
            }
        }
        let is_worth_it = waves.iter().any(|wave| wave.chunks.len() > 1);
        for (wave, small) in waves.iter_mut().zip(small) {
            if wave.chunks.len() < 2 {
                let mut all: Vec<usize> = wave.chunks.drain(..).flatten().chain(small).collect();
                all.sort_unstable();
                wave.chunks.push(all);
            } else if !small.is_empty() {
                wave.chunks.push(small);
            }
        }
        if is_worth_it { waves } else { Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocation::Slice;

    fn fill(offset_bytes: usize, size_bytes: usize) -> Command {
        Command::Fill { pattern: vec![0], to: Slice { allocation: 0, offset_bytes, size_bytes } }
    }

    fn waves(commands: Vec<Command>, from_bytes: usize) -> Vec<Vec<Vec<usize>>> {
        let mut sequence = Sequence::new(commands);
        let is_parallel = plan(&mut sequence, from_bytes).is_parallel;
        assert_eq!(is_parallel, !sequence.waves().is_empty());
        sequence.waves().iter().map(|wave| wave.chunks.clone()).collect()
    }

    #[test]
    fn large_commands_that_are_independent_are_a_wave() {
        let commands = || vec![fill(0, 1000), fill(1000, 1000), fill(2000, 1), fill(2001, 1), fill(500, 1000)];
        assert_eq!(waves(commands(), 1000), [vec![vec![0], vec![1], vec![2, 3]], vec![vec![4]]]);
        assert!(waves(commands(), 2000).is_empty(), "all of them are small");
        assert!(waves(vec![fill(0, 1000), fill(999, 1000)], 1000).is_empty(), "both write a byte");
        assert_eq!(waves(vec![fill(0, 1), fill(1, 1)], 0), [vec![vec![0], vec![1]]]);
    }

    #[test]
    fn inner_sequences_have_plans_and_all_commands_have_numbers() {
        let inner = Sequence::new(vec![fill(0, 1000), fill(1000, 1000)]);
        let mut sequence = Sequence::new(vec![fill(0, 1), Command::Call(inner), fill(1, 1)]);
        assert!(plan(&mut sequence, 1000).is_parallel);
        let Command::Call(inner) = &sequence.commands()[1] else { unreachable!() };
        assert_eq!((sequence.first(), inner.first(), inner.waves().len()), (0, 3, 1));
    }

    #[test]
    fn a_kernel_is_spread_in_parts_that_pay() {
        assert_eq!(grain(8, 1000, 1000), None, "one part");
        assert_eq!(grain(8, 2000, 1000), Some(4));
        assert_eq!(grain(8, 3999, 1000), Some(3));
        assert_eq!(grain(8, 1_000_000, 1000), Some(1));
        assert_eq!(grain(1, 1_000_000, 1000), None);
        assert_eq!(grain(0, 1_000_000, 1000), None);
        assert_eq!(grain(2, 0, 0), Some(1), "without a threshold all are spread");
        assert_eq!(grain(u64::MAX, usize::MAX, 1), Some(1));
    }
}
