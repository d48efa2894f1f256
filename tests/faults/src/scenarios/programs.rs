//! Runs of programs, at each fail point: a run that is refused leaves its arguments and the memory for its results as
//! they were.

use std::sync::Arc;

use purlin_array::{DType, Shape};
use purlin_async::EventPromise;
use purlin_base::Error;
use purlin_device::{Buffer, Device, MemorySpace};
use purlin_program::{
    ArraySpec, Command, Executable, ExecuteOptions, Execution, Kernel, LoadedExecutable, Operand, ProgramBuilder,
};

use crate::run::Run;

/// A size that no backend runs inside the call.
const LARGE: usize = 200_000;

/// `x += 1` in donated memory, and `y = x` through a temporary.
fn executable(count: usize) -> Result<Executable, Error> {
    let spec = ArraySpec::new(Shape::new(DType::U8, &[count as i64])?);
    let mut builder = ProgramBuilder::new("step");
    let (x, y) = (builder.donated_parameter(spec.clone()), builder.result(spec));
    let temporary = builder.temporary(count);
    let add_one = Kernel::from_fn("add_one", |call| {
        call.writes[0].iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
        Ok(())
    });
    builder.push(Command::Kernel { kernel: add_one, workgroups: [1, 1, 1], operands: vec![Operand::read_write(x)] });
    builder.push(Command::Copy { from: x, to: temporary }).push(Command::Copy { from: temporary, to: y });
    Ok(Executable::new(builder.build()?))
}

fn argument(count: usize, space: &MemorySpace) -> Result<Buffer, Error> {
    Buffer::from_slice(&vec![1_u8; count], &[count as i64], space)
}

/// Starts a run. If it is refused, its argument and the memory for its results are not deleted and have no holds. Else
/// they are deleted; the argument stays if it is not donated, which is when it is `kept`.
fn execute(run: &Arc<Run>, loaded: &LoadedExecutable, argument: &Buffer, kept: bool, options: &ExecuteOptions<'_>) {
    let references = argument.hold_counts().1;
    let Some(execution) = run.see("execute", loaded.execute(&[argument], options)) else {
        check_untouched(argument, references);
        options.results.iter().flatten().for_each(|given| check_untouched(given, 0));
        return;
    };
    assert_eq!(argument.is_deleted(), !kept, "{argument:?}");
    assert!(options.results.iter().flatten().all(Buffer::is_deleted), "given memory is the result's");
    observe(run, &execution);
    run.waiter(&execution.done);
    for output in execution.outputs.iter() {
        if run.on.has_bytes() {
            run.see("to_vec", output.to_vec::<u8>());
        }
    }
}

/// Checks that a refused run has given `buffer` back.
fn check_untouched(buffer: &Buffer, references: usize) {
    let holds = buffer.hold_counts();
    assert!(!buffer.is_deleted() && holds == (0, references), "a refused run has {holds:?} of {buffer:?}");
}

/// Waits at the end for the run and its outputs.
fn observe(run: &Run, execution: &Execution) {
    run.watch("done", &execution.done);
    for output in execution.outputs.iter() {
        run.watch("output", &output.ready_event());
    }
}

pub(super) fn donated_and_kept(run: &Arc<Run>) -> Result<(), Error> {
    let space = run.space()?;
    for count in [100, LARGE] {
        let loaded = LoadedExecutable::new(&executable(count)?, &[space.device()], 1)?;
        for kept in [&[0][..], &[]] {
            let options = ExecuteOptions { non_donatable_input_indices: kept, ..Default::default() };
            execute(run, &loaded, &argument(count, &space)?, !kept.is_empty(), &options);
        }
        run.see("quiesce", loaded.quiesce());
    }
    Ok(())
}

pub(super) fn behind_an_event(run: &Arc<Run>) -> Result<(), Error> {
    let space = run.space()?;
    let loaded = LoadedExecutable::new(&executable(100)?, &[space.device()], 1)?;
    let gate = EventPromise::new(c"gate");
    let after = [gate.event()];
    let options = ExecuteOptions { dependencies: &after, ..Default::default() };
    let argument = argument(100, &space)?;
    let execution = run.see("execute", loaded.execute(&[&argument], &options));
    gate.set_ready();
    if let Some(execution) = execution {
        run.watch("done", &execution.done);
    }
    run.see("quiesce", loaded.quiesce());
    Ok(())
}

pub(super) fn given_results(run: &Arc<Run>) -> Result<(), Error> {
    let space = run.space()?;
    for count in [100, LARGE] {
        let loaded = LoadedExecutable::new(&executable(count)?, &[space.device()], 1)?;
        let results = [None, Some(argument(count, &space)?)];
        let options = ExecuteOptions { results: &results, ..Default::default() };
        execute(run, &loaded, &argument(count, &space)?, false, &options);
        run.see("quiesce", loaded.quiesce());
    }
    Ok(())
}

/// The argument is used outside Purlin, so that it is copied instead of donated.
pub(super) fn referenced_argument(run: &Arc<Run>) -> Result<(), Error> {
    let space = run.space()?;
    let loaded = LoadedExecutable::new(&executable(100)?, &[space.device()], 1)?;
    let argument = argument(100, &space)?;
    let Some(reference) = run.see("external_reference", argument.external_reference()) else { return Ok(()) };
    execute(run, &loaded, &argument, true, &ExecuteOptions::default());
    run.see("quiesce", loaded.quiesce());
    drop(reference);
    check_untouched(&argument, 0);
    Ok(())
}

/// Three runs of one stream, the first of which waits for an event. A later run begins when the earlier ones have
/// ended, whatever became of them.
pub(super) fn one_stream(run: &Arc<Run>) -> Result<(), Error> {
    let space = run.space()?;
    let loaded = LoadedExecutable::new(&executable(100)?, &[space.device()], 1)?;
    let gate = EventPromise::new(c"gate");
    let after = [gate.event()];
    for dependencies in [&after[..], &[], &[]] {
        let options = ExecuteOptions { execution_stream_id: 7, dependencies, ..Default::default() };
        if let Some(execution) = run.see("execute", loaded.execute(&[argument(100, &space)?], &options)) {
            observe(run, &execution);
        }
    }
    gate.set_ready();
    run.see("quiesce", loaded.quiesce());
    Ok(())
}

/// A run that fails on a device after another device has begun leaves that device's argument as it was.
pub(super) fn two_devices(run: &Arc<Run>) -> Result<(), Error> {
    let client = run.client()?;
    for count in [100, LARGE] {
        let loaded = LoadedExecutable::new(&executable(count)?, &client.devices(), 1)?;
        let on = |device: &Device| argument(count, &device.default_memory_space()).map(|argument| [argument]);
        let arguments = client.devices().iter().map(on).collect::<Result<Vec<_>, _>>()?;
        match run.see("execute_sharded", loaded.execute_sharded(&arguments, &ExecuteOptions::default())) {
            None => arguments.iter().flatten().for_each(|argument| check_untouched(argument, 0)),
            Some(executions) => {
                for (execution, argument) in executions.iter().zip(arguments.iter().flatten()) {
                    observe(run, execution);
                    if !argument.is_deleted() {
                        assert!(execution.done.error().is_some(), "{argument:?} was donated to a run that began");
                        check_untouched(argument, 0);
                    }
                }
            }
        }
        run.see("quiesce", loaded.quiesce());
    }
    Ok(())
}
