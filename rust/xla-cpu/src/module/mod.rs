//! What an executable of XLA:CPU's is, in the terms of Purlin's programs, before any of its code is mapped.
//!
//! | module | what it reads |
//! |---|---|
//! | `shapes.rs` | shapes and layouts of arrays |
//! | `constants.rs` | literals, as bytes |
//! | `hlo.rs` | the compiled module, by number: instructions, computations |
//! | `outputs.rs` | in which allocation each result lies |
//! | `allocations.rs` | allocations, and what each is bound to |
//! | `steps.rs` | thunks as commands, or as steps that still need code |
//! | `target.rs` | whether this machine's processor has what the code is for |
//!
//! All of it is pure. Messages come in as prost has decoded them, so that every number is a stranger's: none is an
//! index or a length before it was compared. What contradicts itself is `DataLoss`; what is sound, but not known or not
//! supported here, is a reason among [`Reasons`], and reading goes on, so that a refusal tells all of them.

mod allocations;
mod constants;
mod hlo;
mod outputs;
mod shapes;
mod steps;
mod target;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use purlin_base::Error;
use purlin_program::{Allocation, ProgramSignature};

pub(crate) use self::shapes::Array;
pub(crate) use self::steps::Step;
use crate::fault::{Fault, Reasons};
use crate::proto::CompilationResultProto;

/// The kind of `object_files` that is known: one function a kernel.
const KERNELS: i32 = 2;

/// An executable without its code.
#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) name: Arc<str>,
    pub(crate) signature: ProgramSignature,
    /// In the order of XLA's numbers.
    pub(crate) allocations: Vec<Allocation>,
    pub(crate) steps: Vec<Step>,
}

impl Module {
    /// Reads the messages. What keeps the program from running here is added to `reasons`; then the module is not
    /// whole.
    pub(crate) fn read(result: &CompilationResultProto, reasons: &mut Reasons) -> Result<Self, Error> {
        let missing = |what: &str| Fault::damage(0, format!("the executable has no {what}"));
        let with_config = result.hlo_module.as_ref().ok_or_else(|| missing("module"))?;
        let module = with_config.module.as_ref().ok_or_else(|| missing("module"))?;
        let layout = with_config.config.as_ref().and_then(|config| config.entry_layout.as_ref());
        let layout = layout.ok_or_else(|| missing("layout of its entry"))?;
        let assignment = result.buffer_assignment.as_ref().ok_or_else(|| missing("allocations"))?;
        if result.object_kind != KERNELS {
            reasons.add(format!("object files of kind {}", result.object_kind));
        }
        if let Some(target) = &result.target {
            target::check(target, reasons);
        }
        let hlo = hlo::Hlo::new(module)?;
        let mut signature = shapes::signature(layout, reasons);
        let values = outputs::Values::new(assignment)?;
        let results = outputs::trace(&hlo, &values, &signature, layout, reasons);
        let aliases = module.input_output_alias.as_ref();
        let allocations = allocations::read(assignment, &hlo, &values, &results, aliases, &mut signature, reasons)?;
        let steps = match &result.thunks {
            Some(thunks) => steps::read(thunks, &allocations, reasons)?,
            None => Vec::new(),
        };
        Ok(Self { name: module.name.as_str().into(), signature, allocations, steps })
    }
}
