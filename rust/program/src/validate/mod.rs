//! The rules that make a list of commands a program.
//!
//! - The signature and the allocations agree: one allocation for each result, at most one for each parameter, as long
//!   as the shape says; aliases are named on both sides, and join what is equally long.
//! - Every slice lies in its allocation. Nothing writes a constant, or a parameter that becomes no result. Only native
//!   kernels name thread-local memory.
//! - What is read has been written on every path that leads there: arguments and constants are there from the start. A
//!   loop's body counts only if it is known to be done. Results have been written at the end.
//! - No two operands of a command write the same byte, none writes what the command reads as invariant. A closure's
//!   reads are all invariant.
//! - Sequences stand at most [`MOST_NESTED`] deep in one another; sizes of grids, patterns, predicates and copies make
//!   sense (`commands.rs`).
//!
//! A refusal is `InvalidArgument` and names the command by its place (`path.rs`), the operand and the numbers.

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

/// Checks everything.
///
/// # Errors
/// The first rule that is broken.
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

/// All of an allocation.
fn whole(allocations: &[Allocation], number: usize) -> Slice {
    let size_bytes = allocations.get(number).map_or(0, |allocation| allocation.size_bytes);
    Slice { allocation: number as u32, offset_bytes: 0, size_bytes }
}

/// That allocations are what the signature says of them.
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

/// Notes that the allocation `number` is that of the parameter or result `of`, which is returned.
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

/// That aliases of the signature are those of the allocations.
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
        // What is left afterwards has no allocation that says so.
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
