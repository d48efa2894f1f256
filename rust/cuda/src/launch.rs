//! Launches: lists of commands on a stream of the device, as one operation.

#![allow(unsafe_code, reason = "the driver starts kernels and copies by address")]

use std::any::Any;
use std::ffi::c_void;
use std::ptr;
use std::sync::{Arc, OnceLock};

use cudarc::driver::sys::CUstream;
use purlin_base::Error;
use purlin_device::backend::{
    Command, CommandList, DeviceKernel, FillPattern, KernelCommand, Launch, Operation, Place, Work,
};
use smallvec::SmallVec;

use crate::api::{Base, ResultCode};
use crate::copy::{address, enqueue};
use crate::flow;
use crate::gpu::Gpu;
use crate::graph::{self, Prepared};
use crate::in_flight::InFlight;
use crate::module::Kernel;
use crate::stream::{Content, EndedOn, Role, SyncPoint};

/// The device whose GPU does the operation's commands. `None`: it has none.
pub(crate) fn device_of(operation: &Operation) -> Option<usize> {
    match operation.work() {
        Work::Launch { launch, device, .. } => {
            (launch.commands(*device).is_some() || launch.flow(*device).is_some()).then_some(usize::from(*device))
        }
        _ => None,
    }
}

/// Enqueues the commands behind `points`. The context is current.
pub(crate) fn start(in_flight: Box<InFlight>, points: &[SyncPoint]) {
    let Work::Launch { launch, device, stream, .. } = in_flight.operation().work() else {
        unreachable!("device_of() has seen that it is a launch")
    };
    let (launch, device, role) = (Arc::clone(launch), *device, Role::of_launches(*stream));
    let (gpu, keepers) = (Arc::clone(&in_flight.unit.gpu), Arc::clone(&in_flight.shared().keepers));
    let addresses: Addresses = in_flight.operation().ranges().map(|(_, range)| address(range) as u64).collect();
    if launch.flow(device).is_some() {
        return flow::start(in_flight, launch, addresses, points);
    }
    if let Err(error) = check(commands(&launch, device), &gpu, in_flight.operation(), &addresses) {
        return in_flight.end(Err(error), EndedOn::Poller);
    }
    let list = commands(&launch, device);
    // SAFETY: as below.
    let prepared = unsafe { graph::prepare(list, &gpu, &keepers, &addresses) };
    let refused = Refused::of(list);
    let named = refused.clone();
    let then = move |outcome: Result<(), Error>| outcome.map_err(|error| named.name(error));
    enqueue(in_flight, (role, Content::Commands(list)), points, then, None, |stream| {
        // SAFETY: core keeps the ranges, which are as large as the commands need, until the event; the launch's caller
        // promises what its kernels do with them. The context is current.
        unsafe { perform_all(&gpu, list, prepared, &addresses, &refused, stream) }
    });
}

/// The addresses of a launch's ranges, in their order.
pub(crate) type Addresses = SmallVec<[u64; 16]>;

/// Which of several commands was refused.
#[derive(Clone)]
pub(crate) struct Refused(Option<Arc<OnceLock<String>>>);

impl Refused {
    /// Of commands of that list.
    pub(crate) fn of(list: &CommandList) -> Self {
        Self((list.commands().len() > 1).then(Arc::default))
    }

    /// The error, with the command that was refused.
    pub(crate) fn name(&self, error: Error) -> Error {
        match self.0.as_ref().and_then(|refused| refused.get()) {
            Some(which) => Error::new(error.code(), format!("{}; {which}", error.message())),
            None => error,
        }
    }
}

/// Enqueues all commands: as the graph that is prepared, or one by one.
///
/// # Safety
/// As [`perform`], for each command.
pub(crate) unsafe fn perform_all(
    gpu: &Gpu,
    list: &CommandList,
    prepared: Option<Prepared<'_>>,
    addresses: &[u64],
    refused: &Refused,
    stream: CUstream,
) -> ResultCode {
    if let Some(prepared) = prepared {
        return prepared.launch(stream);
    }
    for (number, command) in list.commands().iter().enumerate() {
        // SAFETY: the caller's promise.
        let code = unsafe { perform(&gpu.api().base, command, addresses, stream) };
        if code != 0 {
            if let Some(refused) = &refused.0 {
                _ = refused.set(format!("its command {number}, {command:?}, was refused"));
            }
            return code;
        }
    }
    0
}

fn commands(launch: &Arc<dyn Launch>, device: u16) -> &CommandList {
    launch.commands(device).unwrap_or_else(|| unreachable!("device_of() has seen that there are commands"))
}

/// That the GPU can do the commands on these ranges.
///
/// # Errors
/// `InvalidArgument`: a kernel of another GPU or platform, memory that the GPU does not reach or that is not aligned, a
/// fill or copy of memory of the host, or a copy whose ends overlap.
pub(crate) fn check(list: &CommandList, gpu: &Gpu, operation: &Operation, addresses: &[u64]) -> Result<(), Error> {
    let refuse = |why: String| Err(Error::invalid_argument(format!("{operation:?}: {why}")));
    let mut is_of_gpus: SmallVec<[bool; 16]> = SmallVec::new();
    for ((_, range), address) in operation.ranges().zip(addresses) {
        let (kind, alignment) = (range.memory_kind(), list.alignment_bytes());
        if kind == "unpinned_host" {
            return refuse(format!("a GPU does not reach {range}: use memory of the kind 'pinned_host'"));
        }
        if !address.is_multiple_of(alignment as u64) {
            let number = is_of_gpus.len();
            return refuse(format!("range {number} begins at {address:#x}, which is no multiple of {alignment}"));
        }
        is_of_gpus.push(kind == "device");
    }
    let is_of_gpu = |place: &Place| is_of_gpus.get(place.range) == Some(&true);
    for command in list.commands() {
        match command {
            Command::Kernel(command) => match of_cuda(command) {
                Some(kernel) if kernel.context() == gpu.context() => {}
                Some(kernel) => {
                    let (name, other) = (kernel.name(), kernel.gpu().ordinal);
                    return refuse(format!(
                        "the kernel '{name}' is loaded on GPU {other}, and not on GPU {}",
                        gpu.ordinal
                    ));
                }
                None => return refuse(format!("the kernel '{}' is of another platform", command.kernel().name())),
            },
            Command::Copy { from, to, .. } if !is_of_gpu(from) || !is_of_gpu(to) => {
                return refuse(format!("a {command:?} of a launch is between GPUs' memory alone"));
            }
            Command::Fill { to, .. } if !is_of_gpu(to) => {
                return refuse(format!("a {command:?} of a launch is of GPUs' memory alone"));
            }
            Command::Copy { from, to, size_bytes } => {
                let apart = at(addresses, from).abs_diff(at(addresses, to));
                if apart != 0 && apart < *size_bytes as u64 {
                    return refuse(format!("the ends of a {command:?} overlap"));
                }
            }
            Command::Fill { .. } => {}
        }
    }
    Ok(())
}

fn of_cuda(command: &KernelCommand) -> Option<&Kernel> {
    (command.kernel().as_ref() as &dyn Any).downcast_ref()
}

/// The address of a place.
fn at(addresses: &[u64], place: &Place) -> u64 {
    addresses[place.range] + place.offset_bytes as u64
}

/// Enqueues one command.
///
/// # Safety
/// The ranges at `addresses` are there until the work on the stream is over, and as large as the command needs; the
/// caller of the launch promises what a kernel does with them. A context is current, and [`check`] has passed.
pub(crate) unsafe fn perform(base: &Base, command: &Command, addresses: &[u64], stream: CUstream) -> ResultCode {
    let at = |place| at(addresses, place);
    match command {
        Command::Kernel(command) => {
            let Some(kernel) = of_cuda(command) else { unreachable!("check() has seen that it is ours") };
            let (mut bytes, begins) = command.arguments(addresses);
            let first = bytes.as_mut_ptr();
            let mut arguments: SmallVec<[*mut c_void; 16]> =
                begins.iter().map(|&begin| first.wrapping_add(begin).cast()).collect();
            let dimensions = command.dimensions();
            let ([x, y, z], [block_x, block_y, block_z]) = (dimensions.grid, dimensions.block);
            // SAFETY: the kernel keeps its module loaded, and has as many parameters, of these sizes, as was seen when
            // it was loaded; the driver copies the arguments inside the call.
            unsafe {
                let shared_bytes = dimensions.shared_memory_bytes;
                let (arguments, none) = (arguments.as_mut_ptr(), ptr::null_mut());
                let function = kernel.function();
                (base.launch)(function, x, y, z, block_x, block_y, block_z, shared_bytes, stream, arguments, none)
            }
        }
        Command::Copy { size_bytes: 0, .. } | Command::Fill { size_bytes: 0, .. } => 0,
        Command::Copy { from, to, .. } if at(from) == at(to) => 0,
        // SAFETY: the caller's promise.
        Command::Copy { from, to, size_bytes } => unsafe { (base.copy_within)(at(to), at(from), *size_bytes, stream) },
        // SAFETY: the caller's promise.
        Command::Fill { to, size_bytes, pattern } => unsafe {
            let (to, count) = (at(to), size_bytes / pattern.width_bytes());
            match *pattern {
                FillPattern::Byte(byte) => (base.fill_bytes)(to, byte, count, stream),
                FillPattern::Pair(pair) => (base.fill_pairs)(to, pair, count, stream),
                FillPattern::Word(word) => (base.fill_words)(to, word, count, stream),
            }
        },
    }
}
