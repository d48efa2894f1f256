//! `xla.LiteralProto`: the elements of a constant, in a field for each type.

use prost::Message as Prost;

use super::shape::{SHAPE, ShapeProto};
use super::wire::{Message, Passed};

/// An array's elements in the order of its layout.
#[derive(Clone, PartialEq, Prost)]
pub(crate) struct LiteralProto {
    #[prost(message, optional, tag = "1")]
    pub(crate) shape: Option<ShapeProto>,
    #[prost(bool, repeated, tag = "2")]
    pub(crate) preds: Vec<bool>,
    #[prost(bytes = "vec", tag = "3")]
    pub(crate) u8s: Vec<u8>,
    #[prost(int32, repeated, tag = "4")]
    pub(crate) s32s: Vec<i32>,
    #[prost(int64, repeated, tag = "5")]
    pub(crate) s64s: Vec<i64>,
    #[prost(uint32, repeated, tag = "6")]
    pub(crate) u32s: Vec<u32>,
    #[prost(uint64, repeated, tag = "7")]
    pub(crate) u64s: Vec<u64>,
    #[prost(float, repeated, tag = "8")]
    pub(crate) f32s: Vec<f32>,
    #[prost(double, repeated, tag = "9")]
    pub(crate) f64s: Vec<f64>,
    #[prost(bytes = "vec", tag = "11")]
    pub(crate) f16s: Vec<u8>,
    #[prost(float, repeated, tag = "12")]
    pub(crate) c64s: Vec<f32>,
    #[prost(bytes = "vec", tag = "13")]
    pub(crate) bf16s: Vec<u8>,
    #[prost(bytes = "vec", tag = "15")]
    pub(crate) s8s: Vec<u8>,
    #[prost(bytes = "vec", tag = "16")]
    pub(crate) u16s: Vec<u8>,
    #[prost(bytes = "vec", tag = "17")]
    pub(crate) s16s: Vec<u8>,
    #[prost(double, repeated, tag = "18")]
    pub(crate) c128s: Vec<f64>,
    #[prost(bytes = "vec", tag = "19")]
    pub(crate) f8e5m2s: Vec<u8>,
    #[prost(bytes = "vec", tag = "20")]
    pub(crate) f8e4m3fns: Vec<u8>,
    #[prost(bytes = "vec", tag = "21")]
    pub(crate) s4s: Vec<u8>,
    #[prost(bytes = "vec", tag = "22")]
    pub(crate) u4s: Vec<u8>,
    #[prost(bytes = "vec", tag = "23")]
    pub(crate) f8e4m3b11fnuzs: Vec<u8>,
    #[prost(bytes = "vec", tag = "24")]
    pub(crate) f8e5m2fnuzs: Vec<u8>,
    #[prost(bytes = "vec", tag = "25")]
    pub(crate) f8e4m3fnuzs: Vec<u8>,
    #[prost(bytes = "vec", tag = "26")]
    pub(crate) s2s: Vec<u8>,
    #[prost(bytes = "vec", tag = "27")]
    pub(crate) u2s: Vec<u8>,
    #[prost(bytes = "vec", tag = "28")]
    pub(crate) f8e4m3s: Vec<u8>,
    #[prost(bytes = "vec", tag = "29")]
    pub(crate) f8e3m4s: Vec<u8>,
    #[prost(bytes = "vec", tag = "32")]
    pub(crate) f4e2m1fns: Vec<u8>,
    #[prost(bytes = "vec", tag = "33")]
    pub(crate) f8e8m0fnus: Vec<u8>,
}

/// The ignored fields are tuples, sparse arrays and types of 1 and 6 bits: constants of such shapes are refused by
/// their shape.
pub(crate) static LITERAL: Message = Message {
    name: "LiteralProto",
    size_bytes: size_of::<LiteralProto>(),
    scalars: &[2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 32, 33],
    nested: &[(1, &SHAPE)],
    passed: Passed::These(&[10, 14, 30, 31, 34, 35, 36]),
};
