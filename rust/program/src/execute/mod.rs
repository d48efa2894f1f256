//! A run, from arguments to outputs.
//!
//! 1. *Checks* (`check.rs`): count, element type, dimensions, layout and place of each argument.
//! 2. *Rights* (`acquire.rs`): a donation hold of each argument whose memory becomes a result's, a usage hold of each
//!    other; all or none.
//! 3. *Memory*: each result has an argument's, or memory that the caller gave, or fresh memory; temporaries are one
//!    block.
//! 4. *Launch*: one operation that touches all of this, behind the events of arguments and of what used donated memory
//!    before. Up to here whatever fails is an `Err`, and every argument is as it was: the rights are given back by
//!    their drops.
//! 5. *Outputs*: buffers that are ready when the launch is over, or fail with it. Donations are confirmed.
//!
//! Of several devices all take steps 1 to 3 before the first takes step 4.
//!
//! An argument that has failed, or fails later, fails the run's event and its outputs, with its error; nothing runs.
//! Donated arguments are gone all the same.

mod acquire;
mod check;
mod options;
mod outputs;
mod prepare;
mod start;

use std::borrow::Borrow;
use std::sync::Arc;

use self::prepare::{Prepared, prepare};
use self::start::start;
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
    /// Happens when the run is over; fails with why it was not done.
    pub done: Event,
}

impl LoadedExecutable {
    /// Runs the program on its one device: the module says in which steps. Blocks only for rights to arguments that
    /// other calls have while they start work; what is small and ready is done inside the call.
    ///
    /// # Errors
    /// Every argument is as it was then. `InvalidArgument`, naming the argument and both sides: another number of them,
    /// another type, shape, layout, place or client; a buffer that is gone, or that is donated and used by the same
    /// call. `ResourceExhausted`: no memory for outputs or temporaries. `FailedPrecondition`: the client has shut down,
    /// or it was loaded for several devices.
    #[track_caller]
    pub fn execute<B: Borrow<Buffer>>(&self, arguments: &[B], options: &ExecuteOptions<'_>) -> StatusOr<Execution> {
        if self.devices().len() != 1 {
            return Err(Error::failed_precondition(format!(
                "'{}' is loaded for {} devices: execute_sharded() takes arguments for each",
                self.program().name(),
                self.devices().len()
            )));
        }
        // What is made below is known by the caller's line.
        called_from(SourceLocation::of_call(), || {
            let mut prepared = Prepared::nothing(&self.shared.targets[0]);
            let one = std::slice::from_mut(&mut prepared);
            prepare(self, &[arguments], options, one).map_err(|error| self.refusal(&error))?;
            start(self, &mut prepared, self.launch_of(options), options).map_err(|error| self.refusal(&error))
        })
    }

    /// Runs the program on all of its devices, with the arguments of each, in the order of
    /// [`devices`](Self::devices). Nothing is launched before everything is prepared.
    ///
    /// # Errors
    /// As [`execute`](Self::execute); `InvalidArgument`: arguments for another number of devices. A client that shuts
    /// down when some devices have begun fails the runs of the others, whose arguments are as they were.
    #[track_caller]
    pub fn execute_sharded(&self, arguments: &[Vec<Buffer>], options: &ExecuteOptions<'_>) -> StatusOr<Vec<Execution>> {
        let shards: Vec<&[Buffer]> = arguments.iter().map(Vec::as_slice).collect();
        called_from(SourceLocation::of_call(), || self.run_shards(&shards, options))
    }

    fn run_shards(&self, shards: &[&[Buffer]], options: &ExecuteOptions<'_>) -> StatusOr<Vec<Execution>> {
        let mut prepared: Vec<_> = self.shared.targets.iter().map(Prepared::nothing).collect();
        prepare(self, shards, options, &mut prepared).map_err(|error| self.refusal(&error))?;
        let launch = self.launch_of(options);
        let mut executions = Vec::with_capacity(prepared.len());
        for one in &mut prepared {
            match start(self, one, Arc::clone(&launch), options) {
                Ok(execution) => executions.push(execution),
                Err(error) if executions.is_empty() => return Err(self.refusal(&error)),
                Err(error) => executions.push(self.failed(one.target, &self.refusal(&error))),
            }
        }
        Ok(executions)
    }

    /// What is launched: the same for all runs, unless this one has a context.
    fn launch_of(&self, options: &ExecuteOptions<'_>) -> Arc<dyn Launch> {
        let launcher = Arc::clone(&self.shared.launcher);
        match &options.context {
            Some(user) => Arc::new(InContext { launcher, user: Arc::clone(user) }),
            None => launcher,
        }
    }

    /// `error`, with the name of the program; the code and the payloads stay.
    #[cold]
    fn refusal(&self, error: &Error) -> Error {
        let message = format!("'{}' was not run: {}", self.program().name(), error.message());
        let mut told = Error::new(error.code(), message);
        error.payloads().for_each(|(type_url, payload)| told.set_payload(type_url, payload));
        told
    }

    /// A run that did not begin, although others of its call did.
    #[cold]
    fn failed(&self, target: &Target, error: &Error) -> Execution {
        let specs = self.program().signature().results.iter().zip(&target.result_spaces);
        let outputs = specs.map(|(spec, space)| Buffer::error(error.clone(), spec.shape(), space)).collect();
        Execution { outputs, done: Event::from_error(error.clone()) }
    }
}
