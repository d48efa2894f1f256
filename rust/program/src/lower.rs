//! Programs for devices that load kernels: the program's commands become a list of the device's, once, when it is
//! loaded; or lists, and choices between them, where bytes of the device decide.
//!
//! The ranges of the list are those of a launch, in the order that `launch` says, and behind them the constants, which
//! are in the device's memory for as long as the program is loaded. A donated argument is where its result is, so its
//! copy to the result is one onto itself. Loops with a trip count are unrolled. A fill that is no single command of a
//! device copies a constant, and then what it has written, again and again. A copy whose ends overlap goes through
//! scratch memory behind the temporaries.

mod choices;
mod copies;

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

use self::copies::{Pattern, most_overlapping_bytes, overlap};
use crate::allocation::{ALIGNMENT_BYTES, AllocationKind, Slice};
use crate::command::{Command, Sequence};
use crate::kernel::{DeviceKernelCode, KernelCode};
use crate::loaded_kernel::{KernelOperand, LoadedKernel};
use crate::operand::Operand;
use crate::places::AllocationPlace;
use crate::program::Program;
use purlin_base::{Error, StatusOr};
use purlin_device::backend::{self, CommandFlow, CommandList, FillPattern, FlowStep, LaunchDimensions, Place};
use purlin_device::{Buffer, Device, MemorySpace, RawBuffer};

/// How many commands and choices a program has at most: what loops unroll to.
const MOST_COMMANDS: usize = 1 << 16;

/// A program, as a device does it.
pub(crate) struct Lowered {
    pub(crate) work: LoweredWork,
    /// The temporaries, and what the device needs besides.
    pub(crate) temporary_bytes: usize,
    /// The ranges behind those of a launch.
    pub(crate) constants: Vec<RawBuffer>,
}

/// What is done, one after the other or as choices say.
pub(crate) enum LoweredWork {
    List(CommandList),
    Flow(CommandFlow),
}

/// The participant for which a program is lowered.
#[derive(Clone, Copy)]
pub(crate) struct Ids {
    pub(crate) replica: u32,
    pub(crate) partition: u32,
}

/// Whether commands of the program are only a device's.
pub(crate) fn has_device_kernels(program: &Program) -> bool {
    any(
        program.sequence(),
        &|command| matches!(command, Command::Kernel { kernel, .. } if matches!(kernel.code(), KernelCode::OfDevice(_))),
    )
}

/// Whether commands of the program are only the host's.
pub(crate) fn has_host_kernels(program: &Program) -> bool {
    any(program.sequence(), &|command| match command {
        Command::Kernel { kernel, .. } => !matches!(kernel.code(), KernelCode::OfDevice(_)),
        Command::Library { .. } | Command::Collective { .. } => true,
        _ => false,
    })
}

fn any(sequence: &Sequence, is: &impl Fn(&Command) -> bool) -> bool {
    // As deep as validation permits.
    sequence.commands().iter().any(|command| is(command) || command.sequences().any(|(_, inner)| any(inner, is)))
}

impl Lowered {
    /// The program for `device`, whose constants are in `space`. Loads its kernels, and blocks until the constants are
    /// there.
    ///
    /// # Errors
    /// `Unimplemented`, naming the command: one that only the host can do, or more than 65536 commands. As
    /// [`LoadedKernel::load`] and [`LoadedKernel::bind`].
    pub(crate) fn of(program: &Program, device: &Device, space: &MemorySpace, ids: Ids) -> StatusOr<Self> {
        let temporary_bytes = program.places().temporary_bytes;
        let (scratch_at, scratch_bytes) =
            (temporary_bytes.next_multiple_of(ALIGNMENT_BYTES), most_overlapping_bytes(program, program.sequence()));
        let temporary_bytes = if scratch_bytes == 0 { temporary_bytes } else { scratch_at + scratch_bytes };
        let mut lowering = Lowering {
            program,
            device,
            space,
            ids,
            ranges: Ranges::of(program, temporary_bytes > 0),
            scratch_at,
            constants: Vec::new(),
            patterns: Vec::new(),
            commands: Vec::new(),
            steps: Vec::new(),
            count: 0,
            kernels: Vec::new(),
        };
        lowering.place_constants()?;
        lowering.copy_arguments();
        lowering.sequence(program.sequence())?;
        let work = if lowering.steps.is_empty() {
            LoweredWork::List(list_of(lowering.commands)?)
        } else {
            lowering.end_list()?;
            LoweredWork::Flow(CommandFlow::new(lowering.steps)?)
        };
        Ok(Self { work, temporary_bytes, constants: lowering.constants })
    }
}

fn list_of(commands: Vec<backend::Command>) -> StatusOr<CommandList> {
    Ok(CommandList::new(commands)?.with_alignment(ALIGNMENT_BYTES))
}

struct Lowering<'a> {
    program: &'a Program,
    device: &'a Device,
    /// That of constants.
    space: &'a MemorySpace,
    ids: Ids,
    ranges: Ranges,
    /// Where scratch memory begins, in the range of temporaries.
    scratch_at: usize,
    constants: Vec<RawBuffer>,
    /// The constants that are patterns of fills.
    patterns: Vec<Pattern>,
    /// The list that has not ended.
    commands: Vec<backend::Command>,
    /// Lists that have ended, and choices; none in a program without choices.
    steps: Vec<FlowStep>,
    /// How many commands and choices there are.
    count: usize,
    kernels: Vec<(Arc<DeviceKernelCode>, LoadedKernel)>,
}

/// Where each range of a launch stands among them; `None`: an empty one, which is not there.
struct Ranges {
    arguments: Vec<Option<usize>>,
    results: Vec<Option<usize>>,
    temporaries: Option<usize>,
    /// By allocation.
    constants: Vec<Option<usize>>,
    count: usize,
}

impl Ranges {
    fn of(program: &Program, has_temporaries: bool) -> Self {
        let (places, mut count) = (program.places(), 0);
        let mut next = |is_there: bool| {
            let number = count;
            count += usize::from(is_there);
            is_there.then_some(number)
        };
        let arguments = places.parameters.iter().map(|parameter| next(parameter.is_used)).collect();
        let results = program.signature().results.iter().map(|spec| next(spec.size_bytes() > 0)).collect();
        let temporaries = next(has_temporaries);
        Self { arguments, results, temporaries, constants: vec![None; places.places.len()], count }
    }
}

impl Lowering<'_> {
    /// Copies constants to the device.
    fn place_constants(&mut self) -> Result<(), Error> {
        for (number, allocation) in self.program.allocations().iter().enumerate() {
            let AllocationKind::Constant(constant) = &allocation.kind else { continue };
            if allocation.size_bytes == 0 {
                continue;
            }
            self.ranges.constants[number] = Some(self.constant(constant.bytes())?);
        }
        Ok(())
    }

    /// The range of a new constant, which is not empty.
    fn constant(&mut self, bytes: &[u8]) -> StatusOr<usize> {
        let size = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
        self.constants.push(Buffer::from_slice(bytes, &[size], self.space)?.raw_alias()?);
        self.ranges.count += 1;
        Ok(self.ranges.count - 1)
    }

    /// Arguments that share a result's allocation and were not donated are copied to the result first.
    fn copy_arguments(&mut self) {
        let places = self.program.places();
        for (allocation, place) in self.program.allocations().iter().zip(&places.places) {
            let AllocationPlace::Result(result) = *place else { continue };
            let Some(parameter) = places.results[result as usize] else { continue };
            let ends = (self.ranges.arguments[parameter as usize], self.ranges.results[result as usize]);
            if let (Some(from), Some(to)) = ends {
                self.copy(Place::begin_of(from), Place::begin_of(to), allocation.size_bytes);
            }
        }
    }

    fn sequence(&mut self, sequence: &Sequence) -> Result<(), Error> {
        for command in sequence.commands() {
            self.command(command).map_err(|error| {
                error.prefixed(format_args!("'{}' cannot be loaded: {command}", self.program.name()))
            })?;
        }
        Ok(())
    }

    fn command(&mut self, command: &Command) -> Result<(), Error> {
        if self.count >= MOST_COMMANDS {
            return Err(Error::unimplemented(format!("a device's program has at most {MOST_COMMANDS} commands")));
        }
        match command {
            Command::Kernel { kernel, workgroups, operands } => match kernel.code() {
                KernelCode::OfDevice(_) if workgroups.contains(&0) => {}
                KernelCode::OfDevice(code) => {
                    let kernel = self.kernel(code, *workgroups, operands)?;
                    self.push(kernel);
                }
                _ => return Err(self.is_of_host(&"a kernel")),
            },
            Command::Copy { from, to } => {
                let (Some(begin), Some(end)) = (self.place(from), self.place(to)) else { return Ok(()) };
                match self.ranges.temporaries.filter(|_| overlap(self.program, from, to)) {
                    None => self.copy(begin, end, to.size_bytes),
                    Some(range) => {
                        let between = Place { range, offset_bytes: self.scratch_at };
                        self.copy(begin, between, to.size_bytes);
                        self.copy(between, end, to.size_bytes);
                    }
                }
            }
            Command::Fill { pattern, to } => {
                let Some(place) = self.place(to) else { return Ok(()) };
                match FillPattern::of(pattern).filter(|one| place.offset_bytes.is_multiple_of(one.width_bytes())) {
                    Some(pattern) => {
                        self.push(backend::Command::Fill { to: place, size_bytes: to.size_bytes, pattern });
                    }
                    None => self.fill_by_copies(pattern, place, to.size_bytes)?,
                }
            }
            Command::ReplicaId { to } => self.number(to, self.ids.replica)?,
            Command::PartitionId { to } => self.number(to, self.ids.partition)?,
            Command::Call(body) => self.inner(body)?,
            Command::Repeat { trip_count, body } => {
                let before = self.count;
                for _ in 0..*trip_count {
                    self.inner(body)?;
                    if self.count == before {
                        // It does nothing, however often.
                        break;
                    }
                }
            }
            Command::While { condition, predicate, body } => self.repeat_while(condition, predicate, body)?,
            Command::Conditional { branch, branches } => self.choose(*branch, branches)?,
            Command::Library { .. } => return Err(self.is_of_host(&"a library call")),
            Command::Collective { .. } => return Err(self.is_of_host(&"a collective")),
        }
        Ok(())
    }

    fn push(&mut self, command: backend::Command) {
        self.count += 1;
        self.commands.push(command);
    }

    fn copy(&mut self, from: Place, to: Place, size_bytes: usize) {
        self.push(backend::Command::Copy { from, to, size_bytes });
    }

    fn inner(&mut self, body: &Sequence) -> Result<(), Error> {
        body.commands().iter().try_for_each(|command| self.command(command))
    }

    fn is_of_host(&self, what: &dyn fmt::Display) -> Error {
        Error::unimplemented(format!(
            "{what} is done by the host, and the commands of {} are the device's",
            self.device
        ))
    }

    fn number(&mut self, to: &Slice, number: u32) -> Result<(), Error> {
        self.command(&Command::Fill { pattern: number.to_ne_bytes().to_vec(), to: *to })
    }

    fn kernel(
        &mut self,
        code: &Arc<DeviceKernelCode>,
        workgroups: [u64; 3],
        operands: &[Operand],
    ) -> StatusOr<backend::Command> {
        let mut grid = [0; 3];
        for (to, blocks) in grid.iter_mut().zip(workgroups) {
            *to = u32::try_from(blocks)
                .map_err(|_| Error::invalid_argument(format!("a grid has no {blocks} blocks in one dimension")))?;
        }
        let dimensions = LaunchDimensions { grid, block: code.block, shared_memory_bytes: code.shared_memory_bytes };
        let places: SmallVec<[Option<Place>; 8]> = operands.iter().map(|operand| self.place(&operand.slice)).collect();
        let operands: SmallVec<[KernelOperand; 8]> = operands
            .iter()
            .map(|operand| KernelOperand { access: operand.access, size_bytes: operand.slice.size_bytes })
            .collect();
        self.loaded(code)?.command(dimensions, &operands, &places)
    }

    /// The kernel of that code, which several commands may name.
    fn loaded(&mut self, code: &Arc<DeviceKernelCode>) -> StatusOr<LoadedKernel> {
        if let Some((_, kernel)) = self.kernels.iter().find(|(known, _)| Arc::ptr_eq(known, code)) {
            return Ok(kernel.clone());
        }
        let kernel = LoadedKernel::load(self.device, &code.spec)?;
        self.kernels.push((Arc::clone(code), kernel.clone()));
        Ok(kernel)
    }

    /// Where the slice is among the ranges. `None`: it is empty.
    fn place(&self, slice: &Slice) -> Option<Place> {
        let allocation = slice.allocation as usize;
        let (range, offset_bytes) = match self.program.places().places[allocation] {
            AllocationPlace::Argument(number) => (self.ranges.arguments[number as usize], 0),
            AllocationPlace::Result(number) => (self.ranges.results[number as usize], 0),
            AllocationPlace::Constant => (self.ranges.constants[allocation], 0),
            AllocationPlace::Temporary(offset_bytes) => (self.ranges.temporaries, offset_bytes),
            AllocationPlace::Nowhere => (None, 0),
        };
        let range = range.filter(|_| slice.size_bytes > 0)?;
        Some(Place { range, offset_bytes: offset_bytes + slice.offset_bytes })
    }
}
