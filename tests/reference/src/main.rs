//! Compares the library with the model for a while.
//!
//! ```text
//! purlin-reference [--operations N] [--threads 1|2] [--backend host|sim|cuda] [--seed N] [--cpp PROGRAM] [--least N] [--grow] [--list] [--corpus FOLDER]
//! ```
//!
//! Ends with a line that says what was done, and code 0; or with the difference, made small and kept in the corpus, and
//! code 1. `--least` is how many different pairs of operation and outcome must have been met; `--grow` keeps sequences
//! that meet new ones, `--list` prints them all. `--corpus` names another folder than that beside the sources.

use std::path::Path;
use std::process::ExitCode;

use purlin_reference::{Backend, Corpus, CppSubject, Fuzz, PairFuzz, RustSubject, Subject};

struct Options {
    operations: u64,
    threads: u8,
    backend: Backend,
    seed: u64,
    cpp: Option<String>,
    least: usize,
    grow: bool,
    list: bool,
    corpus: Corpus,
}

fn options() -> Result<Options, String> {
    let (mut operations, mut threads, mut backend, mut seed) = (50_000, 1, Backend::Host, 1);
    let (mut cpp, mut least, mut grow, mut list, mut corpus) = (None, 0, false, false, Corpus::here());
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        let number = |text: String| text.parse::<u64>().map_err(|_| format!("'{text}' is no number"));
        match word.as_str() {
            "--operations" => operations = number(value()?)?,
            "--threads" => threads = if value()? == "2" { 2 } else { 1 },
            "--backend" => {
                let name = value()?;
                backend = Backend::of_name(&name).ok_or(format!("'{name}' is no backend: host, sim or cuda"))?;
            }
            "--seed" => seed = number(value()?)?,
            "--cpp" => cpp = Some(value()?),
            "--least" => least = number(value()?)? as usize,
            "--grow" => grow = true,
            "--list" => list = true,
            "--corpus" => corpus = Corpus::at(value()?.into()),
            _ => return Err(format!("'{word}' is not understood; see tests/reference/src/main.rs")),
        }
    }
    Ok(Options { operations, threads, backend, seed, cpp, least, grow, list, corpus })
}

fn run(options: &Options) -> Result<String, String> {
    let Options { operations, backend, seed, grow, .. } = *options;
    let mut rust = RustSubject::new();
    let mut cpp = None;
    let subject: &mut dyn Subject = match &options.cpp {
        Some(program) => {
            let started = CppSubject::new(Path::new(program)).map_err(|error| format!("{program}: {error}"))?;
            cpp.insert(started)
        }
        None => &mut rust,
    };
    let language = if options.cpp.is_some() { "C++" } else { "Rust" };
    let (report, unclear) = if options.threads == 2 {
        PairFuzz { subject, backend, seed, operations, wrong: None }.run()?
    } else {
        let run = Fuzz { subject, backend, seed, operations, grow, corpus: &options.corpus }.run();
        let report = run.map_err(|difference| match options.corpus.keep("differed-", &difference.bytes) {
            Ok(path) => format!("{difference}\nkept as {}", path.display()),
            Err(error) => format!("{difference}\nnot kept: {error}"),
        })?;
        (report, 0)
    };
    if options.list {
        report.coverage.iter().for_each(|met| println!("{met}"));
    }
    let threads = options.threads;
    let said =
        format!("reference: {language}, {threads} threads, {backend}, seed {seed}: {report}, {unclear} undecided");
    if report.coverage.len() < options.least || unclear * 100 > report.sequences {
        return Err(format!("{said}: too little was met or decided"));
    }
    Ok(said)
}

fn main() -> ExitCode {
    match options().and_then(|options| run(&options)) {
        Ok(said) => {
            println!("{said}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            println!("{why}");
            ExitCode::FAILURE
        }
    }
}
