//! Messages of `xla/backends/cpu/runtime/thunk.proto`: the steps of an executable.

use prost::{Message as Prost, Oneof};

use super::collective::{COLLECTIVE, CollectiveProto};
use super::custom_call::{CUSTOM_CALL, CustomCallProto};
use super::shape::{
    CONVOLUTION_DIMENSIONS, ConvolutionDimensionsProto, DOT_DIMENSIONS, DotDimensionsProto, SHAPE_SLICE, SHAPED_SLICE,
    SLICE, ShapeSliceProto, ShapedSliceProto, SliceProto, UNREAD, Unread, WINDOW, WindowProto,
};
use super::wire::{Message, Passed};

/// Steps, in an order that respects every dependency.
#[derive(Clone, PartialEq, Prost)]
pub(crate) struct ThunkSequenceProto {
    #[prost(message, repeated, tag = "1")]
    pub(crate) thunks: Vec<ThunkProto>,
}

pub(crate) static THUNK_SEQUENCE: Message = Message {
    name: "ThunkSequenceProto",
    size_bytes: size_of::<ThunkSequenceProto>(),
    scalars: &[],
    nested: &[(1, &THUNK)],
    // The resources that order steps which run concurrently.
    passed: Passed::These(&[2]),
};

/// One step.
#[derive(Clone, PartialEq, Prost)]
pub(crate) struct ThunkProto {
    #[prost(string, tag = "1")]
    pub(crate) kind: String,
    #[prost(oneof = "ThunkKind", tags = "3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22")]
    pub(crate) thunk: Option<ThunkKind>,
}

/// The kinds of steps.
#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum ThunkKind {
    #[prost(message, tag = "3")]
    Call(CallProto),
    #[prost(message, tag = "4")]
    Conditional(ConditionalProto),
    #[prost(message, boxed, tag = "5")]
    Sort(Box<SortProto>),
    #[prost(message, tag = "6")]
    Xnn(Unread),
    #[prost(message, boxed, tag = "7")]
    Dot(Box<DotProto>),
    #[prost(message, tag = "8")]
    Rng(RngProto),
    #[prost(message, boxed, tag = "9")]
    TopK(Box<TopKProto>),
    #[prost(message, boxed, tag = "10")]
    While(Box<WhileProto>),
    #[prost(message, boxed, tag = "11")]
    Kernel(Box<KernelProto>),
    #[prost(message, boxed, tag = "12")]
    Copy(Box<CopyProto>),
    #[prost(message, boxed, tag = "13")]
    Fft(Box<FftProto>),
    #[prost(message, tag = "14")]
    Infeed(Unread),
    #[prost(message, tag = "15")]
    Outfeed(Unread),
    #[prost(message, boxed, tag = "16")]
    CustomCall(Box<CustomCallProto>),
    #[prost(message, boxed, tag = "17")]
    Convolution(Box<ConvolutionProto>),
    #[prost(message, boxed, tag = "18")]
    Collective(Box<CollectiveProto>),
    #[prost(message, tag = "19")]
    PartitionId(IdProto),
    #[prost(message, tag = "20")]
    ReplicaId(IdProto),
    #[prost(message, boxed, tag = "21")]
    Ynn(Box<YnnProto>),
    #[prost(message, tag = "22")]
    RngSeed(Unread),
}

pub(crate) static THUNK: Message = Message {
    name: "ThunkProto",
    size_bytes: size_of::<ThunkProto>(),
    scalars: &[1],
    nested: &[
        (3, &CALL),
        (4, &CONDITIONAL),
        (5, &SORT),
        (6, &UNREAD),
        (7, &DOT),
        (8, &RNG),
        (9, &TOP_K),
        (10, &WHILE),
        (11, &KERNEL),
        (12, &COPY),
        (13, &FFT),
        (14, &UNREAD),
        (15, &UNREAD),
        (16, &CUSTOM_CALL),
        (17, &CONVOLUTION),
        (18, &COLLECTIVE),
        (19, &ID),
        (20, &ID),
        (21, &YNN),
        (22, &UNREAD),
    ],
    // The module and the instruction that the step was compiled from.
    passed: Passed::These(&[2]),
};

/// A number that may be missing.
#[derive(Clone, Copy, PartialEq, Prost)]
pub(crate) struct OptionalProto {
    #[prost(int64, tag = "1")]
    pub(crate) value: i64,
    #[prost(bool, tag = "2")]
    pub(crate) contains_value: bool,
}

static OPTIONAL: Message = Message {
    name: "Int64Optional",
    size_bytes: size_of::<OptionalProto>(),
    scalars: &[1, 2],
    nested: &[],
    passed: Passed::These(&[]),
};

#[derive(Clone, PartialEq, Prost)]
pub(crate) struct CallProto {
    #[prost(message, optional, tag = "1")]
    pub(crate) called: Option<ThunkSequenceProto>,
}

static CALL: Message = Message {
    name: "CallThunkProto",
    size_bytes: size_of::<CallProto>(),
    scalars: &[],
    nested: &[(1, &THUNK_SEQUENCE)],
    passed: Passed::These(&[]),
};

#[derive(Clone, PartialEq, Prost)]
pub(crate) struct ConditionalProto {
    #[prost(message, repeated, tag = "1")]
    pub(crate) branches: Vec<ThunkSequenceProto>,
    #[prost(message, optional, tag = "2")]
    pub(crate) index: Option<SliceProto>,
}

static CONDITIONAL: Message = Message {
    name: "ConditionalThunkProto",
    size_bytes: size_of::<ConditionalProto>(),
    scalars: &[],
    nested: &[(1, &THUNK_SEQUENCE), (2, &SLICE)],
    passed: Passed::These(&[]),
};

#[derive(Clone, PartialEq, Prost)]
pub(crate) struct SortProto {
    #[prost(int64, tag = "1")]
    pub(crate) dimension: i64,
    #[prost(bool, tag = "2")]
    pub(crate) is_stable: bool,
    #[prost(string, tag = "4")]
    pub(crate) comparator: String,
    #[prost(message, repeated, tag = "5")]
    pub(crate) arrays: Vec<ShapeSliceProto>,
}

static SORT: Message = Message {
    name: "SortThunkProto",
    size_bytes: size_of::<SortProto>(),
    scalars: &[1, 2, 4],
    nested: &[(5, &SHAPE_SLICE)],
    // Whether the comparator, which is always present, is just `<` or `>`.
    passed: Passed::These(&[3]),
};

#[derive(Clone, PartialEq, Prost)]
pub(crate) struct DotProto {
    #[prost(message, optional, tag = "1")]
    pub(crate) dimensions: Option<DotDimensionsProto>,
    #[prost(message, optional, tag = "2")]
    pub(crate) lhs: Option<ShapeSliceProto>,
    #[prost(message, optional, tag = "3")]
    pub(crate) rhs: Option<ShapeSliceProto>,
    #[prost(message, optional, tag = "4")]
    pub(crate) out: Option<ShapeSliceProto>,
}

static DOT: Message = Message {
    name: "DotThunkProto",
    size_bytes: size_of::<DotProto>(),
    scalars: &[],
    nested: &[(1, &DOT_DIMENSIONS), (2, &SHAPE_SLICE), (3, &SHAPE_SLICE), (4, &SHAPE_SLICE)],
    passed: Passed::These(&[]),
};

#[derive(Clone, Copy, PartialEq, Prost)]
pub(crate) struct RngProto {
    #[prost(int64, tag = "1")]
    pub(crate) delta: i64,
    #[prost(message, optional, tag = "2")]
    pub(crate) state: Option<SliceProto>,
}

static RNG: Message = Message {
    name: "RngGetAndUpdateStateThunkProto",
    size_bytes: size_of::<RngProto>(),
    scalars: &[1],
    nested: &[(2, &SLICE)],
    passed: Passed::These(&[]),
};

#[derive(Clone, Copy, PartialEq, Prost)]
pub(crate) struct TopKProto {
    #[prost(int64, tag = "1")]
    pub(crate) batch_size: i64,
    #[prost(int64, tag = "2")]
    pub(crate) input_size: i64,
    #[prost(int64, tag = "3")]
    pub(crate) k: i64,
    #[prost(message, optional, tag = "4")]
    pub(crate) values: Option<SliceProto>,
    #[prost(message, optional, tag = "5")]
    pub(crate) output: Option<SliceProto>,
    #[prost(message, optional, tag = "6")]
    pub(crate) indices: Option<SliceProto>,
}

static TOP_K: Message = Message {
    name: "TopKThunkProto",
    size_bytes: size_of::<TopKProto>(),
    scalars: &[1, 2, 3],
    nested: &[(4, &SLICE), (5, &SLICE), (6, &SLICE)],
    passed: Passed::These(&[]),
};

#[derive(Clone, PartialEq, Prost)]
pub(crate) struct WhileProto {
    #[prost(message, optional, tag = "1")]
    pub(crate) condition: Option<ThunkSequenceProto>,
    #[prost(message, optional, tag = "2")]
    pub(crate) body: Option<ThunkSequenceProto>,
    #[prost(message, optional, tag = "3")]
    pub(crate) trip_count: Option<OptionalProto>,
    #[prost(message, optional, tag = "4")]
    pub(crate) predicate: Option<SliceProto>,
}

static WHILE: Message = Message {
    name: "WhileThunkProto",
    size_bytes: size_of::<WhileProto>(),
    scalars: &[],
    nested: &[(1, &THUNK_SEQUENCE), (2, &THUNK_SEQUENCE), (3, &OPTIONAL), (4, &SLICE)],
    passed: Passed::These(&[]),
};

#[derive(Clone, PartialEq, Prost)]
pub(crate) struct KernelProto {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) workgroups: Option<WorkgroupsProto>,
    #[prost(int64, repeated, tag = "3")]
    pub(crate) invariant_arguments: Vec<i64>,
    #[prost(message, optional, tag = "4")]
    pub(crate) min_alignment: Option<OptionalProto>,
    #[prost(message, repeated, tag = "5")]
    pub(crate) arguments: Vec<ShapedSliceProto>,
    #[prost(message, repeated, tag = "6")]
    pub(crate) results: Vec<ShapedSliceProto>,
}

static KERNEL: Message = Message {
    name: "KernelThunkProto",
    size_bytes: size_of::<KernelProto>(),
    scalars: &[1, 3],
    nested: &[(2, &WORKGROUPS), (4, &OPTIONAL), (5, &SHAPED_SLICE), (6, &SHAPED_SLICE)],
    passed: Passed::These(&[]),
};

#[derive(Clone, Copy, PartialEq, Prost)]
pub(crate) struct WorkgroupsProto {
    #[prost(int64, tag = "1")]
    pub(crate) x: i64,
    #[prost(int64, tag = "2")]
    pub(crate) y: i64,
    #[prost(int64, tag = "3")]
    pub(crate) z: i64,
}

static WORKGROUPS: Message = Message {
    name: "NumWorkGroups",
    size_bytes: size_of::<WorkgroupsProto>(),
    scalars: &[1, 2, 3],
    nested: &[],
    passed: Passed::These(&[]),
};

#[derive(Clone, PartialEq, Prost)]
pub(crate) struct CopyProto {
    #[prost(message, optional, tag = "1")]
    pub(crate) from: Option<ShapeSliceProto>,
    #[prost(message, optional, tag = "2")]
    pub(crate) to: Option<ShapeSliceProto>,
}

static COPY: Message = Message {
    name: "CopyThunkProto",
    size_bytes: size_of::<CopyProto>(),
    scalars: &[],
    nested: &[(1, &SHAPE_SLICE), (2, &SHAPE_SLICE)],
    passed: Passed::These(&[]),
};

#[derive(Clone, PartialEq, Prost)]
pub(crate) struct FftProto {
    #[prost(int32, tag = "2")]
    pub(crate) kind: i32,
    #[prost(int64, repeated, tag = "3")]
    pub(crate) lengths: Vec<i64>,
    #[prost(message, optional, tag = "4")]
    pub(crate) input: Option<ShapeSliceProto>,
    #[prost(message, optional, tag = "5")]
    pub(crate) output: Option<ShapeSliceProto>,
}

static FFT: Message = Message {
    name: "FftThunkProto",
    size_bytes: size_of::<FftProto>(),
    scalars: &[2, 3],
    nested: &[(4, &SHAPE_SLICE), (5, &SHAPE_SLICE)],
    // Whether XLA uses several threads.
    passed: Passed::These(&[1]),
};

#[derive(Clone, PartialEq, Prost)]
pub(crate) struct ConvolutionProto {
    #[prost(message, optional, tag = "1")]
    pub(crate) dimensions: Option<ConvolutionDimensionsProto>,
    #[prost(message, optional, tag = "2")]
    pub(crate) window: Option<WindowProto>,
    #[prost(int64, tag = "3")]
    pub(crate) feature_group_count: i64,
    #[prost(message, optional, tag = "4")]
    pub(crate) input: Option<ShapeSliceProto>,
    #[prost(message, optional, tag = "5")]
    pub(crate) kernel: Option<ShapeSliceProto>,
    #[prost(message, optional, tag = "6")]
    pub(crate) output: Option<ShapeSliceProto>,
}

static CONVOLUTION: Message = Message {
    name: "ConvolutionThunkProto",
    size_bytes: size_of::<ConvolutionProto>(),
    scalars: &[3],
    nested: &[(1, &CONVOLUTION_DIMENSIONS), (2, &WINDOW), (4, &SHAPE_SLICE), (5, &SHAPE_SLICE), (6, &SHAPE_SLICE)],
    // Whether XLA uses several threads.
    passed: Passed::These(&[7]),
};

/// A fused computation that has no code. The instruction of the module calls it.
#[derive(Clone, PartialEq, Prost)]
pub(crate) struct YnnProto {
    #[prost(int64, tag = "2")]
    pub(crate) instruction: i64,
    #[prost(message, repeated, tag = "3")]
    pub(crate) arguments: Vec<ShapeSliceProto>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) results: Vec<ShapeSliceProto>,
}

static YNN: Message = Message {
    name: "YnnFusionThunkProto",
    size_bytes: size_of::<YnnProto>(),
    scalars: &[2],
    nested: &[(3, &SHAPE_SLICE), (4, &SHAPE_SLICE)],
    // Whether XLA uses several threads.
    passed: Passed::These(&[1]),
};

/// A thunk that writes the number of the partition or of the replica.
#[derive(Clone, Copy, PartialEq, Prost)]
pub(crate) struct IdProto {
    #[prost(message, optional, tag = "1")]
    pub(crate) to: Option<SliceProto>,
}

static ID: Message = Message {
    name: "PartitionIdThunkProto or ReplicaIdThunkProto",
    size_bytes: size_of::<IdProto>(),
    scalars: &[],
    nested: &[(1, &SLICE)],
    passed: Passed::These(&[]),
};
