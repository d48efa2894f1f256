//! Damaged messages: no parser panics, and what is accepted makes the journey there and back.

use purlin_base::{StatusCode, StatusOr};
use purlin_program::{ComputeCapability, KernelArgPackingRelocation, KernelArgPackingSpec, KernelLoaderSpec};

use super::super::*;
use super::{packing, parse, specs};
use crate::fuzz::fuzz;

/// Parses each input with `parse`, and what it accepts again after `write`.
fn journeys<T: PartialEq>(
    what: &str,
    samples: &[Vec<u8>],
    parse: impl Fn(&[u8]) -> StatusOr<T>,
    write: impl Fn(&T) -> Vec<u8>,
    codes: &[StatusCode],
    reasons: usize,
) {
    samples.iter().for_each(|sample| drop(parse(sample).unwrap()));
    let outcome = fuzz(what, samples, |bytes, outcome| match parse(bytes) {
        Ok(value) => {
            outcome.accepted += 1;
            assert!(parse(&write(&value)).unwrap() == value);
        }
        Err(error) => {
            assert!(codes.contains(&error.code()), "{error}");
            outcome.refused(error.message());
        }
    });
    let enough = outcome.accepted > 0 && outcome.refused * 10 > outcome.accepted && outcome.kinds.len() >= reasons;
    assert!(enough, "{what}: {outcome:?}");
}

const CODES: [StatusCode; 4] =
    [StatusCode::DataLoss, StatusCode::Unimplemented, StatusCode::InvalidArgument, StatusCode::NotFound];

#[test]
fn no_kernel_loader_spec_breaks_the_parser() {
    let write = |spec: &KernelLoaderSpec| kernel_loader_spec_to_proto(spec).unwrap();
    let samples: Vec<Vec<u8>> = specs().iter().map(write).collect();
    journeys("kernel loader specs", &samples, parse, write, &CODES, 10);
}

#[test]
fn no_packing_spec_breaks_the_parser_and_all_that_are_accepted_can_be_built() {
    let at = |argument_index, offset_bytes| KernelArgPackingRelocation { argument_index, offset_bytes };
    let dense = KernelArgPackingSpec::new(vec![7; 20], vec![at(3, 12), at(0, 2), at(3, 9)]).unwrap();
    let samples = [packing(), vec![KernelArgPackingSpec::default(), dense].into()];
    let parse = |bytes: &[u8]| {
        let packing = kernel_args_packing_spec_from_proto(bytes)?;
        // It fails for a missing address at most.
        if let Ok(args) = packing.build(&[1, 2, 3, 4], 0) {
            assert_eq!(args.len(), packing.arguments().len());
        }
        Ok(packing)
    };
    let write = kernel_args_packing_spec_to_proto;
    journeys("kernel args packing specs", &samples.each_ref().map(write), parse, write, &CODES[..3], 7);
}

#[test]
fn no_compute_capability_breaks_the_parser() {
    let samples = ["9.0a", "10.3f", "8.6"].map(|text| compute_capability_to_proto(text.parse().unwrap()));
    let write = |capability: &ComputeCapability| compute_capability_to_proto(*capability);
    journeys("compute capabilities", &samples, compute_capability_from_proto, write, &CODES[..3], 5);
}

#[test]
fn no_text_of_a_compute_capability_breaks_the_parser() {
    let samples = ["9.0a", "10.3f", "8.6", "65535.65535F", "0.0"].map(|text| text.as_bytes().to_vec());
    let parse = |bytes: &[u8]| String::from_utf8_lossy(bytes).parse::<ComputeCapability>();
    let write = |capability: &ComputeCapability| capability.to_string().into_bytes();
    journeys("texts of compute capabilities", &samples, parse, write, &[StatusCode::InvalidArgument], 1);
}
