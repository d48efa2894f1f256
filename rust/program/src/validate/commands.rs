//! The rules for commands and their operands.

use std::fmt;

use smallvec::SmallVec;

use super::defined::Defined;
use super::path::Path;
use crate::allocation::{Allocation, AllocationKind, Slice};
use crate::collective::{CollectiveArray, CollectiveKind};
use crate::command::{Branch, Command, Sequence};
use crate::kernel::workgroup_count;
use crate::operand::Operand;
use purlin_base::Error;

/// Checks a sequence that begins with the bytes of `defined` written. Adds to `defined` the bytes that its commands
/// write.
///
/// # Errors
/// `InvalidArgument`: the first command that breaks a rule.
pub(super) fn check(allocations: &[Allocation], sequence: &Sequence, defined: &mut Defined) -> Result<(), Error> {
    Checker { allocations, path: Path::default() }.sequence(sequence, defined)
}

struct Checker<'a> {
    allocations: &'a [Allocation],
    path: Path,
}

/// The rules for operands that depend on the kind of command.
#[derive(Clone, Copy, Default)]
struct Manners {
    /// The command takes addresses, so it may name thread-local memory, whose address is null.
    takes_addresses: bool,
    /// The bytes that the command reads must be disjoint from those that it writes.
    needs_disjoint: bool,
}

impl Checker<'_> {
    /// The error for `command`, which is the last of the path.
    fn refusal(&self, command: &Command, why: impl fmt::Display) -> Error {
        Error::invalid_argument(format!("command {} ({command}){why}", self.path))
    }

    fn sequence(&mut self, sequence: &Sequence, defined: &mut Defined) -> Result<(), Error> {
        for (index, command) in sequence.commands().iter().enumerate() {
            self.path.push(index);
            self.command(command, defined)?;
            self.path.pop();
        }
        Ok(())
    }

    fn command(&mut self, command: &Command, defined: &mut Defined) -> Result<(), Error> {
        match command {
            Command::Kernel { kernel, workgroups, operands } => {
                if let Err(error) = workgroup_count(*workgroups) {
                    return Err(self.refusal(command, format_args!(": {}", error.message())));
                }
                let takes_addresses = kernel.takes_addresses();
                let manners = Manners { takes_addresses, needs_disjoint: !takes_addresses };
                self.operands(command, operands, manners, defined)
            }
            Command::Library { operands, .. } => self.operands(command, operands, Manners::default(), defined),
            Command::Collective { collective, arrays } => {
                if let Err((number, why)) = collective.check(arrays) {
                    return Err(self.refusal(command, format_args!(", array {number}: {why}")));
                }
                let is_in_place = matches!(collective.kind, CollectiveKind::AllReduce(_));
                let mut operands = Vec::with_capacity(2 * arrays.len());
                for CollectiveArray { from, to, .. } in arrays {
                    // An array that is reduced in place is one operand.
                    if is_in_place && from == to {
                        operands.push(Operand::read_write(*to));
                    } else {
                        operands.extend([Operand::invariant(*from), Operand::write(*to)]);
                    }
                }
                self.operands(command, &operands, Manners::default(), defined)
            }
            Command::Copy { from, to } => {
                if from.size_bytes != to.size_bytes {
                    return Err(self.refusal(
                        command,
                        format_args!(": {} bytes cannot be copied to {}", from.size_bytes, to.size_bytes),
                    ));
                }
                let operands = [Operand::read(*from), Operand::write(*to)];
                self.operands(command, &operands, Manners::default(), defined)
            }
            Command::Fill { pattern, to } => {
                if pattern.is_empty() || !to.size_bytes.is_multiple_of(pattern.len()) {
                    return Err(self.refusal(
                        command,
                        format_args!(": {} bytes are no multiple of a pattern of {}", to.size_bytes, pattern.len()),
                    ));
                }
                self.operands(command, &[Operand::write(*to)], Manners::default(), defined)
            }
            Command::ReplicaId { to } | Command::PartitionId { to } => {
                self.has_size(command, to, 4, "a number")?;
                self.operands(command, &[Operand::write(*to)], Manners::default(), defined)
            }
            Command::Call(body) => {
                self.path.enter("call", 0);
                self.sequence(body, defined)
            }
            Command::Repeat { trip_count, body } => {
                self.path.enter("body", 0);
                if *trip_count > 0 {
                    return self.sequence(body, defined);
                }
                self.sequence(body, &mut defined.clone())
            }
            Command::While { condition, predicate, body } => {
                self.has_size(command, predicate, 1, "a predicate")?;
                self.path.enter("condition", 0);
                self.sequence(condition, defined)?;
                self.operands(command, &[Operand::read(*predicate)], Manners::default(), defined)?;
                self.path.enter("body", 1);
                // The body may never be executed, so its writes do not count.
                self.sequence(body, &mut defined.clone())
            }
            Command::Conditional { branch, branches } => self.conditional(command, branch, branches, defined),
        }
    }

    fn conditional(
        &mut self,
        command: &Command,
        branch: &Branch,
        branches: &[Sequence],
        defined: &mut Defined,
    ) -> Result<(), Error> {
        match branch {
            Branch::Predicate(slice) => {
                self.has_size(command, slice, 1, "a predicate")?;
                if branches.len() != 2 {
                    return Err(self.refusal(
                        command,
                        format_args!(": a predicate chooses among 2 branches, not {}", branches.len()),
                    ));
                }
            }
            Branch::Index(slice) => {
                self.has_size(command, slice, 4, "an index")?;
                if branches.is_empty() {
                    return Err(self.refusal(command, ": an index chooses among 1 branch or more, not 0"));
                }
            }
        }
        self.operands(command, &[Operand::read(branch.slice())], Manners::default(), defined)?;
        let mut after: Option<Defined> = None;
        for (number, sequence) in branches.iter().enumerate() {
            self.path.enter("branch", number);
            let mut here = defined.clone();
            self.sequence(sequence, &mut here)?;
            after = Some(after.map_or_else(|| here.clone(), |after| after.either(&here)));
        }
        if let Some(after) = after {
            *defined = after;
        }
        Ok(())
    }

    fn has_size(&self, command: &Command, slice: &Slice, size_bytes: usize, what: &str) -> Result<(), Error> {
        if slice.size_bytes == size_bytes {
            return Ok(());
        }
        Err(self.refusal(
            command,
            format_args!(", operand 0: {what} has {size_bytes} bytes, and {slice} are {}", slice.size_bytes),
        ))
    }

    /// Checks all operands of a command, and records the bytes that it writes.
    fn operands(
        &self,
        command: &Command,
        operands: &[Operand],
        manners: Manners,
        defined: &mut Defined,
    ) -> Result<(), Error> {
        for (number, operand) in operands.iter().enumerate() {
            self.operand(operand, manners, defined)
                .map_err(|why| self.refusal(command, format_args!(", operand {number}: {why}")))?;
        }
        let mut written: SmallVec<[(Slice, usize); 8]> = operands
            .iter()
            .enumerate()
            .filter(|(_, operand)| operand.access.writes() && operand.slice.size_bytes > 0)
            .map(|(number, operand)| (operand.slice, number))
            .collect();
        written.sort_unstable_by_key(|(slice, _)| (slice.allocation, slice.offset_bytes));
        // Sorted by their beginnings, at least two slices that overlap are neighbours.
        if let Some(pair) = written.windows(2).find(|pair| pair[0].0.overlaps(&pair[1].0)) {
            let [(slice, number), (other, other_number)] = [pair[0], pair[1]];
            return Err(self.refusal(
                command,
                format_args!(", operands {number} and {other_number}: both write, {slice} and {other}"),
            ));
        }
        for (number, operand) in operands.iter().enumerate().filter(|(_, operand)| !operand.access.writes()) {
            if !operand.is_invariant && !manners.needs_disjoint {
                continue;
            }
            // The written slices are disjoint by now, so the first that ends after the start of this one decides.
            let slice = &operand.slice;
            let at = written.partition_point(|(other, _)| {
                (other.allocation, other.end_bytes()) <= (slice.allocation, slice.offset_bytes)
            });
            if let Some((other, other_number)) = written.get(at).filter(|(other, _)| other.overlaps(slice)) {
                let why = if operand.is_invariant { "is invariant" } else { "is read by a closure" };
                return Err(self.refusal(
                    command,
                    format_args!(", operand {number}: {slice} {why}, but operand {other_number} writes {other}"),
                ));
            }
        }
        written.iter().for_each(|(slice, _)| defined.add(slice));
        Ok(())
    }

    /// Checks one operand by itself.
    fn operand(&self, operand: &Operand, manners: Manners, defined: &Defined) -> Result<(), String> {
        let Slice { allocation: number, offset_bytes, size_bytes } = operand.slice;
        let Some(allocation) = self.allocations.get(number as usize) else {
            return Err(format!("there is no allocation {number}, but {}", self.allocations.len()));
        };
        if offset_bytes > allocation.size_bytes || size_bytes > allocation.size_bytes - offset_bytes {
            return Err(format!(
                "bytes [{offset_bytes}, {}) do not lie in allocation {number} of {} bytes",
                offset_bytes as u128 + size_bytes as u128,
                allocation.size_bytes
            ));
        }
        if matches!(allocation.kind, AllocationKind::ThreadLocal) {
            return if manners.takes_addresses {
                Ok(())
            } else {
                Err(format!("allocation {number} is thread-local memory, which only native kernels may name"))
            };
        }
        if operand.access.writes() && !allocation.kind.is_writable() {
            return Err(format!("writes {}, which is {allocation}", operand.slice));
        }
        match defined.gap(&operand.slice).filter(|_| operand.access.reads()) {
            Some((start, end)) => {
                Err(format!("reads {}, of which [{start}, {end}) may not have been written", operand.slice))
            }
            None => Ok(()),
        }
    }
}
