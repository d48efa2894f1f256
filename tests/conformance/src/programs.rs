//! Runs of programs: the memory that they read and write, the arguments that they donate, and the state that they
//! leave.

use purlin_array::{DType, Shape};
use purlin_async::EventPromise;
use purlin_base::{Error, StatusCode};
use purlin_device::{Buffer, Device};
use purlin_program::{
    ArraySpec, Branch, Command, Executable, ExecuteOptions, Kernel, LoadedExecutable, Operand, ProgramBuilder,
    Sequence, Slice,
};

use crate::fixture::{Fixture, LARGE_BYTES, assert_error, host_space, pattern};

/// In memory that functions of the host reach.
fn bytes(fixture: &Fixture, count: usize) -> ArraySpec {
    ArraySpec::new(Shape::new(DType::U8, &[count as i64]).expect("a few megabytes"))
        .in_memory(fixture.host_space().kind())
}

fn array(device: &Device, bytes: &[u8]) -> Buffer {
    Buffer::from_slice(bytes, &[bytes.len() as i64], &host_space(device)).expect("there is memory")
}

fn add_one() -> Kernel {
    Kernel::from_fn("add_one", |call| {
        let written = call.writes[0].iter_mut();
        match call.reads {
            [from] => written.zip(*from).for_each(|(to, from)| *to = from.wrapping_add(1)),
            _ => written.for_each(|byte| *byte = byte.wrapping_add(1)),
        }
        Ok(())
    })
}

fn one(operands: Vec<Operand>) -> Command {
    Command::Kernel { kernel: add_one(), workgroups: [1, 1, 1], operands }
}

/// `y = x + 1`, through a temporary.
fn incremented(fixture: &Fixture, count: usize) -> Executable {
    let mut builder = ProgramBuilder::new("incremented");
    let (x, y, between) =
        (builder.parameter(bytes(fixture, count)), builder.result(bytes(fixture, count)), builder.temporary(count));
    builder.push(Command::Copy { from: x, to: between });
    builder.push(one(vec![Operand::invariant(between), Operand::write(y)]));
    Executable::new(builder.build().expect("it is valid"))
}

/// `x += times`, in donated memory.
fn increment(fixture: &Fixture, count: usize, times: u64) -> Executable {
    let mut builder = ProgramBuilder::new("increment");
    let x = builder.donated_parameter(bytes(fixture, count));
    builder.push(Command::Repeat { trip_count: times, body: Sequence::new(vec![one(vec![Operand::read_write(x)])]) });
    Executable::new(builder.build().expect("it is valid"))
}

fn load(executable: &Executable, devices: &[Device]) -> LoadedExecutable {
    LoadedExecutable::new(executable, devices, 1).expect("the devices are those of one client")
}

fn more(bytes: &[u8], by: u8) -> Vec<u8> {
    bytes.iter().map(|byte| byte.wrapping_add(by)).collect()
}

pub(crate) fn arguments_are_read_and_results_written(fixture: &Fixture) {
    for count in [0, 1, 1000, LARGE_BYTES] {
        for device in [fixture.device(0), fixture.device(2)] {
            let loaded = load(&incremented(fixture, count), std::slice::from_ref(&device));
            let from = pattern(count, 1);
            let argument = array(&device, &from);
            let execution = loaded.execute(&[&argument], &ExecuteOptions::default()).unwrap();
            assert_eq!(execution.outputs[0].to_vec::<u8>().unwrap(), more(&from, 1));
            assert_eq!(argument.to_vec::<u8>().unwrap(), from);
            execution.done.wait().unwrap();
        }
    }
}

pub(crate) fn a_run_waits_for_its_arguments(fixture: &Fixture) {
    let device = fixture.device(0);
    let loaded = load(&incremented(fixture, 64), std::slice::from_ref(&device));
    let (argument, promise) = Buffer::channel(bytes(fixture, 64).shape(), None, &fixture.host_space()).unwrap();
    let execution = loaded.execute(&[&argument], &ExecuteOptions::default()).unwrap();
    assert!(!execution.done.is_ready() && !execution.outputs[0].ready_event().is_ready());
    promise.fulfil(&array(&device, &[7; 64])).map_err(|(error, _promise)| error).unwrap();
    assert_eq!(execution.outputs[0].to_vec::<u8>().unwrap(), [8; 64]);
}

pub(crate) fn donated_memory_goes_from_run_to_run(fixture: &Fixture) {
    let device = fixture.device(0);
    let loaded = load(&increment(fixture, 1000, 3), std::slice::from_ref(&device));
    let mut value = array(&device, &pattern(1000, 2));
    let address = value.raw_alias().unwrap().device_pointer();
    for _ in 0..20 {
        let mut outputs = loaded.execute(&[&value], &ExecuteOptions::default()).unwrap().outputs.into_iter();
        assert!(value.is_deleted());
        value = outputs.next().unwrap();
    }
    assert_eq!(value.raw_alias().unwrap().device_pointer(), address);
    assert_eq!(value.to_vec::<u8>().unwrap(), more(&pattern(1000, 2), 60));
}

pub(crate) fn a_donation_that_is_forbidden_is_a_copy(fixture: &Fixture) {
    let device = fixture.device(0);
    let loaded = load(&increment(fixture, 1000, 1), std::slice::from_ref(&device));
    let argument = array(&device, &pattern(1000, 3));
    let options = ExecuteOptions { non_donatable_input_indices: &[0], ..Default::default() };
    let execution = loaded.execute(&[&argument], &options).unwrap();
    assert_eq!(execution.outputs[0].to_vec::<u8>().unwrap(), more(&pattern(1000, 3), 1));
    assert_eq!(argument.to_vec::<u8>().unwrap(), pattern(1000, 3));
}

pub(crate) fn readers_of_donated_memory_are_waited_for(fixture: &Fixture) {
    let device = fixture.device(0);
    let loaded = load(&increment(fixture, 1000, 1), std::slice::from_ref(&device));
    let argument = array(&device, &pattern(1000, 4));
    let copies: Vec<Buffer> = (0..4).map(|_| argument.copy_to_device(&fixture.device(1)).unwrap()).collect();
    let execution = loaded.execute(&[argument], &ExecuteOptions::default()).unwrap();
    assert_eq!(execution.outputs[0].to_vec::<u8>().unwrap(), more(&pattern(1000, 4), 1));
    for copy in copies {
        assert_eq!(copy.to_vec::<u8>().unwrap(), pattern(1000, 4));
    }
}

pub(crate) fn a_run_waits_for_runs_that_write_its_arguments(fixture: &Fixture) {
    let device = fixture.device(0);
    let (chain, fresh) = (increment(fixture, 1000, 1), incremented(fixture, 1000));
    let (chain, fresh) = (load(&chain, std::slice::from_ref(&device)), load(&fresh, std::slice::from_ref(&device)));
    let mut value = array(&device, &[0; 1000]);
    for _ in 0..10 {
        let made = fresh.execute(&[&value], &ExecuteOptions::default()).unwrap().outputs[0].clone();
        value = chain.execute(&[made], &ExecuteOptions::default()).unwrap().outputs[0].clone();
    }
    assert_eq!(value.to_vec::<u8>().unwrap(), [20; 1000]);
}

pub(crate) fn a_failed_argument_fails_every_output(fixture: &Fixture) {
    let device = fixture.device(0);
    for executable in [incremented(fixture, 64), increment(fixture, 64, 1)] {
        let loaded = load(&executable, std::slice::from_ref(&device));
        let failed = Buffer::error(Error::data_loss("the shard"), bytes(fixture, 64).shape(), &fixture.host_space());
        let (later, promise) = Buffer::channel(bytes(fixture, 64).shape(), None, &fixture.host_space()).unwrap();
        let executions =
            [&failed, &later].map(|argument| loaded.execute(&[argument], &ExecuteOptions::default()).unwrap());
        promise.fail(Error::data_loss("the shard"));
        for execution in executions {
            for event in [&execution.done, &execution.outputs[0].ready_event()] {
                assert_error(&event.wait().unwrap_err(), StatusCode::DataLoss, &["the shard"]);
            }
        }
        loaded.quiesce().unwrap();
    }
}

pub(crate) fn a_run_that_is_refused_leaves_its_arguments_as_they_were(fixture: &Fixture) {
    let device = fixture.device(0);
    let loaded = load(&increment(fixture, 64, 1), std::slice::from_ref(&device));
    let argument = array(&device, &[1; 64]);
    for (arguments, part) in [
        (vec![], "0 arguments are given, and the program takes 1"),
        (vec![array(&device, &[1; 63])], "argument 0 is u8[63], and the program takes u8[64]"),
        (vec![array(&fixture.device(1), &[1; 64])], "argument 0 is in"),
        (vec![array(&fixture.other_client.devices()[0], &[1; 64])], "is of another client"),
    ] {
        let error = loaded.execute(&arguments, &ExecuteOptions::default()).unwrap_err();
        assert_error(&error, StatusCode::InvalidArgument, &["'increment' was not run", part]);
        assert!(arguments.iter().all(|argument| !argument.is_deleted() && argument.hold_counts() == (0, 0)));
    }
    argument.delete();
    let error = loaded.execute(&[argument], &ExecuteOptions::default()).unwrap_err();
    assert_error(&error, StatusCode::InvalidArgument, &["argument 0", "It was deleted at"]);
}

pub(crate) fn a_kernel_that_fails_fails_the_run(fixture: &Fixture) {
    let device = fixture.device(0);
    let mut builder = ProgramBuilder::new("fails");
    builder.donated_parameter(bytes(fixture, 64));
    let kernel = Kernel::from_fn("nan", |_| Err(Error::out_of_range("not a number")));
    builder.push(Command::Kernel { kernel, workgroups: [1, 1, 1], operands: vec![] });
    let loaded = load(&Executable::new(builder.build().unwrap()), std::slice::from_ref(&device));
    let execution = loaded.execute(&[array(&device, &[1; 64])], &ExecuteOptions::default()).unwrap();
    for event in [&execution.done, &execution.outputs[0].ready_event()] {
        assert_error(&event.wait().unwrap_err(), StatusCode::OutOfRange, &["command 0 (kernel 'nan') of 'fails'"]);
    }
}

pub(crate) fn every_device_runs_on_its_own_arguments(fixture: &Fixture) {
    let devices: Vec<Device> = (0..3).map(|id| fixture.device(id)).collect();
    let loaded = load(&incremented(fixture, 1000), &devices);
    let arguments = devices.iter().zip(0..).map(|(device, seed)| vec![array(device, &pattern(1000, seed))]);
    let executions = loaded.execute_sharded(&arguments.collect::<Vec<_>>(), &ExecuteOptions::default()).unwrap();
    for (seed, execution) in (0..).zip(executions) {
        assert_eq!(execution.outputs[0].to_vec::<u8>().unwrap(), more(&pattern(1000, seed), 1));
        assert_eq!(execution.outputs[0].device(), devices[usize::from(seed)]);
    }
}

pub(crate) fn an_executable_may_go_before_its_runs(fixture: &Fixture) {
    let device = fixture.device(0);
    let loaded = load(&incremented(fixture, 1000), std::slice::from_ref(&device));
    let gate = EventPromise::new(c"gate");
    let after = [gate.event()];
    let options = ExecuteOptions { dependencies: &after, ..Default::default() };
    let execution = loaded.execute(&[array(&device, &pattern(1000, 5))], &options).unwrap();
    let idle = loaded.idle_event();
    drop(loaded);
    assert!(!idle.is_ready());
    gate.set_ready();
    assert_eq!(execution.outputs[0].to_vec::<u8>().unwrap(), more(&pattern(1000, 5), 1));
    idle.wait().unwrap();
}

/// In the memory that the device computes on.
fn of_device(count: usize) -> ArraySpec {
    ArraySpec::new(Shape::new(DType::U8, &[count as i64]).expect("a few bytes"))
}

fn part(of: Slice, offset_bytes: usize, size_bytes: usize) -> Slice {
    Slice { offset_bytes: of.offset_bytes + offset_bytes, size_bytes, ..of }
}

fn fill(pattern: &[u8], to: Slice) -> Command {
    Command::Fill { pattern: pattern.to_vec(), to }
}

/// What a program without kernels makes of an array on a device.
fn run(device: &Device, builder: ProgramBuilder, argument: &[u8]) -> Vec<u8> {
    let loaded = load(&Executable::new(builder.build().expect("it is valid")), std::slice::from_ref(device));
    let space = device.default_memory_space();
    let argument = Buffer::from_slice(argument, &[argument.len() as i64], &space).unwrap();
    let execution = loaded.execute(&[argument], &ExecuteOptions::default()).unwrap();
    let result = execution.outputs[0].to_vec::<u8>().unwrap();
    execution.done.wait().unwrap();
    result
}

pub(crate) fn loops_go_on_while_bytes_of_the_device_say_so(fixture: &Fixture) {
    for (device, rounds) in [0, 2].into_iter().flat_map(|id| [0, 1, 5].map(|rounds| (fixture.device(id), rounds))) {
        // While the first byte of a queue is not 0, the queue moves up, and the result gets one byte more.
        let mut builder = ProgramBuilder::new("while");
        let (argument, result) = (builder.parameter(of_device(8)), builder.result(of_device(8)));
        let (queue, predicate) = (builder.temporary(8), builder.temporary(1));
        builder.push(fill(&[0], result));
        builder.push(Command::Copy { from: argument, to: queue });
        builder.push(Command::While {
            condition: Sequence::new(vec![Command::Copy { from: part(queue, 0, 1), to: predicate }]),
            predicate,
            body: Sequence::new(vec![
                Command::Copy { from: part(queue, 1, 7), to: part(queue, 0, 7) },
                Command::Copy { from: part(result, 0, 7), to: part(result, 1, 7) },
                fill(&[9], part(result, 0, 1)),
            ]),
        });
        let bytes = |value: u8| (0..8).map(|at| if at < rounds { value } else { 0 }).collect::<Vec<_>>();
        assert_eq!(run(&device, builder, &bytes(3)), bytes(9), "{rounds} rounds");
    }
}

pub(crate) fn branches_are_those_that_bytes_of_the_device_choose(fixture: &Fixture) {
    let device = fixture.device(1);
    let chosen = |branches: u8, by: fn(Slice) -> Branch, argument: [u8; 4]| {
        let mut builder = ProgramBuilder::new("branches");
        let (from, result) = (builder.parameter(of_device(4)), builder.result(of_device(1)));
        let branches = (0..branches).map(|number| Sequence::new(vec![fill(&[number], result)])).collect();
        builder.push(Command::Conditional { branch: by(from), branches });
        run(&device, builder, &argument)
    };
    for (byte, branch) in [(0, 1), (1, 0), (128, 0)] {
        assert_eq!(chosen(2, |from| Branch::Predicate(part(from, 2, 1)), [0, 0, byte, 0]), [branch], "{byte}");
    }
    for (number, branch) in [(0, 0), (2, 2), (3, 2), (-1, 2), (i32::MIN, 2)] {
        assert_eq!(chosen(3, Branch::Index, number.to_ne_bytes()), [branch], "{number}");
    }
}

pub(crate) fn fills_and_moves_are_done_where_the_arrays_are(fixture: &Fixture) {
    let device = fixture.device(0);
    for (pattern, count) in [(&[1_u8, 2, 3, 4, 5, 6, 7, 8][..], 3000), (&[1, 2, 3], 1), (&[1, 2, 3], 500), (&[7, 8], 9)]
    {
        let size = pattern.len() * count;
        let mut builder = ProgramBuilder::new("fills");
        let (argument, result) = (builder.parameter(of_device(1)), builder.result(of_device(size + 1)));
        builder.push(Command::Copy { from: argument, to: part(result, 0, 1) });
        builder.push(fill(pattern, part(result, 1, size)));
        builder.push(Command::Copy { from: part(result, 0, size), to: part(result, 1, size) });
        let filled = [&[5], &pattern.repeat(count)[..]].concat();
        assert_eq!(run(&device, builder, &[5]), [&[5], &filled[..size]].concat(), "{count} times {pattern:?}");
    }
}
