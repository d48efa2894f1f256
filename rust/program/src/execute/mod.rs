//! A run, from arguments to outputs, in five steps.
//!
//! 1. *Checks* (`check.rs`): the number of arguments, and the element type, dimensions, layout and memory space of
//!    each.
//! 2. *Holds* (`acquire.rs`): a donation hold on each argument whose memory becomes a result's, and a usage hold on
//!    each other argument. The run gets all of them or none.
//! 3. *Memory* (`prepare.rs`): each result gets a donated argument's memory, or memory that the caller gave, or new
//!    memory. All temporaries are one block.
//! 4. *Launch* (`start.rs`): one operation that accesses all of this memory. It depends on the events of the arguments
//!    and on the pending uses of donated memory. A failure up to here is an `Err`, and leaves every argument as it was:
//!    dropping the holds releases them.
//! 5. *Outputs* (`start.rs`): buffers that are ready when the launch completes, or fail with its error. The donations
//!    are confirmed.
//!
//! Steps 1 to 5 happen on the calling thread. The launch itself runs on that thread if it is small and ready, else
//! where the backend runs it. With several devices, all of them complete steps 1 to 3 before the first begins step 4.
//!
//! If an argument has failed, or fails later, the run's event and its outputs fail with its error, and no command is
//! executed. Donated arguments are deleted in this case, too.

mod acquire;
mod check;
mod options;
mod outputs;
mod prepare;
mod start;
mod turn;

use std::borrow::Borrow;
use std::sync::Arc;

use self::prepare::{Prepared, prepare};
use self::start::start;
use self::turn::Turn;
use crate::collective::CollectiveLaunch;
use crate::launch::InContext;
use crate::loaded::{LoadedExecutable, Target};
use purlin_async::event::Event;
use purlin_base::status::called_from;
use purlin_base::{Error, SourceLocation, StatusOr};
use purlin_device::Buffer;
use purlin_device::backend::Launch;

pub use options::ExecuteOptions;
pub use outputs::{Outputs, OutputsIntoIter};

/// A run that was launched.
#[derive(Debug)]
pub struct Execution {
    /// The results, in the order of the signature. They are ready when `done` is, and fail with its error.
    pub outputs: Outputs,
    /// Ready when the run has completed. It fails with the error of the run.
    pub done: Event,
    /// Whether the run began behind other work: an argument, memory of it or of a result, a dependency or an earlier
    /// use of donated memory was pending. A caller that waits for `done` then waits for that work, too.
    pub is_behind_others: bool,
}

impl LoadedExecutable {
    /// Runs the program on its one device, in the steps that the module lists. It blocks only for holds on arguments
    /// that other calls have while they start work. A run that is small and ready is executed inside the call.
    ///
    /// # Errors
    /// An error leaves every argument as it was. `InvalidArgument`: the number of arguments is wrong, or an argument
    /// has another type, shape, layout, memory space or client; the message names the argument and both sides.
    /// `InvalidArgument` also: a buffer is deleted, or is donated and used by the same call; `options` do not fit the
    /// program. `ResourceExhausted`: there is no memory for outputs or temporaries. `FailedPrecondition`: the client
    /// has shut down, or the program is loaded for several devices.
    #[track_caller]
    pub fn execute<B: Borrow<Buffer>>(&self, arguments: &[B], options: &ExecuteOptions<'_>) -> StatusOr<Execution> {
        if self.devices().len() != 1 {
            return Err(Error::failed_precondition(format!(
                "'{}' is loaded for {} devices; a sharded run has arguments for each of them",
                self.program().name(),
                self.devices().len()
            )));
        }
        // Objects that are made below record the caller's line.
        called_from(SourceLocation::of_call(), || {
            if options.execution_stream_id == 0 {
                return self.run_one(arguments, options, None);
            }
            let turn = Turn::take(&self.devices()[0], options.execution_stream_id);
            let outcome = self.run_one(arguments, options, Some(turn.before()));
            turn.end_after(outcome.as_ref().map(std::slice::from_ref).unwrap_or_default());
            outcome
        })
    }

    /// Runs the program on its one device, after `after`.
    #[inline]
    fn run_one<B: Borrow<Buffer>>(
        &self,
        arguments: &[B],
        options: &ExecuteOptions<'_>,
        after: Option<&Event>,
    ) -> StatusOr<Execution> {
        let mut prepared = Prepared::nothing(&self.shared.targets[0]);
        let one = std::slice::from_mut(&mut prepared);
        prepare(self, &[arguments], options, one).map_err(|error| self.refusal(error))?;
        let launch = self.launch_of(options);
        start(self, &mut prepared, launch, options, after).map_err(|error| self.refusal(error))
    }

    /// Runs the program on all of its devices, with the arguments of each device, in the order of
    /// [`devices`](Self::devices). Nothing is launched before all devices are prepared.
    ///
    /// # Errors
    /// As [`execute`](Self::execute), but the program may be loaded for several devices. `InvalidArgument` also: there
    /// are arguments for another number of devices. If the launch fails on a device after another device has begun, as
    /// when the client shuts down, the call succeeds. The run of that device then fails, and its arguments are as they
    /// were.
    #[track_caller]
    pub fn execute_sharded<S: AsRef<[Buffer]>>(
        &self,
        arguments: &[S],
        options: &ExecuteOptions<'_>,
    ) -> StatusOr<Vec<Execution>> {
        let shards: Vec<&[Buffer]> = arguments.iter().map(AsRef::as_ref).collect();
        called_from(SourceLocation::of_call(), || {
            if options.execution_stream_id == 0 {
                return self.run_shards(&shards, options, None);
            }
            let turn = Turn::take(&self.devices()[0], options.execution_stream_id);
            let outcome = self.run_shards(&shards, options, Some(turn.before()));
            turn.end_after(outcome.as_deref().unwrap_or_default());
            outcome
        })
    }

    fn run_shards(
        &self,
        shards: &[&[Buffer]],
        options: &ExecuteOptions<'_>,
        after: Option<&Event>,
    ) -> StatusOr<Vec<Execution>> {
        let not_here;
        let options = if self.shared.waits_for_others {
            not_here = ExecuteOptions { caller_waits: false, ..options.clone() };
            &not_here
        } else {
            options
        };
        let mut prepared: Vec<_> = self.shared.targets.iter().map(Prepared::nothing).collect();
        prepare(self, shards, options, &mut prepared).map_err(|error| self.refusal(error))?;
        let collectives = self.collectives_of(options);
        let launch = match collectives.clone() {
            None => self.launch_of(options),
            collectives => self.launch_in_context(options, collectives),
        };
        let mut executions = Vec::with_capacity(prepared.len());
        for (participant, one) in (0..).zip(&mut prepared) {
            let execution = match start(self, one, Arc::clone(&launch), options, after) {
                Ok(execution) => execution,
                Err(error) if executions.is_empty() => return Err(self.refusal(error)),
                Err(error) => self.failed(one.target, &self.refusal(error)),
            };
            // A participant that fails, or never begins, must not be waited for.
            if let Some(collectives) = collectives.clone() {
                execution.done.on_ready(move |outcome| collectives.left(participant, outcome));
            }
            executions.push(execution);
        }
        Ok(executions)
    }

    /// The collectives of one call, if the program has some.
    #[inline]
    fn collectives_of(&self, options: &ExecuteOptions<'_>) -> Option<Arc<dyn CollectiveLaunch>> {
        let engine = self.shared.collectives.as_ref()?;
        Some(engine.begin(self.program().name(), options.launch_id, self.devices().len() as u32))
    }

    /// The object to launch on one device: all runs share it, unless this one has a context or collectives.
    #[inline]
    fn launch_of(&self, options: &ExecuteOptions<'_>) -> Arc<dyn Launch> {
        if options.context.is_none() && self.shared.collectives.is_none() {
            return Arc::clone(&self.shared.launcher) as Arc<dyn Launch>;
        }
        self.launch_in_context(options, self.collectives_of(options))
    }

    /// An object of one call's own to launch.
    #[cold]
    fn launch_in_context(
        &self,
        options: &ExecuteOptions<'_>,
        collectives: Option<Arc<dyn CollectiveLaunch>>,
    ) -> Arc<dyn Launch> {
        let (launcher, user) = (Arc::clone(&self.shared.launcher), options.context.clone());
        Arc::new(InContext { launcher, user, collectives })
    }

    /// `error`, with the name of the program in its message. The code and the payloads are unchanged.
    #[cold]
    fn refusal(&self, error: Error) -> Error {
        error.prefixed(format_args!("'{}' was not run", self.program().name()))
    }

    /// A run that did not begin, although other devices of the same call did.
    #[cold]
    fn failed(&self, target: &Target, error: &Error) -> Execution {
        let specs = self.program().signature().results.iter().zip(&target.result_spaces);
        let outputs = specs.map(|(spec, space)| Buffer::error(error.clone(), spec.shape(), space)).collect();
        Execution { outputs, done: Event::from_error(error.clone()), is_behind_others: false }
    }
}
