//! One run of a program on one device, once its memory is allocated: computes the address of each allocation from the
//! ranges of the launch, and executes the commands on the calling thread, with the help of others where
//! that pays.
//!
//! The ranges of a launch are, in this order: the memory of each parameter whose allocation is not empty, the memory of
//! each result that is not empty, the block of temporaries if there are any, and, where the device does the commands
//! itself, its constants. If a parameter and a result share an
//! allocation but have different addresses, the argument was not donated, and is copied to the result first.
//!
//! A launch fails with the error of the first command that fails, or with the panic of a kernel or library call.

#![allow(unsafe_code, reason = "a launch accesses its ranges by address")]

use std::any::Any;
use std::ptr;
use std::sync::Arc;

use smallvec::SmallVec;
use tracing::level_filters::LevelFilter;
use tracing::trace_span;

use crate::allocation::{ALIGNMENT_BYTES, AllocationKind};
use crate::bounce::{Bounce, is_aligned};
use crate::collective::CollectiveLaunch;
use crate::float_mode::with_flushed_denormals;
use crate::interpreter::{Bases, Interpreter, Road, Straight};
use crate::library::LibraryContext;
use crate::loaded::Target;
use crate::lower::{Ids, Lowered, LoweredWork, has_device_kernels, has_host_kernels};
use crate::places::AllocationPlace;
use crate::program::Program;
use crate::watch::{Part, Watched};
use purlin_async::task::census::{Occupation, Occupied};
use purlin_base::{Error, StatusOr, fault, panics};
use purlin_device::backend::{CommandFlow, CommandList, Launch, LaunchInfo};
use purlin_device::{Device, MemorySpace};

/// A program and its devices: the part that all runs share.
pub(crate) struct Launcher {
    /// The program as each device does it, in the order of `devices`; empty where the host executes it. First, because
    /// the devices' client unloads what is loaded.
    lowered: Vec<Lowered>,
    pub(crate) program: Program,
    /// Replica by replica, in each replica partition by partition.
    pub(crate) devices: Vec<Device>,
    /// Indexed by the number of a device. The numbers of other devices are never asked for.
    participants: Vec<Participant>,
    is_straight: bool,
    pub(crate) partition_count: usize,
    /// The runs that are executing commands now, unless the program is straight.
    watched: Watched,
}

/// A device's part in a launch.
#[derive(Clone, Copy, Default)]
struct Participant {
    /// Its position in the list of devices.
    number: u32,
    replica_id: u32,
    partition_id: u32,
}

impl Occupied for Launcher {
    fn occupation(&self) -> Occupation {
        Occupation { text: self.watched.describe(&self.program), ..Occupation::default() }
    }
}

/// A launcher for one run that has a context or collectives, on all of its devices.
pub(crate) struct InContext {
    pub(crate) launcher: Arc<Launcher>,
    pub(crate) user: Option<Arc<dyn Any + Send + Sync>>,
    pub(crate) collectives: Option<Arc<dyn CollectiveLaunch>>,
}

impl Launch for Launcher {
    fn name(&self) -> &str {
        self.program.name()
    }

    unsafe fn launch(&self, info: LaunchInfo, addresses: &[*mut u8]) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { self.run(info, addresses, None) }
    }

    fn commands(&self, device: u16) -> Option<&CommandList> {
        match self.work_of(device)? {
            LoweredWork::List(list) => Some(list),
            LoweredWork::Flow(_) => None,
        }
    }

    fn flow(&self, device: u16) -> Option<&CommandFlow> {
        match self.work_of(device)? {
            LoweredWork::List(_) => None,
            LoweredWork::Flow(flow) => Some(flow),
        }
    }
}

impl Launch for InContext {
    fn name(&self) -> &str {
        self.launcher.program.name()
    }

    unsafe fn launch(&self, info: LaunchInfo, addresses: &[*mut u8]) -> Result<(), Error> {
        let user = self.user.as_deref();
        // SAFETY: the caller's promise.
        unsafe {
            match self.collectives.as_deref() {
                None => self.launcher.run(info, addresses, user),
                some => self.launcher.run_watched(info, addresses, user, some),
            }
        }
    }

    fn commands(&self, device: u16) -> Option<&CommandList> {
        self.launcher.commands(device)
    }

    fn flow(&self, device: u16) -> Option<&CommandFlow> {
        self.launcher.flow(device)
    }
}

/// The address of empty allocations: aligned, and never accessed.
const EMPTY: *mut u8 = ptr::without_provenance_mut(ALIGNMENT_BYTES);

impl Launcher {
    /// For devices of one client, each of them once.
    pub(crate) fn new(program: Program, devices: Vec<Device>, partition_count: usize) -> Self {
        let mut participants = Vec::new();
        // A client has at most 1024 devices.
        let partitions = partition_count as u32;
        for (number, device) in (0..).zip(&devices) {
            // Numbers of devices are not negative.
            let at = device.id() as usize;
            participants.resize(participants.len().max(at + 1), Participant::default());
            participants[at] =
                Participant { number, replica_id: number / partitions, partition_id: number % partitions };
        }
        let (is_straight, watched) = (program.is_straight(), Watched::default());
        Self { program, devices, participants, is_straight, partition_count, watched, lowered: Vec::new() }
    }

    /// The same for `targets`, which are the devices, with the devices' own commands where they load kernels. Constants
    /// are where temporaries are. A program without kernels stays the host's, if that reaches all of its memory.
    ///
    /// # Errors
    /// `Unimplemented`: the program has kernels of devices, and these call functions of the host. As [`Lowered::of`].
    pub(crate) fn lowered(mut self, targets: &[Target]) -> StatusOr<Self> {
        let (program, has_theirs) = (&self.program, has_device_kernels(&self.program));
        if self.devices.first().is_none_or(Device::kernels_are_host_functions) {
            return match has_theirs {
                false => Ok(self),
                true => Err(Error::unimplemented(format!(
                    "'{}' cannot be loaded: it has kernels of devices, and those of {} are functions of the host",
                    program.name(),
                    self.devices[0]
                ))),
            };
        }
        let reached = || targets.iter().flat_map(Target::spaces).all(MemorySpace::is_host_visible);
        if !has_theirs && (has_host_kernels(program) || reached()) {
            return Ok(self);
        }
        for (device, target) in self.devices.iter().zip(targets) {
            let participant = self.participants[device.id() as usize];
            let ids = Ids { replica: participant.replica_id, partition: participant.partition_id };
            self.lowered.push(Lowered::of(program, device, &target.temporary_space, ids)?);
        }
        Ok(self)
    }

    /// What that device does by itself.
    fn work_of(&self, device: u16) -> Option<&LoweredWork> {
        let participant = self.participants.get(usize::from(device))?;
        self.lowered.get(participant.number as usize).map(|lowered| &lowered.work)
    }

    /// The program as each device does it; none where the host executes it.
    pub(crate) fn lowered_programs(&self) -> &[Lowered] {
        &self.lowered
    }

    /// # Safety
    /// As [`Launch::launch`]; `addresses` are those of the ranges that the module lists.
    unsafe fn run(
        &self,
        info: LaunchInfo,
        addresses: &[*mut u8],
        user: Option<&(dyn Any + Send + Sync)>,
    ) -> Result<(), Error> {
        if LevelFilter::current() >= LevelFilter::TRACE || !self.is_straight {
            // SAFETY: the caller's promise.
            return unsafe { self.run_watched(info, addresses, user, None) };
        }
        // SAFETY: the caller's promise.
        unsafe { self.run_by(info, addresses, user, Straight) }
    }

    /// As [`run`](Self::run), of a program that is not straight, or for a trace.
    ///
    /// # Safety
    /// As [`run`](Self::run).
    #[cold]
    unsafe fn run_watched(
        &self,
        info: LaunchInfo,
        addresses: &[*mut u8],
        user: Option<&(dyn Any + Send + Sync)>,
        collectives: Option<&dyn CollectiveLaunch>,
    ) -> Result<(), Error> {
        let is_traced = LevelFilter::current() >= LevelFilter::TRACE;
        let _span = is_traced.then(|| {
            let program = self.program.name();
            trace_span!(target: "purlin", "launch", program, launch_id = info.launch_id, device = info.device).entered()
        });
        let partitions = self.partition_count;
        let part = collectives.map(|launch| Part {
            launch,
            participant: self.participants[usize::from(info.device)].number,
            replicas: (self.devices.len() / partitions) as u32,
            partitions: partitions as u32,
        });
        let watch = self.watched.begin(&self.program, info, is_traced, part);
        // SAFETY: the caller's promise.
        unsafe { self.run_by(info, addresses, user, &watch) }
    }

    /// As [`run`](Self::run), by that road.
    ///
    /// # Safety
    /// As [`run`](Self::run).
    #[inline]
    unsafe fn run_by(
        &self,
        info: LaunchInfo,
        addresses: &[*mut u8],
        user: Option<&(dyn Any + Send + Sync)>,
        road: impl Road,
    ) -> Result<(), Error> {
        let participant = self.participants.get(usize::from(info.device)).copied();
        let Participant { number, replica_id, partition_id } =
            participant.expect("launches are asked for by LoadedExecutable, for a device of this list");
        let context = LibraryContext {
            launch_id: info.launch_id,
            device: info.device,
            replica_id,
            partition_id,
            user,
            runner: Some(self.devices[number as usize].runner()),
        };
        panics::answered(
            || format!("the program '{}'", self.program.name()),
            || {
                fault::callback("kernel");
                // SAFETY: the caller's promise.
                with_flushed_denormals(|| unsafe { self.run_commands(addresses, &context, road) })
            },
        )
    }

    /// # Safety
    /// As [`run`](Self::run).
    unsafe fn run_commands(
        &self,
        addresses: &[*mut u8],
        context: &LibraryContext<'_>,
        road: impl Road,
    ) -> Result<(), Error> {
        let places = self.program.places();
        let signature = self.program.signature();
        let has_temporaries = usize::from(places.temporary_bytes > 0);
        let (parameter_count, result_count) = (places.parameters.len(), signature.results.len());
        let mut with_empty: SmallVec<[*mut u8; 16]> = SmallVec::new();
        let addresses = if addresses.len() == parameter_count + result_count + has_temporaries {
            addresses
        } else {
            let mut next = addresses.iter().copied();
            let mut address_of = |is_there: bool| if is_there { next.next().unwrap_or(EMPTY) } else { EMPTY };
            with_empty.extend(places.parameters.iter().map(|parameter| address_of(parameter.is_used)));
            with_empty.extend(signature.results.iter().map(|spec| address_of(spec.size_bytes() > 0)));
            with_empty.extend((0..has_temporaries).map(|_| address_of(true)));
            &with_empty
        };
        let (arguments, behind) = addresses.split_at(parameter_count);
        let (results, behind) = behind.split_at(result_count);
        let temporaries = behind.first().copied().unwrap_or(EMPTY);

        let mut bounces: Vec<Bounce> = Vec::new();
        let mut gives_back: Vec<usize> = Vec::new();
        let mut bases = Bases::new();
        bases.reserve(places.places.len());
        for (place, allocation) in places.places.iter().zip(self.program.allocations()) {
            let size_bytes = allocation.size_bytes;
            let base = match *place {
                AllocationPlace::Argument(number) => {
                    let argument = arguments[number as usize];
                    if is_aligned(argument) {
                        argument
                    } else {
                        let mut bounce = Bounce::new(argument, size_bytes);
                        // SAFETY: this launch may read the argument, whose allocation has this size.
                        unsafe { bounce.fill_from(argument) };
                        kept(&mut bounces, bounce)
                    }
                }
                AllocationPlace::Result(number) => {
                    let result = results[number as usize];
                    let base = if is_aligned(result) {
                        result
                    } else {
                        gives_back.push(bounces.len());
                        kept(&mut bounces, Bounce::new(result, size_bytes))
                    };
                    let argument = places.results[number as usize].map(|parameter| arguments[parameter as usize]);
                    if let Some(argument) = argument.filter(|&argument| argument != base) {
                        // SAFETY: both have the size of the allocation. This launch may read the one and write the
                        // other. They are different buffers, or a buffer and its bounce buffer.
                        unsafe { ptr::copy(argument.cast_const(), base, size_bytes) };
                    }
                    base
                }
                AllocationPlace::Temporary(offset_bytes) => temporaries.wrapping_add(offset_bytes),
                AllocationPlace::Constant => match &allocation.kind {
                    AllocationKind::Constant(constant) if size_bytes > 0 => constant.bytes().as_ptr().cast_mut(),
                    _ => EMPTY,
                },
                AllocationPlace::Nowhere => ptr::null_mut(),
            };
            bases.push(base);
        }
        // SAFETY: the program is valid, and its allocations are at these addresses: ranges of the launch, bounce
        // buffers, or constants, which nothing writes.
        let outcome = unsafe { Interpreter::run(self.program.sequence(), &bases, context, road) };
        outcome.map_err(|failure| failure.into_error(self.program.name()))?;
        for at in gives_back {
            // SAFETY: the bounce buffer replaces a result, which this launch may write.
            unsafe { bounces[at].give_back() };
        }
        Ok(())
    }
}

/// Adds `bounce` to the list, and returns the address of its bytes. They are on the heap, so that they do not move when
/// the list grows.
#[cold]
fn kept(bounces: &mut Vec<Bounce>, mut bounce: Bounce) -> *mut u8 {
    let address = bounce.address();
    bounces.push(bounce);
    address
}
