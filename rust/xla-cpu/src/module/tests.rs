//! Executables that are built by hand: the ones that load, the ones that are refused, and the allocations of results.

use prost::Message as _;
use purlin_base::StatusCode;
use purlin_program::ArraySpec;

use super::hlo::Hlo;
use super::outputs::{Values, trace};
use super::shapes::signature;
use crate::fault::Reasons;
use crate::fuzz::sample::{fused, objects, plugin, plugin_with, result};
use crate::link::{RESERVED, perf_map};
use crate::proto::samples::*;
use crate::{LoadOptions, check, load_program};

/// The error for the sample executable after a change.
fn changed(change: impl FnOnce(&mut CompilationResultProto)) -> (StatusCode, String) {
    let mut result = result(objects().remove(0));
    change(&mut result);
    let error = check(&plugin(&result)).unwrap_err();
    (error.code(), error.message().to_owned())
}

fn thunks(result: &mut CompilationResultProto) -> &mut Vec<ThunkProto> {
    &mut result.thunks.as_mut().unwrap().thunks
}

fn allocations(result: &mut CompilationResultProto) -> &mut Vec<AllocationProto> {
    &mut result.buffer_assignment.as_mut().unwrap().allocations
}

#[test]
fn a_sound_executable_becomes_a_program_if_it_is_trusted() {
    let bytes = plugin(&result(objects().remove(0)));
    let error = load_program(&bytes, &LoadOptions::default()).unwrap_err();
    assert_eq!(error.code(), StatusCode::FailedPrecondition);
    assert!(error.message().contains("LoadOptions::trust_code"), "{error}");
    let program =
        load_program(&bytes, &LoadOptions { trust_code: true, unwind_tables: true, ..Default::default() }).unwrap();
    assert_eq!((program.name(), program.signature().to_string().as_str()), ("sample", "(f32[4]) -> (f32[4])"));
    let kinds: Vec<&str> = program.sequence().commands().iter().map(|command| command.kind()).collect();
    let library = ["library"; 5];
    let others = ["collective", "replica-id", "call", "while", "conditional"];
    assert_eq!(kinds, [&["kernel", "copy"][..], &library, &others].concat());
}

#[test]
fn nothing_is_mapped_for_a_program_that_is_refused() {
    let slice = |offset, size| ShapedSliceProto { slice: Some(SliceProto { offset, size, allocation: 1 }) };
    fn kernel(result: &mut CompilationResultProto) -> &mut KernelProto {
        let Some(ThunkKind::Kernel(kernel)) = &mut thunks(result)[0].thunk else { panic!("a kernel is first") };
        kernel
    }
    let mapped = || RESERVED.get();
    let options = LoadOptions { trust_code: true, ..Default::default() };
    let refused = |change: &dyn Fn(&mut CompilationResultProto), code, why: &str| {
        let mut result = result(objects().remove(0));
        change(&mut result);
        let (bytes, before) = (plugin(&result), mapped());
        let error = load_program(&bytes, &options).unwrap_err();
        assert_eq!((error.code(), mapped()), (code, before), "{error}");
        assert!(error.message().ends_with(why), "{error}");
        assert_eq!(check(&bytes).unwrap_err(), error);
    };
    refused(
        &|result| kernel(result).results = vec![slice(0, 12), slice(8, 8)],
        StatusCode::Unimplemented,
        "command 0 (kernel 'kernel'), operands 1 and 2: both write, bytes [0, 12) of allocation 1 and bytes [8, 16) of \
         allocation 1",
    );
    refused(
        &|result| drop(thunks(result).remove(0)),
        StatusCode::Unimplemented,
        "result 0: not every path writes bytes [0, 16) of allocation 1, which is result 0 of 16 bytes",
    );
    refused(
        &|result| kernel(result).results = vec![slice(8, 16)],
        StatusCode::DataLoss,
        "a slice of 16 bytes at 8 of allocation 1: there is no such",
    );
    let before = mapped();
    load_program(&plugin(&result(objects().remove(0))), &options).unwrap();
    assert_eq!(mapped(), before + 1);
}

#[test]
fn a_profiler_finds_the_functions_if_it_is_asked_for() {
    let bytes = plugin(&result(objects().remove(0)));
    let load = |perf_map| {
        load_program(&bytes, &LoadOptions { trust_code: true, perf_map, ..Default::default() }).map(|_program| ())
    };
    let path = perf_map::path();
    load(false).unwrap();
    assert!(!path.exists(), "nothing asked for it");
    load(true).unwrap();
    load(true).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(' ').collect()).collect();
    let names: Vec<&str> = lines.iter().map(|line| line[2]).collect();
    assert_eq!(names, ["kernel", "less", "unused"].repeat(2), "each load appends: {text}");
    let numbers = |at: usize| lines.iter().map(move |line| usize::from_str_radix(line[at], 16).unwrap());
    let addresses: Vec<usize> = numbers(0).take(3).collect();
    assert_eq!([addresses[1] - addresses[0], addresses[2] - addresses[1]], [16, 16], "as in the object");
    assert!(numbers(1).all(|size_bytes| size_bytes == 13), "{text}");
    std::fs::create_dir(&path).unwrap();
    let error = load(true).unwrap_err();
    std::fs::remove_dir(&path).unwrap();
    assert!(error.message().starts_with(&format!("perf map {}: ", path.display())), "{error}");
}

#[test]
fn all_reasons_are_told_at_once() {
    let (code, message) = changed(|result| {
        let target = "lapack_spotrf_ffi".to_owned();
        let custom = CustomCallProto { target, api_version: 4, ..Default::default() };
        let unknown = [ThunkKind::CustomCall(Box::new(custom)), ThunkKind::Infeed(Unread {})].map(Some);
        let kinds = ["custom-call", "infeed"].map(str::to_owned);
        thunks(result).extend(kinds.into_iter().zip(unknown).map(|(kind, thunk)| ThunkProto { kind, thunk }));
        result.symbols.clear();
        result.object_kind = 1;
        result.target.as_mut().unwrap().triple = "aarch64-unknown-linux-gnu".to_owned();
    });
    assert_eq!(code, StatusCode::Unimplemented);
    for reason in [
        "program 'sample' cannot run here: object files of kind 1; code for aarch64-unknown-linux-gnu; ",
        "custom call target 'lapack_spotrf_ffi' is not registered; thunk of kind 'infeed'; ",
        "kernel 'kernel' is not in the code",
        "comparator 'less' is not in the code",
    ] {
        assert!(message.contains(reason), "{reason}: {message}");
    }
}

#[test]
fn a_comparator_is_no_kernel() {
    let message = changed(|result| result.symbols.iter_mut().for_each(|symbol| symbol.kind = 2)).1;
    assert!(message.ends_with("kernel 'kernel' is not in the code"), "{message}");
}

/// The byte that an error for damage names.
fn byte(message: &str, said: &str) -> usize {
    let at = message.strip_prefix("XLA:CPU executable, byte ").and_then(|rest| rest.strip_suffix(&format!(": {said}")));
    at.unwrap_or_else(|| panic!("{message}")).parse().unwrap()
}

#[test]
fn damage_names_the_byte_of_its_message_or_of_the_object() {
    let error = |result: &CompilationResultProto| {
        let bytes = [&[3, 8, 3, 0][..], &plugin(result)].concat();
        (check(&bytes).unwrap_err().message().to_owned(), bytes)
    };
    let mut wrong = result(objects().remove(0));
    allocations(&mut wrong)[3].size = -1;
    let (message, bytes) = error(&wrong);
    let at = byte(&message, "allocation 3: a size of -1 bytes");
    assert!(bytes[at..].starts_with(&allocations(&mut wrong)[3].encode_to_vec()), "byte {at}");

    // A copy in the body of a loop in the list.
    let mut wrong = result(objects().remove(0));
    let inner = thunks(&mut wrong).iter_mut().find_map(|thunk| match &mut thunk.thunk {
        Some(ThunkKind::While(each)) => each.body.as_mut(),
        _ => None,
    });
    let copy = CopyProto { from: None, to: None };
    let broken = ThunkProto { kind: "broken".to_owned(), thunk: Some(ThunkKind::Copy(Box::new(copy))) };
    inner.unwrap().thunks.push(broken.clone());
    let (message, bytes) = error(&wrong);
    let at = byte(&message, "a slice is missing");
    assert!(bytes[at..].starts_with(&broken.encode_to_vec()), "byte {at}");

    // The machine of the object, and the place of a relocation.
    let object = objects().remove(0);
    let begin = |bytes: &[u8]| bytes.windows(4).position(|four| four == b"\x7fELF").unwrap();
    let mut other = object.clone();
    other[18] = 183;
    let (message, bytes) = error(&result(other));
    assert!(message.starts_with(&format!("XLA:CPU executable, byte {}: object", begin(&bytes))), "{message}");
    let mut far = object.clone();
    let entry = object.windows(16).position(|entry| entry == [2_u64, 1 << 32 | 1].map(u64::to_le_bytes).concat());
    far[entry.unwrap() + 1] = 1;
    let (message, bytes) = error(&result(far));
    let said = format!("byte {}: object 'sample.o': a relocation at 258", begin(&bytes) + entry.unwrap());
    assert!(message.contains(&said), "{said}: {message}");
}

#[test]
fn slices_and_arrays_lie_in_their_allocations() {
    for (offset, size, allocation) in
        [(0, 17, 1), (8, 16, 1), (-1, 16, 1), (0, -1, 1), (0, 16, 99), (0, 16, -1), (i64::MAX, 16, 1)]
    {
        let (code, message) = changed(|result| {
            let Some(ThunkKind::Kernel(kernel)) = &mut thunks(result)[0].thunk else { panic!("a kernel is first") };
            kernel.results[0].slice = Some(SliceProto { offset, size, allocation });
        });
        let said = format!("a slice of {size} bytes at {offset} of allocation {allocation}: there is no such");
        assert_eq!(code, StatusCode::DataLoss);
        let at = byte(&message, &said);
        // The message of the slice: the number of its allocation, its offset and its size are what it holds.
        let slice = ShapedSliceProto { slice: Some(SliceProto { offset, size, allocation }) }.encode_to_vec();
        let mut result = result(objects().remove(0));
        let Some(ThunkKind::Kernel(kernel)) = &mut thunks(&mut result)[0].thunk else { panic!("a kernel is first") };
        kernel.results[0].slice = Some(SliceProto { offset, size, allocation });
        assert!(plugin(&result)[at..].starts_with(&slice), "byte {at}: {message}");
    }
    let array = |change: fn(&mut ShapeSliceProto)| {
        changed(|result| {
            let Some(ThunkKind::Copy(copy)) = &mut thunks(result)[1].thunk else { panic!("a copy is second") };
            change(copy.from.as_mut().unwrap());
        })
    };
    assert!(array(|array| array.slice.as_mut().unwrap().size = 8).1.ends_with("f32[4] in 8 bytes"));
    assert!(array(|array| array.slice = None).1.ends_with("a slice is missing"));
    assert!(array(|array| array.shape = None).1.ends_with("a slice has no shape"));
    let (code, message) = array(|array| array.shape.as_mut().unwrap().element_type = 30);
    assert_eq!((code, message.ends_with("elements of 1 or 6 bits")), (StatusCode::Unimplemented, true));
}

/// The error for the sample executable after a change to an instruction of its fusion.
fn refused(computation: usize, instruction: usize, change: impl FnOnce(&mut FusedInstructionProto)) -> String {
    let mut fused = fused();
    change(&mut fused[computation].1[instruction]);
    let error = check(&plugin_with(&result(objects().remove(0)), &fused)).unwrap_err();
    assert_eq!(error.code(), StatusCode::Unimplemented, "{error}");
    error.message().to_owned()
}

#[test]
fn what_a_fusion_does_not_support_is_told_with_its_instruction() {
    let unknown = refused(1, 1, |each| each.opcode = "bessel".to_owned());
    let said = "instruction 'exponential.61' (bessel) of a ynn-fusion: an operation that is not supported";
    assert!(unknown.contains(said), "{unknown}");
    let message = refused(1, 3, |each| each.window = Some(WindowProto::default()));
    assert!(
        message.contains("instruction 'reduce.63' (reduce) of a ynn-fusion: a field of another operation"),
        "{message}"
    );
    assert!(refused(1, 3, |each| each.dimensions = vec![1]).contains("operands, or numbers, that do not fit"));
    assert!(refused(1, 3, |each| each.called.clear()).contains("it calls no computation"));
    assert!(refused(1, 5, |each| each.operands = vec![61, 65]).contains("an operand that comes later"));
    assert!(refused(1, 4, |each| each.shape.as_mut().unwrap().dimensions = vec![4, 2]).contains("broadcast.64"));
    assert!(refused(1, 1, |each| each.shape.as_mut().unwrap().element_type = 15).contains("elements of c64"));
    assert!(refused(1, 1, |each| each.sparsity = Some(Unread {})).contains("exponential.61"));
    assert!(refused(1, 1, |each| each.newer = Some(Unread {})).contains("exponential.61"));
    assert!(refused(0, 2, |each| each.opcode = "subtract".to_owned()).contains("it combines by 'subtract'"));
    assert!(refused(0, 2, |each| each.operands = vec![70, 70]).contains("that is not one operation"));
    assert!(refused(0, 1, |each| each.shape.as_mut().unwrap().element_type = 12).contains("several types"));
}

#[test]
fn a_fusion_has_the_arrays_of_its_thunk() {
    let thunk = |change: fn(&mut YnnProto)| {
        changed(|result| {
            let fusion = thunks(result).iter_mut().find_map(|thunk| match &mut thunk.thunk {
                Some(ThunkKind::Ynn(fusion)) => Some(fusion),
                _ => None,
            });
            change(fusion.unwrap());
        })
    };
    let (code, message) = thunk(|fusion| fusion.results.clear());
    let said = "a fusion has other arguments or results than its computation";
    assert_eq!((code, message.ends_with(said)), (StatusCode::DataLoss, true), "{message}");
    let (code, message) = thunk(|fusion| fusion.arguments.clear());
    assert_eq!(
        (code, message.contains("a parameter that there is not")),
        (StatusCode::Unimplemented, true),
        "{message}"
    );
    assert!(thunk(|fusion| fusion.instruction = 99).1.ends_with("instruction 99 calls no computation"));
}

#[test]
fn allocations_are_what_they_say() {
    assert!(changed(|result| allocations(result)[0].index = 1).1.contains("allocation 0: its number is said to be 1"));
    assert!(changed(|result| allocations(result)[3].size = -1).1.contains("allocation 3: a size of -1 bytes"));
    assert!(
        changed(|result| allocations(result)[2].size = 20).1.contains("a constant of 16 bytes in allocation 2 of 20")
    );
    assert!(changed(|result| allocations(result)[2].assigned.clear()).1.contains("allocation 2 is a constant without"));
    assert!(
        changed(|result| allocations(result)[0].parameter_number = 7).1.contains("parameter 7 is a tuple, or missing")
    );
    let message = changed(|result| allocations(result)[1].size = 32).1;
    assert!(message.ends_with("result 0 is f32[4], in an allocation of 32 bytes"), "{message}");
}

/// `opcode` of `operands`, which calls `called`.
fn instruction(id: i64, opcode: &str, operands: &[i64], called: &[i64]) -> InstructionProto {
    let (operands, called) = (operands.to_vec(), called.to_vec());
    InstructionProto { id, opcode: opcode.to_owned(), operands, called, ..Default::default() }
}

#[test]
fn results_are_traced_through_what_passes_them_on() {
    // Values 10 and 11 are defined in the entry, 20 in the computation that it calls. Each is in the allocation of its
    // own number.
    let element =
        |id, of, tuple_index| InstructionProto { tuple_index, ..instruction(id, "get-tuple-element", &[of], &[]) };
    let parameter =
        |id, parameter_number| InstructionProto { parameter_number, ..instruction(id, "parameter", &[], &[]) };
    let entry = vec![
        instruction(10, "fusion", &[], &[]),
        instruction(11, "fusion", &[], &[]),
        instruction(12, "tuple", &[10, 11], &[]),
        instruction(13, "while", &[12], &[2, 3]),
        element(14, 13, 1),
        instruction(15, "call", &[14], &[2]),
        instruction(16, "bitcast", &[15], &[]),
        instruction(17, "conditional", &[10, 12, 12], &[3, 3]),
        element(18, 17, 0),
        instruction(19, "call", &[], &[4]),
        instruction(30, "tuple", &[16, 18, 19, 13], &[]),
        instruction(31, "tuple", &[31], &[]),
    ];
    let computation = |id, root, instructions| ComputationProto { id, root, instructions };
    let module = HloModuleProto {
        entry_computation: 1,
        computations: vec![
            computation(1, 30, entry),
            computation(2, 40, vec![parameter(40, 0)]),
            computation(3, 41, vec![parameter(41, 0)]),
            computation(4, 20, vec![instruction(20, "fusion", &[], &[])]),
        ],
        ..Default::default()
    };
    let value = |id| {
        let at = LocationProto { shape_index: Vec::new(), instruction: id };
        LogicalBufferProto { id, defined_at: Some(at) }
    };
    let home = |logical_buffer| {
        let assigned = vec![AssignedProto { logical_buffer, offset: 0, size: 4 }];
        AllocationProto { assigned, ..Default::default() }
    };
    let assignment = BufferAssignmentProto {
        logical_buffers: [10, 11, 20].map(value).to_vec(),
        allocations: [10, 11, 20].map(home).to_vec(),
    };
    let scalar = ShapeProto { element_type: 11, ..Default::default() };
    let results = |count| {
        let tuple = ShapeProto { element_type: 13, tuple_shapes: vec![scalar.clone(); count], ..Default::default() };
        ProgramShapeProto { parameters: Vec::new(), result: Some(tuple) }
    };
    let (hlo, values) = (Hlo::new(&module).unwrap(), Values::new(&assignment).unwrap());
    let mut reasons = Reasons::default();
    let layout = results(3);
    let found = trace(&hlo, &values, &signature(&layout, &mut reasons), &layout, &mut reasons);
    assert_eq!(found, [Some(1), Some(0), Some(2)]);
    assert!(reasons.into_result("f").is_ok());
    let mut reasons = Reasons::default();
    let layout = results(4);
    let found = trace(&hlo, &values, &signature(&layout, &mut reasons), &layout, &mut reasons);
    assert_eq!(found[3], None);
    let message = reasons.into_result("f").unwrap_err().message().to_owned();
    assert!(message.contains("result 3 cannot be traced: a tuple has no memory of its own"), "{message}");
    let specs: Vec<String> =
        signature(&layout, &mut Reasons::default()).results.iter().map(ArraySpec::to_string).collect();
    assert_eq!(specs, ["f32[]"; 4]);
}
