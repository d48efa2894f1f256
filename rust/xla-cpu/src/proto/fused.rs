//! The instructions of fused computations that have no code: a thunk of kind ynn-fusion names one, and the library
//! executes it.
//!
//! The rest of the module is compiled, so `hlo.rs` ignores most fields of its instructions. A fused computation is
//! executed as its instructions say, so here each field is read, known to change nothing, or a reason to refuse. Only
//! programs with such a thunk pay for this second look at the bytes, and only for the computations that are named.

use std::collections::{BTreeSet, HashMap};

use prost::Message as Prost;

use super::literal::{LITERAL, LiteralProto};
use super::shape::{
    CONVOLUTION_DIMENSIONS, ConvolutionDimensionsProto, DOT_DIMENSIONS, DotDimensionsProto, SHAPE, ShapeProto, Unread,
    WINDOW, WindowProto,
};
use super::wire::{self, Message, Passed, Reader, Wire};
use crate::fault::Fault;

/// An instruction with all fields that matter to an interpreter.
#[derive(Clone, PartialEq, Prost)]
pub(crate) struct FusedInstructionProto {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) opcode: String,
    #[prost(message, optional, tag = "3")]
    pub(crate) shape: Option<ShapeProto>,
    #[prost(message, boxed, optional, tag = "8")]
    pub(crate) literal: Option<Box<LiteralProto>>,
    #[prost(int64, tag = "9")]
    pub(crate) parameter_number: i64,
    #[prost(int64, repeated, tag = "14")]
    pub(crate) dimensions: Vec<i64>,
    #[prost(message, optional, tag = "15")]
    pub(crate) window: Option<WindowProto>,
    #[prost(message, boxed, optional, tag = "16")]
    pub(crate) convolution: Option<Box<ConvolutionDimensionsProto>>,
    #[prost(message, repeated, tag = "17")]
    pub(crate) slices: Vec<SliceDimensionProto>,
    #[prost(message, optional, tag = "21")]
    pub(crate) padding: Option<PaddingProto>,
    #[prost(message, optional, tag = "30")]
    pub(crate) dot: Option<DotDimensionsProto>,
    #[prost(int64, tag = "35")]
    pub(crate) id: i64,
    #[prost(int64, repeated, tag = "36")]
    pub(crate) operands: Vec<i64>,
    #[prost(int64, repeated, tag = "38")]
    pub(crate) called: Vec<i64>,
    #[prost(int64, tag = "50")]
    pub(crate) feature_group_count: i64,
    #[prost(message, optional, tag = "51")]
    pub(crate) precision: Option<PrecisionProto>,
    #[prost(int64, tag = "58")]
    pub(crate) batch_group_count: i64,
    #[prost(message, optional, tag = "98")]
    pub(crate) sparsity: Option<Unread>,
    #[prost(message, optional, tag = "101")]
    pub(crate) newer: Option<Unread>,
}

pub(crate) static FUSED_INSTRUCTION: Message = Message {
    name: "HloInstructionProto",
    size_bytes: size_of::<FusedInstructionProto>(),
    scalars: &[1, 2, 9, 14, 35, 36, 38, 50, 58],
    nested: &[
        (3, &SHAPE),
        (8, &LITERAL),
        (15, &WINDOW),
        (16, &CONVOLUTION_DIMENSIONS),
        (17, &SLICE_DIMENSION),
        (21, &PADDING),
        (30, &DOT_DIMENSIONS),
        (51, &PRECISION),
        (98, &SPARSITY),
        (101, &NEWER),
    ],
    // Source locations, attributes for tools, statistics, and the kind of a convolution, which its dimensions imply.
    passed: Passed::These(&[7, 68, 82, 88, 97]),
};

/// The elements of a slice along one dimension.
#[derive(Clone, Copy, PartialEq, Prost)]
pub(crate) struct SliceDimensionProto {
    #[prost(int64, tag = "1")]
    pub(crate) start: i64,
    #[prost(int64, tag = "2")]
    pub(crate) limit: i64,
    #[prost(int64, tag = "3")]
    pub(crate) stride: i64,
}

pub(crate) static SLICE_DIMENSION: Message = Message {
    name: "SliceDimensions",
    size_bytes: size_of::<SliceDimensionProto>(),
    scalars: &[1, 2, 3],
    nested: &[],
    passed: Passed::These(&[]),
};

/// The padding of each dimension.
#[derive(Clone, PartialEq, Prost)]
pub(crate) struct PaddingProto {
    #[prost(message, repeated, tag = "1")]
    pub(crate) dimensions: Vec<PaddingDimensionProto>,
}

pub(crate) static PADDING: Message = Message {
    name: "PaddingConfig",
    size_bytes: size_of::<PaddingProto>(),
    scalars: &[],
    nested: &[(1, &PADDING_DIMENSION)],
    passed: Passed::These(&[]),
};

#[derive(Clone, Copy, PartialEq, Prost)]
pub(crate) struct PaddingDimensionProto {
    #[prost(int64, tag = "1")]
    pub(crate) low: i64,
    #[prost(int64, tag = "2")]
    pub(crate) high: i64,
    #[prost(int64, tag = "3")]
    pub(crate) interior: i64,
}

pub(crate) static PADDING_DIMENSION: Message = Message {
    name: "PaddingConfigDimension",
    size_bytes: size_of::<PaddingDimensionProto>(),
    scalars: &[1, 2, 3],
    nested: &[],
    passed: Passed::These(&[]),
};

/// The precision of a dot. Every precision that XLA may ask of an operand is at most that of its type.
#[derive(Clone, Copy, PartialEq, Prost)]
pub(crate) struct PrecisionProto {
    #[prost(int32, tag = "2")]
    pub(crate) algorithm: i32,
}

pub(crate) static PRECISION: Message = Message {
    name: "PrecisionConfig",
    size_bytes: size_of::<PrecisionProto>(),
    scalars: &[2],
    nested: &[],
    passed: Passed::These(&[1]),
};

/// Sparse operands: no field of it is known, so that only an empty one is accepted.
static SPARSITY: Message = Message {
    name: "SparsityConfig",
    size_bytes: size_of::<Unread>(),
    scalars: &[],
    nested: &[],
    passed: Passed::These(&[]),
};

/// What XLA of 2026 writes for convolutions beside that: no field of it is known either.
static NEWER: Message = Message {
    name: "field 101 of HloInstructionProto",
    size_bytes: size_of::<Unread>(),
    scalars: &[],
    nested: &[],
    passed: Passed::These(&[]),
};

/// A computation whose instructions are not decoded yet.
#[derive(Debug, Default)]
struct Raw<'a> {
    root: i64,
    instructions: Vec<&'a [u8]>,
}

/// A computation, decoded.
#[derive(Debug)]
pub(crate) struct FusedComputation {
    pub(crate) root: i64,
    pub(crate) instructions: Vec<FusedInstructionProto>,
    /// A text for each unknown field.
    pub(crate) unknown: BTreeSet<String>,
}

/// The computations of a module, by number.
#[derive(Debug)]
pub(crate) struct FusedComputations<'a> {
    /// The bytes in which they are.
    bytes: &'a [u8],
    computations: HashMap<i64, Raw<'a>>,
}

/// The fields that lead from a `CompilationResultProto` to the computations.
const MODULE_WITH_CONFIG: u32 = 1;
const MODULE: u32 = 1;
const COMPUTATION: u32 = 3;
const INSTRUCTION: u32 = 2;
const ID: u32 = 5;
const ROOT: u32 = 6;

impl<'a> FusedComputations<'a> {
    /// Finds the computations in the bytes of a `CompilationResultProto`.
    pub(crate) fn find(result: &'a [u8]) -> Result<Self, Fault> {
        let mut found = HashMap::new();
        for with_config in messages(result, MODULE_WITH_CONFIG)? {
            for module in messages(with_config, MODULE)? {
                for computation in messages(module, COMPUTATION)? {
                    let mut raw = Raw { root: 0, instructions: messages(computation, INSTRUCTION)? };
                    let mut id = 0;
                    let mut reader = Reader { bytes: computation, at: 0 };
                    while let Some(field) = reader.next()? {
                        let into = match field.number {
                            ID => &mut id,
                            ROOT => &mut raw.root,
                            _ => continue,
                        };
                        if field.wire == Wire::Varint {
                            *into = Reader { bytes: computation, at: field.begin }.varint()?.cast_signed();
                        }
                    }
                    found.insert(id, raw);
                }
            }
        }
        Ok(Self { bytes: result, computations: found })
    }

    /// Decodes a computation. `None`: none has that number. The offset of a fault counts from the bytes given to
    /// `find`.
    pub(crate) fn decode(&self, id: i64) -> Result<Option<FusedComputation>, Fault> {
        let Some(raw) = self.computations.get(&id) else { return Ok(None) };
        let mut computation = FusedComputation {
            root: raw.root,
            instructions: Vec::with_capacity(raw.instructions.len()),
            unknown: BTreeSet::new(),
        };
        for bytes in &raw.instructions {
            let begin = bytes.as_ptr().addr() - self.bytes.as_ptr().addr();
            let unknown = wire::check(bytes, &FUSED_INSTRUCTION).map_err(|damage| Fault::from(damage).within(begin))?;
            computation.unknown.extend(unknown);
            let instruction = FusedInstructionProto::decode(*bytes).map_err(|error| Fault::damage(begin, error))?;
            computation.instructions.push(instruction);
        }
        Ok(Some(computation))
    }
}

/// The values of a field that holds messages.
fn messages(bytes: &[u8], number: u32) -> Result<Vec<&[u8]>, Fault> {
    let mut found = Vec::new();
    let mut reader = Reader { bytes, at: 0 };
    while let Some(field) = reader.next()? {
        if field.number == number && field.wire == Wire::Bytes {
            found.push(&bytes[field.begin..reader.at]);
        }
    }
    Ok(found)
}
