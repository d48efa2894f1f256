//! How many GPUs the driver of this machine has: a number, or an error and exit code 1. None of them is claimed:
//! contexts are made when a client is.

use std::process::ExitCode;

use purlin_cuda::CudaBackend;
use purlin_device::backend::Backend;

fn main() -> ExitCode {
    match CudaBackend::new() {
        Ok(backend) => {
            println!("{}", backend.device_count().unwrap_or(0));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{}", error.message());
            ExitCode::FAILURE
        }
    }
}
