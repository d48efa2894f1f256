//! Steps 4 and 5 of a run: the launch and the outputs.

#![allow(unsafe_code, reason = "the caller of a launch promises which memory it accesses")]

use std::sync::Arc;

use smallvec::SmallVec;

use super::acquire::{AllHeld, Held};
use super::options::ExecuteOptions;
use super::prepare::{Prepared, ResultMemory, ResultPlace};
use super::{Execution, Outputs};
use crate::loaded::LoadedExecutable;
use crate::program::Program;
use purlin_async::event::{Event, EventState};
use purlin_base::StatusOr;
use purlin_device::backend::{Access, Launch};
use purlin_device::{Buffer, LaunchOptions, RawBuffer};

/// Launches a prepared run after `after`, which does not fail, and returns its outputs.
///
/// # Errors
/// As [`Device::launch`](purlin_device::Device::launch), with its codes. `prepared` is then unchanged.
pub(super) fn start(
    loaded: &LoadedExecutable,
    prepared: &mut Prepared<'_>,
    launch: Arc<dyn Launch>,
    options: &ExecuteOptions<'_>,
    after: Option<&Event>,
) -> StatusOr<Execution> {
    let program = loaded.program();
    let mut dependencies = dependencies(program, prepared, options);
    if let Some(after) = after {
        dependencies.push(after.clone());
    }
    let is_pending = |memory: &RawBuffer| !memory.is_allocation_over();
    let is_behind_others = dependencies.iter().any(|event| !event.is_ready())
        || prepared.held.iter().filter_map(Held::memory).any(is_pending)
        || prepared.results.iter().filter_map(|result| result.memory(&prepared.held)).any(is_pending)
        || prepared.temporaries.as_ref().is_some_and(is_pending);
    let failed = dependencies.iter().find(|event| event.state() == EventState::Error).filter(|_| prepared.has_failed);
    let done = match failed {
        // The run has failed already, so nothing is launched: a result without memory fails at once.
        Some(failed) => failed.clone(),
        None => launched(loaded, prepared, launch, options, &dependencies)?,
    };
    loaded.shared.runs.follow(&done);
    let Prepared { target, held, results, .. } = prepared;
    let specs = program.signature().results.iter().zip(&target.result_spaces).zip(results.drain(..));
    // Donations of memory that becomes a result's are confirmed here, one by one.
    let outputs: Outputs = specs
        .map(|((spec, space), ResultMemory { place, free })| {
            let memory = match place {
                ResultPlace::Nowhere => None,
                ResultPlace::Fresh(memory) => Some(memory),
                ResultPlace::Held(at) => held[at].confirm(),
            };
            Buffer::launched(spec.shape(), spec.layout(), space, memory, &done, &free)
                .expect("memory is as long as the shape says: checked where it was given, else allocated so")
        })
        .collect();
    release(held, &done);
    Ok(Execution { outputs, done, is_behind_others })
}

/// Step 4: the event of the launch.
///
/// # Errors
/// As [`start`].
fn launched(
    loaded: &LoadedExecutable,
    prepared: &Prepared<'_>,
    launch: Arc<dyn Launch>,
    options: &ExecuteOptions<'_>,
    dependencies: &[Event],
) -> StatusOr<Event> {
    let program = loaded.program();
    let mut ranges = SmallVec::new();
    list_ranges(program, prepared, &mut ranges);
    ranges.extend(prepared.target.constants.iter().map(|memory| (Access::Read, memory)));
    let launch_options = LaunchOptions {
        label: options.donee(),
        launch_id: options.launch_id,
        stream: u8::try_from(options.execution_stream_id).unwrap_or(0),
        size_bytes: loaded.shared.cost_bytes,
        dependencies,
        caller_waits: options.caller_waits,
    };
    // SAFETY: the launch reads arguments. It depends on their ready events, after which nothing writes them. It writes
    // memory that was allocated for this run, or that donation holds have given to it. It depends on the earlier uses
    // of such memory. No other launch reads a donated argument. A launch of a valid program accesses its ranges alone.
    unsafe { prepared.target.device.launch(launch, &ranges, &launch_options) }
}

/// The dependencies of the run: the arguments, then the caller's own, then the earlier uses of donated memory. If
/// several fail, the run fails with the first in this order.
#[inline]
fn dependencies(program: &Program, prepared: &Prepared<'_>, options: &ExecuteOptions<'_>) -> SmallVec<[Event; 8]> {
    let mut events = SmallVec::new();
    for held in prepared.held.iter().take(program.signature().parameters.len()) {
        if let Some(event) = held.dependency() {
            events.push(event);
        }
    }
    let others = options.dependencies.iter().chain(prepared.results.iter().map(|result| &result.free));
    events.extend(others.filter(|event| event.state() != EventState::Ready).cloned());
    events
}

/// The ranges of a launch. Those of small programs stand on the stack.
type TouchedRanges<'a> = SmallVec<[(Access, &'a RawBuffer); 64]>;

/// Adds the ranges of the launch, in the order that the module `launch` lists.
#[inline]
fn list_ranges<'a>(program: &Program, prepared: &'a Prepared<'_>, ranges: &mut TouchedRanges<'a>) {
    let parameters = &program.places().parameters;
    let count = parameters.len() + prepared.results.len() + usize::from(prepared.temporaries.is_some());
    ranges.reserve(count);
    for (parameter, held) in parameters.iter().zip(&prepared.held) {
        if let (true, Some(memory)) = (parameter.is_used, held.memory()) {
            ranges.push((Access::Read, memory));
        }
    }
    for result in &prepared.results {
        if let Some(memory) = result.memory(&prepared.held).filter(|memory| memory.size_bytes() > 0) {
            ranges.push((Access::Write, memory));
        }
    }
    if let Some(memory) = &prepared.temporaries {
        ranges.push((Access::Write, memory));
    }
}

/// Ends the holds. Usage holds become uses that last until `done`, and donations are confirmed.
fn release(held: &mut AllHeld<'_>, done: &Event) {
    for held in held.drain(..) {
        match held {
            Held::Usage(hold) => hold.release_after_operation(done),
            Held::Donation(hold) => drop(hold.confirm()),
            Held::Failed(_, Some(donated)) => donated.delete(),
            Held::Failed(_, None) | Held::Over => {}
        }
    }
}
