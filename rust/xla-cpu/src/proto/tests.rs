//! Tables and messages agree, an error for damage names its offset, and unknown fields are reported by name.

use purlin_xla_proto::testing::agrees;

use super::fused::*;
use super::hlo::*;
use super::literal::*;
use super::shape::*;
use super::thunk::*;
use super::{executable, *};

#[test]
fn tables_name_the_fields_that_are_read() {
    agrees::<CompilationResultProto>(&executable::COMPILATION_RESULT);
    agrees::<ModuleWithConfigProto>(&MODULE_WITH_CONFIG);
    agrees::<BufferAssignmentProto>(&BUFFER_ASSIGNMENT);
    agrees::<LiteralProto>(&LITERAL);
    agrees::<ShapeProto>(&SHAPE);
    agrees::<LayoutProto>(&LAYOUT);
    agrees::<ProgramShapeProto>(&PROGRAM_SHAPE);
    agrees::<SliceProto>(&SLICE);
    agrees::<ShapeSliceProto>(&SHAPE_SLICE);
    agrees::<DotDimensionsProto>(&DOT_DIMENSIONS);
    agrees::<ConvolutionDimensionsProto>(&CONVOLUTION_DIMENSIONS);
    agrees::<WindowProto>(&WINDOW);
    agrees::<WindowDimensionProto>(&WINDOW_DIMENSION);
    agrees::<ThunkSequenceProto>(&THUNK_SEQUENCE);
    agrees::<ThunkProto>(&THUNK);
    agrees::<FusedInstructionProto>(&FUSED_INSTRUCTION);
    agrees::<SliceDimensionProto>(&SLICE_DIMENSION);
    agrees::<PaddingProto>(&PADDING);
    agrees::<PaddingDimensionProto>(&PADDING_DIMENSION);
    agrees::<PrecisionProto>(&PRECISION);
}

fn wrapped(result: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x0a];
    prost::encoding::encode_varint(result.len() as u64, &mut bytes);
    bytes.extend(result);
    bytes
}

#[test]
fn both_forms_hold_the_same_executable() {
    let result = CompilationResultProto { object_kind: 2, ..Default::default() };
    let plugin = wrapped(&result.encode_to_vec());
    let jaxlib = [&[3, 8, 3, 0][..], &plugin].concat();
    for bytes in [&plugin, &jaxlib] {
        let parsed = parse(bytes).unwrap();
        assert_eq!((parsed.result, parsed.unknown.len()), (result.clone(), 0));
    }
}

#[test]
fn donated_parameters_are_counted_also_in_a_tuple() {
    let entry = |parameter, parameter_index| AliasEntryProto { output_index: vec![], parameter, parameter_index };
    let entries = vec![entry(3, vec![]), entry(1, vec![]), entry(3, vec![]), entry(0, vec![7])];
    let module = HloModuleProto { input_output_alias: Some(InputOutputAliasProto { entries }), ..Default::default() };
    let hlo_module = Some(ModuleWithConfigProto { module: Some(module), ..Default::default() });
    let result = CompilationResultProto { hlo_module, ..Default::default() };
    assert_eq!(parse(&wrapped(&result.encode_to_vec())).unwrap().donated_parameters(), [1, 3, 7]);
    assert!(parse(&wrapped(&[])).unwrap().donated_parameters().is_empty());
    assert_eq!(crate::donated_parameters(b"x").unwrap_err().code(), purlin_base::StatusCode::DataLoss);
}

#[test]
fn what_is_unknown_is_named_and_what_describes_is_passed_over() {
    let mut thunk = ThunkProto { kind: "kernel".to_owned(), thunk: None }.encode_to_vec();
    thunk.extend([0x12, 0, 0xba, 0x01, 0]); // Field 2, which is ignored, and field 23.
    let sequence = [vec![0x0a, thunk.len() as u8], thunk].concat();
    let result = [vec![0x32, sequence.len() as u8], sequence, vec![0x58, 1]].concat();
    let bytes = wrapped(&result);
    let parsed = parse(&bytes).unwrap();
    let unknown: Vec<&str> = parsed.unknown.iter().map(String::as_str).collect();
    assert_eq!(unknown, ["field 11 of CompilationResultProto is not known", "field 23 of ThunkProto is not known"]);
}

#[test]
fn damage_names_its_byte() {
    let refused = |bytes: &[u8]| {
        let fault = parse(bytes).unwrap_err();
        (fault.offset, fault.what)
    };
    assert_eq!(refused(&[]), (0, "the bytes end inside a number".to_owned()));
    assert_eq!(refused(&[5, 8, 3]), (0, "a description is said to be 5 bytes long, and 2 are left".to_owned()));
    assert_eq!(refused(&[0x0a, 9, 1]), (2, "a value is said to be 9 bytes long, and 1 are left".to_owned()));
    assert_eq!(refused(&[0x0a, 1, 0x0b]), (2, "3 is no way to write a field".to_owned()));
    assert_eq!(refused(&[0x0a, 2, 0x30, 1]), (2, "field 6 of CompilationResultProto is no message".to_owned()));
    assert_eq!(refused(&[0x0a, 0, 0x20, 1]).1, "field 4 of ExecutableAndOptionsProto is not known");
    assert_eq!(refused(&[2, 8, 3]).1, "the bytes hold no executable");
    let endless = [vec![0x0a, 11], vec![0xff; 11]].concat();
    assert_eq!(refused(&endless), (2, "a number has more than 64 bits".to_owned()));
}

#[test]
fn depth_and_memory_are_bounded() {
    // A call of a call of ...
    let mut sequence = Vec::new();
    let within = |tag: u8, inner: &[u8]| {
        let mut bytes = vec![tag];
        prost::encoding::encode_varint(inner.len() as u64, &mut bytes);
        bytes.extend(inner);
        bytes
    };
    for _ in 0..40 {
        sequence = within(0x0a, &within(0x1a, &within(0x0a, &sequence)));
    }
    let fault = parse(&wrapped(&within(0x32, &sequence))).unwrap_err();
    assert!(fault.what.contains("more than 100 deep"), "{fault:?}");
    // Each message has two bytes, and a hundred when it is decoded.
    let many = within(0x32, &[0x0a, 0].repeat(100_000));
    let fault = parse(&wrapped(&many)).map(drop).unwrap_err();
    assert!(fault.what.contains("more messages than so many bytes may hold, the last of them ThunkProto"), "{fault:?}");
}
