//! Programs whose loops and branches bytes of the GPU decide, and what else a GPU does by several commands.

#![allow(unsafe_code, reason = "memory is written by address")]

use purlin::backend::{Choice, CommandFlow, FlowStep, Launch, LaunchInfo, Place};
use purlin::program::{
    ArraySpec, Branch, Command, ExecuteOptions, Execution, LoadedExecutable, Operand, ProgramBuilder, Sequence, Slice,
};
use purlin::{Buffer, Client, DType, Error, LaunchOptions, Shape, StatusCode};
use purlin_fakecuda::{Options, process};
use std::sync::Arc;

use crate::calls::{BUT, are_counted, quiet, warm};
use crate::launches::spec;
use crate::programs::load;
use crate::support::*;

const FILL: &str = include_str!("../../../../tests/ptx/kernels/fill.ptx");

fn bytes(count: usize) -> ArraySpec {
    ArraySpec::new(Shape::new(DType::U8, &[count as i64]).unwrap())
}

fn part(of: Slice, offset_bytes: usize, size_bytes: usize) -> Slice {
    Slice { offset_bytes: of.offset_bytes + offset_bytes, size_bytes, ..of }
}

fn copy_part(from: Slice, to: Slice) -> Command {
    Command::Copy { from, to }
}

fn fill(byte: u8, to: Slice) -> Command {
    Command::Fill { pattern: vec![byte], to }
}

/// `argument` on the first device.
fn array(client: &Client, argument: &[u8]) -> Result<Buffer, Error> {
    let space = client.devices()[0].default_memory_space();
    Buffer::from_slice(argument, &[argument.len() as i64], &space)
}

/// Starts a run on that argument.
fn begin(client: &Client, program: &LoadedExecutable, argument: &[u8]) -> Result<Execution, Error> {
    program.execute(&[array(client, argument)?], &ExecuteOptions::default())
}

/// The bytes of the one result.
#[track_caller]
fn result(session: &Session, program: &LoadedExecutable, argument: &[u8]) -> Vec<u8> {
    let execution = begin(&session.client, program, argument).unwrap();
    outcome(&execution.done).unwrap();
    execution.outputs[0].to_vec::<u8>().unwrap()
}

/// How long a queue of flags is.
const QUEUE: usize = 16;

/// A loop that goes on while the first byte of its argument, a queue, is not 0. Each time the queue moves up by one,
/// and the 40 words of the result are copied to the next 40: by so many commands that a graph is worth it. A kernel
/// writes the first 40.
fn queue_loop() -> ProgramBuilder {
    let mut builder = ProgramBuilder::new("queue");
    let queue = builder.parameter(bytes(QUEUE));
    let words = builder.result(bytes(QUEUE * 160));
    let (flags, predicate) = (builder.temporary(QUEUE), builder.temporary(1));
    builder.push(fill(0, words));
    builder.push(copy_part(queue, flags));
    let kernel = spec(FILL, "fill_32", 1, &[&9_u32.to_le_bytes(), &40_u64.to_le_bytes()]);
    let first = purlin::program::Kernel::of_device(kernel, [32, 1, 1], 0);
    let fill_first =
        Command::Kernel { kernel: first, workgroups: [2, 1, 1], operands: vec![Operand::write(part(words, 0, 160))] };
    let moves = (1..QUEUE).rev().map(|at| copy_part(part(words, (at - 1) * 160, 160), part(words, at * 160, 160)));
    let shift = copy_part(part(flags, 1, QUEUE - 1), part(flags, 0, QUEUE - 1));
    builder.push(Command::While {
        condition: Sequence::new(vec![copy_part(part(flags, 0, 1), predicate)]),
        predicate,
        body: Sequence::new(moves.chain([shift, fill_first]).collect()),
    });
    builder
}

fn queue(times: usize) -> Vec<u8> {
    (0..QUEUE).map(|at| u8::from(at < times) * 7).collect()
}

fn words(times: usize) -> Vec<u8> {
    (0..QUEUE * 160).map(|at| if at / 160 < times && at % 4 == 0 { 9 } else { 0 }).collect()
}

#[test]
fn a_loop_goes_on_while_the_gpus_own_byte_says_so() {
    process::run("flows::a_loop_goes_on_while_the_gpus_own_byte_says_so", &Options::default(), || {
        Session::with(1, |session| {
            let program = load(queue_loop().build().unwrap(), &session.client.devices()).unwrap();
            for times in [0, 1, 2, QUEUE - 1] {
                assert_eq!(result(session, &program, &queue(times)), words(times), "{times} times");
            }
        });
    });
}

#[test]
fn a_round_of_a_loop_that_is_known_takes_two_graphs_and_one_copy() {
    let name = "flows::a_round_of_a_loop_that_is_known_takes_two_graphs_and_one_copy";
    process::run(name, &Options::default(), || {
        Session::with(1, |session| {
            let program = load(queue_loop().build().unwrap(), &session.client.devices()).unwrap();
            let argument = array(&session.client, &queue(5)).unwrap();
            let run = || {
                let execution = program.execute(&[&argument], &ExecuteOptions::default()).unwrap();
                outcome(&execution.done).unwrap();
                execution
            };
            (0..3).for_each(|_| drop(run()));
            quiet(session);
            drop(run());
            // Before the loop two commands; six times one that writes the byte, which is read; five times the body.
            let calls = session.calls(&BUT);
            let of = |name| calls.get(name).copied().unwrap_or(0);
            assert_eq!((of("cuMemcpyDtoHAsync_v2"), of("cuGraphLaunch")), (6, 5), "{calls:?}");
            assert_eq!((of("cuMemsetD8Async"), of("cuMemcpyDtoDAsync_v2")), (1, 7), "{calls:?}");
            assert_eq!((of("cuLaunchKernel"), of("cuGraphExecUpdate_v2")), (0, 0), "{calls:?}");
            // One behind each step, and one behind the last choice.
            assert_eq!(of("cuEventRecord"), 1 + 6 + 6 + 5 + 1, "{calls:?}");
        });
    });
}

#[test]
fn nobody_waits_while_a_loop_goes_on_and_what_comes_behind_it_does() {
    let name = "flows::nobody_waits_while_a_loop_goes_on_and_what_comes_behind_it_does";
    process::run(name, &Options::default(), || {
        Session::with(1, |session| {
            let program = load(queue_loop().build().unwrap(), &session.client.devices()).unwrap();
            let source = array(&session.client, &queue(3)).unwrap();
            outcome(&source.ready_event()).unwrap();
            let held = Held::new(&session.driver);
            let argument = source.copy_to_device(&session.client.devices()[0]).unwrap();
            let runs: Vec<_> = (0..4)
                .map(|stream| {
                    let options = ExecuteOptions { execution_stream_id: stream, ..Default::default() };
                    program.execute(&[&argument], &options).unwrap()
                })
                .collect();
            // By events alone: a copy of each result, and more work in the memory that the runs had.
            let copies: Vec<_> =
                runs.iter().map(|run| run.outputs[0].copy_to_device(&session.client.devices()[0]).unwrap()).collect();
            held.keeps(runs.iter().map(|run| &run.done));
            drop(argument);
            drop(held);
            for copy in copies {
                assert_eq!(copy.to_vec::<u8>().unwrap(), words(3));
            }
        });
    });
}

#[test]
fn a_client_that_ends_waits_for_loops() {
    process::run("flows::a_client_that_ends_waits_for_loops", &Options::default(), || {
        let session = Session::new(1);
        let program = load(queue_loop().build().unwrap(), &session.client.devices()).unwrap();
        let argument = array(&session.client, &queue(4)).unwrap();
        let held = Held::new(&session.driver);
        let execution = program.execute(&[argument], &ExecuteOptions::default()).unwrap();
        let done = execution.done.clone();
        drop((execution, program));
        let client = Arc::clone(&session.client);
        let ends = std::thread::spawn(move || shut_down(&client));
        drop(held);
        ends.join().unwrap().unwrap();
        outcome(&done).unwrap();
        session.end();
    });
}

/// The result has the number of the branch that was taken, or 9.
fn branches(count: usize, by: impl Fn(Slice) -> Branch) -> purlin::program::Program {
    let mut builder = ProgramBuilder::new("branches");
    let (argument, taken) = (builder.parameter(bytes(4)), builder.result(bytes(1)));
    builder.push(fill(9, taken));
    // One branch does nothing.
    let branch = |number| Sequence::new(if number == 1 { vec![] } else { vec![fill(number as u8, taken)] });
    builder.push(Command::Conditional { branch: by(argument), branches: (0..count).map(branch).collect() });
    builder.build().unwrap()
}

#[test]
fn branches_are_those_that_bytes_of_the_gpu_choose() {
    process::run("flows::branches_are_those_that_bytes_of_the_gpu_choose", &Options::default(), || {
        Session::with(1, |session| {
            let devices = session.client.devices();
            let by_flag = load(branches(2, |slice| Branch::Predicate(part(slice, 3, 1))), &devices).unwrap();
            for (flag, taken) in [(0, 9), (1, 0), (255, 0)] {
                assert_eq!(result(session, &by_flag, &[0, 0, 0, flag]), [taken], "flag {flag}");
            }
            let by_number = load(branches(4, Branch::Index), &devices).unwrap();
            for (number, taken) in [(0, 0), (1, 9), (2, 2), (3, 3), (4, 3), (-1, 3), (i32::MIN, 3), (i32::MAX, 3)] {
                assert_eq!(result(session, &by_number, &number.to_ne_bytes()), [taken], "number {number}");
            }
            let alone = load(branches(1, Branch::Index), &devices).unwrap();
            assert_eq!(result(session, &alone, &7_i32.to_ne_bytes()), [0]);
        });
    });
}

#[test]
fn a_branch_is_chosen_behind_what_its_run_waits_for() {
    process::run("flows::a_branch_is_chosen_behind_what_its_run_waits_for", &Options::default(), || {
        Session::with(1, |session| {
            let devices = session.client.devices();
            let program = load(branches(4, Branch::Index), &devices).unwrap();
            let source = array(&session.client, &2_i32.to_ne_bytes()).unwrap();
            outcome(&source.ready_event()).unwrap();
            let held = Held::new(&session.driver);
            let argument = source.copy_to_device(&devices[0]).unwrap();
            let execution = program.execute(&[argument], &ExecuteOptions::default()).unwrap();
            drop(held);
            assert_eq!(execution.outputs[0].to_vec::<u8>().unwrap(), [2]);
        });
    });
}

#[test]
fn loops_and_branches_are_nested_as_programs_have_them() {
    process::run("flows::loops_and_branches_are_nested_as_programs_have_them", &Options::default(), || {
        Session::with(1, |session| {
            // Twice: while a flag is left, where the next byte is not 0, it is copied to the result, else 5 is.
            let mut builder = ProgramBuilder::new("nested");
            let (argument, out) = (builder.parameter(bytes(8)), builder.result(bytes(4)));
            let (flags, predicate) = (builder.temporary(8), builder.temporary(1));
            let push = |value: Command| Sequence::new(vec![copy_part(part(out, 0, 3), part(out, 1, 3)), value]);
            let taken = push(copy_part(part(flags, 1, 1), part(out, 0, 1)));
            let shift = copy_part(part(flags, 2, 6), part(flags, 0, 6));
            let choice = Command::Conditional {
                branch: Branch::Predicate(part(flags, 1, 1)),
                branches: vec![taken, push(fill(5, part(out, 0, 1)))],
            };
            let body = Sequence::new(vec![choice, Command::Call(Sequence::new(vec![shift]))]);
            let condition = Sequence::new(vec![copy_part(part(flags, 0, 1), predicate)]);
            builder.push(fill(0, out));
            builder.push(Command::Repeat {
                trip_count: 2,
                body: Sequence::new(vec![copy_part(argument, flags), Command::While { condition, predicate, body }]),
            });
            let program = load(builder.build().unwrap(), &session.client.devices()).unwrap();
            assert_eq!(result(session, &program, &[1, 8, 1, 0, 0, 0, 0, 0]), [5, 8, 5, 8]);
            assert_eq!(result(session, &program, &[1, 3, 0, 0, 0, 0, 0, 0]), [3, 3, 0, 0]);
            assert_eq!(result(session, &program, &[0; 8]), [0; 4]);
        });
    });
}

#[test]
fn patterns_of_any_length_fill_memory_at_any_place() {
    process::run("flows::patterns_of_any_length_fill_memory_at_any_place", &Options::default(), || {
        Session::with(1, |session| {
            let patterns: [&[u8]; 6] =
                [&[1, 2, 3, 4, 5, 6, 7, 8], &[1, 2, 3], &pattern(16, 1), &[1, 2], &[1, 2, 3, 4], &pattern(5000, 2)];
            for (pattern, offset) in patterns.into_iter().flat_map(|pattern| [(pattern, 0), (pattern, 1)]) {
                for count in [1, 2, 3, 1000, 25_001] {
                    let size = (pattern.len() * count).min(200_000 / pattern.len() * pattern.len());
                    let mut builder = ProgramBuilder::new("fill");
                    let (argument, out) = (builder.parameter(bytes(1)), builder.result(bytes(size + 2)));
                    builder.push(fill(0, out));
                    builder.push(copy_part(argument, part(out, size + 1, 1)));
                    builder.push(Command::Fill { pattern: pattern.to_vec(), to: part(out, offset, size) });
                    let program = load(builder.build().unwrap(), &session.client.devices()).unwrap();
                    let mut expected = vec![0; size + 2];
                    expected[size + 1] = 77;
                    let of_pattern = pattern.iter().copied().cycle();
                    expected[offset..offset + size].iter_mut().zip(of_pattern).for_each(|(to, byte)| *to = byte);
                    let read = result(session, &program, &[77]);
                    assert!(read == expected, "{size} bytes of a pattern of {} at {offset}", pattern.len());
                }
            }
        });
    });
}

#[test]
fn a_long_pattern_is_one_constant_and_copies_that_double() {
    let name = "flows::a_long_pattern_is_one_constant_and_copies_that_double";
    process::run(name, &Options { without_graphs: true, ..Options::default() }, || {
        Session::with(1, |session| {
            let mut builder = ProgramBuilder::new("fills");
            let out = builder.result(bytes(1 << 20));
            let fill = || Command::Fill { pattern: vec![1, 2, 3, 4, 5, 6, 7, 8], to: out };
            builder.push(Command::Repeat { trip_count: 2, body: Sequence::new(vec![fill()]) });
            builder.push(Command::Fill { pattern: vec![1, 2, 3, 4, 5, 6, 7, 8], to: part(out, 8, 64) });
            let before = session.client.devices()[0].default_memory_space().stats().bytes_in_use;
            let program = load(builder.build().unwrap(), &session.client.devices()).unwrap();
            let constants = session.client.devices()[0].default_memory_space().stats().bytes_in_use - before;
            assert_eq!(constants, 4096);
            quiet(session);
            let execution = program.execute::<Buffer>(&[], &ExecuteOptions::default()).unwrap();
            outcome(&execution.done).unwrap();
            assert_eq!(session.calls(&BUT)["cuMemcpyDtoDAsync_v2"], 2 * (1 + 8) + 1);
        });
    });
}

#[test]
fn copies_whose_ends_overlap_are_done_as_if_at_once() {
    process::run("flows::copies_whose_ends_overlap_are_done_as_if_at_once", &Options::default(), || {
        Session::with(1, |session| {
            let data = pattern(1000, 4);
            for (from, to, size) in [(0, 1, 999), (1, 0, 999), (10, 500, 500), (500, 10, 490), (3, 3, 900)] {
                for in_temporary in [false, true] {
                    let mut builder = ProgramBuilder::new("moved");
                    let (argument, out) = (builder.parameter(bytes(1000)), builder.result(bytes(1000)));
                    let at = if in_temporary { builder.temporary(1000) } else { out };
                    builder.push(copy_part(argument, at));
                    builder.push(copy_part(part(at, from, size), part(at, to, size)));
                    builder.push(copy_part(at, out));
                    let program = load(builder.build().unwrap(), &session.client.devices()).unwrap();
                    let mut expected = data.clone();
                    expected.copy_within(from..from + size, to);
                    assert!(result(session, &program, &data) == expected, "{size} bytes from {from} to {to}");
                }
            }
        });
    });
}

#[test]
fn what_fails_in_a_loop_fails_its_run_and_nothing_goes_on() {
    process::run("flows::what_fails_in_a_loop_fails_its_run_and_nothing_goes_on", &Options::default(), || {
        Session::with(1, |session| {
            let program = load(queue_loop().build().unwrap(), &session.client.devices()).unwrap();
            for (fault, code) in [
                ("cuMemcpyDtoHAsync_v2:1:1", StatusCode::InvalidArgument),
                ("cuMemcpyDtoHAsync_v2:3:2", StatusCode::ResourceExhausted),
                ("cuMemsetD8Async:1:1", StatusCode::InvalidArgument),
                ("cuEventRecord:9:1", StatusCode::InvalidArgument),
                ("cuLaunchKernel:1:1", StatusCode::InvalidArgument),
            ] {
                // A program that is new has no graphs.
                let anew = load(queue_loop().build().unwrap(), &session.client.devices()).unwrap();
                let argument = array(&session.client, &queue(3)).unwrap();
                outcome(&argument.ready_event()).unwrap();
                session.driver.control.reset_calls();
                session.driver.control.set_faults(fault);
                let execution = anew.execute(&[&argument], &ExecuteOptions::default()).unwrap();
                let error = outcome(&execution.done).unwrap_err();
                session.driver.control.set_faults("");
                assert_eq!(error.code(), code, "{fault}: {error}");
                assert!(error.message().contains("launch 0 of 'queue'"), "{fault}: {error}");
                assert_eq!(execution.outputs[0].to_vec::<u8>().unwrap_err().code(), code);
                assert_eq!(result(session, &program, &queue(2)), words(2), "after {fault}");
            }
        });
    });
}

#[test]
fn a_gpu_that_breaks_in_a_loop_fails_the_run() {
    process::run("flows::a_gpu_that_breaks_in_a_loop_fails_the_run", &Options::default(), || {
        let session = Session::new(1);
        let program = load(queue_loop().build().unwrap(), &session.client.devices()).unwrap();
        session.driver.control.set_faults("cuMemcpyDtoHAsync_v2:2:700:async");
        let execution = begin(&session.client, &program, &queue(3)).unwrap();
        let error = outcome(&execution.done).unwrap_err();
        assert!(error.message().contains("GPU 0 is broken until this process ends"), "{error}");
        drop((execution, program));
        session.end_broken();
    });
}

/// Steps of code of a caller's own.
struct Steps(CommandFlow);

impl Launch for Steps {
    fn name(&self) -> &str {
        "steps"
    }

    unsafe fn launch(&self, _info: LaunchInfo, _addresses: &[*mut u8]) -> Result<(), Error> {
        Err(Error::internal("the host is asked for what the GPU does"))
    }

    fn flow(&self, _device: u16) -> Option<&CommandFlow> {
        Some(&self.0)
    }
}

#[test]
fn what_chooses_is_memory_of_the_gpu_that_is_there() {
    process::run("flows::what_chooses_is_memory_of_the_gpu_that_is_there", &Options::default(), || {
        Session::with(1, |session| {
            let by = Choice::Index(Place { range: 0, offset_bytes: 4 });
            let steps = vec![FlowStep::Choose { by, targets: vec![1] }];
            let steps: Arc<dyn Launch> = Arc::new(Steps(CommandFlow::new(steps).unwrap()));
            let started = |kind, bytes| {
                let block = session.block(0, kind, bytes);
                write(&block, &[0; 8][..bytes]).unwrap();
                let ranges = [(purlin::backend::Access::Read, &block)];
                let device = &session.client.devices()[0];
                // SAFETY: nothing else uses the block.
                let started = unsafe { device.launch(Arc::clone(&steps), &ranges, &LaunchOptions::default()) };
                started.and_then(|done| outcome(&done))
            };
            let error = started("device", 7).unwrap_err();
            assert!(error.message().contains("a choice by 4 bytes at 4 of range 0 is launched with 7"), "{error}");
            let error = started("pinned_host", 8).unwrap_err();
            assert!(error.message().contains("is no memory of a GPU, which chooses"), "{error}");
            // Once for what is kept.
            started("device", 8).unwrap();
            let block = session.block(0, "device", 8);
            write(&block, &[0; 8]).unwrap();
            warm(session);
            let ranges = [(purlin::backend::Access::Read, &block)];
            let device = &session.client.devices()[0];
            // SAFETY: as above.
            let done = unsafe { device.launch(Arc::clone(&steps), &ranges, &LaunchOptions::default()) };
            outcome(&done.unwrap()).unwrap();
            // A choice of nothing, and the end behind it.
            are_counted(session, &[("cuMemcpyDtoHAsync_v2", 1), ("cuEventRecord", 2)]);
        });
    });
}

/// A part of the scenario under faults: what was wrong with the bytes.
pub(crate) fn work(client: &Client) -> Result<Option<String>, Error> {
    let program = load(queue_loop().build()?, &client.devices()[..1])?;
    for times in [3, 1, 0] {
        let execution = begin(client, &program, &queue(times))?;
        outcome(&execution.done)?;
        if execution.outputs[0].to_vec::<u8>()? != words(times) {
            return Ok(Some(format!("no error, and wrong bytes, of a loop of {times} rounds")));
        }
    }
    Ok(None)
}
