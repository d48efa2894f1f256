//! Runs programs that stock JAX compiled, and prints the times of loading and of a run.
//!
//!   python3 examples/python/export_xla.py FOLDER
//!   cargo run --release -p purlin-xla-cpu --example run_xla -- FOLDER/add_one FOLDER/mlp_step ...
//!
//! For each NAME it reads NAME.xla and the arrays of NAME.args. Each run has `caller_waits` set, because the caller
//! waits for it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use purlin::interchange::{NpyReadOptions, read_npy};
use purlin::program::{Executable, ExecuteOptions, LoadedExecutable};
use purlin::{Client, ClientOptions, Error};
use purlin_xla_cpu::{LoadOptions, load_program};

fn main() -> Result<(), Error> {
    let client = Client::new(&ClientOptions::default(), Arc::new(purlin::host::HostBackend::new()))?;
    let device = client.devices()[0].clone();
    for name in std::env::args_os().skip(1).map(PathBuf::from) {
        let bytes = std::fs::read(name.with_extension("xla")).map_err(|error| Error::unknown(error.to_string()))?;
        let options = LoadOptions { trust_code: true, ..Default::default() };
        let program = load_program(&bytes, &options)?;
        let load = shortest(50, || load_program(&bytes, &options).map(drop))?;
        let loaded = LoadedExecutable::new(&Executable::new(program.clone()), std::slice::from_ref(&device), 1)?;
        let arguments = program.signature().parameters.iter().enumerate().map(|(number, spec)| {
            let options = NpyReadOptions { dtype: Some(spec.shape().dtype()), ..Default::default() };
            let path = name.with_extension("args").join(format!("{number}.npy"));
            read_npy(&path, &device.default_memory_space(), &options).map(|(array, _)| array)
        });
        let arguments = arguments.collect::<Result<Vec<_>, _>>()?;
        // No argument is donated, because it would be deleted after the first run.
        let kept: Vec<usize> = (0..arguments.len()).collect();
        let options = ExecuteOptions { non_donatable_input_indices: &kept, caller_waits: true, ..Default::default() };
        let run = shortest(2000, || loaded.execute(&arguments, &options)?.done.wait())?;
        let (title, size) = (name.display(), bytes.len());
        println!(
            "{title}: {size} bytes, {} steps; load {load:.1?}, run {run:.1?}",
            program.sequence().commands().len()
        );
    }
    Ok(())
}

/// The time of the shortest of `count` calls, or of as many as take two seconds.
fn shortest(count: usize, mut call: impl FnMut() -> Result<(), Error>) -> Result<Duration, Error> {
    let (begin, mut shortest) = (Instant::now(), Duration::MAX);
    for _ in 0..count {
        let begun = Instant::now();
        call()?;
        shortest = shortest.min(begun.elapsed());
        if begin.elapsed() > Duration::from_secs(2) {
            break;
        }
    }
    Ok(shortest)
}
