//! The compiled module, indexed by XLA's numbers.

use std::collections::HashMap;

use crate::fault::Contradiction;
use crate::proto::{ComputationProto, HloModuleProto, InstructionProto};

/// A module with an index of its computations and instructions.
#[derive(Debug)]
pub(crate) struct Hlo<'a> {
    entry: &'a ComputationProto,
    computations: HashMap<i64, &'a ComputationProto>,
    instructions: HashMap<i64, &'a InstructionProto>,
}

impl<'a> Hlo<'a> {
    pub(crate) fn new(module: &'a HloModuleProto) -> Result<Self, Contradiction> {
        let computations: HashMap<_, _> = module.computations.iter().map(|each| (each.id, each)).collect();
        let all = module.computations.iter().flat_map(|computation| &computation.instructions);
        let instructions: HashMap<_, _> = all.map(|instruction| (instruction.id, instruction)).collect();
        let Some(entry) = computations.get(&module.entry_computation).copied() else {
            return Err(Contradiction::new(format!(
                "no computation has the entry's number {}",
                module.entry_computation
            )));
        };
        Ok(Self { entry, computations, instructions })
    }

    /// The computation where execution begins.
    pub(crate) fn entry(&self) -> &'a ComputationProto {
        self.entry
    }

    pub(crate) fn computation(&self, id: i64) -> Option<&'a ComputationProto> {
        self.computations.get(&id).copied()
    }

    pub(crate) fn instruction(&self, id: i64) -> Option<&'a InstructionProto> {
        self.instructions.get(&id).copied()
    }
}
