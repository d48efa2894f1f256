//! The parser: a serialized executable as protobuf messages.
//!
//! `PJRT_Executable_Serialize` writes an `ExecutableAndOptionsProto`, whose first field holds a
//! `CompilationResultProto`. jaxlib's `serialize()` writes the length of a description of its own, the description, and
//! then the same message. The parser accepts both. Messages are declared by field number, each beside a table of the
//! fields that it may have (`purlin_xla_proto::wire`). Their names end in `Proto`. XLA's sources define their meaning.
//!
//! The bytes have no version. So an unknown field keeps a program from running; the reason names the message and the
//! number of the field. Parsing is pure, and fails with `DataLoss` at an offset.

mod collective;
mod custom_call;
mod executable;
mod fused;
mod hlo;
mod literal;
mod shape;
#[cfg(test)]
mod tests;
mod thunk;

use std::collections::BTreeSet;

use prost::Message as _;
use purlin_xla_proto::wire::{self, Reader, Wire};

pub(crate) use self::collective::{CollectiveGroupsProto, CollectiveKindProto, CollectiveProto, ReductionProto};
pub(crate) use self::custom_call::CustomCallProto;
pub(crate) use self::executable::{CompilationResultProto, TargetProto};
pub(crate) use self::fused::{FusedComputation, FusedComputations, FusedInstructionProto};
pub(crate) use self::hlo::{
    AllocationProto, BufferAssignmentProto, ComputationProto, HloModuleProto, InputOutputAliasProto, InstructionProto,
    LocationProto,
};
pub(crate) use self::literal::LiteralProto;
pub(crate) use self::shape::{
    DotDimensionsProto, LayoutProto, ProgramShapeProto, ShapeProto, ShapeSliceProto, SliceProto, WindowDimensionProto,
    WindowProto,
};
pub(crate) use self::thunk::{
    ConvolutionProto, CopyProto, DotProto, FftProto, KernelProto, SortProto, ThunkKind, ThunkProto, ThunkSequenceProto,
    TopKProto, YnnProto,
};
use crate::fault::{Contradiction, Fault, Part};

/// All messages, for tests that build executables.
#[cfg(test)]
pub(crate) mod samples {
    pub(crate) use super::collective::*;
    pub(crate) use super::custom_call::*;
    pub(crate) use super::executable::*;
    pub(crate) use super::fused::*;
    pub(crate) use super::hlo::*;
    pub(crate) use super::literal::*;
    pub(crate) use super::shape::*;
    pub(crate) use super::thunk::*;
}

/// The field of `ExecutableAndOptionsProto` that holds the executable, as bytes.
const SERIALIZED_EXECUTABLE: u32 = 1;
/// The last known field of it. Fields 2 and 3 are the compiler's options and the client's name.
const LAST_FIELD: u32 = 3;
/// The tag of `SERIALIZED_EXECUTABLE`, with which a plugin's bytes begin. Read as a length, it would mean a description
/// of ten bytes, which no jaxlib writes.
const FIRST_BYTE: u8 = 0x0a;

/// The messages of an executable, and the unknown fields that were found.
#[derive(Debug)]
pub(crate) struct Parsed<'a> {
    pub(crate) result: CompilationResultProto,
    /// The bytes of `result`.
    pub(crate) bytes: &'a [u8],
    /// Their offset in all bytes.
    pub(crate) base: usize,
    pub(crate) unknown: BTreeSet<String>,
}

impl Parsed<'_> {
    /// The parameters that results may share memory with, in their order. Parameters in a tuple are counted by their
    /// places in it.
    pub(crate) fn donated_parameters(&self) -> Vec<usize> {
        let module = self.result.hlo_module.as_ref().and_then(|with_config| with_config.module.as_ref());
        let entries = module.and_then(|module| module.input_output_alias.as_ref()).map(|aliases| &aliases.entries);
        let mut parameters: Vec<usize> = entries
            .into_iter()
            .flatten()
            .filter_map(|entry| usize::try_from(*entry.parameter_index.first().unwrap_or(&entry.parameter)).ok())
            .collect();
        parameters.sort_unstable();
        parameters.dedup();
        parameters
    }
}

/// Parses `bytes`.
pub(crate) fn parse(bytes: &[u8]) -> Result<Parsed<'_>, Fault> {
    let (base, inner) = compilation_result(bytes)?;
    let unknown =
        wire::check(inner, &executable::COMPILATION_RESULT).map_err(|damage| Fault::from(damage).within(base))?;
    let result = CompilationResultProto::decode(inner).map_err(|error| Fault::damage(base, error))?;
    Ok(Parsed { result, bytes: inner, base, unknown })
}

impl Parsed<'_> {
    /// The offset of a field's value in all bytes, by the path to it from `result`. A part of it that is missing ends
    /// the path.
    pub(crate) fn offset_of(&self, path: &[Part]) -> usize {
        // A message may be written in several pieces, which decoding merges.
        let (mut pieces, mut offset) = (vec![(0, self.bytes.len())], 0);
        for part in path {
            let mut found = Vec::new();
            for &(begin, end) in &pieces {
                let mut reader = Reader { bytes: &self.bytes[..end], at: begin };
                while let Ok(Some(field)) = reader.next() {
                    if field.number == part.field && field.wire == Wire::Bytes {
                        found.push((field.begin, reader.at));
                    }
                }
            }
            pieces = match part.index {
                Some(index) => found.get(index).copied().into_iter().collect(),
                None => found,
            };
            let Some(last) = pieces.last() else { break };
            offset = last.0;
        }
        self.base + offset
    }

    /// The fault that a contradiction among the messages is.
    pub(crate) fn located(&self, contradiction: Contradiction) -> Fault {
        contradiction.located(self.base, |path| self.offset_of(path))
    }
}

/// Finds the serialized executable in `bytes`: its offset and its bytes.
fn compilation_result(bytes: &[u8]) -> Result<(usize, &[u8]), Fault> {
    let mut reader = Reader { bytes, at: 0 };
    if bytes.first() != Some(&FIRST_BYTE) {
        let described = reader.varint()?;
        let left = bytes.len() - reader.at;
        match usize::try_from(described).ok().filter(|&described| described <= left) {
            Some(described) => reader.at += described,
            None => {
                let why = format!("a description is said to be {described} bytes long, and {left} are left");
                return Err(Fault::damage(0, why));
            }
        }
    }
    let mut found = None;
    while let Some(field) = reader.next()? {
        match (field.number, field.wire) {
            (SERIALIZED_EXECUTABLE, Wire::Bytes) => found = Some((field.begin, &bytes[field.begin..reader.at])),
            (number, Wire::Bytes) if number <= LAST_FIELD => {}
            (number, _) => {
                let why = format!("field {number} of ExecutableAndOptionsProto is not known");
                return Err(Fault::damage(field.at, why));
            }
        }
    }
    found.ok_or_else(|| Fault::damage(bytes.len(), "the bytes hold no executable"))
}
