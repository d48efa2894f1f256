//! The lifetime of code and memory of a run, and the state that a run leaves.

#![allow(unsafe_code, reason = "kernels are functions that take addresses")]

mod fixture;

use std::ffi::c_void;
use std::hint::black_box;
use std::sync::{Arc, Barrier};

use fixture::*;
use purlin_async::EventPromise;
use purlin_base::StatusCode;
use purlin_device::{Buffer, Client, NullBackend};
use purlin_program::{
    Command, Executable, ExecuteOptions, Kernel, KernelFrame, LoadedExecutable, Operand, ProgramBuilder,
};

/// Halves an f32.
unsafe extern "C" fn halve(frame: *const KernelFrame) -> *mut c_void {
    // SAFETY: the frame has two operands of four bytes.
    unsafe {
        let args = (*frame).args;
        *(*args.add(1)).data.cast::<f32>() = black_box(*(*args).data.cast::<f32>()) * black_box(0.5);
    }
    std::ptr::null_mut()
}

/// Fails.
unsafe extern "C" fn fail(_frame: *const KernelFrame) -> *mut c_void {
    std::ptr::without_provenance_mut(1)
}

fn native(function: purlin_program::KernelFunction, owner: &Arc<()>) -> Kernel {
    let owner = Arc::clone(owner);
    // SAFETY: the functions of this file access their operands alone, and are never unmapped.
    unsafe { Kernel::native("native", function, owner) }
}

fn half(number: f32) -> f32 {
    black_box(number) * black_box(0.5)
}

fn halving(client: &Client, owner: &Arc<()>) -> LoadedExecutable {
    let mut builder = ProgramBuilder::new("halve");
    let (x, y) = (builder.parameter(bytes(4)), builder.result(bytes(4)));
    builder.push(kernel(native(halve, owner), vec![Operand::invariant(x), Operand::write(y)]));
    load(client, builder.build().unwrap())
}

#[test]
fn denormals_are_zero_in_a_run_and_numbers_after_it() {
    on_each(|client| {
        let loaded = halving(client, &Arc::default());
        for (number, expected) in [(3.0, 1.5), (f32::MIN_POSITIVE, 0.0), (f32::MIN_POSITIVE / 2.0, 0.0)] {
            let argument = buffer(client, &number.to_ne_bytes());
            let execution = loaded.execute(&[argument], &ExecuteOptions::default()).unwrap();
            assert_eq!(execution.outputs[0].to_vec::<u8>().unwrap(), f32::to_ne_bytes(expected));
            assert_ne!(half(f32::MIN_POSITIVE), 0.0);
        }
    });
}

#[test]
fn a_panic_leaves_the_mode_of_its_thread() {
    let client = host();
    let mut builder = ProgramBuilder::new("panics");
    builder.push(kernel(Kernel::from_fn("panics", |_| panic!("on purpose")), vec![]));
    let loaded = load(&client, builder.build().unwrap());
    let options = ExecuteOptions { caller_waits: true, ..Default::default() };
    assert!(loaded.execute::<Buffer>(&[], &options).unwrap().done.error().is_some());
    assert_ne!(half(f32::MIN_POSITIVE), 0.0);
}

#[test]
fn a_native_kernel_that_answers_an_error_fails_the_run() {
    on_each(|client| {
        let mut builder = ProgramBuilder::new("fails");
        builder.push(kernel(native(fail, &Arc::default()), vec![]));
        let loaded = load(client, builder.build().unwrap());
        let error = loaded.execute::<Buffer>(&[], &ExecuteOptions::default()).unwrap().done.wait().unwrap_err();
        let message = "command 0 (kernel 'native') of 'fails': the kernel answered an error";
        assert_eq!((error.code(), error.message()), (StatusCode::Internal, message));
    });
}

#[test]
fn code_stays_as_long_as_a_run_needs_it() {
    let client = host();
    let owner = Arc::new(());
    let loaded = halving(&client, &owner);
    let gate = EventPromise::new(c"gate");
    let after = [gate.event()];
    let options = ExecuteOptions { dependencies: &after, ..Default::default() };
    let execution = loaded.execute(&[buffer(&client, &4.0_f32.to_ne_bytes())], &options).unwrap();
    drop(loaded);
    assert_eq!(Arc::strong_count(&owner), 2, "the run has it");
    gate.set_ready();
    assert_eq!(execution.outputs[0].to_vec::<u8>().unwrap(), 2.0_f32.to_ne_bytes());
    execution.done.wait().unwrap();
    client.shutdown(Default::default()).unwrap();
    assert_eq!(Arc::strong_count(&owner), 1);
}

#[test]
fn quiescence_is_when_all_runs_are_over() {
    on_each(|client| {
        let loaded = load(client, add_one(8));
        loaded.quiesce().unwrap();
        let gates: Vec<_> = (0..10).map(|_| EventPromise::new(c"gate")).collect();
        let argument = buffer(client, &[1; 8]);
        let executions: Vec<_> = gates
            .iter()
            .map(|gate| {
                let after = [gate.event()];
                let options = ExecuteOptions { dependencies: &after, ..Default::default() };
                loaded.execute(&[&argument], &options).unwrap()
            })
            .collect();
        let idle = loaded.idle_event();
        assert_eq!((loaded.runs_in_flight(), idle.is_ready()), (10, false));
        for (number, gate) in gates.into_iter().enumerate() {
            if number % 3 == 0 {
                drop(gate);
            } else {
                gate.set_ready();
            }
        }
        loaded.quiesce().unwrap();
        assert!(executions.iter().all(|execution| execution.done.is_ready()));
        assert_eq!(loaded.runs_in_flight(), 0);
        idle.wait().unwrap();
    });
}

#[test]
fn a_client_that_ends_fails_the_runs_that_wait() {
    let client = host();
    let loaded = load(&client, increment(8));
    let gate = EventPromise::new(c"gate");
    let (argument, after) = (buffer(&client, &[1; 8]), [gate.event()]);
    let options = ExecuteOptions { dependencies: &after, label: c"step".into(), ..Default::default() };
    let execution = loaded.execute(&[argument], &options).unwrap();
    let shutdown =
        purlin_async::ShutdownOptions { mode: purlin_async::ShutdownMode::CancelPending, ..Default::default() };
    client.shutdown(shutdown).unwrap();
    let error = execution.done.wait().unwrap_err();
    assert_error(&error, StatusCode::Cancelled, &["'step'", "which waited for 'gate'"]);
    let error = loaded.execute(&[buffer_of(&execution)], &ExecuteOptions::default()).unwrap_err();
    assert_error(&error, StatusCode::FailedPrecondition, &["'increment' was not run", "shut down"]);
    assert!(!execution.outputs[0].is_deleted(), "a run that is refused leaves its arguments as they were");
}

fn buffer_of(execution: &purlin_program::Execution) -> Buffer {
    execution.outputs[0].clone()
}

#[test]
fn runs_with_the_same_buffers_do_not_wait_for_each_other() {
    let client = host();
    let mut builder = ProgramBuilder::new("swap");
    let (x, y) = (builder.donated_parameter(bytes(8)), builder.parameter(bytes(8)));
    builder.push(Command::Copy { from: y, to: x });
    let loaded = load(&client, builder.build().unwrap());
    for _ in 0..300 {
        let (a, b) = (buffer(&client, &[1; 8]), buffer(&client, &[2; 8]));
        let start = Barrier::new(2);
        let run = |arguments: [&Buffer; 2]| {
            start.wait();
            loaded.execute(&arguments, &ExecuteOptions::default()).is_ok()
        };
        let outcomes = std::thread::scope(|scope| {
            let other = scope.spawn(|| run([&b, &a]));
            let mine = run([&a, &b]);
            [mine, other.join().unwrap()]
        });
        assert_eq!(outcomes.iter().filter(|done| **done).count(), 1, "each donates what the other reads");
    }
}

#[test]
fn several_devices_run_with_their_numbers() {
    on_each(|client| {
        let mut builder = ProgramBuilder::new("ids");
        let x = builder.parameter(bytes(4));
        let [replica, partition, copy] = [(); 3].map(|()| builder.result(bytes(4)));
        builder.push(Command::ReplicaId { to: replica }).push(Command::PartitionId { to: partition });
        builder.push(Command::Copy { from: x, to: copy });
        let executable = Executable::new(builder.build().unwrap());
        let devices = client.devices();
        let argument = |number: u8| {
            let space = devices[usize::from(number)].default_memory_space();
            vec![Buffer::from_slice(&[number; 4], &[4], &space).unwrap()]
        };
        for (partitions, expected) in [(1, [(0_u32, 0_u32), (1, 0)]), (2, [(0, 0), (0, 1)])] {
            let loaded = LoadedExecutable::new(&executable, &devices, partitions).unwrap();
            let executions = loaded.execute_sharded(&[argument(0), argument(1)], &ExecuteOptions::default()).unwrap();
            for (number, (execution, (replica, partition))) in executions.iter().zip(expected).enumerate() {
                let outputs: Vec<Vec<u8>> = execution.outputs.iter().map(|output| output.to_vec().unwrap()).collect();
                let copy = vec![number as u8; 4];
                assert_eq!(outputs, [replica.to_ne_bytes().to_vec(), partition.to_ne_bytes().to_vec(), copy]);
                assert_eq!(execution.outputs[0].device(), devices[number]);
            }
            let error = loaded.execute(&argument(0), &ExecuteOptions::default()).unwrap_err();
            assert_error(&error, StatusCode::FailedPrecondition, &["'ids' is loaded for 2 devices"]);
        }
        let loaded = LoadedExecutable::new(&executable, &devices, 1).unwrap();
        let (first, second) = (argument(0), argument(1));
        second[0].delete();
        let error = loaded.execute_sharded(&[first.clone(), second], &ExecuteOptions::default()).unwrap_err();
        assert_error(&error, StatusCode::InvalidArgument, &["argument 0 of device 1", "deleted or donated"]);
        assert_eq!((first[0].hold_counts(), loaded.runs_in_flight()), ((0, 0), 0), "nothing was launched");
        let error = loaded.execute_sharded(&[first], &ExecuteOptions::default()).unwrap_err();
        assert_error(&error, StatusCode::InvalidArgument, &["arguments for 1 devices", "loaded for 2"]);
    });
}

#[test]
fn the_null_backend_has_no_bytes_to_run_on() {
    let client = Client::new(&Default::default(), Arc::new(NullBackend::new())).unwrap();
    let loaded = load(&client, increment(8));
    let execution = loaded.execute(&[buffer(&client, &[0; 8])], &ExecuteOptions::default()).unwrap();
    let error = execution.done.wait().unwrap_err();
    assert_error(&error, StatusCode::Unimplemented, &["launch 0 of 'increment'"]);
}

#[test]
fn runs_of_one_execution_stream_are_in_order() {
    on_each(|client| {
        let loaded = load(client, add_one(8));
        let argument = buffer(client, &[1; 8]);
        let gates = [EventPromise::new(c"first"), EventPromise::new(c"second")];
        let start = |execution_stream_id: i64, after: &[purlin_async::Event]| {
            let options = ExecuteOptions { execution_stream_id, dependencies: after, ..Default::default() };
            loaded.execute(&[&argument], &options).unwrap().done
        };
        let runs = [start(7, &[gates[0].event()]), start(-7, &[gates[1].event()]), start(7, &[])];
        let streams = device(client);
        assert_eq!(streams.execution_streams().len(), 2);
        start(0, &[]).wait().unwrap();
        start(3, &[]).wait().unwrap();
        assert!(!runs[2].is_ready(), "the first of its stream has not begun");
        gates[0].set_error(purlin_base::Error::aborted("the first fails"));
        assert!(runs[0].wait().is_err());
        runs[2].wait().unwrap();
        assert!(!runs[1].is_ready(), "another stream");
        gates[1].set_ready();
        runs[1].wait().unwrap();
        // A call that is refused ends its turn.
        let none: [&Buffer; 0] = [];
        let options = ExecuteOptions { execution_stream_id: 7, ..Default::default() };
        assert!(loaded.execute(&none, &options).is_err());
        start(7, &[]).wait().unwrap();
        loaded.quiesce().unwrap();
        while !streams.execution_streams().is_empty() {
            std::thread::yield_now();
        }
    });
}

#[test]
fn results_are_no_tuples() {
    let client = host();
    let mut builder = ProgramBuilder::new("pair");
    let (x, y, z) = (builder.parameter(bytes(8)), builder.result(bytes(8)), builder.result(bytes(8)));
    builder.push(Command::Copy { from: x, to: y }).push(Command::Copy { from: x, to: z });
    let (pair, single) = (load(&client, builder.build().unwrap()), load(&client, add_one(8)));
    let argument = buffer(&client, &[1; 8]);
    for untuple in [None, Some(true), Some(false)] {
        let options = ExecuteOptions { untuple, ..Default::default() };
        assert_eq!(single.execute(&[&argument], &options).unwrap().outputs.len(), 1);
        match pair.execute(&[&argument], &options) {
            Ok(execution) => assert!(untuple != Some(false) && execution.outputs.len() == 2),
            Err(error) => {
                assert_eq!(untuple, Some(false));
                assert_error(&error, StatusCode::Unimplemented, &["'pair' was not run", "the 2 results"]);
            }
        }
    }
}
