//! The levels of commands: 1 for a command that depends on no earlier one, else one more than the highest level of
//! those that it depends on.
//!
//! For each allocation there is a list of segments that are disjoint, each with the highest level of the commands that
//! have read it since it was written, and with the level of the last command that wrote it. An access splits the
//! segments at its ends; a write replaces all segments inside it by one.

use std::collections::{BTreeMap, HashMap};

use crate::allocation::Slice;
use crate::command::Command;
use crate::operand::{Operand, OperandAccess};

/// Segments that may be looked at for each access, on average, and for all of them together. Beyond that a program is
/// executed in its order: it was made to be slow to analyse.
const LOOKS: usize = 64;
const LEAST_LOOKS: usize = 1 << 16;

/// The allocation that stands for what impure library calls and collectives share: they keep their order.
const OUTSIDE: u32 = u32::MAX;

/// The level of each command. `None`: the analysis would take too long.
pub(super) fn levels(commands: &[Command]) -> Option<Vec<u32>> {
    let mut memory = Memory::default();
    let mut looks_left = LEAST_LOOKS;
    let mut accesses = Vec::new();
    let mut levels = Vec::with_capacity(commands.len());
    for command in commands {
        accesses.clear();
        collect(command, &mut accesses);
        looks_left = looks_left.saturating_add(accesses.len().saturating_mul(LOOKS));
        let mut below = 0;
        for access in &accesses {
            below = below.max(memory.highest(access, &mut looks_left)?);
        }
        let level = below + 1;
        accesses.iter().for_each(|access| memory.record(access, level));
        levels.push(level);
    }
    Some(levels)
}

/// Bytes `[start, end)` that a command accesses.
struct Bytes {
    allocation: u32,
    start: usize,
    end: usize,
    writes: bool,
}

/// Adds the bytes that `command` accesses, with those of the sequences inside it.
fn collect(command: &Command, into: &mut Vec<Bytes>) {
    let mut add = |slice: &Slice, access: OperandAccess| {
        if slice.size_bytes > 0 {
            let (allocation, start, end) = (slice.allocation, slice.offset_bytes, slice.end_bytes());
            into.push(Bytes { allocation, start, end, writes: access.writes() });
        }
    };
    let mut add_all = |operands: &[Operand]| operands.iter().for_each(|operand| add(&operand.slice, operand.access));
    match command {
        Command::Kernel { operands, .. } => add_all(operands),
        Command::Library { call, operands } => {
            add_all(operands);
            if !call.is_pure() {
                into.push(Bytes { allocation: OUTSIDE, start: 0, end: 1, writes: true });
            }
        }
        Command::Collective { arrays, .. } => {
            for array in arrays {
                add(&array.from, OperandAccess::Read);
                add(&array.to, OperandAccess::Write);
            }
            into.push(Bytes { allocation: OUTSIDE, start: 0, end: 1, writes: true });
        }
        Command::Copy { from, to } => {
            add(from, OperandAccess::Read);
            add(to, OperandAccess::Write);
        }
        Command::Fill { to, .. } | Command::ReplicaId { to } | Command::PartitionId { to } => {
            add(to, OperandAccess::Write);
        }
        Command::While { predicate, .. } => add(predicate, OperandAccess::Read),
        Command::Conditional { branch, .. } => add(&branch.slice(), OperandAccess::Read),
        Command::Call(_) | Command::Repeat { .. } => {}
    }
    for (_, sequence) in command.sequences() {
        sequence.commands().iter().for_each(|inner| collect(inner, into));
    }
}

/// The levels of the commands that accessed a segment.
#[derive(Clone, Copy)]
struct Segment {
    end: usize,
    read: u32,
    written: u32,
}

/// The segments of each allocation, by their first bytes.
#[derive(Default)]
struct Memory(HashMap<u32, BTreeMap<usize, Segment>>);

impl Memory {
    /// The highest level of the commands that a command with this access depends on; 0: there is none. `None`: no looks
    /// are left.
    fn highest(&mut self, access: &Bytes, looks_left: &mut usize) -> Option<u32> {
        let segments = self.segments(access);
        let mut highest = 0;
        for segment in segments.range(access.start..access.end).map(|(_, segment)| segment) {
            *looks_left = looks_left.checked_sub(1)?;
            highest = highest.max(segment.written);
            if access.writes {
                highest = highest.max(segment.read);
            }
        }
        Some(highest)
    }

    /// The segments of the access's allocation, split where the access begins and ends.
    fn segments(&mut self, access: &Bytes) -> &mut BTreeMap<usize, Segment> {
        let segments = self.0.entry(access.allocation).or_default();
        split(segments, access.start);
        split(segments, access.end);
        segments
    }

    /// Records an access by a command of that level.
    fn record(&mut self, access: &Bytes, level: u32) {
        let &Bytes { start, end, writes, .. } = access;
        let segments = self.segments(access);
        if writes {
            let inside: Vec<usize> = segments.range(start..end).map(|(&start, _)| start).collect();
            inside.into_iter().for_each(|start| _ = segments.remove(&start));
            segments.insert(start, Segment { end, read: 0, written: level });
            return;
        }
        let mut gaps = Vec::new();
        let mut covered = start;
        for (&start, segment) in segments.range_mut(start..end) {
            segment.read = segment.read.max(level);
            if covered < start {
                gaps.push((covered, start));
            }
            covered = segment.end;
        }
        if covered < end {
            gaps.push((covered, end));
        }
        for (start, end) in gaps {
            segments.insert(start, Segment { end, read: level, written: 0 });
        }
    }
}

/// Splits the segment that has `at` inside, so that one begins there.
fn split(segments: &mut BTreeMap<usize, Segment>, at: usize) {
    let Some((_, segment)) = segments.range_mut(..at).next_back() else { return };
    if segment.end > at {
        let behind = *segment;
        segment.end = at;
        segments.insert(at, behind);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers from a seed.
    struct Random(u32);

    impl Random {
        fn next(&mut self, below: usize) -> usize {
            self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (self.0 >> 16) as usize % below
        }

        fn slice(&mut self) -> Slice {
            let offset_bytes = self.next(12);
            Slice { allocation: self.next(2) as u32, offset_bytes, size_bytes: self.next(12 - offset_bytes + 1) }
        }
    }

    fn conflict(first: &[Bytes], second: &[Bytes]) -> bool {
        first.iter().any(|a| {
            second
                .iter()
                .any(|b| a.allocation == b.allocation && a.start < b.end && b.start < a.end && (a.writes || b.writes))
        })
    }

    /// Compared with all pairs of commands.
    #[test]
    fn a_level_is_one_more_than_the_highest_that_it_depends_on() {
        for seed in 0..2000 {
            let mut random = Random(seed);
            let commands: Vec<Command> = (0..12)
                .map(|_| match random.next(3) {
                    0 => Command::Fill { pattern: vec![0], to: random.slice() },
                    1 => Command::Copy { from: random.slice(), to: random.slice() },
                    _ => Command::Call(vec![Command::Copy { from: random.slice(), to: random.slice() }].into()),
                })
                .collect();
            let accesses: Vec<Vec<Bytes>> = commands
                .iter()
                .map(|command| {
                    let mut accesses = Vec::new();
                    collect(command, &mut accesses);
                    accesses
                })
                .collect();
            let levels = levels(&commands).unwrap();
            for (at, level) in levels.iter().enumerate() {
                let below = (0..at).filter(|&before| conflict(&accesses[before], &accesses[at]));
                let expected = below.map(|before| levels[before]).max().unwrap_or(0) + 1;
                assert_eq!(*level, expected, "seed {seed}, command {at} of {commands:?}");
            }
        }
    }

    #[test]
    fn a_program_that_is_made_to_be_slow_is_not_analysed() {
        let write =
            |offset_bytes| Command::Fill { pattern: vec![0], to: Slice { allocation: 0, offset_bytes, size_bytes: 1 } };
        let mut commands: Vec<Command> = (0..4000).map(|at| write(2 * at)).collect();
        let all = Slice { allocation: 0, offset_bytes: 0, size_bytes: 8000 };
        let to = |at: u32| Slice { allocation: 1 + at, ..all };
        commands.extend((0..4000).map(|at| Command::Copy { from: all, to: to(at) }));
        assert!(levels(&commands).is_none());
    }
}
