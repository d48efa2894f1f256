//! Purlin's types for kernels beside XLA's own code, in both directions.
//!
//! `PURLIN_XLA_KERNELS` is the path of the program `tests/interop/xla_kernels.cc`, which is linked to the wheel of
//! tensorflow-cpu and answers a question a line. `make interop` builds it and runs these tests, which are ignored
//! elsewhere. `PURLIN_FUZZ_SEED` is the seed of the random specs (a fixed one).

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use purlin_program::{DeviceCode, FeatureExtension, KernelArgPackingSpec, PackedKernelArgs};

use super::*;
use crate::fuzz::Chance;

const FEATURES: [FeatureExtension; 3] =
    [FeatureExtension::None, FeatureExtension::Accelerated, FeatureExtension::Family];

/// How many random specs of each kind.
const SPECS: usize = 3000;

/// XLA's side.
struct Xla {
    child: Child,
    questions: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Xla {
    fn new() -> Self {
        let path = env::var_os("PURLIN_XLA_KERNELS").expect("PURLIN_XLA_KERNELS is the path of xla_kernels");
        let mut command = Command::new(path);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (questions, answers) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, questions, answers }
    }

    /// The answer, or the code and message with which XLA refuses.
    fn ask(&mut self, question: &str) -> Result<String, (StatusCode, String)> {
        writeln!(self.questions.as_mut().unwrap(), "{question}").unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        let answer = answer.strip_suffix('\n').unwrap_or_else(|| panic!("no answer to: {question}"));
        match answer.strip_prefix("error ").and_then(|error| error.split_once(' ')) {
            Some((code, message)) => Err((StatusCode::from_raw(code.parse().unwrap()), message.to_owned())),
            None => Ok(answer.to_owned()),
        }
    }

    fn bytes(&mut self, question: &str) -> Vec<u8> {
        unhex(&self.ask(question).unwrap_or_else(|error| panic!("{question}: {error:?}")))
    }

    /// The first word of the answer, as bytes.
    fn bytes_of_first(&mut self, question: &str) -> Vec<u8> {
        unhex(self.ask(question).unwrap().split(' ').next().unwrap())
    }
}

impl Drop for Xla {
    fn drop(&mut self) {
        // The program ends when no questions can come any more.
        drop(self.questions.take());
        self.child.wait().unwrap();
    }
}

fn hex(bytes: &[u8]) -> String {
    if bytes.is_empty() { "-".to_owned() } else { bytes.iter().map(|byte| format!("{byte:02x}")).collect() }
}

fn unhex(text: &str) -> Vec<u8> {
    let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    if text == "-" { Vec::new() } else { (0..text.len()).step_by(2).map(byte).collect() }
}

fn chance() -> Chance {
    Chance(env::var("PURLIN_FUZZ_SEED").map_or(0x5eed, |seed| seed.parse().unwrap()))
}

fn some_bytes(chance: &mut Chance, most: usize) -> Vec<u8> {
    (0..chance.below(most + 1)).map(|_| chance.next() as u8).collect()
}

/// From 5.0 to 12.1, with each feature extension.
fn capabilities() -> Vec<ComputeCapability> {
    let numbers = (5..=12).flat_map(|major| (0..=9).map(move |minor| (major, minor)));
    let numbers = numbers.filter(|numbers| *numbers <= (12, 1));
    let features = [FeatureExtension::None, FeatureExtension::Accelerated, FeatureExtension::Family];
    numbers
        .flat_map(|(major, minor)| features.map(|feature| ComputeCapability::new(major, minor).with(feature)))
        .collect()
}

#[test]
#[ignore = "needs XLA's code: make interop"]
fn compute_capabilities_are_those_of_xla() {
    let (mut xla, mut chance) = (Xla::new(), chance());
    let mut all = capabilities();
    let pairs = all.len() * all.len();
    for of in &all {
        for on in &all {
            let (code, gpu) = (compute_capability_to_proto(*of), compute_capability_to_proto(*on));
            let theirs = xla.ask(&format!("runs {} {}", hex(&code), hex(&gpu))).unwrap();
            assert_eq!(theirs == "1", of.can_run_on(DeviceCode::Ptx, *on), "{of} on {on}");
        }
    }
    let any = ComputeCapability::new;
    all.extend((0..SPECS).map(|at| any(chance.next() as u16, chance.next() as u16).with(FEATURES[at % 3])));
    for capability in &all {
        let ours = compute_capability_to_proto(*capability);
        let theirs = xla.ask(&format!("capability {}", hex(&ours))).unwrap();
        assert_eq!(theirs, format!("{} {capability}", hex(&ours)));
        let from_text = xla.bytes(&format!("text {capability}"));
        assert_eq!(compute_capability_from_proto(&from_text).unwrap(), *capability);
    }
    for (major, minor) in (0..20).flat_map(|major| (0..4).map(move |minor| (major, minor))) {
        let unspecified = ComputeCapabilityProto { major, minor, feature_extension: 0 }.encode_to_vec();
        let theirs = xla.bytes_of_first(&format!("capability {}", hex(&unspecified)));
        let ours = compute_capability_to_proto(compute_capability_from_proto(&unspecified).unwrap());
        assert_eq!(ours, theirs, "{major}.{minor}");
    }
    for (upper, lower) in [("9.0A", "9.0a"), ("10.3F", "10.3f")] {
        let theirs = compute_capability_from_proto(&xla.bytes(&format!("text {upper}"))).unwrap();
        assert_eq!((theirs.to_string().as_str(), upper.parse().unwrap()), (lower, theirs));
    }
    for text in ["12", "9.0x", "9.0aa", "9.", ".0", "9.0.0", "9.0_a", "a"] {
        let (code, _) = xla.ask(&format!("text {text}")).unwrap_err();
        assert_eq!(code, text.parse::<ComputeCapability>().unwrap_err().code(), "{text}");
    }
    println!("xla: {pairs} pairs of compute capabilities, {} texts and messages are the same", all.len());
}

/// A spec that calls of our API make, and the question that lets XLA's API make it.
fn made(chance: &mut Chance) -> (KernelArgsPackingSpec, String) {
    let (mut packing, mut question) = (KernelArgsPackingSpec::default(), "make".to_owned());
    for _ in 0..chance.below(6) {
        let mut argument = KernelArgPackingSpec::default();
        question += " ,";
        for _ in 0..chance.below(5) {
            if chance.one_in(2) {
                let index = if chance.one_in(20) { i32::MAX as u32 } else { chance.below(8) as u32 };
                argument.push_address(index).unwrap();
                question += &format!("@{index},");
            } else {
                let size = 1 << chance.below(4);
                let constant: Vec<u8> = (0..size).map(|_| chance.next() as u8).collect();
                argument.push_constant(&constant);
                question += &format!("{},", hex(&constant));
            }
        }
        packing.push(argument);
    }
    (packing, question)
}

/// Any message, whose relocations may be at or behind the end of their arguments. Not far away: at an offset of -1, XLA
/// writes in front of the argument.
fn any_packing(chance: &mut Chance) -> PackingProto {
    let index = |chance: &mut Chance| match chance.below(12) {
        0 => -1,
        1 => i32::MIN,
        2 => i32::MAX,
        _ => chance.below(5) as i32,
    };
    let kernel_arguments = (0..chance.below(3)).map(|_| {
        let relocations = (0..chance.below(3)).map(|_| RelocationProto {
            kind: if chance.one_in(12) { chance.below(3) as i32 } else { 1 },
            argument_index: index(chance),
            offset: chance.below(20) as i64,
        });
        ArgumentProto { relocations: relocations.collect(), data: some_bytes(chance, 24) }
    });
    PackingProto { kernel_arguments: kernel_arguments.collect() }
}

fn addresses(chance: &mut Chance) -> Vec<u64> {
    (0..chance.below(9)).map(|_| chance.next()).collect()
}

/// The arguments as XLA's side writes them.
fn shown(args: &PackedKernelArgs) -> String {
    let arguments = args.arguments().map(|argument| format!(" {}", hex(argument)));
    format!("{} {}{}", args.number_of_arguments(), args.shared_memory_bytes(), arguments.collect::<String>())
}

/// What both sides build of the bytes: the same, or nothing. Answers whether they do.
fn build_alike(xla: &mut Xla, bytes: &[u8], chance: &mut Chance) -> bool {
    let (addresses, shared) = (addresses(chance), if chance.one_in(2) { 0 } else { chance.below(1 << 20) as u64 });
    let list: String = addresses.iter().map(|address| format!(" {address}")).collect();
    let theirs = xla.ask(&format!("build {shared} {}{list}", hex(bytes)));
    let ours = kernel_args_packing_spec_from_proto(bytes).and_then(|packing| packing.build(&addresses, shared));
    match (&ours, &theirs) {
        (Ok(ours), Ok(theirs)) => assert_eq!(&shown(ours), theirs),
        (Err(ours), Err((code, _))) => assert_eq!(ours.code(), *code, "{ours}"),
        _ => panic!("{}: ours {ours:?}, theirs {theirs:?}", hex(bytes)),
    }
    ours.is_ok()
}

#[test]
#[ignore = "needs XLA's code: make interop"]
fn packing_specs_are_those_of_xla() {
    let (mut xla, mut chance, mut built) = (Xla::new(), chance(), [0; 2]);
    for _ in 0..SPECS {
        let (packing, question) = made(&mut chance);
        let (ours, theirs) = (kernel_args_packing_spec_to_proto(&packing), xla.bytes(&question));
        assert_eq!(hex(&ours), hex(&theirs), "{question}");
        assert_eq!(kernel_args_packing_spec_from_proto(&theirs).unwrap(), packing, "{question}");
        assert_eq!(hex(&xla.bytes(&format!("packing {}", hex(&ours)))), hex(&ours));
        built[usize::from(build_alike(&mut xla, &ours, &mut chance))] += 1;
        let any = any_packing(&mut chance).encode_to_vec();
        built[usize::from(build_alike(&mut xla, &any, &mut chance))] += 1;
    }
    let [neither, both] = built;
    println!("xla: {SPECS} packing specs are the same; of {} built, both refused {neither}", neither + both);
    assert!(neither > SPECS / 10 && both > SPECS / 10);
}

/// Any message with at most one payload, whose relocations have a place and an index: XLA finds out later that others
/// have not, or never.
fn any_loader(chance: &mut Chance) -> LoaderProto {
    let mut proto = LoaderProto { kernel_name: "k".to_owned(), ..Default::default() };
    match chance.below(7) {
        0 | 1 => proto.ptx = Some(PtxProto { data: "p".to_owned() }),
        2 | 3 => proto.cubin = Some(CubinProto { data: [vec![1], some_bytes(chance, 9)].concat() }),
        4 => {
            // With one defect: of two, each side finds another one first.
            proto.symbol = Some(SymbolProto { persistent_name: "unknown".to_owned() });
            return proto;
        }
        5 => proto.symbol = Some(SymbolProto { persistent_name: "known".to_owned() }),
        _ => {}
    }
    proto.arity = if chance.one_in(6) { i32::MAX } else { chance.below(9) as i32 };
    if chance.one_in(2) && (proto.ptx.is_some() || proto.cubin.is_some() || proto.symbol.is_some()) {
        let mut packing = any_packing(chance);
        for argument in &mut packing.kernel_arguments {
            let most = argument.data.len() as i64 - 8;
            argument.relocations.retain(|relocation| relocation.offset <= most && relocation.argument_index >= 0);
        }
        proto.packing = Some(packing);
    }
    proto
}

#[test]
#[ignore = "needs XLA's code: make interop"]
fn loader_specs_are_those_of_xla() {
    let (mut xla, mut chance) = (Xla::new(), chance());
    for _ in 0..SPECS {
        let name: String = some_bytes(&mut chance, 20).iter().map(|byte| char::from(byte % 95 + 32)).collect();
        // How XLA calls the kind; of two factories, one owns its code.
        let ([kind, factory], payload, code) = match chance.below(3) {
            0 => {
                let text = format!(".version 8.0 // {name} \u{e9}\n");
                let factory = if chance.one_in(2) { "ptx" } else { "owned_ptx" };
                (["ptx", factory], KernelPayload::Ptx(text.as_str().into()), text.into_bytes())
            }
            1 => {
                let code = [vec![0x7f], some_bytes(&mut chance, 99)].concat();
                let factory = if chance.one_in(2) { "cubin" } else { "owned_cubin" };
                (["cubin", factory], KernelPayload::Cubin(code.as_slice().into()), code)
            }
            _ => {
                let persistent_name = Some("known".into());
                let payload = KernelPayload::InProcessSymbol { symbol: symbol(), persistent_name };
                (["symbol"; 2], payload, b"known".to_vec())
            }
        };
        let arity = if chance.one_in(9) { i32::MAX as u32 } else { chance.below(20) as u32 };
        let name = format!("k{name}");
        let mut question = format!("spec {factory} {} {arity} {}", hex(name.as_bytes()), hex(&code));
        let mut spec = KernelLoaderSpec::new(payload, name, arity).unwrap();
        if chance.one_in(2) {
            let (packing, made) = made(&mut chance);
            spec = spec.with_packing(packing);
            question += &made.replacen("make", " packed", 1);
        }
        let ours = kernel_loader_spec_to_proto(&spec).unwrap();
        let theirs = xla.bytes(&question);
        assert_eq!(hex(&theirs), hex(&ours), "{question}");
        assert_eq!(parse(&theirs).unwrap(), spec, "{question}");
        let theirs = xla.ask(&format!("loader {}", hex(&ours))).unwrap();
        assert_eq!(theirs, format!("{kind} {arity} {}", hex(&ours)));
        let bytes = unhex(theirs.rsplit(' ').next().unwrap());
        assert_eq!(parse(&bytes).unwrap(), spec);
    }
    let proto = LoaderProto { kernel_name: "k".to_owned(), ..Default::default() };
    let unknown = Some(SymbolProto { persistent_name: "unknown".to_owned() });
    let unspecified = PackingProto {
        kernel_arguments: vec![ArgumentProto { relocations: vec![RelocationProto::default()], data: vec![0; 8] }],
    };
    let ptx = Some(PtxProto { data: "p".to_owned() });
    for (refused, code) in [
        (LoaderProto { ..proto.clone() }, StatusCode::InvalidArgument),
        (LoaderProto { symbol: unknown, ..proto.clone() }, StatusCode::NotFound),
        (LoaderProto { ptx, packing: Some(unspecified), ..proto }, StatusCode::InvalidArgument),
    ] {
        let bytes = refused.encode_to_vec();
        assert_eq!(parse(&bytes).unwrap_err().code(), code);
        assert_eq!(xla.ask(&format!("loader {}", hex(&bytes))).unwrap_err().0, code);
    }
    let mut refused = 0;
    for _ in 0..SPECS {
        let proto = any_loader(&mut chance);
        let bytes = proto.encode_to_vec();
        let ours = parse(&bytes);
        match (&ours, xla.ask(&format!("loader {}", hex(&bytes)))) {
            (Ok(spec), Ok(theirs)) => {
                let ours = kernel_loader_spec_to_proto(spec).unwrap();
                assert_eq!(theirs.rsplit(' ').next(), Some(hex(&ours).as_str()), "{proto:?}");
            }
            (Err(ours), Err((code, _))) => {
                assert_eq!(ours.code(), code, "{ours}");
                refused += 1;
            }
            (_, theirs) => panic!("{proto:?}: ours {ours:?}, theirs {theirs:?}"),
        }
    }
    assert!(refused > SPECS / 10 && refused < SPECS, "{refused}");
    // A difference: XLA takes it for a number near 2^64.
    let ptx = Some(PtxProto { data: "p".to_owned() });
    let negative = LoaderProto { ptx, arity: -1, kernel_name: "k".to_owned(), ..Default::default() }.encode_to_vec();
    assert!(xla.ask(&format!("loader {}", hex(&negative))).unwrap().starts_with("ptx 18446744073709551615 "));
    assert_eq!(parse(&negative).unwrap_err().code(), StatusCode::InvalidArgument);
    // Another: XLA refuses it when arguments are built.
    let relocations = vec![RelocationProto { kind: 1, argument_index: -1, offset: 0 }];
    let negative = PackingProto { kernel_arguments: vec![ArgumentProto { relocations, data: vec![0; 8] }] };
    let negative = negative.encode_to_vec();
    assert_eq!(xla.bytes(&format!("packing {}", hex(&negative))), negative);
    assert_eq!(xla.ask(&format!("build 0 {} 1 2", hex(&negative))).unwrap_err().0, StatusCode::InvalidArgument);
    let ours = kernel_args_packing_spec_from_proto(&negative).unwrap_err();
    assert_eq!(ours.code(), StatusCode::InvalidArgument);
    let nameless = KernelPayload::InProcessSymbol { symbol: symbol(), persistent_name: None };
    let ours = kernel_loader_spec_to_proto(&KernelLoaderSpec::new(nameless, "k", 1).unwrap()).unwrap_err();
    assert_eq!(xla.ask("spec unnamed 6b 1 -").unwrap_err().0, ours.code());
    println!("xla: {SPECS} loader specs are the same");
}
