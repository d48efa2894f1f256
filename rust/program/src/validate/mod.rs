//! Validation: the rules that a list of commands must obey to be a program. It is pure, and runs once, when a program
//! is built.
//!
//! - The signature and the allocations agree: there is one allocation for each result and at most one for each
//!   parameter, of the size of its shape. Both list the same aliases, and an aliased parameter and result have the same
//!   size.
//! - Every slice lies in its allocation. No command writes a constant, or a parameter that shares no result's memory.
//!   Only native kernels name thread-local memory.
//! - Bytes that a command reads were written on every path that leads to it. Arguments and constants are defined from
//!   the start. The writes of a loop's body count only if the trip count is known and not 0. All results are written at
//!   the end.
//! - No two operands of a command write the same byte. No operand writes a byte that the same command reads as
//!   invariant. All reads of a closure count as invariant.
//! - Sequences are nested at most [`MOST_NESTED`] deep. Sizes of grids, patterns, predicates and copies are consistent
//!   (`commands.rs`).
//!
//! An error is `InvalidArgument`, and names the command by its place (`path.rs`), the operand and the numbers.

mod commands;
mod defined;
mod path;
#[cfg(test)]
mod tests;

use self::defined::Defined;
use crate::allocation::{Allocation, AllocationKind, Slice};
use crate::command::{MOST_NESTED, Sequence};
use crate::signature::{Alias, ArraySpec, ProgramSignature};
use purlin_base::Error;

/// Checks all rules.
///
/// # Errors
/// `InvalidArgument`: the first rule that is broken.
pub(crate) fn validate(
    signature: &ProgramSignature,
    allocations: &[Allocation],
    sequence: &Sequence,
) -> Result<(), Error> {
    if u32::try_from(allocations.len()).is_err() {
        return Err(Error::invalid_argument(format!("{} allocations are more than a u32 counts", allocations.len())));
    }
    check_allocations(signature, allocations)?;
    check_aliases(signature, allocations)?;
    if sequence.depth() > MOST_NESTED {
        return Err(Error::invalid_argument(format!(
            "sequences stand {} deep inside one another; {MOST_NESTED} is the most",
            sequence.depth()
        )));
    }
    let mut defined = Defined::nothing(allocations.len());
    for (slice, allocation) in (0..).map(|number| whole(allocations, number)).zip(allocations) {
        if allocation.kind.is_defined_at_start() {
            defined.add(&slice);
        }
    }
    commands::check(allocations, sequence, &mut defined)?;
    for (number, allocation) in allocations.iter().enumerate() {
        let AllocationKind::Output { number: result } = allocation.kind else { continue };
        if let Some((start, end)) = defined.gap(&whole(allocations, number)) {
            return Err(Error::invalid_argument(format!(
                "result {result}: not every path writes bytes [{start}, {end}) of allocation {number}, which is \
                 {allocation}"
            )));
        }
    }
    Ok(())
}

/// The slice of all bytes of an allocation.
fn whole(allocations: &[Allocation], number: usize) -> Slice {
    let size_bytes = allocations.get(number).map_or(0, |allocation| allocation.size_bytes);
    Slice { allocation: number as u32, offset_bytes: 0, size_bytes }
}

/// Checks that the allocations match the signature.
fn check_allocations(signature: &ProgramSignature, allocations: &[Allocation]) -> Result<(), Error> {
    let (mut parameters, mut results) = (vec![None; signature.parameters.len()], vec![None; signature.results.len()]);
    for (number, allocation) in allocations.iter().enumerate() {
        match &allocation.kind {
            &AllocationKind::Parameter { number: parameter, result } => {
                let spec = claim(number, allocation, "parameter", parameter, &signature.parameters, &mut parameters)?;
                has_size(number, allocation, "parameter", parameter, spec)?;
                if let Some(result) = result {
                    let spec = claim(number, allocation, "result", result, &signature.results, &mut results)?;
                    has_size(number, allocation, "result", result, spec)?;
                }
            }
            &AllocationKind::Output { number: result } => {
                let spec = claim(number, allocation, "result", result, &signature.results, &mut results)?;
                has_size(number, allocation, "result", result, spec)?;
            }
            AllocationKind::Constant(constant) if constant.size_bytes() != allocation.size_bytes => {
                return Err(Error::invalid_argument(format!(
                    "allocation {number} is {allocation}, but the constant has {} bytes",
                    constant.size_bytes()
                )));
            }
            AllocationKind::Constant(_) | AllocationKind::Temporary | AllocationKind::ThreadLocal => {}
        }
    }
    match results.iter().position(Option::is_none) {
        Some(result) => Err(Error::invalid_argument(format!("result {result} has no allocation"))),
        None => Ok(()),
    }
}

/// Records that allocation `number` belongs to the parameter or result `of`, whose type it returns.
fn claim<'a>(
    number: usize,
    allocation: &Allocation,
    what: &str,
    of: usize,
    specs: &'a [ArraySpec],
    claimed: &mut [Option<usize>],
) -> Result<&'a ArraySpec, Error> {
    let Some(spec) = specs.get(of) else {
        return Err(Error::invalid_argument(format!(
            "allocation {number} is {allocation}, but of {what}s there are {}",
            specs.len()
        )));
    };
    match claimed[of].replace(number) {
        Some(before) => Err(Error::invalid_argument(format!(
            "allocation {number} is {allocation}, but {what} {of} has allocation {before} already"
        ))),
        None => Ok(spec),
    }
}

fn has_size(number: usize, allocation: &Allocation, what: &str, of: usize, spec: &ArraySpec) -> Result<(), Error> {
    if allocation.size_bytes == spec.size_bytes() {
        return Ok(());
    }
    Err(Error::invalid_argument(format!(
        "allocation {number} is {allocation}, but {what} {of} is {spec} of {} bytes",
        spec.size_bytes()
    )))
}

/// Checks that the signature and the allocations list the same aliases.
fn check_aliases(signature: &ProgramSignature, allocations: &[Allocation]) -> Result<(), Error> {
    let mut result_of = vec![None; signature.parameters.len()];
    for &Alias { parameter, result } in &signature.aliases {
        let Some(slot) = result_of.get_mut(parameter) else {
            return Err(Error::invalid_argument(format!(
                "parameter {parameter} shall become result {result}, but of parameters there are {}",
                signature.parameters.len()
            )));
        };
        if let Some(before) = slot.replace(result) {
            return Err(Error::invalid_argument(format!(
                "parameter {parameter} shall become result {before} and result {result}"
            )));
        }
    }
    for (number, allocation) in allocations.iter().enumerate() {
        let AllocationKind::Parameter { number: parameter, result: Some(result) } = allocation.kind else { continue };
        // The aliases that remain after this loop are in no allocation.
        let named = result_of[parameter].take();
        if named != Some(result) {
            let named = named.map_or("none".to_owned(), |named| named.to_string());
            return Err(Error::invalid_argument(format!(
                "allocation {number} is {allocation} but the signature makes parameter {parameter} result {named}"
            )));
        }
    }
    match result_of.iter().enumerate().find_map(|(parameter, result)| Some((parameter, (*result)?))) {
        Some((parameter, result)) => Err(Error::invalid_argument(format!(
            "the signature makes parameter {parameter} result {result}, but no allocation is both"
        ))),
        None => Ok(()),
    }
}
