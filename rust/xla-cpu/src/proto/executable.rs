//! Messages of `xla/service/cpu/executable.proto`: the compiled executable.

use prost::Message as Prost;

use super::hlo::{BUFFER_ASSIGNMENT, BufferAssignmentProto, MODULE_WITH_CONFIG, ModuleWithConfigProto};
use super::thunk::{THUNK_SEQUENCE, ThunkSequenceProto};
use super::wire::{Message, Passed};

#[derive(Clone, PartialEq, Prost)]
pub(crate) struct CompilationResultProto {
    #[prost(message, optional, tag = "1")]
    pub(crate) hlo_module: Option<ModuleWithConfigProto>,
    #[prost(message, optional, tag = "2")]
    pub(crate) buffer_assignment: Option<BufferAssignmentProto>,
    #[prost(int32, tag = "5")]
    pub(crate) object_kind: i32,
    #[prost(message, optional, tag = "6")]
    pub(crate) thunks: Option<ThunkSequenceProto>,
    #[prost(message, repeated, tag = "7")]
    pub(crate) symbols: Vec<SymbolProto>,
    #[prost(message, repeated, tag = "8")]
    pub(crate) objects: Vec<ObjectProto>,
    #[prost(message, optional, tag = "9")]
    pub(crate) target: Option<TargetProto>,
}

pub(crate) static COMPILATION_RESULT: Message = Message {
    name: "CompilationResultProto",
    size_bytes: size_of::<CompilationResultProto>(),
    scalars: &[5],
    nested: &[
        (1, &MODULE_WITH_CONFIG),
        (2, &BUFFER_ASSIGNMENT),
        (6, &THUNK_SEQUENCE),
        (7, &SYMBOL),
        (8, &OBJECT),
        (9, &TARGET),
    ],
    // The name of the single function of versions before kernels; LLVM's data layout, which the target implies.
    passed: Passed::These(&[3, 10]),
};

/// A function in the code.
#[derive(Clone, PartialEq, Prost)]
pub(crate) struct SymbolProto {
    #[prost(int32, tag = "1")]
    pub(crate) kind: i32,
    #[prost(string, tag = "2")]
    pub(crate) name: String,
}

static SYMBOL: Message = Message {
    name: "SymbolProto",
    size_bytes: size_of::<SymbolProto>(),
    scalars: &[1, 2],
    nested: &[],
    passed: Passed::These(&[]),
};

/// A relocatable file.
#[derive(Clone, PartialEq, Prost)]
pub(crate) struct ObjectProto {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) contents: Vec<u8>,
    #[prost(string, tag = "2")]
    pub(crate) name: String,
}

static OBJECT: Message = Message {
    name: "ObjFileProto",
    size_bytes: size_of::<ObjectProto>(),
    scalars: &[1, 2],
    nested: &[],
    passed: Passed::These(&[]),
};

/// The target machine of the code.
#[derive(Clone, PartialEq, Prost)]
pub(crate) struct TargetProto {
    #[prost(string, tag = "1")]
    pub(crate) triple: String,
    #[prost(string, tag = "3")]
    pub(crate) features: String,
}

static TARGET: Message = Message {
    name: "TargetMachineOptionsProto",
    size_bytes: size_of::<TargetProto>(),
    scalars: &[1, 3],
    nested: &[],
    // The processor's name. Its features are read instead.
    passed: Passed::These(&[2]),
};
