//! CUDA C compiled at run time: where nvrtc is looked for, what it is told, and what becomes of what it answers.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use purlin::program::{ComputeCapability, KernelPayload};
use purlin::{StatusCode, StatusOr};
use purlin_cuda::{Compiler, KernelSource, Ptx};
use purlin_fakecuda::{Nvrtc, find, process};

use crate::support::forked;

pub(crate) const TARGET: ComputeCapability = ComputeCapability::new(7, 5);

pub(crate) fn compiler() -> Compiler {
    Compiler::load(&Nvrtc::path()).unwrap()
}

pub(crate) fn source(name: &str, text: &str) -> KernelSource {
    KernelSource::new(name, text, TARGET).unwrap()
}

/// A source whose compilation ends so: a line for the fake.
fn compiled(name: &str, line: &str) -> StatusOr<Ptx> {
    compiler().compile(&source(name, &format!("// first\n{line}\n")).with_name_expression("first").unwrap())
}

/// An error of that code, with all of these words.
#[track_caller]
fn refused<T: std::fmt::Debug>(outcome: StatusOr<T>, code: StatusCode, words: &[&str]) {
    let error = outcome.unwrap_err();
    assert_eq!(error.code(), code, "{error}");
    words.iter().for_each(|word| assert!(error.message().contains(word), "'{word}' in: {error}"));
}

/// Without whatever this machine has, and with that variable.
fn with_variable(command: &mut Command, path: &Path) {
    command.env_remove("LD_LIBRARY_PATH").env("PURLIN_NVRTC", path);
}

#[test]
fn the_variable_names_the_library() {
    let name = "compile::the_variable_names_the_library";
    process::run_with(
        name,
        |command| with_variable(command, &Nvrtc::path()),
        || {
            let compiler = Compiler::find().unwrap();
            assert_eq!(
                (compiler.version(), compiler.path()),
                ((12, 2), &*PathBuf::from(env::var_os("PURLIN_NVRTC").unwrap()))
            );
            assert_eq!(Compiler::find().unwrap(), compiler);
            let text = "extern \"C\" __global__ void fill() {}";
            assert!(compiler.compile(&source("fill.cu", text)).unwrap().text().contains(text));
        },
    );
}

#[test]
fn a_variable_that_names_no_nvrtc_is_told_so_and_nothing_else_is_looked_for() {
    let name = "compile::a_variable_that_names_no_nvrtc_is_told_so_and_nothing_else_is_looked_for";
    let nothing = Path::new("/nowhere/libnvrtc.so.12");
    process::run_with(
        name,
        |command| with_variable(command, nothing),
        || {
            let words = ["PURLIN_NVRTC", "/nowhere/libnvrtc.so.12: cannot open shared object file"];
            refused(Compiler::find(), StatusCode::Unimplemented, &words);
            let message = Compiler::find().unwrap_err();
            assert!(!message.message().contains("libnvrtc.so.13"), "{message}");
            refused(Compiler::load(nothing), StatusCode::Unimplemented, &words[1..]);
            let other = find("libnvidia_ml.so").unwrap();
            let words = ["libnvidia_ml.so is no nvrtc of 11.2 or newer: it has no nvrtcVersion"];
            refused(Compiler::load(&other), StatusCode::Unimplemented, &words);
            assert_eq!(compiler().version(), (12, 2), "one that is named is found all the same");
        },
    );
}

#[test]
fn without_nvrtc_all_names_are_told_that_were_looked_for() {
    let name = "compile::without_nvrtc_all_names_are_told_that_were_looked_for";
    // An empty variable is none.
    process::run_with(
        name,
        |command| with_variable(command, Path::new("")),
        || match Compiler::find() {
            Ok(compiler) => eprintln!("{name}: skipped: this machine has {compiler:?}"),
            Err(_) => {
                let words = ["libnvrtc.so.13: ", "libnvrtc.so.12: ", "libnvrtc.so.11.2: ", "libnvrtc.so: "];
                refused(Compiler::find(), StatusCode::Unimplemented, &words);
                let words =
                    ["cannot open shared object file", "LD_LIBRARY_PATH", "PURLIN_NVRTC", "install CUDA's nvrtc"];
                refused(Compiler::find(), StatusCode::Unimplemented, &words);
            }
        },
    );
}

#[test]
fn the_newest_name_that_the_loader_finds_is_taken() {
    let name = "compile::the_newest_name_that_the_loader_finds_is_taken";
    let folder = env::temp_dir().join(format!("purlin-nvrtc-{}", std::process::id()));
    let prepare = |command: &mut Command| {
        fs::create_dir_all(&folder).unwrap();
        let links = [("libnvrtc.so.13", Nvrtc::path()), ("libnvrtc.so.12", find("libnvidia_ml.so").unwrap())];
        for (link, target) in links {
            _ = fs::remove_file(folder.join(link));
            symlink(target, folder.join(link)).unwrap();
        }
        command.env("LD_LIBRARY_PATH", &folder).env_remove("PURLIN_NVRTC");
    };
    process::run_with(name, prepare, || {
        let compiler = Compiler::find().unwrap();
        assert_eq!(compiler.path().file_name().unwrap(), "libnvrtc.so.13", "{compiler:?}");
        compiler.compile(&source("a.cu", "")).unwrap();
    });
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn errors_of_the_source_have_its_name_and_the_log() {
    let words = [
        "compiling wrong.cu for 7.5 by nvrtc 12.2: NVRTC_ERROR_COMPILATION (6)\n",
        "wrong.cu(2): catastrophic error: #error directive: not so\n",
        "1 catastrophic error detected in the compilation of \"wrong.cu\".",
    ];
    refused(compiled("wrong.cu", "#error not so"), StatusCode::InvalidArgument, &words);
    let ptx = compiled("warned.cu", "#warning well, well").unwrap();
    assert_eq!(ptx.log(), "warned.cu(2): warning: #warning directive: well, well");
    assert_eq!(compiled("quiet.cu", "").unwrap().log(), "");
    assert_eq!(Nvrtc::open().programs(), 0);
}

#[test]
fn every_code_of_every_entry_point_is_an_error_and_leaves_no_program() {
    let entries = [
        "nvrtcCreateProgram",
        "nvrtcAddNameExpression",
        "nvrtcCompileProgram",
        "nvrtcGetProgramLogSize",
        "nvrtcGetProgramLog",
        "nvrtcGetPTXSize",
        "nvrtcGetPTX",
        "nvrtcGetLoweredName",
    ];
    let codes = [
        (1, StatusCode::ResourceExhausted, "NVRTC_ERROR_OUT_OF_MEMORY (1)"),
        (2, StatusCode::Internal, "NVRTC_ERROR_PROGRAM_CREATION_FAILURE (2)"),
        (5, StatusCode::InvalidArgument, "NVRTC_ERROR_INVALID_OPTION (5)"),
        (10, StatusCode::InvalidArgument, "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID (10)"),
        (11, StatusCode::Internal, "NVRTC_ERROR_INTERNAL_ERROR (11)"),
        // One that no table has, and the greatest.
        (9999, StatusCode::Internal, "NVRTC_ERROR unknown (9999)"),
        (u32::MAX, StatusCode::Internal, "NVRTC_ERROR unknown (4294967295)"),
    ];
    for entry in entries {
        for (code, status, words) in codes {
            let outcome = compiled("every.cu", &format!("// fake: {entry} answers {code}"));
            refused(outcome, status, &["compiling every.cu for 7.5 by nvrtc 12.2: ", words]);
        }
    }
    let builtins = Nvrtc::path().with_file_name("libnvrtc-builtins.so.12.2");
    let outcome = compiled("builtins.cu", "// fake: nvrtcCompileProgram answers 7");
    let words =
        ["NVRTC_ERROR_BUILTIN_OPERATION_FAILURE (7): its builtins were not found: ", builtins.to_str().unwrap()];
    refused(outcome, StatusCode::Internal, &words);
    assert_eq!(Nvrtc::open().programs(), 0);
}

#[test]
fn a_text_for_which_there_is_no_memory_is_an_error() {
    for bytes in [u64::MAX, u64::MAX >> 1, 1 << 62] {
        let outcome = compiled("huge.cu", &format!("// fake: a PTX of {bytes} bytes"));
        let why = format!("the PTX has {bytes} bytes, for which there is no memory");
        refused(outcome, StatusCode::ResourceExhausted, &[&why]);
    }
    refused(compiled("none.cu", "// fake: a PTX of 0 bytes"), StatusCode::Internal, &["it made no PTX"]);
    let ptx = compiled("long.cu", "// fake: a log of 1000000 bytes").unwrap();
    assert_eq!(ptx.log().len(), 1_000_000);
}

#[test]
fn the_compiler_is_given_all_that_the_source_has() {
    let source = source("all.cu", "#include \"h.h\"\n// twice twice_again")
        .with_option("-DN=4")
        .and_then(|source| source.with_option("--use_fast_math"))
        .and_then(|source| source.with_header("h.h", "int h;"))
        .and_then(|source| source.with_name_expression("twice<float>"))
        .and_then(|source| source.with_name_expression("twice_again"))
        .unwrap();
    let ptx = compiler().compile(&source).unwrap();
    let expected = "// all.cu\n// [\"--gpu-architecture=compute_75\", \"-DN=4\", \"--use_fast_math\"]\n// [(\"h.h\", \
                    \"int h;\")]\n// #include \"h.h\"\n";
    assert!(ptx.text().starts_with(expected), "{}", ptx.text());
    let lowered = ptx.lowered_name("twice<float>").unwrap();
    assert!(ptx.text().contains(&format!(".entry {lowered}()")), "{lowered}: {}", ptx.text());
    assert!(ptx.lowered_name("twice_again").is_some());
    assert_eq!(ptx.lowered_name("twice"), None);
    let spec = ptx.loader_spec("twice<float>", 1).unwrap();
    assert_eq!((spec.kernel_name(), spec.arity()), (lowered, 1));
    assert_eq!(spec.payload(), &KernelPayload::Ptx(ptx.text().into()));
    assert_eq!(ptx.loader_spec("by_its_name", 0).unwrap().kernel_name(), "by_its_name");
    let missing = source.with_name_expression("missing").unwrap();
    let words = ["all.cu: error: name expression \"missing\" names nothing"];
    refused(compiler().compile(&missing), StatusCode::InvalidArgument, &words);
}

#[test]
fn targets_and_options_that_this_nvrtc_has_not_are_refused() {
    let for_target = |target: &str| KernelSource::new("t.cu", "", target.parse().unwrap()).unwrap();
    for (target, named) in [("5.0", "50"), ("9.0", "90"), ("9.0a", "90a")] {
        let ptx = compiler().compile(&for_target(target)).unwrap();
        assert!(ptx.text().contains(&format!(".target sm_{named}\n")), "{}", ptx.text());
    }
    for target in ["3.5", "12.0", "10.0f"] {
        let why =
            format!("compiling t.cu for {target} by nvrtc 12.2: it does not know this target; it knows 5.0, 5.2, ");
        refused(compiler().compile(&for_target(target)), StatusCode::Unimplemented, &[&why]);
    }
    let unknown = for_target("7.5").with_option("--faster").unwrap();
    let words = ["t.cu", "NVRTC_ERROR_INVALID_OPTION (5)\n", "unrecognized option --faster found"];
    refused(compiler().compile(&unknown), StatusCode::InvalidArgument, &words);
}

#[test]
fn kernels_of_the_tests_are_known_by_heart() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/ptx/kernels");
    let mut count = 0;
    for file in fs::read_dir(&folder).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if path.extension().is_none_or(|extension| extension != "ptx") {
            continue;
        }
        // softmax.50.ptx is of softmax.cu for 5.0.
        let (stem, target) = name.split_once('.').map_or((name, 75), |(stem, target)| (stem, target.parse().unwrap()));
        let text = fs::read_to_string(folder.join(format!("{stem}.cu"))).unwrap();
        let target = ComputeCapability::new(target / 10, target % 10);
        let ptx = compiler().compile(&KernelSource::new(name, &text, target).unwrap()).unwrap();
        assert!(ptx.text() == fs::read_to_string(&path).unwrap(), "{}", path.display());
        count += 1;
    }
    assert!(count >= 14, "{count} of them");
}

#[test]
fn a_child_of_fork_is_refused() {
    process::run_with(
        "compile::a_child_of_fork_is_refused",
        |command| with_variable(command, &Nvrtc::path()),
        || {
            let mut before = None;
            forked("a child before nvrtc is loaded", || {
                before = Some(compiler().compile(&source("before.cu", "")).unwrap());
            });
            assert_eq!(before, None, "that was the child's");
            let (nvrtc, compiler) = (Nvrtc::open(), compiler());
            assert_eq!(Compiler::find().unwrap(), compiler);
            compiler.compile(&source("parent.cu", "")).unwrap();
            forked("a child of a process that has loaded nvrtc", || {
                let words = ["nvrtc was loaded by the parent of this process", "fork"];
                refused(compiler.compile(&source("child.cu", "")), StatusCode::FailedPrecondition, &words);
                refused(Compiler::load(&Nvrtc::path()), StatusCode::FailedPrecondition, &words);
                refused(Compiler::find(), StatusCode::FailedPrecondition, &words);
                assert_eq!(nvrtc.compilations("child.cu"), 0);
            });
            compiler.compile(&source("parent.cu", "")).unwrap();
        },
    );
}
