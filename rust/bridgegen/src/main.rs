//! Writes the C++ half of the bridge, `cpp/generated/`, from the `#[cxx::bridge]` modules in `rust/bridge/src/`.
//!
//! ```text
//! cargo run --locked --manifest-path rust/bridgegen/Cargo.toml             write what has changed
//! cargo run --locked --manifest-path rust/bridgegen/Cargo.toml -- --check  exit 1, naming each stale file
//! ```
//!
//! The output is checked in, so that CMake and Bazel only compile it and nobody else needs this program. A file is
//! written only when its content changes, so that C++ is rebuilt only when the bridge is. `x.rs` with a bridge gives
//! `x.rs.h` and `x.rs.cc`; `cxx.h` holds the types that both sides share. A file in `cpp/generated/` that no module gives
//! any more is stale too, and is removed.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

use proc_macro2::TokenStream;

/// What a file's content must be, by file name.
type Files = BTreeMap<String, Vec<u8>>;

fn main() -> ExitCode {
    let check = match env::args().skip(1).collect::<Vec<_>>().as_slice() {
        [] => false,
        [flag] if flag == "--check" => true,
        _ => return fail("usage: purlin-bridgegen [--check]"),
    };
    // cargo run names the folder of this manifest; without cargo, start in the root of the repository.
    let root = env::var_os("CARGO_MANIFEST_DIR").map_or_else(PathBuf::new, |tool| PathBuf::from(tool).join("../.."));
    let folder = root.join("cpp/generated");
    let stale = match generate(&root.join("rust/bridge/src")).and_then(|files| {
        let stale = stale(&files, &folder)?;
        if !check {
            write(&files, &folder, &stale)?;
        }
        Ok(stale)
    }) {
        Ok(stale) => stale,
        Err(why) => return fail(&why),
    };
    for name in &stale {
        println!("cpp/generated/{name}: {}", if check { "stale" } else { "written" });
    }
    if check && !stale.is_empty() {
        return fail("run: cargo run --locked --manifest-path rust/bridgegen/Cargo.toml");
    }
    ExitCode::SUCCESS
}

fn fail(why: &str) -> ExitCode {
    eprintln!("purlin-bridgegen: {why}");
    ExitCode::FAILURE
}

/// The files that the modules in `sources` give.
fn generate(sources: &Path) -> Result<Files, String> {
    let mut files = Files::from([("cxx.h".to_owned(), cxx_gen::HEADER.as_bytes().to_vec())]);
    for path in entries(sources)? {
        let Some(name) = path.file_name().and_then(OsStr::to_str).filter(|name| name.ends_with(".rs")) else {
            continue;
        };
        let source = fs::read_to_string(&path).map_err(|why| format!("{}: {why}", path.display()))?;
        if !source.lines().any(|line| line.starts_with("#[cxx::bridge")) {
            continue;
        }
        let tokens: TokenStream = source.parse().map_err(|why| format!("{}: {why}", path.display()))?;
        let code = cxx_gen::generate_header_and_cc(tokens, &cxx_gen::Opt::default())
            .map_err(|why| format!("{}: {why}", path.display()))?;
        files.insert(format!("{name}.h"), reopen_inline(code.header));
        files.insert(format!("{name}.cc"), reopen_inline(code.implementation));
    }
    Ok(files)
}

/// Reopens `purlin::v0` as the inline namespace that it is; cxx does not know of such, and clang warns.
fn reopen_inline(code: Vec<u8>) -> Vec<u8> {
    String::from_utf8_lossy(&code).replace("namespace v0 {", "inline namespace v0 {").into_bytes()
}

/// Names of the files in `folder` that are missing, differ, or should not be there.
fn stale(files: &Files, folder: &Path) -> Result<Vec<String>, String> {
    let mut stale: Vec<String> = files
        .iter()
        .filter(|(name, content)| fs::read(folder.join(name)).ok().as_ref() != Some(content))
        .map(|(name, _)| name.clone())
        .collect();
    let found = if folder.is_dir() { entries(folder)? } else { Vec::new() };
    let names = found.iter().filter_map(|path| path.file_name()).map(|name| name.to_string_lossy().into_owned());
    stale.extend(names.filter(|name| !files.contains_key(name)));
    Ok(stale)
}

/// Makes `folder` hold `files`, touching only what is stale.
fn write(files: &Files, folder: &Path, stale: &[String]) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|why| format!("{}: {why}", folder.display()))?;
    for name in stale {
        let path = folder.join(name);
        let done = files.get(name).map_or_else(|| fs::remove_file(&path), |content| fs::write(&path, content));
        done.map_err(|why| format!("{}: {why}", path.display()))?;
    }
    Ok(())
}

/// What a folder holds, sorted.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let read = fs::read_dir(folder).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    let mut paths: Vec<PathBuf> = read.map_err(|why| format!("{}: {why}", folder.display()))?;
    paths.sort();
    Ok(paths)
}
