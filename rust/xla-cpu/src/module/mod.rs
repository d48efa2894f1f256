//! Translates an executable's messages to the parts of a program, before any code is mapped.
//!
//! | module | what it reads |
//! |---|---|
//! | `shapes.rs` | shapes and layouts of arrays |
//! | `constants.rs` | literals, to bytes |
//! | `hlo.rs` | instructions and computations of the compiled module, by number |
//! | `outputs.rs` | the allocation of each result |
//! | `allocations.rs` | allocations and their kinds |
//! | `collective.rs` | the operation and the groups of collective thunks |
//! | `custom_calls.rs` | custom calls: their handlers, attributes and operands |
//! | `steps.rs` | thunks, to commands whose kernels and comparators have no code yet |
//! | `target.rs` | the code's processor features, compared with this machine's |
//!
//! All of it is pure. The messages are untrusted, as prost has decoded them: every number is checked before it is used
//! as an index or a length. A contradiction is an error, `DataLoss`, with the byte of its message. A part that is sound
//! but unknown or not supported is added to [`Reasons`]. Reading then continues, so that one error can report all
//! reasons.

mod allocations;
mod collective;
mod constants;
mod custom_calls;
mod hlo;
mod outputs;
mod shapes;
mod steps;
mod target;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use purlin_program::{Allocation, Command, ProgramSignature};

pub(crate) use self::constants::bytes as literal_bytes;
pub(crate) use self::shapes::Array;
pub(crate) use self::steps::Comparison;
use crate::fault::{Contradiction, Reasons};
use crate::ffi::{CustomCall, FfiHandlers};
use crate::proto::Parsed;

/// The one kind of object files that is known: each kernel is a function.
const KERNELS: i32 = 2;

/// The fields of the executable's message in which parts of the module are, and the one of the module in that.
const MODULE_WITH_CONFIG: u32 = 1;
const MODULE: u32 = 1;
const ASSIGNMENT: u32 = 2;
const THUNKS: u32 = 6;

/// An executable without its code.
#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) name: Arc<str>,
    pub(crate) signature: ProgramSignature,
    /// Indexed by XLA's numbers. The scratch memory of fusions follows.
    pub(crate) allocations: Vec<Allocation>,
    /// Their kernels and comparators have no code yet.
    pub(crate) commands: Vec<Command>,
    /// The sorts of the commands, in no order.
    pub(crate) sorts: Vec<Comparison>,
    /// The custom calls of the commands, in no order.
    pub(crate) custom_calls: Vec<Arc<CustomCall>>,
}

impl Module {
    /// Reads the messages. Parts that cannot run here are added to `reasons`, and the module is then incomplete.
    ///
    /// # Errors
    /// `DataLoss`: a message is missing, or messages contradict each other.
    pub(crate) fn read(
        parsed: &Parsed<'_>,
        handlers: &FfiHandlers,
        reasons: &mut Reasons,
    ) -> Result<Self, Contradiction> {
        let result = &parsed.result;
        let missing = |what: &str| Contradiction::new(format!("the executable has no {what}"));
        let with_config = result.hlo_module.as_ref().ok_or_else(|| missing("module"))?;
        let module = with_config.module.as_ref().ok_or_else(|| missing("module").within(MODULE_WITH_CONFIG))?;
        let layout = with_config.config.as_ref().and_then(|config| config.entry_layout.as_ref());
        let layout = layout.ok_or_else(|| missing("layout of its entry").within(MODULE_WITH_CONFIG))?;
        let assignment = result.buffer_assignment.as_ref().ok_or_else(|| missing("allocations"))?;
        if result.object_kind != KERNELS {
            reasons.add(format!("object files of kind {}", result.object_kind));
        }
        if let Some(target) = &result.target {
            target::check(target, reasons);
        }
        let hlo = hlo::Hlo::new(module).map_err(|why| why.within(MODULE).within(MODULE_WITH_CONFIG))?;
        let mut signature = shapes::signature(layout, reasons);
        let values = outputs::Values::new(assignment).map_err(|why| why.within(ASSIGNMENT))?;
        let results = outputs::trace(&hlo, &values, &signature, layout, reasons);
        let aliases = module.input_output_alias.as_ref();
        let allocations = allocations::read(assignment, &hlo, &values, &results, aliases, &mut signature, reasons);
        let mut allocations = allocations.map_err(|why| why.within(ASSIGNMENT))?;
        let mut read = steps::AllSteps::default();
        if let Some(thunks) = &result.thunks {
            let fusions = steps::Fusions { hlo: &hlo, bytes: parsed.bytes, computations: None };
            read = steps::read(thunks, &allocations, handlers, fusions, reasons).map_err(|why| why.within(THUNKS))?;
        }
        let steps::AllSteps { commands, mut added, sorts, custom_calls } = read;
        allocations.append(&mut added);
        Ok(Self { name: module.name.as_str().into(), signature, allocations, commands, sorts, custom_calls })
    }
}
