//! Says of PTX files what the interpreter understands: `cargo run -p purlin-ptx --example inspect FILE...`.

use std::process::ExitCode;

use purlin_ptx::{Kernel, Module};

fn main() -> ExitCode {
    let mut refused = 0;
    for path in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| format!("{error}"));
        match Module::parse(&text) {
            Ok(module) => {
                let kernels: Vec<_> = module.kernels().map(Kernel::name).collect();
                println!("{path}: {} for {}: {}", module.version().0, module.target(), kernels.join(", "));
            }
            Err(refusal) => {
                println!("{path}: refused: {refusal}");
                refused += 1;
            }
        }
    }
    if refused == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
