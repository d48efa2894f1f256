//! Programs whose kernels a GPU runs.

#![allow(unsafe_code, reason = "programs run by address")]

use std::sync::Arc;

use purlin::program::{
    ArraySpec, Branch, Command, Executable, ExecuteOptions, Kernel, LoadedExecutable, Operand, Program, ProgramBuilder,
    Sequence, Slice,
};
use purlin::{Buffer, DType, Device, Shape, StatusCode};
use purlin_fakecuda::{Options, process};

use crate::calls::{BUT, are_counted, counted, warm};
use crate::launches::spec;
use crate::support::*;

const FILL: &str = include_str!("../../../../tests/ptx/kernels/fill.ptx");
const MOMENTUM: &str = include_str!("../../../../tests/ptx/kernels/momentum.ptx");
const COUNT: usize = 1000;

fn vector(count: usize) -> ArraySpec {
    ArraySpec::new(Shape::new(DType::F32, &[count as i64]).unwrap())
}

/// `momentum(weights, velocity, gradient)`, a thread for four of `count`.
fn momentum_kernel() -> Kernel {
    let values = [0.5_f32.to_le_bytes(), 0.25_f32.to_le_bytes(), (COUNT as u32).to_le_bytes()];
    Kernel::of_device(spec(MOMENTUM, "momentum", 3, &values.each_ref().map(|value| value.as_slice())), [50, 1, 1], 0)
}

/// Two steps of momentum on donated weights and velocity.
pub(crate) fn momentum() -> Program {
    let mut builder = ProgramBuilder::new("momentum");
    let (weights, velocity) = (builder.donated_parameter(vector(COUNT)), builder.donated_parameter(vector(COUNT)));
    let gradient = builder.parameter(vector(COUNT));
    let step = Command::Kernel {
        kernel: momentum_kernel(),
        workgroups: [5, 1, 1],
        operands: vec![Operand::read_write(weights), Operand::read_write(velocity), Operand::read(gradient)],
    };
    builder.push(Command::Repeat { trip_count: 2, body: Sequence::new(vec![step]) });
    builder.build().unwrap()
}

pub(crate) fn load(program: Program, devices: &[Device]) -> purlin::StatusOr<LoadedExecutable> {
    LoadedExecutable::new(&Executable::new(program), devices, 1)
}

pub(crate) fn data(seed: usize) -> Vec<f32> {
    (0..COUNT).map(|at| (at * (seed + 1) % 17) as f32 - 8.0).collect()
}

/// The weights after two steps.
fn expected() -> Vec<f32> {
    let [weights, velocity, gradient] = [0, 1, 2].map(data);
    let step = |at: usize| {
        let first = 0.25 * velocity[at] + gradient[at];
        let second = 0.25 * first + gradient[at];
        weights[at] - 0.5 * first - 0.5 * second
    };
    (0..COUNT).map(step).collect()
}

pub(crate) fn arguments(device: &Device) -> [Buffer; 3] {
    let space = device.default_memory_space();
    [0, 1, 2].map(|seed| Buffer::from_slice(&data(seed), &[COUNT as i64], &space).unwrap())
}

#[test]
fn donated_arguments_become_results_in_place() {
    process::run("programs::donated_arguments_become_results_in_place", &Options::default(), || {
        Session::with(1, |session| {
            let device = &session.client.devices()[0];
            let program = load(momentum(), std::slice::from_ref(device)).unwrap();
            let arguments = arguments(device);
            let before = device.default_memory_space().stats().bytes_in_use;
            let execution = program.execute(&arguments, &ExecuteOptions::default()).unwrap();
            outcome(&execution.done).unwrap();
            assert_eq!(device.default_memory_space().stats().bytes_in_use, before);
            assert_eq!(execution.outputs[0].to_vec::<f32>().unwrap(), expected());
            assert!(arguments[0].to_vec::<f32>().is_err() && arguments[2].to_vec::<f32>().unwrap() == data(2));
        });
    });
}

#[test]
fn arguments_that_are_kept_are_copied_to_the_results_first() {
    process::run("programs::arguments_that_are_kept_are_copied_to_the_results_first", &Options::default(), || {
        Session::with(1, |session| {
            let device = &session.client.devices()[0];
            let program = load(momentum(), std::slice::from_ref(device)).unwrap();
            let arguments = arguments(device);
            let options = ExecuteOptions { non_donatable_input_indices: &[0], ..Default::default() };
            for _ in 0..2 {
                // The velocity is donated, and made anew.
                let velocity = Buffer::from_slice(&data(1), &[COUNT as i64], &device.default_memory_space()).unwrap();
                let execution = program.execute(&[&arguments[0], &velocity, &arguments[2]], &options).unwrap();
                assert_eq!(execution.outputs[0].to_vec::<f32>().unwrap(), expected());
            }
            assert_eq!(arguments[0].to_vec::<f32>().unwrap(), data(0));
        });
    });
}

#[test]
fn a_run_is_a_call_for_each_command_and_one_record() {
    process::run("programs::a_run_is_a_call_for_each_command_and_one_record", &Options::default(), || {
        Session::with(1, |session| {
            let device = &session.client.devices()[0];
            let program = load(momentum(), std::slice::from_ref(device)).unwrap();
            let run = |arguments: &[Buffer]| {
                let execution = program.execute(arguments, &ExecuteOptions::default()).unwrap();
                outcome(&execution.done).unwrap();
                execution
            };
            drop(run(&arguments(device)));
            let again = arguments(device);
            warm(session);
            let execution = run(&again);
            assert_eq!(session.calls(&BUT), counted(&[("cuLaunchKernel", 2), ("cuEventRecord", 1)]));
            drop(execution);
        });
    });
}

/// Two results, which begin as the argument, after four steps of momentum with it.
fn four_steps() -> Program {
    let mut builder = ProgramBuilder::new("four steps");
    let gradient = builder.parameter(vector(COUNT));
    let (weights, velocity) = (builder.result(vector(COUNT)), builder.result(vector(COUNT)));
    let step = Command::Kernel {
        kernel: momentum_kernel(),
        workgroups: [5, 1, 1],
        operands: vec![Operand::read_write(weights), Operand::read_write(velocity), Operand::read(gradient)],
    };
    for to in [weights, velocity] {
        builder.push(Command::Copy { from: gradient, to });
    }
    builder.push(Command::Repeat { trip_count: 4, body: Sequence::new(vec![step]) });
    builder.build().unwrap()
}

#[test]
fn given_results_are_written_in_place_and_a_run_is_one_launch_of_a_graph() {
    let name = "programs::given_results_are_written_in_place_and_a_run_is_one_launch_of_a_graph";
    process::run(name, &Options::default(), || {
        Session::with(1, |session| {
            let device = &session.client.devices()[0];
            let program = load(four_steps(), std::slice::from_ref(device)).unwrap();
            let [argument, first, second] = arguments(device);
            let expected = data(0).into_iter().map(|gradient| {
                let step = |(weight, velocity), _| {
                    let velocity = 0.25_f32 * velocity + gradient;
                    (weight - 0.5_f32 * velocity, velocity)
                };
                (0..4).fold((gradient, gradient), step)
            });
            let expected: (Vec<f32>, Vec<f32>) = expected.unzip();
            let mut given = [first, second];
            let addresses =
                |of: &[Buffer; 2]| of.each_ref().map(|it| it.raw_alias().unwrap().device_pointer().unwrap());
            let before = (addresses(&given), device.default_memory_space().stats().bytes_in_use);
            // Command by command, as the graph is recorded, and as it is there.
            for run in 0..3 {
                warm(session);
                let results = given.clone().map(Some);
                let execution =
                    program.execute(&[&argument], &ExecuteOptions { results: &results, ..Default::default() });
                let execution = execution.unwrap();
                outcome(&execution.done).unwrap();
                if run == 2 {
                    are_counted(session, &[("cuGraphLaunch", 1), ("cuEventRecord", 1)]);
                }
                assert!(given.iter().all(Buffer::is_deleted));
                given = [0, 1].map(|result| execution.outputs[result].clone());
                assert_eq!(
                    (addresses(&given), device.default_memory_space().stats().bytes_in_use),
                    before,
                    "run {run}"
                );
                let [weights, velocity] = given.each_ref().map(|result| result.to_vec::<f32>().unwrap());
                assert!((weights, velocity) == expected, "run {run}");
            }
        });
    });
}

/// A program over four allocations beside its result: a constant, a temporary and the replica's number.
#[test]
fn constants_temporaries_fills_and_numbers_are_on_each_device() {
    let name = "programs::constants_temporaries_fills_and_numbers_are_on_each_device";
    process::run(name, &Options::default(), || {
        Session::with(2, |session| {
            let mut builder = ProgramBuilder::new("parts");
            let result = builder.result(ArraySpec::new(Shape::new(DType::U32, &[8]).unwrap()));
            let constant = builder.constant(&[1_u32, 2, 3, 4].map(u32::to_le_bytes).concat());
            let temporary = builder.temporary(4);
            let part = |offset_bytes, size_bytes| Slice { offset_bytes, size_bytes, ..result };
            let fill = spec(FILL, "fill_32", 1, &[&9_u32.to_le_bytes(), &2_u64.to_le_bytes()]);
            builder.push(Command::ReplicaId { to: temporary });
            builder.push(Command::Copy { from: constant, to: part(0, 16) });
            builder.push(Command::Copy { from: temporary, to: part(16, 4) });
            builder.push(Command::Fill { pattern: vec![7], to: part(20, 4) });
            builder.push(Command::Kernel {
                kernel: Kernel::of_device(fill, [2, 1, 1], 0),
                workgroups: [1, 1, 1],
                operands: vec![Operand::write(part(24, 8))],
            });
            let program = load(builder.build().unwrap(), &session.client.devices()).unwrap();
            let executions = program.execute_sharded::<[Buffer; 0]>(&[[], []], &ExecuteOptions::default()).unwrap();
            for (replica, execution) in executions.iter().enumerate() {
                let words = execution.outputs[0].to_vec::<u32>().unwrap();
                assert_eq!(words, [1, 2, 3, 4, replica as u32, 0x0707_0707, 9, 9]);
            }
        });
    });
}

/// A result of one word, and what `command` makes of it.
fn one_command(command: impl FnOnce(Slice) -> Command) -> Program {
    let mut builder = ProgramBuilder::new("one");
    let word = builder.result(ArraySpec::new(Shape::new(DType::U32, &[1]).unwrap()));
    let fill = spec(FILL, "fill_32", 1, &[&9_u32.to_le_bytes(), &1_u64.to_le_bytes()]);
    let (kernel, operands) = (Kernel::of_device(fill, [1, 1, 1], 0), vec![Operand::write(word)]);
    builder.push(Command::Kernel { kernel, workgroups: [1, 1, 1], operands });
    builder.push(command(word));
    builder.build().unwrap()
}

#[test]
fn what_only_the_host_does_is_refused_when_the_program_is_loaded() {
    process::run(
        "programs::what_only_the_host_does_is_refused_when_the_program_is_loaded",
        &Options::default(),
        || {
            Session::with(1, |session| {
                let devices = session.client.devices();
                let why = |program| {
                    let error = load(program, &devices).unwrap_err();
                    assert_eq!(error.code(), StatusCode::Unimplemented, "{error}");
                    error.message().to_owned()
                };
                let closure = |word| {
                    let kernel = Kernel::from_fn("double", |_call| Ok(()));
                    Command::Kernel { kernel, workgroups: [1, 1, 1], operands: vec![Operand::read_write(word)] }
                };
                let text = why(one_command(closure));
                assert!(
                    text.starts_with("'one' cannot be loaded: kernel 'double': a kernel is done by the host"),
                    "{text}"
                );
                let long = |word: Slice| Command::Repeat {
                    trip_count: 1 << 40,
                    body: Sequence::new(vec![Command::Fill { pattern: vec![0], to: word }]),
                };
                assert!(why(one_command(long)).contains("a device's program has at most 65536 commands"));
                let nothing = |_word| Command::Repeat { trip_count: u64::MAX, body: Sequence::new(vec![]) };
                load(one_command(nothing), &devices).unwrap();
            });
        },
    );
}

#[test]
fn a_program_without_kernels_on_memory_of_the_host_is_the_hosts() {
    process::run("programs::a_program_without_kernels_on_memory_of_the_host_is_the_hosts", &Options::default(), || {
        Session::with(1, |session| {
            let devices = session.client.devices();
            for kind in ["pinned_host", "unpinned_host"] {
                let mut builder = ProgramBuilder::new("copy");
                let from = builder.parameter(vector(COUNT).in_memory(kind));
                let to = builder.result(vector(COUNT).in_memory(kind));
                builder.push(Command::Copy { from, to });
                let predicate = Slice { size_bytes: 1, ..from };
                let branches = vec![Sequence::new(vec![]), Sequence::new(vec![])];
                builder.push(Command::Conditional { branch: Branch::Predicate(predicate), branches });
                let loaded = load(builder.build().unwrap(), &devices).unwrap();
                let space = devices[0].memory_space(kind).unwrap();
                let argument = Buffer::from_slice(&data(3), &[COUNT as i64], &space).unwrap();
                let run = loaded.execute(&[argument], &ExecuteOptions::default()).unwrap();
                assert_eq!(run.outputs[0].to_vec::<f32>().unwrap(), data(3), "in {kind}");
            }
        });
    });
}

#[test]
fn kernels_of_devices_are_refused_where_the_host_executes() {
    let client = purlin::Client::new(&Default::default(), Arc::new(purlin::host::HostBackend::new())).unwrap();
    let error = load(momentum(), &client.devices()[..1]).unwrap_err();
    let expected =
        "'momentum' cannot be loaded: it has kernels of devices, and those of host:0 are functions of the host";
    assert_eq!((error.code(), error.message()), (StatusCode::Unimplemented, expected));
}

#[test]
fn a_run_whose_kernel_traps_fails_its_outputs() {
    process::run("programs::a_run_whose_kernel_traps_fails_its_outputs", &Options::default(), || {
        let session = Session::new(1);
        session.driver.control.set_traps("momentum");
        let devices = session.client.devices();
        let program = load(momentum(), &devices[..1]).unwrap();
        let options = ExecuteOptions { launch_id: 3, ..Default::default() };
        let execution = program.execute(&arguments(&devices[0]), &options).unwrap();
        let error = outcome(&execution.done).unwrap_err();
        assert!(error.message().contains("719") && error.message().contains("launch 3 of 'momentum'"), "{error}");
        assert_eq!(execution.outputs[0].to_vec::<f32>().unwrap_err().code(), error.code());
        drop((execution, program, devices));
        session.end_broken();
    });
}
