//! What C++ sees of this crate. `cxx-build` writes the C++ half of the `#[cxx::bridge]` modules and compiles it; the
//! objects become part of this crate, and so of `libpurlin_rust.a`. cbindgen declares the plain functions, as
//! `cbindgen.toml` says. `cpp/*.cc` include the headers of both.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The modules with a bridge.
const BRIDGES: [&str; 39] = [
    "src/abi.rs",
    "src/alloc_options.rs",
    "src/buffer.rs",
    "src/buffer_create.rs",
    "src/buffer_holds.rs",
    "src/buffer_promise.rs",
    "src/cancel.rs",
    "src/client.rs",
    "src/compile_cache.rs",
    "src/cuda.rs",
    "src/device.rs",
    "src/dlpack.rs",
    "src/dma.rs",
    "src/dtype.rs",
    "src/elastic_pool.rs",
    "src/executable.rs",
    "src/executor.rs",
    "src/kernel.rs",
    "src/layout.rs",
    "src/loaded_kernel.rs",
    "src/memory_report.rs",
    "src/npy.rs",
    "src/program.rs",
    "src/raw_buffer.rs",
    "src/raw_buffer_promise.rs",
    "src/safetensors.rs",
    "src/semaphore.rs",
    "src/serial_queue.rs",
    "src/shape.rs",
    "src/staging.rs",
    "src/stall.rs",
    "src/status.rs",
    "src/task_options.rs",
    "src/timer.rs",
    "src/trace.rs",
    "src/transfer.rs",
    "src/user_context.rs",
    "src/xla_cpu.rs",
    "src/xla_ffi_host.rs",
];

/// Those of a feature, by its name in the environment.
const OPTIONAL: [(&str, &[&str]); 3] = [
    ("CUDA", &["src/compile_cache.rs", "src/cuda.rs"]),
    ("INTERCHANGE", &["src/dlpack.rs", "src/npy.rs", "src/safetensors.rs"]),
    ("XLA_CPU", &["src/xla_cpu.rs", "src/xla_ffi_host.rs"]),
];

/// The headers of ours that generated code includes.
const INCLUDED: [&str; 2] = ["purlin/internal/abi.h", "purlin/internal/dlpack.h"];

/// What has plain functions, or structs that these take.
const DECLARED: [&str; 2] = ["src/lib.rs", "../ffi/src/words.rs"];

/// What declares the plain functions.
const FUNCTIONS: &str = "purlin-bridge/functions.h";

/// Names the folder that the C++ build wants the generated headers in; without it, no headers are wanted.
const HEADERS: &str = "PURLIN_GENERATED_HEADERS";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let include = Path::new("../../include");
    for header in INCLUDED {
        watch(include, header)?;
    }
    let left_out =
        OPTIONAL.into_iter().filter(|(feature, _)| env::var_os(format!("CARGO_FEATURE_{feature}")).is_none());
    let left_out: Vec<&str> = left_out.flat_map(|(_, bridges)| bridges).copied().collect();
    let bridges: Vec<_> = BRIDGES.into_iter().filter(|bridge| !left_out.contains(bridge)).collect();
    let mut build = cxx_build::bridges(&bridges);
    // As CMakeLists.txt compiles cpp/; cxx answers for the warnings of its code.
    build.include(include).std("c++17").flag("-fno-exceptions").flag("-fvisibility=hidden").flag("-w");
    if env::var_os("CARGO_CFG_DEBUG_ASSERTIONS").is_none() {
        build.define("NDEBUG", None);
    }
    build.compile("purlin_bridge_cxx");

    let generated = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("cxxbridge/include");
    println!("cargo::rerun-if-changed=cbindgen.toml");
    let config = cbindgen::Config::from_file("cbindgen.toml").map_err(io::Error::other)?;
    let mut functions = cbindgen::Builder::new().with_config(config);
    println!("cargo::rerun-if-changed=src");
    for source in DECLARED {
        println!("cargo::rerun-if-changed={source}");
        functions = functions.with_src(source);
    }
    functions.generate().map_err(io::Error::other)?.write_to_file(generated.join(FUNCTIONS));

    println!("cargo::metadata=headers={}", generated.display());
    println!("cargo::rerun-if-env-changed={HEADERS}");
    if let Some(folder) = env::var_os(HEADERS) {
        let headers = bridges.iter().map(|bridge| format!("purlin-bridge/{bridge}.h"));
        for header in headers.chain(["rust/cxx.h", FUNCTIONS].map(String::from)) {
            publish(&generated.join(&header), &Path::new(&folder).join(&header))?;
        }
    }
    Ok(())
}

/// Has cargo run this again when `header`, or one of ours that it includes, changes.
fn watch(include: &Path, header: &str) -> io::Result<()> {
    let path = include.join(header);
    println!("cargo::rerun-if-changed={}", path.display());
    for line in fs::read_to_string(path)?.lines() {
        if let Some(next) = line.strip_prefix("#include \"").and_then(|rest| rest.strip_suffix('"')) {
            watch(include, next)?;
        }
    }
    Ok(())
}

/// Copies a header that has changed. One that has not keeps its time, so that nothing is compiled for nothing.
fn publish(from: &Path, to: &Path) -> io::Result<()> {
    let content = fs::read(from)?;
    if fs::read(to).is_ok_and(|old| old == content) {
        return Ok(());
    }
    fs::create_dir_all(to.parent().expect("it is in a folder"))?;
    fs::write(to, content)
}
