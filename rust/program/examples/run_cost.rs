//! What a small run costs the host in instructions and heap allocations, by how many arrays it takes and gives.
//!
//! ```sh
//! cargo build --release -p purlin-program --example run_cost
//! target/release/examples/run_cost        # counts allocations; instructions too, where valgrind is installed
//! target/release/examples/run_cost 8 given 1000   # the runs alone, for callgrind and others
//! ```
//!
//! Arguments are ready, and each result is a copy of 64 bytes. *Fresh*: the outputs are made and dropped. *Given*: each
//! run's outputs are the memory for the next one's results. Instructions are those of 2000 runs less those of 1000, so
//! nothing that happens once is in them.

#![allow(unsafe_code, reason = "an allocator counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::process::Command as Process;
use std::sync::Arc;

use purlin_array::{DType, Shape};
use purlin_base::StatusOr;
use purlin_device::{Buffer, Client, ClientOptions};
use purlin_host::HostBackend;
use purlin_program::{ArraySpec, Command, Executable, ExecuteOptions, LoadedExecutable, ProgramBuilder};

struct Counting;

thread_local!(static ALLOCATIONS: Cell<usize> = const { Cell::new(0) });

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promises are those of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static GLOBAL: Counting = Counting;

const BYTES: usize = 64;

/// Does `runs` runs with so many operands; the allocations of the last.
fn run(operands: usize, is_given: bool, runs: usize) -> StatusOr<usize> {
    let client = Client::new(&ClientOptions::default(), Arc::new(HostBackend::new()))?;
    let array = ArraySpec::new(Shape::new(DType::U8, &[BYTES as i64])?);
    let mut builder = ProgramBuilder::new("copies");
    let pairs: Vec<_> =
        (0..operands).map(|_| (builder.parameter(array.clone()), builder.result(array.clone()))).collect();
    pairs.into_iter().for_each(|(from, to)| _ = builder.push(Command::Copy { from, to }));
    let loaded = LoadedExecutable::new(&Executable::new(builder.build()?), &client.devices()[..1], 1)?;

    let space = client.devices()[0].default_memory_space();
    let buffer = |byte: u8| Buffer::from_slice(&[byte; BYTES], &[BYTES as i64], &space);
    let arguments = (0..operands).map(|_| buffer(1)).collect::<StatusOr<Vec<_>>>()?;
    let mut given = (0..operands).map(|_| buffer(0).map(Some)).collect::<StatusOr<Vec<_>>>()?;
    let mut allocations = 0;
    for _ in 0..runs {
        let before = ALLOCATIONS.get();
        let options = ExecuteOptions { results: if is_given { &given } else { &[] }, ..Default::default() };
        let execution = loaded.execute(&arguments, &options)?;
        assert!(execution.done.is_ready(), "it is small, and its arguments are ready");
        if is_given {
            given.iter_mut().zip(execution.outputs).for_each(|(given, output)| *given = Some(output));
        }
        allocations = ALLOCATIONS.get() - before;
    }
    Ok(allocations)
}

/// The instructions of such runs, with all that surrounds them; `None`: valgrind is missing or counted nothing.
fn instructions(operands: usize, road: &str, runs: usize) -> Option<u64> {
    let program = std::env::current_exe().ok()?;
    let (operands, runs) = (operands.to_string(), runs.to_string());
    let mut valgrind = Process::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(program);
    let answer = valgrind.args([&operands, road, &runs]).output().ok()?;
    let report = String::from_utf8_lossy(&answer.stderr).into_owned();
    report.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok())
}

fn main() -> StatusOr<()> {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    if let [operands, road, runs] = &asked[..] {
        let number = |text: &String| text.parse().expect("run_cost [OPERANDS fresh|given RUNS]");
        return run(number(operands), road == "given", number(runs)).map(drop);
    }
    println!("operands  results  allocations  instructions");
    for road in ["fresh", "given"] {
        for operands in [1, 8, 32] {
            let allocations = run(operands, road == "given", 20)?;
            let (few, many) = (instructions(operands, road, 1000), instructions(operands, road, 2000));
            let each = few.zip(many).map_or("?".to_owned(), |(few, many)| ((many - few) / 1000).to_string());
            println!("{operands:>8}  {road:>7}  {allocations:>11}  {each:>12}");
        }
    }
    Ok(())
}
