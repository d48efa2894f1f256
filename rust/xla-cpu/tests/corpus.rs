//! Runs programs that stock JAX compiled without XLA, and compares the results with those of stock XLA.
//!
//! `PURLIN_XLA_CORPUS` names the folder that `examples/python/export_xla.py` has written, which needs wheels of PyPI:
//! so `make interop` asks for the test, which is ignored elsewhere. Results must have the same bits, unless the program
//! has a dot, a convolution, an fft or a fusion of YNNPACK's, whose sums are in another order. Then they may differ by
//! 1e-5 of the largest element (1e-2 if elements have 16 bits). `PURLIN_XLA_NATIVE_PERCENT` is the percentage of the
//! programs that must run (95).

#![allow(unsafe_code, reason = "bytes are copied from buffers")]

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use purlin::interchange::{NpyReadOptions, read_npy};
use purlin::program::{ArraySpec, Command, Executable, ExecuteOptions, LoadedExecutable, Program, Sequence};
use purlin::{Buffer, Client, ClientOptions, DType, MemorySpace, StatusCode};
use purlin_xla_cpu::{LoadOptions, load_program};

/// The outcome of a program.
enum Outcome {
    Same,
    Close(f64),
    Refused(String),
    Wrong(String),
}

#[test]
#[ignore = "needs programs of stock JAX: make interop"]
fn programs_of_stock_jax_run_without_xla() {
    let folder = env::var_os("PURLIN_XLA_CORPUS").map(PathBuf::from);
    let folder = folder.expect("PURLIN_XLA_CORPUS names a folder that examples/python/export_xla.py has written");
    let mut programs: Vec<PathBuf> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    programs.retain(|path| path.extension().is_some_and(|extension| extension == "xla"));
    programs.sort();
    assert!(!programs.is_empty(), "{} has no programs", folder.display());
    let options = ClientOptions { worker_count: 2, ..Default::default() };
    let client = Client::new(&options, Arc::new(purlin::host::HostBackend::new())).unwrap();
    let mut native = 0;
    let (mut wrong, mut reasons) = (Vec::new(), BTreeMap::<String, usize>::new());
    for path in &programs {
        let name = path.file_stem().unwrap().to_string_lossy();
        let (answer, text) = match run(path, &client) {
            Outcome::Same => ("native", "bit for bit".to_owned()),
            Outcome::Close(difference) => ("native", format!("to {difference:.0e} of the largest")),
            Outcome::Refused(why) => {
                *reasons.entry(why.clone()).or_default() += 1;
                ("refused", why)
            }
            Outcome::Wrong(why) => {
                wrong.push(format!("{name}: {why}"));
                ("WRONG", why)
            }
        };
        native += usize::from(answer == "native");
        println!("{name:<34} {answer:<8} {text}");
    }
    println!("\n{native} of {} programs run natively; the reasons of the others:", programs.len());
    reasons.iter().for_each(|(reason, count)| println!("{count:>4}  {reason}"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let percent: usize = env::var("PURLIN_XLA_NATIVE_PERCENT").map_or(95, |text| text.parse().unwrap());
    let count = programs.len();
    assert!(native * 100 >= count * percent, "{native} of {count} are fewer than {percent} of 100");
}

fn run(path: &Path, client: &Client) -> Outcome {
    let program = match load_program(&fs::read(path).unwrap(), &LoadOptions { trust_code: true, unwind_tables: true }) {
        Ok(program) => program,
        Err(error) if error.code() == StatusCode::Unimplemented => {
            let text = error.message();
            return Outcome::Refused(text.split_once(" here: ").map_or(text, |(_, reasons)| reasons).to_owned());
        }
        Err(error) => return Outcome::Wrong(error.to_string()),
    };
    match compare(&program, path, client) {
        Ok(outcome) => outcome,
        Err(error) => Outcome::Wrong(error.to_string()),
    }
}

fn compare(program: &Program, path: &Path, client: &Client) -> Result<Outcome, purlin::Error> {
    let device = client.devices()[0].clone();
    let space = device.default_memory_space();
    let loaded = LoadedExecutable::new(&Executable::new(program.clone()), &[device], 1)?;
    let signature = program.signature();
    let mut difference = 0.0_f64;
    // Each program runs twice, because a run must not change the next one. A program with a random state runs once.
    for _ in 0..if calls(program.sequence(), &["rng-get-and-update-state"]) { 1 } else { 2 } {
        let arguments = arrays(&path.with_extension("args"), &signature.parameters, &space)?;
        let results = arrays(&path.with_extension("results"), &signature.results, &space)?;
        let execution = loaded.execute(&arguments, &ExecuteOptions::default())?;
        execution.done.wait()?;
        for (number, (ours, theirs)) in execution.outputs.iter().zip(&results).enumerate() {
            let (ours, theirs) = (bytes(ours)?, bytes(theirs)?);
            if ours == theirs {
                continue;
            }
            let spec = &signature.results[number];
            let apart = distance(spec.shape().dtype(), &ours, &theirs);
            let wide = if matches!(spec.shape().dtype(), DType::F16 | DType::BF16) { 1e-2 } else { 1e-5 };
            if !calls(program.sequence(), &["dot", "convolution", "fft", "ynn-fusion"])
                || apart.is_none_or(|apart| apart > wide)
            {
                return Ok(Outcome::Wrong(format!("result {number}, {spec}, differs: {apart:?} of the largest")));
            }
            difference = difference.max(apart.unwrap_or(0.0));
        }
    }
    Ok(if difference == 0.0 { Outcome::Same } else { Outcome::Close(difference) })
}

fn arrays(folder: &Path, specs: &[ArraySpec], space: &MemorySpace) -> Result<Vec<Buffer>, purlin::Error> {
    let count = fs::read_dir(folder).unwrap().count();
    assert_eq!(count, specs.len(), "{}", folder.display());
    let read = |(number, spec): (usize, &ArraySpec)| {
        let options = NpyReadOptions { dtype: Some(spec.shape().dtype()), ..Default::default() };
        read_npy(&folder.join(format!("{number}.npy")), space, &options).map(|(array, _)| array)
    };
    specs.iter().enumerate().map(read).collect()
}

/// The bytes of a buffer. Unused bits of a partial last byte are cleared.
fn bytes(buffer: &Buffer) -> Result<Vec<u8>, purlin::Error> {
    // A large file is read by a task.
    buffer.ready_event().wait()?;
    let mut bytes = vec![0; buffer.size_bytes()];
    let hold = buffer.usage_hold()?;
    // SAFETY: `bytes` lives until the copy has completed, for which wait() waits.
    let copied = unsafe { hold.memory().copy_to_host(bytes.as_mut_ptr(), 0, bytes.len(), &[]) };
    copied.wait()?;
    let bits = buffer.dtype().bits() as i64 * buffer.shape().element_count() % 8;
    if let Some(last) = bytes.last_mut().filter(|_| bits != 0) {
        *last &= (1 << bits) - 1;
    }
    Ok(bytes)
}

/// The greatest difference between two arrays of floating-point numbers, divided by the largest absolute value of the
/// second. `None`: the type is not floating-point, or only one of two elements is NaN.
fn distance(dtype: DType, a: &[u8], b: &[u8]) -> Option<f64> {
    let numbers = |bytes: &[u8]| -> Option<Vec<f64>> {
        Some(match dtype {
            DType::F32 | DType::C64 => bytes.as_chunks().0.iter().map(|&x| f32::from_le_bytes(x).into()).collect(),
            DType::F64 | DType::C128 => bytes.as_chunks().0.iter().map(|&x| f64::from_le_bytes(x)).collect(),
            DType::BF16 => bytes.as_chunks().0.iter().map(|&[a, b]| f32::from_le_bytes([0, 0, a, b]).into()).collect(),
            DType::F16 => bytes.as_chunks().0.iter().map(|&x| half::f16::from_le_bytes(x).to_f64()).collect(),
            _ => return None,
        })
    };
    let (a, b) = (numbers(a)?, numbers(b)?);
    let largest = b.iter().fold(0.0_f64, |largest, x| if x.is_finite() { largest.max(x.abs()) } else { largest });
    let mut most = 0.0_f64;
    for (a, b) in a.iter().zip(&b) {
        if a.to_bits() != b.to_bits() && !(a.is_nan() && b.is_nan()) {
            let apart = (a - b).abs();
            most = if apart.is_nan() { return None } else { most.max(apart) };
        }
    }
    Some(if largest == 0.0 { most } else { most / largest })
}

/// Whether the sequence has a command that is one of these library calls.
fn calls(sequence: &Sequence, names: &[&str]) -> bool {
    sequence.commands().iter().any(|command| match command {
        Command::Library { call, .. } => names.contains(&call.name()),
        other => other.sequences().any(|(_, inner)| calls(inner, names)),
    })
}
