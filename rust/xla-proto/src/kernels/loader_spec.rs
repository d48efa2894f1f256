//! `stream_executor.KernelLoaderSpecProto`.

use prost::Message as Prost;
use purlin_base::{Error, StatusOr};
use purlin_program::{KernelLoaderSpec, KernelPayload, KernelSymbol};

use super::packing_spec::{PACKING, PackingProto, packing_of};
use crate::message::{decode, meaningless};
use crate::wire::{Message, Passed};

#[derive(Clone, PartialEq, Prost)]
pub(super) struct PtxProto {
    #[prost(string, tag = "1")]
    pub(super) data: String,
}

pub(super) static PTX: Message = Message {
    name: "CudaPtxProto",
    size_bytes: size_of::<PtxProto>(),
    scalars: &[1],
    nested: &[],
    passed: Passed::These(&[]),
};

#[derive(Clone, PartialEq, Prost)]
pub(super) struct CubinProto {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) data: Vec<u8>,
}

pub(super) static CUBIN: Message = Message {
    name: "CudaCubinProto",
    size_bytes: size_of::<CubinProto>(),
    scalars: &[1],
    nested: &[],
    passed: Passed::These(&[]),
};

#[derive(Clone, PartialEq, Prost)]
pub(super) struct SymbolProto {
    #[prost(string, tag = "1")]
    pub(super) persistent_name: String,
}

pub(super) static SYMBOL: Message = Message {
    name: "InProcessSymbolProto",
    size_bytes: size_of::<SymbolProto>(),
    scalars: &[1],
    nested: &[],
    passed: Passed::These(&[]),
};

/// Fields 1, 2 and 6 are one `oneof` of XLA's. As fields of their own they are encoded in the order of their numbers,
/// as XLA does, and a message with two of them is seen.
#[derive(Clone, PartialEq, Prost)]
pub(super) struct LoaderProto {
    #[prost(message, optional, tag = "1")]
    pub(super) ptx: Option<PtxProto>,
    #[prost(message, optional, tag = "2")]
    pub(super) cubin: Option<CubinProto>,
    #[prost(int32, tag = "3")]
    pub(super) arity: i32,
    #[prost(string, tag = "4")]
    pub(super) kernel_name: String,
    #[prost(message, optional, tag = "5")]
    pub(super) packing: Option<PackingProto>,
    #[prost(message, optional, tag = "6")]
    pub(super) symbol: Option<SymbolProto>,
}

pub(super) static LOADER: Message = Message {
    name: "KernelLoaderSpecProto",
    size_bytes: size_of::<LoaderProto>(),
    scalars: &[3, 4],
    nested: &[(1, &PTX), (2, &CUBIN), (5, &PACKING), (6, &SYMBOL)],
    passed: Passed::These(&[]),
};

/// The bytes of XLA's message. A symbol of this process becomes its persistent name.
///
/// # Errors
/// `InvalidArgument`: the symbol has no persistent name, so that no other process could find it.
pub fn kernel_loader_spec_to_proto(spec: &KernelLoaderSpec) -> StatusOr<Vec<u8>> {
    let mut proto = LoaderProto {
        // It fits: a spec's arity is at most i32::MAX.
        arity: spec.arity() as i32,
        kernel_name: spec.kernel_name().to_owned(),
        packing: spec.packing().map(PackingProto::from),
        ..LoaderProto::default()
    };
    match spec.payload() {
        KernelPayload::Ptx(text) => proto.ptx = Some(PtxProto { data: text.to_string() }),
        KernelPayload::Cubin(bytes) => proto.cubin = Some(CubinProto { data: bytes.to_vec() }),
        KernelPayload::InProcessSymbol { persistent_name: Some(name), .. } => {
            proto.symbol = Some(SymbolProto { persistent_name: name.to_string() });
        }
        KernelPayload::InProcessSymbol { persistent_name: None, .. } => {
            return Err(Error::invalid_argument(format!(
                "kernel '{}' is a symbol of this process without a persistent name, so it cannot be serialized",
                spec.kernel_name()
            )));
        }
    }
    Ok(proto.encode_to_vec())
}

/// Parses the bytes of XLA's message. `resolve` finds the symbol for a persistent name, such as
/// [`SymbolRegistry::find`](purlin_program::SymbolRegistry::find) for the platform on which the kernel is to be loaded.
///
/// ```
/// use purlin::program::{KernelLoaderSpec, KernelPayload, SymbolRegistry};
/// use purlin_xla_proto::kernels::{kernel_loader_spec_from_proto, kernel_loader_spec_to_proto};
///
/// let spec = KernelLoaderSpec::new(KernelPayload::Ptx(".version 8.0 ...".into()), "add_f32", 3)?;
/// let bytes = kernel_loader_spec_to_proto(&spec)?;
/// let parsed = kernel_loader_spec_from_proto(&bytes, |name| SymbolRegistry::global().find(name, "cuda"))?;
/// assert_eq!(parsed, spec);
/// # Ok::<(), purlin::Error>(())
/// ```
///
/// # Errors
/// - `DataLoss`: the bytes are no message.
/// - `Unimplemented`: the message has an unknown field.
/// - `InvalidArgument`: the message has not exactly one payload, or a field has a value without meaning; the message
///   names the field and the value.
/// - The error of `resolve`, with the message's name in front.
pub fn kernel_loader_spec_from_proto(
    bytes: &[u8],
    resolve: impl FnOnce(&str) -> StatusOr<KernelSymbol>,
) -> StatusOr<KernelLoaderSpec> {
    let proto: LoaderProto = decode(bytes, &LOADER)?;
    let wrong = |what: String| meaningless(&LOADER, what);
    let payload = match (proto.ptx, proto.cubin, proto.symbol) {
        (Some(ptx), None, None) => KernelPayload::Ptx(ptx.data.into()),
        (None, Some(cubin), None) => KernelPayload::Cubin(cubin.data.into()),
        (None, None, Some(SymbolProto { persistent_name })) => {
            if persistent_name.is_empty() {
                return Err(wrong("persistent_name is empty".to_owned()));
            }
            let symbol = resolve(&persistent_name);
            let symbol = symbol.map_err(|why| Error::new(why.code(), format!("{}: {}", LOADER.name, why.message())))?;
            KernelPayload::InProcessSymbol { symbol, persistent_name: Some(persistent_name.into()) }
        }
        (ptx, cubin, symbol) => {
            let count = usize::from(ptx.is_some()) + usize::from(cubin.is_some()) + usize::from(symbol.is_some());
            return Err(wrong(format!("{count} of ptx, cubin and in_process_symbol are present, and 1 is needed")));
        }
    };
    let arity = u32::try_from(proto.arity).map_err(|_| wrong(format!("arity is {}", proto.arity)))?;
    let spec = KernelLoaderSpec::new(payload, proto.kernel_name, arity);
    let spec = spec.map_err(|why| wrong(why.message().to_owned()))?;
    match proto.packing {
        Some(packing) => Ok(spec.with_packing(packing_of(packing).map_err(|why| wrong(why.message().to_owned()))?)),
        None => Ok(spec),
    }
}
