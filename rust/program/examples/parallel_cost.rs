//! From which size on it pays to execute commands, and workgroups of a kernel, on two threads instead of one. The
//! constant `PARALLEL_BYTES` comes from this table.
//!
//! ```sh
//! cargo run --release -p purlin-program --example parallel_cost
//! ```
//!
//! Each row is a run of two commands, or of a kernel with two workgroups, that write so many bytes each. A time is the
//! least of many runs, in microseconds, on a client with one thread beside the caller.

#![allow(unsafe_code, reason = "a native kernel takes addresses")]

use std::ffi::c_void;
use std::sync::Arc;
use std::time::{Duration, Instant};

use purlin_array::{DType, Shape};
use purlin_base::StatusOr;
use purlin_device::{Buffer, Client, ClientOptions};
use purlin_host::HostBackend;
use purlin_program::{
    ArraySpec, Command, Executable, ExecuteOptions, Kernel, KernelFrame, LoadedExecutable, Operand, Program,
    ProgramBuilder,
};

/// Fills the workgroup's part of the result.
unsafe extern "C" fn fill(frame: *const KernelFrame) -> *mut c_void {
    // SAFETY: the frame has one operand, which the workgroups share in equal parts.
    unsafe {
        let (result, id, count) = (*(*frame).args, (*(*frame).id).x as usize, (*(*frame).num_workgroups).x as usize);
        let part = result.size_bytes / count;
        result.data.cast::<u8>().add(id * part).write_bytes(id as u8, part);
    }
    std::ptr::null_mut()
}

/// A program that writes twice `size_bytes` bytes, by a kernel or by two commands.
fn program(is_kernel: bool, size_bytes: usize, from_bytes: usize) -> StatusOr<Program> {
    let array = |bytes: usize| -> StatusOr<ArraySpec> { Ok(ArraySpec::new(Shape::new(DType::U8, &[bytes as i64])?)) };
    let mut builder = ProgramBuilder::new("fills");
    if is_kernel {
        let to = builder.result(array(2 * size_bytes)?);
        // SAFETY: each workgroup writes its part of the operand. The function is never unmapped.
        let kernel = unsafe { Kernel::native("fill", fill, Arc::new(())) };
        builder.push(Command::Kernel { kernel, workgroups: [2, 1, 1], operands: vec![Operand::write(to)] });
    } else {
        for byte in 0..2 {
            let to = builder.result(array(size_bytes)?);
            builder.push(Command::Fill { pattern: vec![byte], to });
        }
    }
    builder.parallel_from_bytes(from_bytes);
    builder.build()
}

/// The least time of a run.
fn least(client: &Client, program: Program) -> StatusOr<Duration> {
    let loaded = LoadedExecutable::new(&Executable::new(program), &client.devices()[..1], 1)?;
    let mut least = Duration::MAX;
    let mut given: Vec<Option<Buffer>> = Vec::new();
    for _ in 0..500 {
        let options = ExecuteOptions { caller_waits: true, results: &given, ..Default::default() };
        let start = Instant::now();
        let execution = loaded.execute::<Buffer>(&[], &options)?;
        execution.done.wait()?;
        least = least.min(start.elapsed());
        given = execution.outputs.into_iter().map(Some).collect();
    }
    Ok(least)
}

fn main() -> StatusOr<()> {
    let options = ClientOptions { worker_count: 1, ..Default::default() };
    let client = Client::new(&options, Arc::new(HostBackend::new()))?;
    println!("bytes of each   kernel: one thread, two   commands: one thread, two");
    for power in 12..=22 {
        let size_bytes = 1 << power;
        print!("{size_bytes:>13}");
        for is_kernel in [true, false] {
            let one = least(&client, program(is_kernel, size_bytes, usize::MAX)?)?;
            let two = least(&client, program(is_kernel, size_bytes, 0)?)?;
            print!("   {:>18.1}  {:>6.1}", one.as_secs_f64() * 1e6, two.as_secs_f64() * 1e6);
        }
        println!();
    }
    Ok(())
}
