//! Programs for devices that load kernels: the program's commands become a list of the device's, once, when it is
//! loaded.
//!
//! The ranges of the list are those of a launch, in the order that `launch` says, and behind them the constants, which
//! are in the device's memory for as long as the program is loaded. A donated argument is where its result is, so its
//! copy to the result is one onto itself. Loops with a trip count are unrolled.

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::allocation::{ALIGNMENT_BYTES, AllocationKind, Slice};
use crate::command::{Command, Sequence};
use crate::kernel::{DeviceKernelCode, KernelCode};
use crate::loaded_kernel::{KernelOperand, LoadedKernel};
use crate::operand::Operand;
use crate::places::AllocationPlace;
use crate::program::Program;
use purlin_base::{Error, StatusOr};
use purlin_device::backend::{self, CommandList, FillPattern, LaunchDimensions, Place};
use purlin_device::{Buffer, Device, MemorySpace, RawBuffer};

/// How many commands a list has at most: what loops unroll to.
const MOST_COMMANDS: usize = 1 << 16;

/// A program, as a device does it.
pub(crate) struct Lowered {
    pub(crate) list: CommandList,
    /// The ranges behind those of a launch.
    pub(crate) constants: Vec<RawBuffer>,
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
    /// `Unimplemented`, naming the command: one that only the host can do, a loop without a trip count, a branch, a
    /// fill with a pattern that does not repeat after four bytes, or more than 65536 commands. As
    /// [`LoadedKernel::load`] and [`LoadedKernel::bind`].
    pub(crate) fn of(program: &Program, device: &Device, space: &MemorySpace, ids: Ids) -> StatusOr<Self> {
        let (ranges, constants, commands, kernels) = (Ranges::of(program), Vec::new(), Vec::new(), Vec::new());
        let mut lowering = Lowering { program, device, ids, ranges, constants, commands, kernels };
        lowering.place_constants(space)?;
        lowering.copy_arguments();
        lowering.sequence(program.sequence())?;
        let Lowering { constants, commands, .. } = lowering;
        let list = CommandList::new(commands)?.with_alignment(ALIGNMENT_BYTES);
        Ok(Self { list, constants })
    }
}

struct Lowering<'a> {
    program: &'a Program,
    device: &'a Device,
    ids: Ids,
    ranges: Ranges,
    constants: Vec<RawBuffer>,
    commands: Vec<backend::Command>,
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
    fn of(program: &Program) -> Self {
        let (places, mut count) = (program.places(), 0);
        let mut next = |is_there: bool| {
            let number = count;
            count += usize::from(is_there);
            is_there.then_some(number)
        };
        let arguments = places.parameters.iter().map(|parameter| next(parameter.is_used)).collect();
        let results = program.signature().results.iter().map(|spec| next(spec.size_bytes() > 0)).collect();
        let temporaries = next(places.temporary_bytes > 0);
        Self { arguments, results, temporaries, constants: vec![None; places.places.len()], count }
    }
}

impl Lowering<'_> {
    /// Copies constants to the device.
    fn place_constants(&mut self, space: &MemorySpace) -> Result<(), Error> {
        for (number, allocation) in self.program.allocations().iter().enumerate() {
            let AllocationKind::Constant(constant) = &allocation.kind else { continue };
            if allocation.size_bytes == 0 {
                continue;
            }
            let size = i64::try_from(constant.size_bytes()).unwrap_or(i64::MAX);
            let buffer = Buffer::from_slice(constant.bytes(), &[size], space)?;
            self.constants.push(buffer.raw_alias()?);
            self.ranges.constants[number] = Some(self.ranges.count);
            self.ranges.count += 1;
        }
        Ok(())
    }

    /// Arguments that share a result's allocation and were not donated are copied to the result first.
    fn copy_arguments(&mut self) {
        let places = self.program.places();
        for (allocation, place) in self.program.allocations().iter().zip(&places.places) {
            let AllocationPlace::Result(result) = *place else { continue };
            let Some(parameter) = places.results[result as usize] else { continue };
            let ends = (self.ranges.arguments[parameter as usize], self.ranges.results[result as usize]);
            if let (Some(from), Some(to)) = ends {
                let (from, to, size_bytes) = (Place::begin_of(from), Place::begin_of(to), allocation.size_bytes);
                self.commands.push(backend::Command::Copy { from, to, size_bytes });
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
        if self.commands.len() >= MOST_COMMANDS {
            return Err(Error::unimplemented(format!("a device's list has at most {MOST_COMMANDS} commands")));
        }
        let lowered = match command {
            Command::Kernel { kernel, workgroups, operands } => match kernel.code() {
                KernelCode::OfDevice(_) if workgroups.contains(&0) => return Ok(()),
                KernelCode::OfDevice(code) => self.kernel(code, *workgroups, operands)?,
                _ => return Err(self.is_of_host(&"a kernel")),
            },
            Command::Copy { from, to } => match (self.place(from), self.place(to)) {
                (Some(from), Some(place)) => {
                    let apart = from.offset_bytes.abs_diff(place.offset_bytes);
                    if from.range == place.range && apart != 0 && apart < to.size_bytes {
                        return Err(self.is_of_host(&"a copy whose ends overlap"));
                    }
                    backend::Command::Copy { from, to: place, size_bytes: to.size_bytes }
                }
                _ => return Ok(()),
            },
            Command::Fill { pattern, to } => {
                let Some(fill) = FillPattern::of(pattern) else {
                    let why = format!("a device repeats up to 4 bytes, and the pattern has {}", pattern.len());
                    return Err(Error::unimplemented(why));
                };
                let Some(place) = self.place(to) else { return Ok(()) };
                self.fill(place, to.size_bytes, fill)?
            }
            Command::ReplicaId { to } => self.number(to, self.ids.replica)?,
            Command::PartitionId { to } => self.number(to, self.ids.partition)?,
            Command::Call(body) => return self.inner(body),
            Command::Repeat { trip_count, body } => {
                let before = self.commands.len();
                for _ in 0..*trip_count {
                    self.inner(body)?;
                    if self.commands.len() == before {
                        // It does nothing, however often.
                        break;
                    }
                }
                return Ok(());
            }
            Command::While { .. } | Command::Conditional { .. } => {
                return Err(self.is_of_host(&"a choice that depends on bytes of the device"));
            }
            Command::Library { .. } => return Err(self.is_of_host(&"a library call")),
            Command::Collective { .. } => return Err(self.is_of_host(&"a collective")),
        };
        self.commands.push(lowered);
        Ok(())
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

    fn number(&self, to: &Slice, number: u32) -> StatusOr<backend::Command> {
        let place = self.place(to).unwrap_or_else(|| unreachable!("validation has seen that it has four bytes"));
        self.fill(place, to.size_bytes, FillPattern::Word(number))
    }

    fn fill(&self, to: Place, size_bytes: usize, pattern: FillPattern) -> StatusOr<backend::Command> {
        let width = pattern.width_bytes();
        if to.offset_bytes.is_multiple_of(width) {
            return Ok(backend::Command::Fill { to, size_bytes, pattern });
        }
        Err(self.is_of_host(&format_args!("a fill with {width} bytes at offset {}", to.offset_bytes)))
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
