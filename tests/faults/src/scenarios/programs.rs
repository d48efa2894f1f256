//! Runs of programs, at each fail point: a run that is refused leaves its argument as it was.

use std::sync::Arc;

use purlin_array::{DType, Shape};
use purlin_async::EventPromise;
use purlin_base::Error;
use purlin_device::{Buffer, MemorySpace};
use purlin_program::{
    ArraySpec, Command, Executable, ExecuteOptions, Kernel, LoadedExecutable, Operand, ProgramBuilder,
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

/// Starts a run. If it is refused, the argument is not deleted and has no holds. Else the argument is deleted, unless
/// it is kept.
fn execute(run: &Arc<Run>, loaded: &LoadedExecutable, argument: &Buffer, options: &ExecuteOptions<'_>) {
    let kept = !options.non_donatable_input_indices.is_empty();
    match run.see("execute", loaded.execute(&[argument], options)) {
        Some(execution) => {
            assert_eq!(argument.is_deleted(), !kept);
            run.watch("done", &execution.done);
            run.waiter(&execution.done);
            for output in execution.outputs {
                run.watch("output", &output.ready_event());
                if run.on.has_bytes() {
                    run.see("to_vec", output.to_vec::<u8>());
                }
            }
        }
        None => assert!(!argument.is_deleted() && argument.hold_counts() == (0, 0), "a refused run took its argument"),
    }
}

pub(super) fn donated_and_kept(run: &Arc<Run>) -> Result<(), Error> {
    let space = run.space()?;
    for count in [100, LARGE] {
        let loaded = LoadedExecutable::new(&executable(count)?, &[space.device()], 1)?;
        for kept in [&[0][..], &[]] {
            let options = ExecuteOptions { non_donatable_input_indices: kept, ..Default::default() };
            execute(run, &loaded, &argument(count, &space)?, &options);
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
