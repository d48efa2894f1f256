//! Tables and messages agree, values make the journey there and back, and every refusal has field and value.

#![allow(unsafe_code, reason = "a symbol is made")]

mod fuzz;
mod xla;

use std::ptr::NonNull;
use std::sync::Arc;

use prost::Message as Prost;
use purlin_base::{Error, StatusCode, StatusOr};
use purlin_program::{ComputeCapability, KernelArgsPackingSpec, KernelLoaderSpec, KernelPayload, KernelSymbol};

use super::compute_capability::{COMPUTE_CAPABILITY, ComputeCapabilityProto};
use super::loader_spec::{CUBIN, CubinProto, LOADER, LoaderProto, PTX, PtxProto, SYMBOL, SymbolProto};
use super::packing_spec::{ARGUMENT, ArgumentProto, PACKING, PackingProto, RELOCATION, RelocationProto};
use super::*;
use crate::testing::agrees;

fn symbol() -> KernelSymbol {
    static CODE: u8 = 0xc3;
    // SAFETY: nothing launches it.
    unsafe { KernelSymbol::new(NonNull::from(&CODE).cast(), Arc::new(())) }
}

fn resolve(name: &str) -> StatusOr<KernelSymbol> {
    if name == "known" { Ok(symbol()) } else { Err(Error::not_found(format!("no symbol {name}"))) }
}

fn parse(bytes: &[u8]) -> StatusOr<KernelLoaderSpec> {
    kernel_loader_spec_from_proto(bytes, resolve)
}

/// Address 1, address 0, and the constant 42.
fn packing() -> KernelArgsPackingSpec {
    let mut packing = KernelArgsPackingSpec::default();
    packing.push_address(1).unwrap();
    packing.push_address(0).unwrap();
    packing.push_constant(&42_i64.to_le_bytes());
    packing
}

/// A spec of each kind.
fn specs() -> Vec<KernelLoaderSpec> {
    let spec = |payload| KernelLoaderSpec::new(payload, "kernel", 3).unwrap();
    let named = KernelPayload::InProcessSymbol { symbol: symbol(), persistent_name: Some("known".into()) };
    let ptx = || KernelPayload::Ptx(".version 8.0\n".into());
    let cubin = spec(KernelPayload::Cubin([0x7f, b'E', 0, 0xff].into()));
    vec![
        spec(ptx()),
        spec(ptx()).with_packing(packing()),
        cubin,
        spec(named.clone()),
        spec(named).with_packing(packing()),
    ]
}

#[test]
fn tables_name_the_fields_that_are_read() {
    agrees::<ComputeCapabilityProto>(&COMPUTE_CAPABILITY);
    agrees::<RelocationProto>(&RELOCATION);
    agrees::<ArgumentProto>(&ARGUMENT);
    agrees::<PackingProto>(&PACKING);
    agrees::<PtxProto>(&PTX);
    agrees::<CubinProto>(&CUBIN);
    agrees::<SymbolProto>(&SYMBOL);
    agrees::<LoaderProto>(&LOADER);
}

/// XLA's code in tensorflow-cpu 2.21.0 wrote these bytes.
#[test]
fn bytes_are_those_of_xla() {
    let expected = "0a100a0408011001120800000000000000000a0e0a020801120800000000000000000a0a12082a00000000000000";
    let bytes = kernel_args_packing_spec_to_proto(&packing());
    assert_eq!(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>(), expected);
}

#[test]
fn values_make_the_journey_there_and_back() {
    assert_eq!(kernel_args_packing_spec_from_proto(&kernel_args_packing_spec_to_proto(&packing())).unwrap(), packing());
    assert_eq!(kernel_args_packing_spec_from_proto(&[]).unwrap(), KernelArgsPackingSpec::default());
    for spec in specs() {
        assert_eq!(parse(&kernel_loader_spec_to_proto(&spec).unwrap()).unwrap(), spec);
    }
    for text in ["0.0", "5.0", "9.0a", "10.3f", "12.1", "65535.65535f"] {
        let capability: ComputeCapability = text.parse().unwrap();
        assert_eq!(compute_capability_from_proto(&compute_capability_to_proto(capability)).unwrap(), capability);
    }
    for (major, text) in [(8, "8.0"), (9, "9.0a"), (10, "10.0a"), (11, "11.0")] {
        let parsed = compute_capability_from_proto(&[8, major]).unwrap();
        assert_eq!(parsed.to_string(), text, "without a feature extension");
    }
}

#[test]
fn a_spec_without_a_packing_is_not_one_with_an_empty_packing() {
    let spec = KernelLoaderSpec::new(KernelPayload::Ptx("p".into()), "k", 0).unwrap();
    let empty = spec.clone().with_packing(KernelArgsPackingSpec::default());
    for spec in [spec, empty] {
        let parsed = parse(&kernel_loader_spec_to_proto(&spec).unwrap()).unwrap();
        assert_eq!(parsed.packing().is_some(), spec.packing().is_some());
    }
}

#[test]
fn a_symbol_without_a_name_has_no_bytes() {
    let payload = KernelPayload::InProcessSymbol { symbol: symbol(), persistent_name: None };
    let error = kernel_loader_spec_to_proto(&KernelLoaderSpec::new(payload, "fill", 1).unwrap()).unwrap_err();
    let expected = "kernel 'fill' is a symbol of this process without a persistent name, so it cannot be serialized";
    assert_eq!((error.code(), error.message()), (StatusCode::InvalidArgument, expected));
}

#[test]
fn a_name_that_nobody_knows_has_the_error_of_the_resolver() {
    let symbol = Some(SymbolProto { persistent_name: "unknown".to_owned() });
    let bytes = LoaderProto { symbol, kernel_name: "k".to_owned(), ..Default::default() }.encode_to_vec();
    let error = parse(&bytes).unwrap_err();
    assert_eq!((error.code(), error.message()), (StatusCode::NotFound, "KernelLoaderSpecProto: no symbol unknown"));
}

fn refused<T: std::fmt::Debug>(outcome: StatusOr<T>) -> (StatusCode, String) {
    let error = outcome.unwrap_err();
    (error.code(), error.message().to_owned())
}

#[test]
fn damage_is_named_with_its_byte_and_unknown_fields_with_their_numbers() {
    let damaged = parse(&[0x0a, 9, 1]);
    let expected = "KernelLoaderSpecProto, byte 2: a value is said to be 9 bytes long, and 1 are left";
    assert_eq!(refused(damaged), (StatusCode::DataLoss, expected.to_owned()));
    let (code, what) = refused(parse(&[0x22, 1, 0xff]));
    assert_eq!(code, StatusCode::DataLoss);
    assert!(what.starts_with("KernelLoaderSpecProto, byte 0: ") && what.contains("UTF-8"), "{what}");
    let expected = "KernelLoaderSpecProto: field 2 of CudaPtxProto is not known; field 7 of KernelLoaderSpecProto is \
                    not known";
    assert_eq!(refused(parse(&[0x0a, 2, 0x10, 0, 0x38, 1])), (StatusCode::Unimplemented, expected.to_owned()));
    let unknown = compute_capability_from_proto(&[0x20, 1]);
    let expected = "CudaComputeCapabilityProto: field 4 of CudaComputeCapabilityProto is not known";
    assert_eq!(refused(unknown), (StatusCode::Unimplemented, expected.to_owned()));
}

#[test]
fn what_has_no_meaning_is_named_with_field_and_value() {
    let meaningless = |outcome, what: &str| assert_eq!(outcome, (StatusCode::InvalidArgument, what.to_owned()));
    let capability = |proto: ComputeCapabilityProto| refused(compute_capability_from_proto(&proto.encode_to_vec()));
    let proto = ComputeCapabilityProto { major: 9, minor: 0, feature_extension: 0 };
    meaningless(
        capability(ComputeCapabilityProto { major: -1, ..proto }),
        "CudaComputeCapabilityProto: major is -1, not a number of 0 to 65535",
    );
    meaningless(
        capability(ComputeCapabilityProto { minor: 65536, ..proto }),
        "CudaComputeCapabilityProto: minor is 65536, not a number of 0 to 65535",
    );
    meaningless(
        capability(ComputeCapabilityProto { feature_extension: -4, ..proto }),
        "CudaComputeCapabilityProto: feature_extension is -4, which is not known",
    );

    let relocation = |relocation| {
        let argument = ArgumentProto { relocations: vec![relocation], data: vec![0; 8] };
        let kernel_arguments = vec![ArgumentProto::default(), argument];
        refused(kernel_args_packing_spec_from_proto(&PackingProto { kernel_arguments }.encode_to_vec()))
    };
    let of = |what: &str| format!("KernelArgsPackingSpecProto: kernel argument 1, relocation 0: {what}");
    let proto = RelocationProto { kind: 1, argument_index: 0, offset: 0 };
    meaningless(relocation(RelocationProto { kind: 0, ..proto }), &of("kind is 0, and only 1 is known"));
    meaningless(relocation(RelocationProto { kind: 2, ..proto }), &of("kind is 2, and only 1 is known"));
    meaningless(relocation(RelocationProto { argument_index: -1, ..proto }), &of("argument_index is -1"));
    meaningless(relocation(RelocationProto { offset: -8, ..proto }), &of("offset is -8"));
    meaningless(
        relocation(RelocationProto { offset: 1, ..proto }),
        &of("offset 1, and 8 bytes from there, are not in an argument of 8 bytes"),
    );

    let loader = |proto: LoaderProto| refused(parse(&proto.encode_to_vec()));
    let ptx = Some(PtxProto { data: "p".to_owned() });
    let proto = LoaderProto { ptx, kernel_name: "k".to_owned(), ..Default::default() };
    let of = |what: &str| format!("KernelLoaderSpecProto: {what}");
    meaningless(
        loader(LoaderProto { ptx: None, ..proto.clone() }),
        &of("0 of ptx, cubin and in_process_symbol are present, and 1 is needed"),
    );
    meaningless(
        loader(LoaderProto { cubin: Some(CubinProto { data: vec![1] }), ..proto.clone() }),
        &of("2 of ptx, cubin and in_process_symbol are present, and 1 is needed"),
    );
    meaningless(
        loader(LoaderProto { ptx: None, symbol: Some(SymbolProto::default()), ..proto.clone() }),
        &of("persistent_name is empty"),
    );
    meaningless(loader(LoaderProto { arity: -3, ..proto.clone() }), &of("arity is -3"));
    meaningless(
        loader(LoaderProto { kernel_name: String::new(), ..proto.clone() }),
        &of("a kernel loader spec has an empty kernel_name"),
    );
    let argument = ArgumentProto { relocations: vec![RelocationProto::default()], data: vec![0; 8] };
    meaningless(
        loader(LoaderProto { packing: Some(PackingProto { kernel_arguments: vec![argument] }), ..proto }),
        &of("KernelArgsPackingSpecProto: kernel argument 0, relocation 0: kind is 0, and only 1 is known"),
    );
}
