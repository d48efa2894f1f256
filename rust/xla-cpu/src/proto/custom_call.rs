//! Messages of custom calls, in `xla/backends/cpu/runtime/thunk.proto`.

use prost::Message as Prost;

use super::shape::{SHAPE_SLICE, ShapeSliceProto};
use super::wire::{Message, Passed};

#[derive(Clone, PartialEq, Prost)]
pub(crate) struct CustomCallProto {
    #[prost(int32, tag = "1")]
    pub(crate) api_version: i32,
    #[prost(string, tag = "2")]
    pub(crate) target: String,
    /// The attributes as text of MLIR. XLA declares a string; text of the user's in it need not be UTF-8.
    #[prost(bytes = "vec", tag = "3")]
    pub(crate) attributes: Vec<u8>,
    #[prost(message, optional, tag = "4")]
    pub(crate) buffers: Option<CustomCallBuffersProto>,
}

pub(crate) static CUSTOM_CALL: Message = Message {
    name: "CustomCallThunkProto",
    size_bytes: size_of::<CustomCallProto>(),
    scalars: &[1, 2, 3],
    nested: &[(4, &CUSTOM_CALL_BUFFERS)],
    passed: Passed::These(&[]),
};

/// Arguments and results. Tuples are flattened.
#[derive(Clone, PartialEq, Prost)]
pub(crate) struct CustomCallBuffersProto {
    #[prost(message, repeated, tag = "1")]
    pub(crate) arguments: Vec<ShapeSliceProto>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) results: Vec<ShapeSliceProto>,
}

static CUSTOM_CALL_BUFFERS: Message = Message {
    name: "CustomCallThunkProto.OpBuffers",
    size_bytes: size_of::<CustomCallBuffersProto>(),
    scalars: &[],
    nested: &[(1, &SHAPE_SLICE), (2, &SHAPE_SLICE)],
    // Whether the result is a tuple: a handler gets its elements.
    passed: Passed::These(&[3]),
};
