//! A run by the plugin that compiles, over views of our arrays; its results become ours without a copy.
//!
//! Each array has its view, or is a result of that plugin's, so nothing is made twice. The plugin does not know what
//! our arrays wait for. So a run with an argument that Purlin still computes is called later, by a task, and its
//! results are provided then. For results of its own, the plugin waits itself. A run with an argument that has failed
//! fails, and the plugin is not called.
//!
//! | module | what it is |
//! |---|---|
//! | here | the arguments, and when the plugin is called |
//! | `call` | the call, and its results |

mod call;

use std::sync::Arc;

use purlin_async::event::EventState;
use purlin_async::task::Task;
use purlin_async::{AsyncWorkRunner, Event, EventPromise};
use purlin_base::{Error, StatusOr};
use purlin_device::{Buffer, BufferPromise, Device, DonationHold, MemorySpace, RawBuffer, UsageHold};
use purlin_pjrt_abi::{self as abi, LoadedExecutableExecuteArgs};
use smallvec::SmallVec;

use self::call::{Call, Finished};
use super::Compiled;
use super::run::{Run, hand_over};
use crate::buffer::{self, BufferObject};
use crate::compiler::Face;
use crate::handle::lent;
use crate::{ffi, layouts};

/// What a run has of an argument.
enum Hold {
    /// It never had memory, and has failed.
    Nothing,
    Use(UsageHold),
    Donation(DonationHold),
    /// The hold has ended, because nothing may be held while it is waited for something else. The memory is kept.
    Over(RawBuffer),
}

impl Hold {
    fn memory(&self) -> Option<&RawBuffer> {
        match self {
            Self::Nothing => None,
            Self::Use(hold) => Some(hold.memory()),
            Self::Donation(hold) => Some(hold.memory()),
            Self::Over(memory) => Some(memory),
        }
    }

    /// Ends it. What is not donated is used until `done`.
    fn end(self, done: &Event) -> Self {
        match self {
            Self::Use(hold) => {
                let memory = hold.memory().clone();
                hold.release_after(done.clone());
                Self::Over(memory)
            }
            Self::Donation(hold) => Self::Over(hold.confirm()),
            ended => ended,
        }
    }
}

/// An argument of a run.
struct Given {
    array: Buffer,
    ready: Event,
    hold: Hold,
    /// The plugin's object for it; `None` if the array is not there yet.
    face: Option<Face>,
}

impl Given {
    /// # Errors
    /// As [`Buffer::usage_hold`] and [`Buffer::donate`]; what the plugin says.
    fn of(compiled: &Compiled, argument: &BufferObject, is_donated: bool) -> StatusOr<Self> {
        let array = &argument.array;
        let hold = match is_donated && array.has_memory() {
            true => Hold::Donation(array.donate(compiled.label)?),
            false if array.has_memory() => Hold::Use(array.usage_hold()?),
            false if array.is_deleted() => {
                return Err(array.usage_hold().err().unwrap_or_else(|| Error::internal("deleted")));
            }
            false => Hold::Nothing,
        };
        let mut face = argument.known_face();
        let ready = array.ready_event();
        if face.is_none() && ready.state() == EventState::Ready {
            face = Some(argument.face_or(|| Face::of_array(&compiled.compiler, array, hold.memory()))?);
        }
        Ok(Self { array: array.clone(), ready, hold, face })
    }

    /// What the call must wait for.
    fn pending(&self) -> impl Iterator<Item = Event> {
        let ready = self.face.is_none().then_some(&self.ready).filter(|event| !event.is_ready()).cloned();
        // The plugin may write donated memory at once.
        let free = match &self.hold {
            Hold::Donation(hold) => Some(hold.free_event()).filter(|event| !event.is_ready()),
            _ => None,
        };
        ready.into_iter().chain(free)
    }
}

/// Runs it. Results go to `lists`, and events, where they are wanted, to `events`.
///
/// # Errors
/// `InvalidArgument`: an argument is gone, or given twice. `FailedPrecondition`: this is a child made by `fork`. What
/// the plugin says, if it is called now. Then every argument is as it was. Also as [`later`].
///
/// # Safety
/// `lists` have room for the results of each device, and `events` is null or has room for one of each.
pub(super) unsafe fn run(
    compiled: &Arc<Compiled>,
    run: &Run<'_>,
    lists: &[*mut *mut abi::Buffer],
    events: *mut *mut abi::Event,
) -> Result<(), Error> {
    compiled.compiler.check_here()?;
    let call = prepared(compiled, run)?;
    let given = || call.arguments.iter().flatten();
    let failed = given().find_map(|given| given.ready.error());
    let waits: Vec<Event> = given().flat_map(Given::pending).collect();
    let finished = match failed {
        Some(error) => failed_run(&call, &error)?,
        None if waits.is_empty() => call.now()?,
        None => later(call, &waits)?,
    };
    compiled.end_donated(run);
    let given = finished.into_iter().map(|(results, done)| {
        let give = |(array, face)| match face {
            Some(face) => buffer::give_with_face(array, &compiled.platform, face),
            None => buffer::give(array, &compiled.platform),
        };
        (results.into_iter().map(give), done)
    });
    // SAFETY: the caller has room.
    unsafe { hand_over(given, lists, events) };
    Ok(())
}

/// Holds the arguments.
fn prepared(compiled: &Arc<Compiled>, run: &Run<'_>) -> StatusOr<Call> {
    let mut keeps: SmallVec<[i64; 4]> = run.keeps.iter().map(|&index| index as i64).collect();
    let mut arguments = SmallVec::new();
    for list in &run.arguments {
        let mut of_device = SmallVec::new();
        for (index, argument) in list.iter().enumerate() {
            // Memory that other code refers to is copied by the plugin, and deleted here all the same.
            let is_referred_to = argument.array.hold_counts().1 > 0;
            if run.gives(compiled, index) && is_referred_to && !keeps.contains(&(index as i64)) {
                keeps.push(index as i64);
            }
            let is_donated = run.gives(compiled, index) && !is_referred_to;
            let given = Given::of(compiled, argument, is_donated)
                .map_err(|error| error.prefixed(format_args!("argument {index}, {:?}", argument.array)))?;
            of_device.push(given);
        }
        arguments.push(of_device);
    }
    let mut devices = SmallVec::new();
    match run.device {
        Some(chosen) => devices.push(chosen.device.clone()),
        None => {
            for &device in &compiled.devices {
                // SAFETY: of the client's platform.
                devices.push(unsafe { lent::<LoadedExecutableExecuteArgs, _>(device) }?.device.clone());
            }
        }
    }
    let context = ffi::Lent::of(&compiled.compiler.plugin, run.context)?;
    let (is_portable, launch_id) = (run.device.is_some(), run.options.launch_id);
    Ok(Call { compiled: Arc::clone(compiled), arguments, keeps, devices, is_portable, launch_id, context })
}

/// The memory space of a result.
fn space_of(compiled: &Compiled, device: &Device, index: usize) -> StatusOr<MemorySpace> {
    device.memory_space(&compiled.outputs[index].1)
}

/// A run with an argument that has failed: so have its results. The plugin is not called.
///
/// # Errors
/// As [`Device::memory_space`].
fn failed_run(call: &Call, error: &Error) -> StatusOr<Finished> {
    let of_device = |device: &Device| {
        let results = call.compiled.outputs.iter().enumerate().map(|(index, (shape, _))| {
            Ok((Buffer::error(error.clone(), shape, &space_of(&call.compiled, device, index)?), None))
        });
        Ok((results.collect::<StatusOr<_>>()?, Event::from_error(error.clone())))
    };
    call.devices.iter().map(of_device).collect()
}

/// What provides the results of a device, and says that it has completed.
type Promises = (Vec<BufferPromise>, EventPromise);

/// Calls the plugin when `waits` are over; the results are provided then.
///
/// # Errors
/// As [`Buffer::channel`]. `FailedPrecondition`: the client has ended; donated arguments are gone then.
fn later(mut call: Call, waits: &[Event]) -> StatusOr<Finished> {
    let compiled = Arc::clone(&call.compiled);
    let (mut finished, mut promises) = (Finished::new(), Vec::<Promises>::new());
    for device in &call.devices {
        let (mut results, mut of_device) = (Vec::new(), Vec::new());
        for (index, (shape, _)) in compiled.outputs.iter().enumerate() {
            let layout = layouts::of_output(&compiled, index)?;
            let (array, promise) = Buffer::channel(shape, layout, &space_of(&compiled, device, index)?)?;
            results.push((array, None));
            of_device.push(promise);
        }
        let completed = EventPromise::new(compiled.label);
        finished.push((results, completed.event()));
        promises.push((of_device, completed));
    }
    for (list, (_, done)) in call.arguments.iter_mut().zip(&finished) {
        for given in list {
            given.hold = std::mem::replace(&mut given.hold, Hold::Nothing).end(done);
        }
    }
    let task = Task::new(compiled.label, move || provide(call, promises));
    compiled.platform.client.runner().schedule_when_ready(waits, task)?;
    Ok(finished)
}

/// What `later` does when the arguments are there.
fn provide(call: Call, promises: Vec<Promises>) {
    let failed = call.arguments.iter().flatten().find_map(|given| given.ready.error());
    let finished = match failed.map_or_else(|| call.now(), Err) {
        Ok(finished) => finished,
        Err(error) => {
            for (results, completed) in promises {
                results.into_iter().for_each(|promise| promise.fail(error.clone()));
                completed.set_error(error.clone());
            }
            return;
        }
    };
    for ((results, completed), (arrays, done)) in promises.into_iter().zip(finished) {
        for (promise, (array, _)) in results.into_iter().zip(arrays) {
            if let Err((error, promise)) = promise.fulfil(&array) {
                promise.fail(error);
            }
        }
        completed.forward(&done);
    }
}
