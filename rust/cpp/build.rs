//! Compiles `cpp/`, as CMakeLists.txt does, and says where the public headers are.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// What belongs to a feature.
const OPTIONAL: [(&str, &[&str]); 4] = [
    ("CUDA", &["compile_cache.cc", "cuda.cc"]),
    ("INTERCHANGE", &["dlpack.cc", "npy.cc", "safetensors.cc"]),
    ("PJRT", &["pjrt_tables.cc"]),
    ("XLA_CPU", &["xla_cpu.cc", "xla_ffi_host.cc"]),
];

/// Files that are compiled as one.
const BATCH: usize = 10;

fn main() -> io::Result<()> {
    let root = Path::new("../..").canonicalize()?;
    let (sources, include) = (root.join("cpp"), root.join("include"));
    let generated = env::var("DEP_PURLIN_BRIDGE_HEADERS").expect("purlin-bridge says where its headers are");
    println!("cargo::rerun-if-changed={}", sources.display());
    println!("cargo::rerun-if-changed={}", include.display());
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").flag("-fno-exceptions").flag("-fvisibility=hidden").warnings(false);
    build.include(&root).include(&include).flag(format!("-isystem{generated}"));
    if env::var_os("CARGO_CFG_DEBUG_ASSERTIONS").is_none() {
        build.define("NDEBUG", None);
    }
    let left_out: Vec<&str> = OPTIONAL
        .into_iter()
        .filter(|(feature, _)| env::var_os(format!("CARGO_FEATURE_{feature}")).is_none())
        .flat_map(|(_, files)| files)
        .copied()
        .collect();
    let mut files = Vec::new();
    for entry in fs::read_dir(&sources)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default();
        if path.extension().is_some_and(|extension| extension == "cc") && !left_out.iter().any(|file| name == *file) {
            files.push(path);
        }
    }
    files.sort();
    // The headers are most of what there is to compile: several files at once take a sixth of the time.
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    for (number, batch) in files.chunks(BATCH).enumerate() {
        let unit = out.join(format!("cpp_{number}.cc"));
        let lines: String = batch.iter().map(|file| format!("#include \"{}\"\n", file.display())).collect();
        fs::write(&unit, lines)?;
        build.file(unit);
    }
    // Rust and C++ call each other, and a linker looks into an archive once.
    build.link_lib_modifier("+whole-archive").compile("purlin_cpp");
    println!("cargo::metadata=include={}", include.display());
    Ok(())
}
