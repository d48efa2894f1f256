//! Reads the allocations, and finds the kind of each.

use purlin_program::{Alias, Allocation, AllocationKind, Constant, ProgramSignature};

use super::constants;
use super::hlo::Hlo;
use super::outputs::Values;
use crate::fault::{Contradiction, Reasons};
use crate::proto::{AllocationProto, BufferAssignmentProto, InputOutputAliasProto};

/// The field of an assignment that holds the allocations.
const ALLOCATIONS: u32 = 3;

/// All allocations in their order. The aliases that they imply are added to `signature`. `results` has the allocation
/// of each result.
///
/// # Errors
/// `DataLoss`: a number or a size contradicts the list.
pub(super) fn read(
    assignment: &BufferAssignmentProto,
    hlo: &Hlo<'_>,
    values: &Values<'_>,
    results: &[Option<usize>],
    aliases: Option<&InputOutputAliasProto>,
    signature: &mut ProgramSignature,
    reasons: &mut Reasons,
) -> Result<Vec<Allocation>, Contradiction> {
    let mut allocations = Vec::with_capacity(assignment.allocations.len());
    for (number, proto) in assignment.allocations.iter().enumerate() {
        let damage =
            |why: String| Contradiction::new(format!("allocation {number}: {why}")).within_each(ALLOCATIONS, number);
        if usize::try_from(proto.index) != Ok(number) {
            return Err(damage(format!("its number is said to be {}", proto.index)));
        }
        let size_bytes = usize::try_from(proto.size).map_err(|_| damage(format!("a size of {} bytes", proto.size)))?;
        let mut lying_here =
            results.iter().enumerate().filter(|(_, home)| **home == Some(number)).map(|(result, _)| result);
        let result = lying_here.next();
        if let (Some(first), Some(second)) = (result, lying_here.next()) {
            reasons.add(format!("results {first} and {second} have the same memory"));
        }
        let kind = if proto.is_thread_local {
            AllocationKind::ThreadLocal
        } else if proto.is_constant {
            // A constant without a value is a reason. A temporary takes its place, so that the numbers stay right.
            let constant = reasons.take(constant(proto, hlo, values));
            constant.map_or(AllocationKind::Temporary, AllocationKind::Constant)
        } else if proto.is_parameter {
            let parameter = usize::try_from(proto.parameter_number).unwrap_or(usize::MAX);
            if !proto.parameter_index.is_empty() || parameter >= signature.parameters.len() {
                reasons.add(format!("parameter {} is a tuple, or missing", proto.parameter_number));
            }
            if let Some(result) = result {
                if !is_alias(aliases, parameter, result) {
                    reasons.add(format!("result {result} is parameter {parameter}, which is no alias of it"));
                }
                signature.aliases.push(Alias { parameter, result });
            }
            AllocationKind::Parameter { number: parameter, result }
        } else if let Some(number) = result {
            AllocationKind::Output { number }
        } else {
            AllocationKind::Temporary
        };
        let spec = match &kind {
            AllocationKind::Parameter { number, .. } => signature.parameters.get(*number),
            AllocationKind::Output { number } => signature.results.get(*number),
            _ => None,
        };
        if let Some(spec) = spec.filter(|spec| spec.size_bytes() != size_bytes) {
            reasons.add(format!("{kind} is {spec}, in an allocation of {size_bytes} bytes"));
        }
        allocations.push(Allocation { size_bytes, kind });
    }
    Ok(allocations)
}

/// Whether the module declares that the result may share the parameter's memory.
fn is_alias(aliases: Option<&InputOutputAliasProto>, parameter: usize, result: usize) -> bool {
    let mut entries = aliases.into_iter().flat_map(|aliases| &aliases.entries);
    entries.any(|entry| {
        let is_result = match entry.output_index.as_slice() {
            [] => result == 0,
            [index] => usize::try_from(*index) == Ok(result),
            _ => false,
        };
        is_result && usize::try_from(entry.parameter) == Ok(parameter) && entry.parameter_index.is_empty()
    })
}

/// The literal in the allocation of a constant.
fn constant(proto: &AllocationProto, hlo: &Hlo<'_>, values: &Values<'_>) -> Result<Constant, String> {
    let mut literals = proto.assigned.iter().filter_map(|assigned| {
        let instruction = hlo.instruction(values.definition(assigned.logical_buffer)?.instruction)?;
        instruction.literal.as_deref().filter(|_| assigned.offset == 0)
    });
    let literal = literals.next().ok_or_else(|| format!("allocation {} is a constant without a value", proto.index))?;
    let bytes = constants::bytes(literal).map_err(|why| format!("allocation {}: {why}", proto.index))?;
    if i64::try_from(bytes.len()) != Ok(proto.size) {
        let why = format!("a constant of {} bytes in allocation {} of {}", bytes.len(), proto.index, proto.size);
        return Err(why);
    }
    Ok(Constant::new(&bytes))
}
