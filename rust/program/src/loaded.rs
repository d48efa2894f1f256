//! A loaded executable: an executable that is bound to devices of one client.
//!
//! Any thread may start runs. Loading checks the devices and looks up their memory spaces. Where the host executes the
//! program it copies and maps nothing; a device that does so itself gets kernels and constants (`lower`).

use std::fmt;
use std::sync::Arc;

use crate::collective::{CollectiveEngine, InProcess};
use crate::command::Command;
use crate::executable::Executable;
use crate::launch::Launcher;
use crate::program::Program;
use crate::runs::Runs;
use crate::signature::ArraySpec;
use purlin_async::event::Event;
use purlin_async::task::census;
use purlin_base::{Error, StatusOr};
use purlin_device::{Device, MemorySpace, RawBuffer};

/// An executable that is bound to devices. Clones share it. [`execute`](Self::execute) starts a run. Runs in flight
/// keep the code, so this may be dropped before they end.
///
/// ```
/// use purlin::Buffer;
/// use purlin::program::{ArraySpec, Command, ExecuteOptions, Executable, LoadedExecutable, ProgramBuilder};
/// use purlin::{DType, Shape};
/// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
///
/// let mut builder = ProgramBuilder::new("copy");
/// let vector = ArraySpec::new(Shape::new(DType::S32, &[2])?);
/// let (from, to) = (builder.parameter(vector.clone()), builder.result(vector));
/// builder.push(Command::Copy { from, to });
/// let copy = LoadedExecutable::new(&Executable::new(builder.build()?), &client.devices()[..1], 1)?;
///
/// let argument = Buffer::from_slice(&[1, 2], &[2], &client.devices()[0].default_memory_space())?;
/// let execution = copy.execute(&[argument], &ExecuteOptions::default())?;
/// assert_eq!(execution.outputs[0].to_vec::<i32>()?, [1, 2]);
/// execution.done.wait()?;
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone)]
pub struct LoadedExecutable {
    pub(crate) shared: Arc<Shared>,
}

/// The part that clones share. Each run has its own reference to the launcher.
pub(crate) struct Shared {
    executable: Executable,
    pub(crate) launcher: Arc<Launcher>,
    /// One for each device, in the order of the launcher's devices.
    pub(crate) targets: Vec<Target>,
    pub(crate) runs: Arc<Runs>,
    /// What executes the program's collectives; `None`: it has none.
    pub(crate) collectives: Option<Arc<dyn CollectiveEngine>>,
    /// Whether a run on one device waits for those on the others. The calling thread starts them one after the other,
    /// so it must not execute one.
    pub(crate) waits_for_others: bool,
    /// The estimated cost of a run, at which it is decided where it is executed.
    pub(crate) cost_bytes: usize,
}

/// A device, and the memory spaces of the arrays on it.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) device: Device,
    pub(crate) parameter_spaces: Vec<MemorySpace>,
    pub(crate) result_spaces: Vec<MemorySpace>,
    pub(crate) temporary_space: MemorySpace,
    /// The size of the one block for all temporaries of a run.
    pub(crate) temporary_bytes: usize,
    /// The program's constants, where the device does its commands itself.
    pub(crate) constants: Vec<RawBuffer>,
}

impl Target {
    /// All spaces.
    pub(crate) fn spaces(&self) -> impl Iterator<Item = &MemorySpace> {
        self.parameter_spaces.iter().chain(&self.result_spaces).chain([&self.temporary_space])
    }
}

impl LoadedExecutable {
    /// Loads `executable` for `devices` of one client. Each replica runs on `partition_count` consecutive devices of
    /// the list.
    ///
    /// # Errors
    /// `InvalidArgument`: there is no device, devices belong to different clients, a device occurs twice,
    /// `partition_count` is 0, or the number of devices is no multiple of it. `NotFound`: a device has no memory of a
    /// kind that the signature names. `InvalidArgument` also: the groups of a collective do not fit the devices.
    /// `Unimplemented`: there are several devices, the program has collectives, and the backend's launches cannot wait
    /// for each other, as the simulator's; the program has kernels of devices
    /// ([`Kernel::of_device`](crate::Kernel::of_device)), and those of these devices are functions of the host; or the
    /// devices do the program's commands themselves, because it has kernels of theirs or arrays that the host does not
    /// reach, and a command, which is named, can only be done by the host. As
    /// [`LoadedKernel::load`](crate::LoadedKernel::load).
    ///
    /// # Examples
    /// ```
    /// use purlin::program::{Executable, LoadedExecutable, ProgramBuilder};
    /// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
    ///
    /// let nothing = Executable::new(ProgramBuilder::new("nothing").build()?);
    /// let device = client.devices()[0].clone();
    /// let error = LoadedExecutable::new(&nothing, &[device.clone(), device], 1).unwrap_err();
    /// assert_eq!(error.message(), "'nothing' cannot be loaded: host:0 is there twice");
    /// # Ok::<(), purlin::Error>(())
    /// ```
    pub fn new(executable: &Executable, devices: &[Device], partition_count: usize) -> StatusOr<Self> {
        let program = executable.program();
        let refused = |why: String| Error::invalid_argument(format!("'{}' cannot be loaded: {why}", program.name()));
        let Some(first) = devices.first() else { return Err(refused("no device is given".to_owned())) };
        if partition_count == 0 || !devices.len().is_multiple_of(partition_count) {
            return Err(refused(format!("{} devices make no replicas of {partition_count} partitions", devices.len())));
        }
        let space = first.default_memory_space();
        for (number, device) in devices.iter().enumerate() {
            if !device.default_memory_space().same_client(&space) {
                return Err(refused(format!("{first} and {device} are of different clients")));
            }
            if devices[..number].contains(device) {
                return Err(refused(format!("{device} is there twice")));
            }
        }
        check_collectives(program, devices, partition_count)
            .map_err(|error| error.prefixed(format_args!("'{}' cannot be loaded", program.name())))?;
        let mut targets = devices.iter().map(|device| Target::of(program, device)).collect::<StatusOr<Vec<_>>>()?;
        let launcher = Launcher::new(program.clone(), devices.to_vec(), partition_count);
        let launcher = Arc::new(launcher.lowered(&targets)?);
        for (target, lowered) in targets.iter_mut().zip(launcher.lowered_programs()) {
            target.constants.clone_from(&lowered.constants);
            target.temporary_bytes = lowered.temporary_bytes;
        }
        if !launcher.program.is_straight() {
            let launcher = Arc::downgrade(&launcher);
            census::enlist(launcher);
        }
        let (executable, runs) = (executable.clone(), Arc::default());
        let engine: Arc<dyn CollectiveEngine> = Arc::new(InProcess);
        let collectives = launcher.program.has_collectives().then_some(engine);
        let waits_for_others = collectives.is_some() && targets.len() > 1;
        let cost_bytes = if waits_for_others { usize::MAX } else { program.summary().cost_bytes };
        let shared = Shared { executable, launcher, targets, runs, collectives, waits_for_others, cost_bytes };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The same executable with another engine for its collectives. A program without collectives never asks it.
    #[must_use]
    pub fn with_collectives(&self, engine: Arc<dyn CollectiveEngine>) -> Self {
        let Shared { executable, launcher, targets, runs, collectives, .. } = &*self.shared;
        let shared = Shared {
            waits_for_others: self.shared.waits_for_others,
            cost_bytes: self.shared.cost_bytes,
            executable: executable.clone(),
            launcher: Arc::clone(launcher),
            targets: targets.clone(),
            runs: Arc::clone(runs),
            collectives: collectives.as_ref().map(|_| engine),
        };
        Self { shared: Arc::new(shared) }
    }

    /// The executable.
    #[must_use]
    pub fn executable(&self) -> &Executable {
        &self.shared.executable
    }

    /// The devices: replica by replica, in each replica partition by partition.
    #[must_use]
    pub fn devices(&self) -> &[Device] {
        &self.shared.launcher.devices
    }

    /// The number of runs in flight.
    #[must_use]
    pub fn runs_in_flight(&self) -> usize {
        self.shared.runs.count()
    }

    /// An event that is ready when no run is in flight: at once if none is now.
    #[must_use]
    pub fn idle_event(&self) -> Event {
        self.shared.runs.idle()
    }

    /// Blocks until no run is in flight, whether the runs succeed or fail. It also waits for runs that are started
    /// before the last run in flight ends.
    ///
    /// # Errors
    /// `FailedPrecondition`: the caller is a callback, and a run in flight cannot complete before this callback
    /// returns.
    pub fn quiesce(&self) -> Result<(), Error> {
        let idle = self.idle_event();
        idle.check_wait()?;
        idle.wait_uninterruptible()
    }

    pub(crate) fn program(&self) -> &Program {
        &self.shared.launcher.program
    }
}

/// Checks that the devices can execute the program's collectives.
///
/// # Errors
/// `InvalidArgument`: groups or sizes do not fit the numbers of replicas and partitions. `Unimplemented`: launches on
/// these devices cannot wait for each other.
fn check_collectives(program: &Program, devices: &[Device], partition_count: usize) -> Result<(), Error> {
    if !program.has_collectives() {
        return Ok(());
    }
    if devices.len() > 1 && !devices[0].launches_may_wait() {
        return Err(Error::unimplemented(format!(
            "it has collectives, for which launches wait for each other, and those of {} cannot",
            devices[0]
        )));
    }
    // A client has at most 1024 devices.
    let (replicas, partitions) = ((devices.len() / partition_count) as u32, partition_count as u32);
    let mut left = vec![program.sequence()];
    while let Some(sequence) = left.pop() {
        for command in sequence.commands() {
            if let Command::Collective { collective, arrays } = command {
                collective.check_groups(arrays, replicas, partitions).map_err(|why| {
                    Error::invalid_argument(format!("{command} on {replicas} x {partitions} devices: {why}"))
                })?;
            }
            left.extend(command.sequences().map(|(_, inner)| inner));
        }
    }
    Ok(())
}

impl Target {
    fn of(program: &Program, device: &Device) -> StatusOr<Self> {
        let space = |spec: &ArraySpec| match spec.memory_kind() {
            Some(kind) => device.memory_space(kind),
            None => Ok(device.default_memory_space()),
        };
        let spaces = |specs: &[ArraySpec]| specs.iter().map(space).collect::<StatusOr<Vec<_>>>();
        let signature = program.signature();
        // Where the arrays are that say where: default memory may be out of the reach of what they are in.
        let named = signature.results.iter().chain(&signature.parameters).find(|spec| spec.memory_kind().is_some());
        Ok(Self {
            parameter_spaces: spaces(&signature.parameters)?,
            result_spaces: spaces(&signature.results)?,
            temporary_space: named.map_or_else(|| Ok(device.default_memory_space()), space)?,
            temporary_bytes: program.places().temporary_bytes,
            device: device.clone(),
            constants: Vec::new(),
        })
    }
}

impl fmt::Debug for LoadedExecutable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LoadedExecutable('{}' on {:?})", self.program().name(), self.devices())
    }
}
