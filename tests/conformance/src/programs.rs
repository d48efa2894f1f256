//! Runs of programs: the memory that they read and write, the arguments that they donate, and the state that they
//! leave.

use purlin_array::{DType, Shape};
use purlin_async::EventPromise;
use purlin_base::{Error, StatusCode};
use purlin_device::{Buffer, Device, MemorySpace};
use purlin_program::{
    ArraySpec, Branch, Command, Executable, ExecuteOptions, Kernel, LoadedExecutable, Operand, ProgramBuilder,
    Sequence, Slice,
};

use crate::fixture::{Fixture, LARGE_BYTES, assert_error, host_space, pattern};
use crate::kernel::momentum_spec;

/// What runs the kernels of a program.
#[derive(Clone, Copy)]
enum By {
    /// The host, in memory that its functions reach.
    Host,
    /// The device, in its own memory.
    Device,
}

/// Once with each that the backend has.
fn by_each(fixture: &Fixture, case: impl Fn(&On<'_>)) {
    case(&On { fixture, by: By::Host });
    if !fixture.device(0).kernels_are_host_functions() {
        case(&On { fixture, by: By::Device });
    }
}

/// Programs, and arrays for them.
struct On<'a> {
    fixture: &'a Fixture,
    by: By,
}

impl On<'_> {
    fn space(&self, device: &Device) -> MemorySpace {
        match self.by {
            By::Host => host_space(device),
            By::Device => device.default_memory_space(),
        }
    }

    fn numbers(&self, count: usize) -> ArraySpec {
        ArraySpec::new(Shape::new(DType::F32, &[count as i64]).expect("a few megabytes"))
            .in_memory(self.space(&self.fixture.device(0)).kind())
    }

    fn array(&self, device: &Device, numbers: &[f32]) -> Buffer {
        Buffer::from_slice(numbers, &[numbers.len() as i64], &self.space(device)).expect("there is memory")
    }

    /// A command that adds one to each number of `x`. What it needs is pushed.
    fn add_one(&self, builder: &mut ProgramBuilder, x: Slice) -> Command {
        /// Of a block, and the numbers of all of these.
        const THREADS: u32 = 64;
        const NUMBERS: usize = 4 * THREADS as usize;
        match self.by {
            By::Host => {
                Command::Kernel { kernel: add_one(), workgroups: [1, 1, 1], operands: vec![Operand::read_write(x)] }
            }
            By::Device => {
                // A step at the rate -1 without decay adds the gradient, which is 1.
                let (velocity, gradient) = (builder.temporary(x.size_bytes), builder.temporary(x.size_bytes));
                for (number, to) in [(0_f32, velocity), (1_f32, gradient)] {
                    builder.push(fill(&number.to_ne_bytes(), to));
                }
                let count = x.size_bytes / size_of::<f32>();
                let spec = momentum_spec(self.fixture.momentum(), -1.0, 0.0, count);
                let blocks = count.div_ceil(NUMBERS).max(1);
                Command::Kernel {
                    kernel: Kernel::of_device(spec, [THREADS, 1, 1], 0),
                    workgroups: [blocks as u64, 1, 1],
                    operands: vec![Operand::read_write(x), Operand::read_write(velocity), Operand::read(gradient)],
                }
            }
        }
    }

    /// `y = x + 1`; on the host through a temporary.
    fn incremented(&self, count: usize) -> Executable {
        let mut builder = ProgramBuilder::new("incremented");
        let (x, y) = (builder.parameter(self.numbers(count)), builder.result(self.numbers(count)));
        match self.by {
            By::Host => {
                let between = builder.temporary(x.size_bytes);
                builder.push(Command::Copy { from: x, to: between });
                let operands = vec![Operand::invariant(between), Operand::write(y)];
                builder.push(Command::Kernel { kernel: add_one(), workgroups: [1, 1, 1], operands });
            }
            By::Device => {
                builder.push(Command::Copy { from: x, to: y });
                let add_one = self.add_one(&mut builder, y);
                builder.push(add_one);
            }
        }
        Executable::new(builder.build().expect("it is valid"))
    }

    /// `x += times`, in donated memory.
    fn increment(&self, count: usize, times: u64) -> Executable {
        let mut builder = ProgramBuilder::new("increment");
        let x = builder.donated_parameter(self.numbers(count));
        let add_one = self.add_one(&mut builder, x);
        builder.push(Command::Repeat { trip_count: times, body: Sequence::new(vec![add_one]) });
        Executable::new(builder.build().expect("it is valid"))
    }
}

/// Of the host: in place, or from what is read.
fn add_one() -> Kernel {
    Kernel::from_fn("add_one", |call| {
        let written = call.writes[0].as_chunks_mut::<4>().0.iter_mut();
        let more = |number: [u8; 4]| (f32::from_ne_bytes(number) + 1.0).to_ne_bytes();
        match call.reads {
            [from] => written.zip(from.as_chunks::<4>().0).for_each(|(to, from)| *to = more(*from)),
            _ => written.for_each(|number| *number = more(*number)),
        }
        Ok(())
    })
}

fn load(executable: &Executable, devices: &[Device]) -> LoadedExecutable {
    LoadedExecutable::new(executable, devices, 1).expect("the devices are those of one client")
}

/// Whole numbers, of which sums are exact.
fn some(count: usize, seed: u8) -> Vec<f32> {
    pattern(count, seed).into_iter().map(f32::from).collect()
}

fn more(numbers: &[f32], by: f32) -> Vec<f32> {
    numbers.iter().map(|number| number + by).collect()
}

pub(crate) fn arguments_are_read_and_results_written(fixture: &Fixture) {
    by_each(fixture, |on| {
        for count in [0, 1, 1000, LARGE_BYTES / size_of::<f32>()] {
            for device in [fixture.device(0), fixture.device(2)] {
                let loaded = load(&on.incremented(count), std::slice::from_ref(&device));
                let from = some(count, 1);
                let argument = on.array(&device, &from);
                let execution = loaded.execute(&[&argument], &ExecuteOptions::default()).unwrap();
                assert_eq!(execution.outputs[0].to_vec::<f32>().unwrap(), more(&from, 1.0));
                assert_eq!(argument.to_vec::<f32>().unwrap(), from);
                execution.done.wait().unwrap();
            }
        }
    });
}

pub(crate) fn a_run_waits_for_its_arguments(fixture: &Fixture) {
    by_each(fixture, |on| {
        let device = fixture.device(0);
        let loaded = load(&on.incremented(64), std::slice::from_ref(&device));
        let (argument, promise) = Buffer::channel(on.numbers(64).shape(), None, &on.space(&device)).unwrap();
        let execution = loaded.execute(&[&argument], &ExecuteOptions::default()).unwrap();
        assert!(!execution.done.is_ready() && !execution.outputs[0].ready_event().is_ready());
        promise.fulfil(&on.array(&device, &[7.0; 64])).map_err(|(error, _promise)| error).unwrap();
        assert_eq!(execution.outputs[0].to_vec::<f32>().unwrap(), [8.0; 64]);
    });
}

pub(crate) fn donated_memory_goes_from_run_to_run(fixture: &Fixture) {
    by_each(fixture, |on| {
        let device = fixture.device(0);
        let loaded = load(&on.increment(1000, 3), std::slice::from_ref(&device));
        let mut value = on.array(&device, &some(1000, 2));
        let address = value.raw_alias().unwrap().device_pointer();
        for _ in 0..20 {
            let mut outputs = loaded.execute(&[&value], &ExecuteOptions::default()).unwrap().outputs.into_iter();
            assert!(value.is_deleted());
            value = outputs.next().unwrap();
        }
        assert_eq!(value.raw_alias().unwrap().device_pointer(), address);
        assert_eq!(value.to_vec::<f32>().unwrap(), more(&some(1000, 2), 60.0));
    });
}

pub(crate) fn given_memory_gets_the_results(fixture: &Fixture) {
    by_each(fixture, |on| {
        let device = fixture.device(0);
        let loaded = load(&on.incremented(1000), std::slice::from_ref(&device));
        let (argument, mut given) = (on.array(&device, &some(1000, 6)), on.array(&device, &[0.0; 1000]));
        let address = given.raw_alias().unwrap().device_pointer();
        for _ in 0..4 {
            let results = [Some(given.clone())];
            let options = ExecuteOptions { results: &results, ..Default::default() };
            let execution = loaded.execute(&[&argument], &options).unwrap();
            assert!(given.is_deleted());
            given = execution.outputs[0].clone();
            assert_eq!(given.raw_alias().unwrap().device_pointer(), address);
            assert_eq!(given.to_vec::<f32>().unwrap(), more(&some(1000, 6), 1.0));
        }
    });
}

pub(crate) fn a_donation_that_is_forbidden_is_a_copy(fixture: &Fixture) {
    by_each(fixture, |on| {
        let device = fixture.device(0);
        let loaded = load(&on.increment(1000, 1), std::slice::from_ref(&device));
        let argument = on.array(&device, &some(1000, 3));
        let options = ExecuteOptions { non_donatable_input_indices: &[0], ..Default::default() };
        let execution = loaded.execute(&[&argument], &options).unwrap();
        assert_eq!(execution.outputs[0].to_vec::<f32>().unwrap(), more(&some(1000, 3), 1.0));
        assert_eq!(argument.to_vec::<f32>().unwrap(), some(1000, 3));
    });
}

pub(crate) fn readers_of_donated_memory_are_waited_for(fixture: &Fixture) {
    by_each(fixture, |on| {
        let device = fixture.device(0);
        let loaded = load(&on.increment(1000, 1), std::slice::from_ref(&device));
        let argument = on.array(&device, &some(1000, 4));
        let copies: Vec<Buffer> = (0..4).map(|_| argument.copy_to_device(&fixture.device(1)).unwrap()).collect();
        let execution = loaded.execute(&[argument], &ExecuteOptions::default()).unwrap();
        assert_eq!(execution.outputs[0].to_vec::<f32>().unwrap(), more(&some(1000, 4), 1.0));
        for copy in copies {
            assert_eq!(copy.to_vec::<f32>().unwrap(), some(1000, 4));
        }
    });
}

pub(crate) fn a_run_waits_for_runs_that_write_its_arguments(fixture: &Fixture) {
    by_each(fixture, |on| {
        let device = fixture.device(0);
        let [chain, fresh] =
            [on.increment(1000, 1), on.incremented(1000)].map(|program| load(&program, std::slice::from_ref(&device)));
        let mut value = on.array(&device, &[0.0; 1000]);
        for _ in 0..10 {
            let made = fresh.execute(&[&value], &ExecuteOptions::default()).unwrap().outputs[0].clone();
            value = chain.execute(&[made], &ExecuteOptions::default()).unwrap().outputs[0].clone();
        }
        assert_eq!(value.to_vec::<f32>().unwrap(), [20.0; 1000]);
    });
}

pub(crate) fn a_failed_argument_fails_every_output(fixture: &Fixture) {
    by_each(fixture, |on| {
        let (device, shape) = (fixture.device(0), on.numbers(64).shape().clone());
        for executable in [on.incremented(64), on.increment(64, 1)] {
            let loaded = load(&executable, std::slice::from_ref(&device));
            let failed = Buffer::error(Error::data_loss("the shard"), &shape, &on.space(&device));
            let (later, promise) = Buffer::channel(&shape, None, &on.space(&device)).unwrap();
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
    });
}

pub(crate) fn a_run_that_is_refused_leaves_its_arguments_as_they_were(fixture: &Fixture) {
    by_each(fixture, |on| {
        let device = fixture.device(0);
        let loaded = load(&on.increment(64, 1), std::slice::from_ref(&device));
        let argument = on.array(&device, &[1.0; 64]);
        for (arguments, part) in [
            (vec![], "0 arguments are given, and the program takes 1"),
            (vec![on.array(&device, &[1.0; 63])], "argument 0 is f32[63], and the program takes f32[64]"),
            (vec![on.array(&fixture.device(1), &[1.0; 64])], "argument 0 is in"),
            (vec![on.array(&fixture.other_client.devices()[0], &[1.0; 64])], "is of another client"),
        ] {
            let error = loaded.execute(&arguments, &ExecuteOptions::default()).unwrap_err();
            assert_error(&error, StatusCode::InvalidArgument, &["'increment' was not run", part]);
            assert!(arguments.iter().all(|argument| !argument.is_deleted() && argument.hold_counts() == (0, 0)));
        }
        argument.delete();
        let error = loaded.execute(&[argument], &ExecuteOptions::default()).unwrap_err();
        assert_error(&error, StatusCode::InvalidArgument, &["argument 0", "It was deleted at"]);
    });
}

/// Only the host's do: a kernel of a device has no result.
pub(crate) fn a_kernel_that_fails_fails_the_run(fixture: &Fixture) {
    let (on, device) = (On { fixture, by: By::Host }, fixture.device(0));
    let mut builder = ProgramBuilder::new("fails");
    builder.donated_parameter(on.numbers(64));
    let kernel = Kernel::from_fn("nan", |_| Err(Error::out_of_range("not a number")));
    builder.push(Command::Kernel { kernel, workgroups: [1, 1, 1], operands: vec![] });
    let loaded = load(&Executable::new(builder.build().unwrap()), std::slice::from_ref(&device));
    let execution = loaded.execute(&[on.array(&device, &[1.0; 64])], &ExecuteOptions::default()).unwrap();
    for event in [&execution.done, &execution.outputs[0].ready_event()] {
        assert_error(&event.wait().unwrap_err(), StatusCode::OutOfRange, &["command 0 (kernel 'nan') of 'fails'"]);
    }
}

pub(crate) fn every_device_runs_on_its_own_arguments(fixture: &Fixture) {
    by_each(fixture, |on| {
        let devices: Vec<Device> = (0..3).map(|id| fixture.device(id)).collect();
        let loaded = load(&on.incremented(1000), &devices);
        let arguments = devices.iter().zip(0..).map(|(device, seed)| vec![on.array(device, &some(1000, seed))]);
        let executions = loaded.execute_sharded(&arguments.collect::<Vec<_>>(), &ExecuteOptions::default()).unwrap();
        for (seed, execution) in (0..).zip(executions) {
            assert_eq!(execution.outputs[0].to_vec::<f32>().unwrap(), more(&some(1000, seed), 1.0));
            assert_eq!(execution.outputs[0].device(), devices[usize::from(seed)]);
        }
    });
}

pub(crate) fn an_executable_may_go_before_its_runs(fixture: &Fixture) {
    by_each(fixture, |on| {
        let device = fixture.device(0);
        let loaded = load(&on.incremented(1000), std::slice::from_ref(&device));
        let gate = EventPromise::new(c"gate");
        let after = [gate.event()];
        let options = ExecuteOptions { dependencies: &after, ..Default::default() };
        let execution = loaded.execute(&[on.array(&device, &some(1000, 5))], &options).unwrap();
        let idle = loaded.idle_event();
        drop(loaded);
        assert!(!idle.is_ready());
        gate.set_ready();
        assert_eq!(execution.outputs[0].to_vec::<f32>().unwrap(), more(&some(1000, 5), 1.0));
        idle.wait().unwrap();
    });
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
