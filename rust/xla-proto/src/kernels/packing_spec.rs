//! `stream_executor.KernelArgsPackingSpecProto`.

use prost::Message as Prost;
use purlin_base::{Error, StatusOr};
use purlin_program::{KernelArgPackingRelocation, KernelArgPackingSpec, KernelArgsPackingSpec};

use crate::message::{decode, meaningless};
use crate::wire::{Message, Passed};

/// The only kind of relocation: an absolute address of 64 bits.
const BITS64_ABSOLUTE: i32 = 1;

#[derive(Clone, Copy, PartialEq, Prost)]
pub(super) struct RelocationProto {
    #[prost(int32, tag = "1")]
    pub(super) kind: i32,
    #[prost(int32, tag = "2")]
    pub(super) argument_index: i32,
    #[prost(int64, tag = "3")]
    pub(super) offset: i64,
}

pub(super) static RELOCATION: Message = Message {
    name: "KernelArgPackingRelocationProto",
    size_bytes: size_of::<RelocationProto>(),
    scalars: &[1, 2, 3],
    nested: &[],
    passed: Passed::These(&[]),
};

#[derive(Clone, PartialEq, Prost)]
pub(super) struct ArgumentProto {
    #[prost(message, repeated, tag = "1")]
    pub(super) relocations: Vec<RelocationProto>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) data: Vec<u8>,
}

pub(super) static ARGUMENT: Message = Message {
    name: "KernelArgPackingSpecProto",
    size_bytes: size_of::<ArgumentProto>(),
    scalars: &[2],
    nested: &[(1, &RELOCATION)],
    passed: Passed::These(&[]),
};

#[derive(Clone, PartialEq, Prost)]
pub(super) struct PackingProto {
    #[prost(message, repeated, tag = "1")]
    pub(super) kernel_arguments: Vec<ArgumentProto>,
}

pub(super) static PACKING: Message = Message {
    name: "KernelArgsPackingSpecProto",
    size_bytes: size_of::<PackingProto>(),
    scalars: &[],
    nested: &[(1, &ARGUMENT)],
    passed: Passed::These(&[]),
};

/// The bytes of XLA's message.
#[must_use]
pub fn kernel_args_packing_spec_to_proto(packing: &KernelArgsPackingSpec) -> Vec<u8> {
    PackingProto::from(packing).encode_to_vec()
}

/// Parses the bytes of XLA's message.
///
/// ```
/// use purlin::program::KernelArgsPackingSpec;
/// use purlin_xla_proto::kernels::{kernel_args_packing_spec_from_proto, kernel_args_packing_spec_to_proto};
///
/// let mut packing = KernelArgsPackingSpec::default();
/// packing.push_address(0)?;
/// let bytes = kernel_args_packing_spec_to_proto(&packing);
/// assert_eq!(kernel_args_packing_spec_from_proto(&bytes)?, packing);
/// # Ok::<(), purlin::Error>(())
/// ```
///
/// # Errors
/// - `DataLoss`: the bytes are no message.
/// - `Unimplemented`: the message has an unknown field.
/// - `InvalidArgument`: a relocation has an unknown kind, a negative index or offset, or does not lie in its argument.
///   The message names the argument, the relocation, the field and the value.
pub fn kernel_args_packing_spec_from_proto(bytes: &[u8]) -> StatusOr<KernelArgsPackingSpec> {
    packing_of(decode(bytes, &PACKING)?)
}

pub(super) fn packing_of(proto: PackingProto) -> StatusOr<KernelArgsPackingSpec> {
    let arguments = proto.kernel_arguments.into_iter().enumerate().map(|(number, argument)| {
        let place = |why: &Error| meaningless(&PACKING, format!("kernel argument {number}, {}", why.message()));
        argument_of(argument).map_err(|why| place(&why))
    });
    Ok(arguments.collect::<StatusOr<Vec<_>>>()?.into())
}

fn argument_of(proto: ArgumentProto) -> StatusOr<KernelArgPackingSpec> {
    let relocations = proto.relocations.iter().enumerate().map(|(number, relocation)| {
        let wrong = |what: String| Error::invalid_argument(format!("relocation {number}: {what}"));
        if relocation.kind != BITS64_ABSOLUTE {
            return Err(wrong(format!("kind is {}, and only {BITS64_ABSOLUTE} is known", relocation.kind)));
        }
        let index = relocation.argument_index;
        let argument_index = u32::try_from(index).map_err(|_| wrong(format!("argument_index is {index}")))?;
        let offset = relocation.offset;
        let offset_bytes = usize::try_from(offset).map_err(|_| wrong(format!("offset is {offset}")))?;
        Ok(KernelArgPackingRelocation { argument_index, offset_bytes })
    });
    KernelArgPackingSpec::new(proto.data, relocations.collect::<StatusOr<_>>()?)
}

impl From<&KernelArgsPackingSpec> for PackingProto {
    fn from(packing: &KernelArgsPackingSpec) -> Self {
        Self { kernel_arguments: packing.arguments().iter().map(ArgumentProto::from).collect() }
    }
}

impl From<&KernelArgPackingSpec> for ArgumentProto {
    fn from(argument: &KernelArgPackingSpec) -> Self {
        let relocation = |relocation: &KernelArgPackingRelocation| RelocationProto {
            kind: BITS64_ABSOLUTE,
            // Both fit: the index is at most i32::MAX, and the offset lies in a Vec.
            argument_index: relocation.argument_index as i32,
            offset: relocation.offset_bytes as i64,
        };
        Self { relocations: argument.relocations().iter().map(relocation).collect(), data: argument.bytes().to_vec() }
    }
}
