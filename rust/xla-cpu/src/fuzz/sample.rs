//! A sound executable and a sound object, built by hand, so that the tests need no compiler and no JAX.

use std::env;
use std::fs;

use prost::Message as _;

use crate::proto::samples::*;

/// `movabs rax, imm64; xor eax, eax; ret`
const CODE: [u8; 13] = [0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0x31, 0xc0, 0xc3];

/// The distance between functions, which is their alignment.
const FUNCTION_BYTES: usize = 16;

/// A section of [`objects`]: name, type, flags, content, link, info, size of an entry.
type Section<'a> = (&'a str, u32, u64, Vec<u8>, u32, u32, u64);

/// Objects whose functions do nothing. They refer to a constant, to a function of the closed list, and to data.
pub(crate) fn objects() -> Vec<Vec<u8>> {
    const NAMES: [&str; 5] = ["", "kernel", "less", "unused", "sinf"];
    let mut names = Vec::new();
    let at: Vec<u32> = NAMES.iter().map(|name| name_at(name, &mut names)).collect();
    // Symbols 1 and 2 are those of sections 2 and 3, symbols 3 to 5 are functions of section 1, and symbol 6 is
    // undefined.
    let symbol = |name: u32, info: u8, section: u16, value: u64| {
        [&name.to_le_bytes()[..], &[info, 0], &section.to_le_bytes(), &value.to_le_bytes(), &CODE.len().to_le_bytes()]
            .concat()
    };
    let functions = (0..3).map(|number: usize| symbol(at[number + 1], 0x12, 1, (number * FUNCTION_BYTES) as u64));
    let symbols: Vec<Vec<u8>> = [symbol(0, 0, 0, 0), symbol(0, 3, 2, 0), symbol(0, 3, 3, 0)]
        .into_iter()
        .chain(functions)
        .chain([symbol(at[4], 0x10, 0, 0)])
        .collect();
    let relocation = |number: usize, symbol: u64| {
        [((number * FUNCTION_BYTES + 2) as u64).to_le_bytes(), (symbol << 32 | 1).to_le_bytes(), 8_u64.to_le_bytes()]
            .concat()
    };
    let relocations = [relocation(0, 1), relocation(1, 6), relocation(2, 2)].concat();
    let mut code = CODE.to_vec();
    code.resize(FUNCTION_BYTES, 0xcc);
    let sections: [Section<'_>; 6] = [
        (".ltext", 1, 6, code.repeat(3), 0, 0, 0),
        (".lrodata", 1, 2, vec![7; 64], 0, 0, 0),
        (".data", 1, 3, vec![0; 16], 0, 0, 0),
        (".rela.ltext", 4, 0, relocations, 5, 1, 24),
        (".symtab", 2, 0, symbols.concat(), 6, 3, 24),
        (".strtab", 3, 0, Vec::new(), 0, 0, 0),
    ];
    let titles: Vec<u32> = sections.iter().map(|section| name_at(section.0, &mut names)).collect();
    let mut file = vec![0; 64];
    let mut headers = vec![0; 64];
    for ((name, kind, flags, content, link, info, entry), title) in sections.into_iter().zip(titles) {
        let content = if name == ".strtab" { names.clone() } else { content };
        file.resize(file.len().next_multiple_of(16), 0);
        headers.extend([title, kind].map(u32::to_le_bytes).concat());
        headers.extend([flags, 0, file.len() as u64, content.len() as u64].map(u64::to_le_bytes).concat());
        headers.extend([link, info].map(u32::to_le_bytes).concat());
        headers.extend([16, entry].map(u64::to_le_bytes).concat());
        file.extend(content);
    }
    file.resize(file.len().next_multiple_of(16), 0);
    // The header: a relocatable file for x86-64, with seven section headers of 64 bytes at the end. Section 6 has their
    // names.
    let (count, named_by) = (7_u16, 6_u16);
    let header = [
        &b"\x7fELF\x02\x01\x01"[..],
        &[0; 9],
        &[1, 0, 62, 0, 1, 0, 0, 0],
        &[0; 16],
        &(file.len() as u64).to_le_bytes(),
        &[0; 4],
        &[64, 0, 0, 0, 0, 0, 64, 0],
        &count.to_le_bytes(),
        &named_by.to_le_bytes(),
    ];
    file[..64].copy_from_slice(&header.concat());
    file.extend(headers);
    vec![file]
}

fn name_at(name: &str, names: &mut Vec<u8>) -> u32 {
    let at = names.len() as u32;
    names.extend(name.bytes());
    names.push(0);
    at
}

/// An executable with every kind of step that can be loaded, in both serialized forms, and those of the corpus, if
/// there is one.
pub(super) fn executables() -> Vec<Vec<u8>> {
    let plugin = plugin(&result(objects().remove(0)));
    let mut all = vec![[&[3, 8, 3, 0][..], &plugin].concat(), plugin];
    if let Some(folder) = env::var_os("PURLIN_XLA_CORPUS") {
        let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let executables = files.filter(|path| path.extension().is_some_and(|extension| extension == "xla"));
        let bytes = executables.map(|path| fs::read(path).unwrap());
        all.extend(bytes.filter(|bytes| bytes.len() < 20_000 && crate::check(bytes).is_ok()));
    }
    all
}

/// The executable as a plugin serializes it.
pub(crate) fn plugin(result: &CompilationResultProto) -> Vec<u8> {
    plugin_with(result, &fused())
}

/// The executable with these computations of a fusion. They are a second message of the module, which parsing merges
/// with the first: their instructions have more fields than the other ones.
pub(crate) fn plugin_with(result: &CompilationResultProto, fused: &[(i64, Vec<FusedInstructionProto>)]) -> Vec<u8> {
    let message = |tag: u8, bytes: Vec<u8>| [vec![tag], length(&bytes), bytes].concat();
    let mut bytes = result.encode_to_vec();
    for (id, instructions) in fused {
        let root = instructions.last().map_or(0, |last| last.id);
        let ids = ComputationProto { id: *id, root, instructions: Vec::new() };
        let instructions = instructions.iter().flat_map(|each| message(0x12, each.encode_to_vec()));
        let computation = instructions.chain(ids.encode_to_vec()).collect();
        bytes.extend(message(0x0a, message(0x0a, message(0x1a, computation))));
    }
    message(0x0a, bytes)
}

/// The computations of the sample's fusion: `exp(x)` divided by its sum.
pub(crate) fn fused() -> Vec<(i64, Vec<FusedInstructionProto>)> {
    let scalar = || ShapeProto { element_type: F32, ..Default::default() };
    let instruction = |id: i64, opcode: &str, operands: &[i64], shape| FusedInstructionProto {
        id,
        name: format!("{opcode}.{id}"),
        opcode: opcode.to_owned(),
        operands: operands.to_vec(),
        shape: Some(shape),
        ..Default::default()
    };
    let zero = LiteralProto { shape: Some(scalar()), f32s: vec![0.0], ..Default::default() };
    let constant =
        FusedInstructionProto { literal: Some(Box::new(zero)), ..instruction(62, "constant", &[], scalar()) };
    let reduce = instruction(63, "reduce", &[61, 62], scalar());
    let reduce = FusedInstructionProto { dimensions: vec![0], called: vec![8], ..reduce };
    let second = FusedInstructionProto { parameter_number: 1, ..instruction(71, "parameter", &[], scalar()) };
    vec![
        (8, vec![instruction(70, "parameter", &[], scalar()), second, instruction(72, "add", &[70, 71], scalar())]),
        (
            7,
            vec![
                instruction(60, "parameter", &[], vector()),
                instruction(61, "exponential", &[60], vector()),
                constant,
                reduce,
                instruction(64, "broadcast", &[63], vector()),
                instruction(65, "divide", &[61, 64], vector()),
            ],
        ),
    ]
}

fn length(bytes: &[u8]) -> Vec<u8> {
    let mut length = Vec::new();
    prost::encoding::encode_varint(bytes.len() as u64, &mut length);
    length
}

const F32: i32 = 11;

fn vector() -> ShapeProto {
    let layout = Some(LayoutProto { minor_to_major: vec![0], ..Default::default() });
    ShapeProto { element_type: F32, dimensions: vec![4], layout, ..Default::default() }
}

fn slice(allocation: i64, size: i64) -> Option<SliceProto> {
    Some(SliceProto { offset: 0, size, allocation })
}

fn array(allocation: i64) -> Option<ShapeSliceProto> {
    Some(ShapeSliceProto { shape: Some(vector()), slice: slice(allocation, 16) })
}

fn sequence(thunks: Vec<ThunkKind>) -> Option<ThunkSequenceProto> {
    let thunks = thunks.into_iter().map(|thunk| ThunkProto { kind: "kind".to_owned(), thunk: Some(thunk) });
    Some(ThunkSequenceProto { thunks: thunks.collect() })
}

/// The steps of the sample. Its allocations: 0 a parameter, 1 the result, 2 a constant, 3 a byte, 4 a number, 5 a
/// vector, 6 a random state.
fn steps() -> Option<ThunkSequenceProto> {
    let kernel = |from, to, size| {
        let operand = |allocation, size| ShapedSliceProto { slice: slice(allocation, size) };
        ThunkKind::Kernel(Box::new(KernelProto {
            name: "kernel".to_owned(),
            workgroups: Some(WorkgroupsProto { x: 1, y: 1, z: 1 }),
            invariant_arguments: vec![0],
            min_alignment: Some(OptionalProto { value: 64, contains_value: true }),
            arguments: vec![operand(from, 16)],
            results: vec![operand(to, size)],
        }))
    };
    let copy = |from, to| ThunkKind::Copy(Box::new(CopyProto { from: array(from), to: array(to) }));
    let sort = SortProto {
        comparator: "less".to_owned(),
        is_stable: true,
        arrays: array(5).into_iter().collect(),
        ..Default::default()
    };
    let dimensions = DotDimensionsProto { lhs_contracting: vec![0], rhs_contracting: vec![0], ..Default::default() };
    let scalar = ShapeProto { element_type: F32, ..Default::default() };
    let sum = Some(ShapeSliceProto { shape: Some(scalar), slice: slice(4, 4) });
    let top = TopKProto {
        batch_size: 1,
        input_size: 4,
        k: 1,
        values: slice(0, 16),
        output: slice(4, 4),
        indices: slice(7, 4),
    };
    let groups = CollectiveGroupsProto {
        has_channel: true,
        global_ids: Some(OptionalBoolProto { value: true, contains_value: true }),
        groups: vec![ReplicaGroupProto { ids: vec![0] }],
    };
    let arrays = |allocation| array(allocation).into_iter().collect();
    let collective = CollectiveProto {
        groups: Some(groups),
        buffers: Some(CollectiveBuffersProto { from: arrays(0), to: arrays(5) }),
        kind: Some(CollectiveKindProto::AllReduce(ReductionProto { kind: "sum".to_owned() })),
    };
    sequence(vec![
        kernel(0, 1, 16),
        copy(2, 5),
        ThunkKind::Sort(Box::new(sort)),
        ThunkKind::Dot(Box::new(DotProto { dimensions: Some(dimensions), lhs: array(0), rhs: array(5), out: sum })),
        ThunkKind::TopK(Box::new(top)),
        ThunkKind::Rng(RngProto { delta: 4, state: slice(6, 16) }),
        ThunkKind::Ynn(Box::new(YnnProto {
            instruction: 5,
            arguments: array(0).into_iter().collect(),
            results: array(5).into_iter().collect(),
        })),
        ThunkKind::Collective(Box::new(collective)),
        ThunkKind::ReplicaId(IdProto { to: slice(4, 4) }),
        ThunkKind::Call(CallProto { called: sequence(vec![copy(0, 5)]) }),
        ThunkKind::While(Box::new(WhileProto {
            condition: sequence(vec![kernel(5, 3, 1)]),
            body: sequence(vec![copy(5, 1)]),
            trip_count: Some(OptionalProto { value: 3, contains_value: false }),
            predicate: slice(3, 1),
        })),
        ThunkKind::Conditional(ConditionalProto {
            branches: [sequence(vec![copy(0, 1)]), sequence(Vec::new())].into_iter().flatten().collect(),
            index: slice(4, 4),
        }),
    ])
}

/// One custom call, from the parameter to the result.
pub(crate) fn custom_call(target: &str, api_version: i32, attributes: &[u8]) -> Option<ThunkSequenceProto> {
    let buffers =
        CustomCallBuffersProto { arguments: array(0).into_iter().collect(), results: array(1).into_iter().collect() };
    sequence(vec![ThunkKind::CustomCall(Box::new(CustomCallProto {
        api_version,
        target: target.to_owned(),
        attributes: attributes.to_vec(),
        buffers: Some(buffers),
    }))])
}

/// The messages of the sample executable, with that object.
pub(crate) fn result(object: Vec<u8>) -> CompilationResultProto {
    let instruction = |id, opcode: &str, operands: &[i64]| InstructionProto {
        id,
        opcode: opcode.to_owned(),
        operands: operands.to_vec(),
        ..Default::default()
    };
    let literal = LiteralProto { shape: Some(vector()), f32s: vec![1.0, 2.0, 3.0, 4.0], ..Default::default() };
    let constant = InstructionProto { literal: Some(Box::new(literal)), ..instruction(3, "constant", &[]) };
    let fusion = InstructionProto { called: vec![7], ..instruction(5, "fusion", &[1]) };
    let instructions = vec![
        instruction(1, "parameter", &[]),
        instruction(2, "fusion", &[1]),
        constant,
        fusion,
        instruction(4, "tuple", &[2]),
    ];
    let computation = ComputationProto { instructions, id: 1, root: 4 };
    let module = HloModuleProto {
        name: "sample".to_owned(),
        computations: vec![computation],
        entry_computation: 1,
        input_output_alias: None,
    };
    let tuple = ShapeProto { element_type: 13, tuple_shapes: vec![vector()], ..Default::default() };
    let entry_layout = Some(ProgramShapeProto { parameters: vec![vector()], result: Some(tuple) });
    let allocation = |index, size, value: i64| AllocationProto {
        index,
        size,
        assigned: (value != 0)
            .then_some(AssignedProto { logical_buffer: value, offset: 0, size })
            .into_iter()
            .collect(),
        ..Default::default()
    };
    let allocations = vec![
        AllocationProto { is_parameter: true, ..allocation(0, 16, 1) },
        AllocationProto { maybe_live_out: true, ..allocation(1, 16, 2) },
        AllocationProto { is_constant: true, ..allocation(2, 16, 3) },
        allocation(3, 1, 0),
        allocation(4, 4, 0),
        allocation(5, 16, 0),
        allocation(6, 16, 0),
        allocation(7, 4, 0),
    ];
    let value =
        |id| LogicalBufferProto { id, defined_at: Some(LocationProto { shape_index: Vec::new(), instruction: id }) };
    let symbol = |name: &str, kind| SymbolProto { name: name.to_owned(), kind };
    CompilationResultProto {
        hlo_module: Some(ModuleWithConfigProto {
            module: Some(module),
            config: Some(ModuleConfigProto { entry_layout }),
        }),
        buffer_assignment: Some(BufferAssignmentProto {
            logical_buffers: vec![value(1), value(2), value(3)],
            allocations,
        }),
        object_kind: 2,
        thunks: steps(),
        symbols: vec![symbol("kernel", 1), symbol("less", 2)],
        objects: vec![ObjectProto { contents: object, name: "sample.o".to_owned() }],
        target: Some(TargetProto { triple: "x86_64-unknown-linux-gnu".to_owned(), features: "+sse3".to_owned() }),
    }
}
