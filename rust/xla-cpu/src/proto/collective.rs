//! Messages of `xla/backends/cpu/runtime/thunk.proto`: the steps by which devices exchange arrays.

use prost::{Message as Prost, Oneof};

use super::shape::{SHAPE_SLICE, ShapeSliceProto};
use super::wire::{Message, Passed};

#[derive(Clone, PartialEq, Prost)]
pub(crate) struct CollectiveProto {
    #[prost(message, optional, tag = "1")]
    pub(crate) groups: Option<CollectiveGroupsProto>,
    #[prost(message, optional, tag = "2")]
    pub(crate) buffers: Option<CollectiveBuffersProto>,
    #[prost(oneof = "CollectiveKindProto", tags = "4, 5, 6, 7, 8")]
    pub(crate) kind: Option<CollectiveKindProto>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum CollectiveKindProto {
    #[prost(message, tag = "4")]
    AllGather(EmptyProto),
    #[prost(message, tag = "5")]
    AllReduce(ReductionProto),
    #[prost(message, tag = "6")]
    AllToAll(EmptyProto),
    #[prost(message, tag = "7")]
    ReduceScatter(ReductionProto),
    #[prost(message, tag = "8")]
    Permute(PermuteProto),
}

pub(super) static COLLECTIVE: Message = Message {
    name: "CollectiveThunkProto",
    size_bytes: size_of::<CollectiveProto>(),
    scalars: &[],
    nested: &[
        (1, &COLLECTIVE_GROUPS),
        (2, &COLLECTIVE_BUFFERS),
        (4, &EMPTY),
        (5, &REDUCTION),
        (6, &EMPTY),
        (7, &REDUCTION),
        (8, &PERMUTE),
    ],
    // The resource that orders collectives, which keep their order here.
    passed: Passed::These(&[3]),
};

#[derive(Clone, PartialEq, Prost)]
pub(crate) struct CollectiveGroupsProto {
    #[prost(bool, tag = "2")]
    pub(crate) has_channel: bool,
    #[prost(message, optional, tag = "3")]
    pub(crate) global_ids: Option<OptionalBoolProto>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) groups: Vec<ReplicaGroupProto>,
}

static COLLECTIVE_GROUPS: Message = Message {
    name: "OpParamsProto",
    size_bytes: size_of::<CollectiveGroupsProto>(),
    scalars: &[2],
    nested: &[(3, &OPTIONAL_BOOL), (4, &REPLICA_GROUP)],
    // The number of the channel: the commands of one program are told apart by their places.
    passed: Passed::These(&[1]),
};

/// A truth value that may be missing.
#[derive(Clone, Copy, PartialEq, Prost)]
pub(crate) struct OptionalBoolProto {
    #[prost(bool, tag = "1")]
    pub(crate) value: bool,
    #[prost(bool, tag = "2")]
    pub(crate) contains_value: bool,
}

static OPTIONAL_BOOL: Message = Message {
    name: "BoolOptional",
    size_bytes: size_of::<OptionalBoolProto>(),
    scalars: &[1, 2],
    nested: &[],
    passed: Passed::These(&[]),
};

#[derive(Clone, PartialEq, Prost)]
pub(crate) struct ReplicaGroupProto {
    #[prost(int64, repeated, tag = "1")]
    pub(crate) ids: Vec<i64>,
}

static REPLICA_GROUP: Message = Message {
    name: "ReplicaGroup",
    size_bytes: size_of::<ReplicaGroupProto>(),
    scalars: &[1],
    nested: &[],
    passed: Passed::These(&[]),
};

#[derive(Clone, PartialEq, Prost)]
pub(crate) struct CollectiveBuffersProto {
    #[prost(message, repeated, tag = "1")]
    pub(crate) from: Vec<ShapeSliceProto>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) to: Vec<ShapeSliceProto>,
}

static COLLECTIVE_BUFFERS: Message = Message {
    name: "OpBuffersProto",
    size_bytes: size_of::<CollectiveBuffersProto>(),
    scalars: &[],
    nested: &[(1, &SHAPE_SLICE), (2, &SHAPE_SLICE)],
    passed: Passed::These(&[]),
};

#[derive(Clone, Copy, PartialEq, Prost)]
pub(crate) struct EmptyProto {}

static EMPTY: Message = Message {
    name: "AllGatherThunkProto or AllToAllThunkProto",
    size_bytes: size_of::<EmptyProto>(),
    scalars: &[],
    nested: &[],
    passed: Passed::These(&[]),
};

#[derive(Clone, PartialEq, Prost)]
pub(crate) struct ReductionProto {
    #[prost(string, tag = "1")]
    pub(crate) kind: String,
}

static REDUCTION: Message = Message {
    name: "AllReduceThunkProto or ReduceScatterThunkProto",
    size_bytes: size_of::<ReductionProto>(),
    scalars: &[1],
    nested: &[],
    // Whether there is one replica only, which the groups say.
    passed: Passed::These(&[2]),
};

#[derive(Clone, PartialEq, Prost)]
pub(crate) struct PermuteProto {
    #[prost(message, repeated, tag = "1")]
    pub(crate) pairs: Vec<PairProto>,
}

static PERMUTE: Message = Message {
    name: "CollectivePermuteThunkProto",
    size_bytes: size_of::<PermuteProto>(),
    scalars: &[],
    nested: &[(1, &PAIR)],
    passed: Passed::These(&[]),
};

#[derive(Clone, Copy, PartialEq, Prost)]
pub(crate) struct PairProto {
    #[prost(int64, tag = "1")]
    pub(crate) source: i64,
    #[prost(int64, tag = "2")]
    pub(crate) target: i64,
}

static PAIR: Message = Message {
    name: "SourceTargetPairProto",
    size_bytes: size_of::<PairProto>(),
    scalars: &[1, 2],
    nested: &[],
    passed: Passed::These(&[]),
};
