//! Compiles CUDA C by the nvrtc of this machine, without a GPU, and writes the PTX to stdout.
//!
//! ```text
//! cargo run -p purlin-cuda --example compile -- fill.cu 7.5 [--name 'fill<float>'] [OPTION OF NVRTC]...
//! ```
//!
//! Warnings, and the names that name expressions have in the PTX, are written to stderr, as are errors, with exit code
//! 1.

use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

use purlin_base::{Error, StatusOr};
use purlin_cuda::{Compiler, KernelSource};

fn source() -> StatusOr<(KernelSource, Vec<String>)> {
    let mut arguments = env::args().skip(1);
    let (Some(path), Some(target)) = (arguments.next(), arguments.next()) else {
        return Err(Error::invalid_argument(
            "a file of CUDA C and a compute capability are wanted, such as fill.cu 7.5",
        ));
    };
    let text = fs::read_to_string(&path).map_err(|why| Error::not_found(format!("{path}: {why}")))?;
    let name = Path::new(&path).file_name().unwrap_or_default().to_string_lossy();
    let (mut source, mut names) = (KernelSource::new(&name, &text, target.parse()?)?, Vec::new());
    while let Some(argument) = arguments.next() {
        source = if argument == "--name" {
            names.extend(arguments.next());
            source.with_name_expression(names.last().map_or("", String::as_str))?
        } else {
            source.with_option(&argument)?
        };
    }
    Ok((source, names))
}

fn main() -> ExitCode {
    let compiled = source().and_then(|(source, names)| Ok((Compiler::find()?.compile(&source)?, names)));
    match compiled {
        Ok((ptx, names)) => {
            for name in names {
                eprintln!("{name}: {}", ptx.lowered_name(&name).unwrap_or_default());
            }
            if !ptx.log().is_empty() {
                eprintln!("{}", ptx.log());
            }
            print!("{}", ptx.text());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{}", error.message());
            ExitCode::FAILURE
        }
    }
}
