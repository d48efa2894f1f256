//! Messages of `xla/service/hlo.proto`: the HLO module that was compiled, and the assignment of its values to
//! allocations.
//!
//! The loader needs two things of the module: its constants, and the origin of the values at its root. The rest is
//! compiled already, so unknown fields in it change nothing.

use prost::Message as Prost;

use super::literal::{LITERAL, LiteralProto};
use super::shape::{PROGRAM_SHAPE, ProgramShapeProto};
use super::wire::{Message, Passed};

#[derive(Clone, PartialEq, Prost)]
pub(crate) struct ModuleWithConfigProto {
    #[prost(message, optional, tag = "1")]
    pub(crate) module: Option<HloModuleProto>,
    #[prost(message, optional, tag = "2")]
    pub(crate) config: Option<ModuleConfigProto>,
}

pub(crate) static MODULE_WITH_CONFIG: Message = Message {
    name: "HloModuleProtoWithConfig",
    size_bytes: size_of::<ModuleWithConfigProto>(),
    scalars: &[],
    nested: &[(1, &MODULE), (2, &MODULE_CONFIG)],
    passed: Passed::These(&[]),
};

#[derive(Clone, PartialEq, Prost)]
pub(crate) struct ModuleConfigProto {
    #[prost(message, optional, tag = "1")]
    pub(crate) entry_layout: Option<ProgramShapeProto>,
}

static MODULE_CONFIG: Message = Message {
    name: "HloModuleConfigProto",
    size_bytes: size_of::<ModuleConfigProto>(),
    scalars: &[],
    nested: &[(1, &PROGRAM_SHAPE)],
    passed: Passed::All,
};

#[derive(Clone, PartialEq, Prost)]
pub(crate) struct HloModuleProto {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(message, repeated, tag = "3")]
    pub(crate) computations: Vec<ComputationProto>,
    #[prost(int64, tag = "6")]
    pub(crate) entry_computation: i64,
    #[prost(message, optional, tag = "8")]
    pub(crate) input_output_alias: Option<InputOutputAliasProto>,
}

static MODULE: Message = Message {
    name: "HloModuleProto",
    size_bytes: size_of::<HloModuleProto>(),
    scalars: &[1, 6],
    nested: &[(3, &COMPUTATION), (8, &INPUT_OUTPUT_ALIAS)],
    passed: Passed::All,
};

#[derive(Clone, PartialEq, Prost)]
pub(crate) struct ComputationProto {
    #[prost(message, repeated, tag = "2")]
    pub(crate) instructions: Vec<InstructionProto>,
    #[prost(int64, tag = "5")]
    pub(crate) id: i64,
    #[prost(int64, tag = "6")]
    pub(crate) root: i64,
}

static COMPUTATION: Message = Message {
    name: "HloComputationProto",
    size_bytes: size_of::<ComputationProto>(),
    scalars: &[5, 6],
    nested: &[(2, &INSTRUCTION)],
    passed: Passed::All,
};

#[derive(Clone, PartialEq, Prost)]
pub(crate) struct InstructionProto {
    #[prost(string, tag = "2")]
    pub(crate) opcode: String,
    #[prost(message, boxed, optional, tag = "8")]
    pub(crate) literal: Option<Box<LiteralProto>>,
    #[prost(int64, tag = "9")]
    pub(crate) parameter_number: i64,
    #[prost(int64, tag = "13")]
    pub(crate) tuple_index: i64,
    #[prost(int64, tag = "35")]
    pub(crate) id: i64,
    #[prost(int64, repeated, tag = "36")]
    pub(crate) operands: Vec<i64>,
    #[prost(int64, repeated, tag = "38")]
    pub(crate) called: Vec<i64>,
}

static INSTRUCTION: Message = Message {
    name: "HloInstructionProto",
    size_bytes: size_of::<InstructionProto>(),
    scalars: &[2, 9, 13, 35, 36, 38],
    nested: &[(8, &LITERAL)],
    passed: Passed::All,
};

/// The pairs of a result and a parameter that may share memory.
#[derive(Clone, PartialEq, Prost)]
pub(crate) struct InputOutputAliasProto {
    #[prost(message, repeated, tag = "1")]
    pub(crate) entries: Vec<AliasEntryProto>,
}

static INPUT_OUTPUT_ALIAS: Message = Message {
    name: "HloInputOutputAliasProto",
    size_bytes: size_of::<InputOutputAliasProto>(),
    scalars: &[],
    nested: &[(1, &ALIAS_ENTRY)],
    passed: Passed::These(&[]),
};

#[derive(Clone, PartialEq, Prost)]
pub(crate) struct AliasEntryProto {
    #[prost(int64, repeated, tag = "1")]
    pub(crate) output_index: Vec<i64>,
    #[prost(int64, tag = "2")]
    pub(crate) parameter: i64,
    #[prost(int64, repeated, tag = "3")]
    pub(crate) parameter_index: Vec<i64>,
}

static ALIAS_ENTRY: Message = Message {
    name: "AliasEntryProto",
    size_bytes: size_of::<AliasEntryProto>(),
    scalars: &[1, 2, 3],
    nested: &[],
    // Whether the alias is required: here it applies whenever the argument is donated.
    passed: Passed::These(&[4]),
};

#[derive(Clone, PartialEq, Prost)]
pub(crate) struct BufferAssignmentProto {
    #[prost(message, repeated, tag = "1")]
    pub(crate) logical_buffers: Vec<LogicalBufferProto>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) allocations: Vec<AllocationProto>,
}

pub(crate) static BUFFER_ASSIGNMENT: Message = Message {
    name: "BufferAssignmentProto",
    size_bytes: size_of::<BufferAssignmentProto>(),
    scalars: &[],
    nested: &[(1, &LOGICAL_BUFFER), (3, &ALLOCATION)],
    // Aliases, which do not help to find the results; traces of the heap simulator.
    passed: Passed::These(&[2, 4, 5]),
};

/// A value of the computation.
#[derive(Clone, PartialEq, Prost)]
pub(crate) struct LogicalBufferProto {
    #[prost(int64, tag = "1")]
    pub(crate) id: i64,
    #[prost(message, optional, tag = "3")]
    pub(crate) defined_at: Option<LocationProto>,
}

static LOGICAL_BUFFER: Message = Message {
    name: "LogicalBufferProto",
    size_bytes: size_of::<LogicalBufferProto>(),
    scalars: &[1],
    nested: &[(3, &LOCATION)],
    passed: Passed::These(&[2, 4]),
};

/// A part of an instruction's value.
#[derive(Clone, PartialEq, Prost)]
pub(crate) struct LocationProto {
    #[prost(int64, repeated, tag = "3")]
    pub(crate) shape_index: Vec<i64>,
    #[prost(int64, tag = "4")]
    pub(crate) instruction: i64,
}

static LOCATION: Message = Message {
    name: "LogicalBufferProto.Location",
    size_bytes: size_of::<LocationProto>(),
    scalars: &[3, 4],
    nested: &[],
    passed: Passed::These(&[2]),
};

/// An allocation, and the values in it.
#[derive(Clone, PartialEq, Prost)]
pub(crate) struct AllocationProto {
    #[prost(int64, tag = "1")]
    pub(crate) index: i64,
    #[prost(int64, tag = "2")]
    pub(crate) size: i64,
    #[prost(bool, tag = "3")]
    pub(crate) is_thread_local: bool,
    #[prost(bool, tag = "5")]
    pub(crate) is_parameter: bool,
    #[prost(int64, tag = "6")]
    pub(crate) parameter_number: i64,
    #[prost(bool, tag = "7")]
    pub(crate) maybe_live_out: bool,
    #[prost(message, repeated, tag = "9")]
    pub(crate) assigned: Vec<AssignedProto>,
    #[prost(int64, repeated, tag = "10")]
    pub(crate) parameter_index: Vec<i64>,
    #[prost(bool, tag = "11")]
    pub(crate) is_tuple: bool,
    #[prost(bool, tag = "12")]
    pub(crate) is_constant: bool,
    #[prost(bool, tag = "13")]
    pub(crate) is_aliased_with_output: bool,
}

static ALLOCATION: Message = Message {
    name: "BufferAllocationProto",
    size_bytes: size_of::<AllocationProto>(),
    scalars: &[1, 2, 3, 5, 6, 7, 10, 11, 12, 13],
    nested: &[(9, &ASSIGNED)],
    // The number of a memory space. XLA:CPU has only one.
    passed: Passed::These(&[8]),
};

/// A value in an allocation.
#[derive(Clone, Copy, PartialEq, Prost)]
pub(crate) struct AssignedProto {
    #[prost(int64, tag = "1")]
    pub(crate) logical_buffer: i64,
    #[prost(int64, tag = "2")]
    pub(crate) offset: i64,
    #[prost(int64, tag = "3")]
    pub(crate) size: i64,
}

static ASSIGNED: Message = Message {
    name: "BufferAllocationProto.Assigned",
    size_bytes: size_of::<AssignedProto>(),
    scalars: &[1, 2, 3],
    nested: &[],
    passed: Passed::These(&[4]),
};
