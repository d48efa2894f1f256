//! The interpreter: executes commands.
//!
//! The program is valid, so nothing is checked here: an address is the base of an allocation plus an offset. The first
//! command that fails ends the run; the error names its place. Only kernels, library calls and collectives
//! can fail.
//!
//! There are two roads. A small program is executed [straight](Straight): on the calling thread, without a look at
//! anything but its commands. A [`Watch`]ed program also runs commands and workgroups side by side where that pays
//! (`side_by_side.rs`), and shows stall reports and traces where it is.

#![allow(unsafe_code, reason = "commands access bytes by address")]

mod side_by_side;

use std::ffi::c_void;
use std::fmt;
use std::ptr;

use smallvec::SmallVec;
use tracing::span::EnteredSpan;

use crate::allocation::Slice;
use crate::collective::{Collective, CollectiveArray, CollectiveCall};
use crate::command::{Branch, Command, Sequence};
use crate::kernel::{Kernel, KernelArgument, KernelCall, KernelCode, KernelDim3, KernelFrame};
use crate::library::{LibraryContext, OperandBytes};
use crate::operand::Operand;
use crate::watch::{Part, Watch};
use purlin_base::Error;

/// The addresses of a run's allocations, by number. Null: no memory is bound.
pub(crate) type Bases = SmallVec<[*mut u8; 64]>;

/// The road of a run. It is chosen once for each run, and costs the straight one nothing.
pub(crate) trait Road: Copy {
    /// The span of a command, if there is one; dropping it ends the span.
    type Span;

    /// The watch; `None` on the straight road.
    fn watch(&self) -> Option<&Watch<'_>>;

    /// Command `index` of `sequence` begins.
    fn begins(&self, sequence: &Sequence, index: usize) -> Self::Span;
}

/// The road of small programs.
#[derive(Clone, Copy)]
pub(crate) struct Straight;

impl Road for Straight {
    type Span = ();

    #[inline(always)]
    fn begins(&self, _sequence: &Sequence, _index: usize) {}

    #[inline(always)]
    fn watch(&self) -> Option<&Watch<'_>> {
        None
    }
}

impl Road for &Watch<'_> {
    type Span = Option<EnteredSpan>;

    fn begins(&self, sequence: &Sequence, index: usize) -> Option<EnteredSpan> {
        Watch::begins(self, sequence, index)
    }

    #[inline(always)]
    fn watch(&self) -> Option<&Watch<'_>> {
        Some(self)
    }
}

/// The state of one run on one thread.
pub(crate) struct Interpreter<'a, R> {
    bases: &'a [*mut u8],
    context: &'a LibraryContext<'a>,
    road: R,
    /// The operands of the native kernel that is called; the memory is reused.
    arguments: SmallVec<[KernelArgument; 64]>,
}

/// The command that failed, its error, and its place: the steps that lead to it, the innermost first.
pub(crate) struct Failure {
    command: String,
    steps: Vec<(usize, Option<&'static str>)>,
    error: Error,
}

impl Failure {
    /// The error, with the place of the command in front of its message. The code and the payloads are unchanged.
    pub(crate) fn into_error(self, program: &str) -> Error {
        if self.command.is_empty() {
            return self.error;
        }
        let mut placed =
            Error::new(self.error.code(), format!("command {self} of '{program}': {}", self.error.message()));
        for (type_url, payload) in self.error.payloads() {
            placed.set_payload(type_url, payload);
        }
        placed
    }

    #[cold]
    fn new(command: &Command, error: Error) -> Box<Self> {
        Box::new(Self { command: command.to_string(), steps: Vec::new(), error })
    }

    /// Adds the step that leads to the failure: command `index` of a sequence.
    #[cold]
    fn inside(mut self: Box<Self>, index: usize, command: &Command) -> Box<Self> {
        let entered = if self.steps.is_empty() { None } else { entered(command) };
        self.steps.push((index, entered));
        self
    }

    /// A failure that is no command's, such as a panic: its error stays as it is.
    #[cold]
    fn of_run(error: Error) -> Box<Self> {
        Box::new(Self { command: String::new(), steps: Vec::new(), error })
    }
}

/// `3.body.1 (kernel 'add')`
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (depth, (index, entered)) in self.steps.iter().rev().enumerate() {
            let dot = if depth == 0 { "" } else { "." };
            write!(f, "{dot}{index}")?;
            if let Some(entered) = entered {
                write!(f, ".{entered}")?;
            }
        }
        write!(f, " ({})", self.command)
    }
}

impl<'a, R: Road> Interpreter<'a, R> {
    /// Executes the commands of `sequence`.
    ///
    /// # Errors
    /// The error of the first command that fails, with its code. The commands after it are not executed.
    ///
    /// # Safety
    /// `sequence` is that of a valid program. `bases` has an address for each of its allocations: aligned, and valid
    /// for reads of as many bytes as the allocation has. It is valid for writes if commands may write the allocation,
    /// and initialised if the allocation is defined at the start. During the call, nothing else writes the bytes that
    /// commands read, or accesses the bytes that they write.
    pub(crate) unsafe fn run(
        sequence: &Sequence,
        bases: &'a [*mut u8],
        context: &'a LibraryContext<'a>,
        road: R,
    ) -> Result<(), Box<Failure>> {
        let mut interpreter = Self { bases, context, road, arguments: SmallVec::new() };
        // SAFETY: the caller's promise.
        unsafe { interpreter.sequence(sequence) }
    }

    /// The address of a slice that is not of thread-local memory.
    fn address(&self, slice: &Slice) -> *mut u8 {
        self.bases[slice.allocation as usize].wrapping_add(slice.offset_bytes)
    }

    /// The address of an operand of a native kernel; null for thread-local memory.
    fn address_or_null(&self, slice: &Slice) -> *mut u8 {
        let base = self.bases[slice.allocation as usize];
        if base.is_null() { base } else { base.wrapping_add(slice.offset_bytes) }
    }

    /// # Safety
    /// As [`run`](Self::run).
    unsafe fn sequence(&mut self, sequence: &Sequence) -> Result<(), Box<Failure>> {
        if self.road.watch().is_some() && !sequence.waves().is_empty() {
            // SAFETY: the caller's promise.
            return unsafe { self.waves(sequence) };
        }
        for (index, command) in sequence.commands().iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe { self.step(sequence, index, command) }?;
        }
        Ok(())
    }

    /// Executes command `index` of `sequence`.
    ///
    /// # Safety
    /// As [`run`](Self::run).
    #[inline(always)]
    unsafe fn step(&mut self, sequence: &Sequence, index: usize, command: &Command) -> Result<(), Box<Failure>> {
        let road = self.road;
        let _span = road.begins(sequence, index);
        // SAFETY: the caller's promise.
        match unsafe { self.command(command) } {
            Ok(()) => Ok(()),
            Err(failure) => Err(failure.inside(index, command)),
        }
    }

    /// # Safety
    /// As [`run`](Self::run).
    #[inline(always)]
    unsafe fn command(&mut self, command: &Command) -> Result<(), Box<Failure>> {
        // SAFETY: slices and operands lie in their allocations, whose addresses are as the caller promises.
        unsafe {
            match command {
                Command::Kernel { kernel, workgroups, operands } => {
                    self.kernel(kernel, *workgroups, operands).map_err(|error| Failure::new(command, error))
                }
                Command::Library { call, operands } => {
                    let bytes = |operand: &Operand| OperandBytes {
                        address: self.address(&operand.slice),
                        size_bytes: operand.slice.size_bytes,
                    };
                    let operands: SmallVec<[OperandBytes; 8]> = operands.iter().map(bytes).collect();
                    call.run(&operands, self.context).map_err(|error| Failure::new(command, error))
                }
                Command::Collective { collective, arrays } => {
                    self.collective(collective, arrays).map_err(|error| Failure::new(command, error))
                }
                Command::Copy { from, to } => {
                    ptr::copy(self.address(from).cast_const(), self.address(to), to.size_bytes);
                    Ok(())
                }
                Command::Fill { pattern, to } => {
                    fill(self.address(to), to.size_bytes, pattern);
                    Ok(())
                }
                Command::Call(body) => self.sequence(body),
                Command::Repeat { trip_count, body } => {
                    for _ in 0..*trip_count {
                        self.sequence(body)?;
                    }
                    Ok(())
                }
                Command::While { condition, predicate, body } => loop {
                    self.sequence(condition)?;
                    if self.address(predicate).read() == 0 {
                        return Ok(());
                    }
                    self.sequence(body)?;
                },
                Command::Conditional { branch, branches } => {
                    let chosen = match branch {
                        Branch::Predicate(slice) => usize::from(self.address(slice).read() == 0),
                        Branch::Index(slice) => {
                            let index = self.address(slice).cast::<i32>().read_unaligned();
                            usize::try_from(index).unwrap_or(usize::MAX).min(branches.len() - 1)
                        }
                    };
                    self.sequence(&branches[chosen])
                }
                Command::ReplicaId { to } => {
                    self.address(to).cast::<u32>().write_unaligned(self.context.replica_id);
                    Ok(())
                }
                Command::PartitionId { to } => {
                    self.address(to).cast::<u32>().write_unaligned(self.context.partition_id);
                    Ok(())
                }
            }
        }
    }

    /// Executes a collective together with the other members of its group.
    #[cold]
    fn collective(&self, collective: &Collective, arrays: &[CollectiveArray]) -> Result<(), Error> {
        let Some(part) = self.road.watch().and_then(|watch| watch.part) else {
            unreachable!("LoadedExecutable gives each launch with collectives a part")
        };
        let Part { launch, participant, replicas, partitions } = part;
        let members = collective.members(participant, replicas, partitions);
        let rank = members.iter().position(|&member| member == participant);
        let rank = rank.expect("each participant is in a group, which was checked when the program was loaded");
        let bytes = |slice: &Slice| OperandBytes { address: self.address(slice), size_bytes: slice.size_bytes };
        let from: Vec<_> = arrays.iter().map(|array| bytes(&array.from)).collect();
        let to: Vec<_> = arrays.iter().map(|array| bytes(&array.to)).collect();
        launch.join(&CollectiveCall { collective, members: &members, rank, arrays, from: &from, to: &to })
    }

    /// # Safety
    /// As [`run`](Self::run).
    unsafe fn kernel(&mut self, kernel: &Kernel, workgroups: [u64; 3], operands: &[Operand]) -> Result<(), Error> {
        let size = KernelDim3 { x: workgroups[0], y: workgroups[1], z: workgroups[2] };
        if let KernelCode::Native { function, .. } = kernel.code() {
            self.arguments.clear();
            for Operand { slice, .. } in operands {
                let data: *mut c_void = self.address_or_null(slice).cast();
                self.arguments.push(KernelArgument { data, size_bytes: slice.size_bytes });
            }
            if let Some(watch) = self.road.watch()
                && let Some(grain) = self.grain(watch, workgroups, operands)
            {
                // SAFETY: as below. The caller of Kernel::native has promised that workgroups may run side by side.
                return unsafe { self.spread(*function, size, grain) };
            }
            let (num_args, args) = (self.arguments.len(), self.arguments.as_ptr());
            return for_each_workgroup(workgroups, |[x, y, z]| {
                let id = KernelDim3 { x, y, z };
                let frame = KernelFrame { num_workgroups: &size, id: &id, num_args, args };
                // SAFETY: the operands are those of a command that names the kernel, and their memory is valid. The
                // caller of Kernel::native has promised the rest. The kernel keeps its owner alive.
                outcome(unsafe { function(&frame) })
            });
        }
        let KernelCode::Closure(closure) = kernel.code() else {
            unreachable!("all kernels of a program have code, and loading refuses that of devices on the host")
        };
        let (mut reads, mut writes) = (SmallVec::<[&[u8]; 8]>::new(), SmallVec::<[&mut [u8]; 4]>::new());
        for Operand { slice, access, .. } in operands {
            let (address, size_bytes) = (self.address(slice), slice.size_bytes);
            // SAFETY: as the caller of run() promises. Validation refuses closures whose operands share a byte that is
            // written. The slices are dropped when this call returns.
            unsafe {
                if access.writes() {
                    writes.push(std::slice::from_raw_parts_mut(address, size_bytes));
                } else {
                    reads.push(std::slice::from_raw_parts(address, size_bytes));
                }
            }
        }
        for_each_workgroup(workgroups, |workgroup| {
            closure(KernelCall { workgroup, workgroups, reads: &reads, writes: &mut writes })
        })
    }
}

/// The name that errors give to the sequences of a command.
fn entered(command: &Command) -> Option<&'static str> {
    match command {
        Command::Call(_) => Some("call"),
        Command::While { .. } | Command::Repeat { .. } => Some("body"),
        Command::Conditional { .. } => Some("branch"),
        _ => None,
    }
}

/// The outcome of a native kernel that has returned `answer`.
fn outcome(answer: *mut c_void) -> Result<(), Error> {
    if answer.is_null() { Ok(()) } else { Err(Error::internal("the kernel answered an error")) }
}

/// Calls `f` for each workgroup of the grid, the fastest dimension first.
pub(crate) fn for_each_workgroup(
    [x, y, z]: [u64; 3],
    mut f: impl FnMut([u64; 3]) -> Result<(), Error>,
) -> Result<(), Error> {
    for z in 0..z {
        for y in 0..y {
            for x in 0..x {
                f([x, y, z])?;
            }
        }
    }
    Ok(())
}

/// Writes `pattern` repeatedly.
///
/// # Safety
/// `address` is valid for writes of `size_bytes` bytes. `size_bytes` is a multiple of the pattern's length, which is
/// not 0.
unsafe fn fill(address: *mut u8, size_bytes: usize, pattern: &[u8]) {
    // SAFETY: the caller's promise.
    unsafe {
        if let [byte] = pattern {
            return ptr::write_bytes(address, *byte, size_bytes);
        }
        for offset in (0..size_bytes).step_by(pattern.len()) {
            ptr::copy_nonoverlapping(pattern.as_ptr(), address.add(offset), pattern.len());
        }
    }
}
