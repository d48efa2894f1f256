//! Translates thunks to the steps of a program, and checks all their numbers.
//!
//! Slices lie inside their allocations, and arrays at multiples of their elements' width. Commands that need no code
//! are complete. Kernels and sorts name their function, and get it when the code is loaded. A conditional whose index
//! has one byte branches on a predicate. A loop with a trip count has a condition, too, which is not needed and not
//! read.
//!
//! `untangle` makes the operands of compiled loops exact. A kind of access that permits reading and writing, any
//! overlap, and bytes that were not written before could not replace it. XLA lists parameters and constants as results
//! of such kernels, and validation must not let a command write these. So they would still have to be found and turned
//! into operands that are only read. Nothing in a thunk says that a kernel is a loop. So either all kernels would get
//! that access, and validation would no longer check any kernel's reads and overlaps, or the same search would remain.
//! And a kernel would read memory that no command has written, which may hold bytes of an earlier run.

use std::collections::HashSet;
use std::sync::Arc;

use purlin_program::{
    Allocation, AllocationKind, Branch, CollectiveArray, Command, Kernel, LibraryCall, Operand, OperandAccess, Slice,
};

use super::collective;
use super::hlo::Hlo;
use super::shapes::Array;
use crate::fault::{Contradiction, Reasons};
use crate::ffi::{CustomCall, FfiHandlers};
use crate::fusion;
use crate::library::{Convolution, Dot, Fft, RngState, Sort, SortArrays, TopK, Transpose};
use crate::proto::{
    CollectiveProto, ConvolutionProto, CopyProto, DotProto, FftProto, FusedComputations, KernelProto, ShapeSliceProto,
    SliceProto, SortProto, ThunkKind, ThunkProto, ThunkSequenceProto, TopKProto, YnnProto,
};

/// The fields that lead to a step inside others, and to the operands of a kernel: an error names the byte of the
/// innermost one.
mod field {
    /// Of a sequence.
    pub(super) const THUNKS: u32 = 1;
    /// Of a thunk.
    pub(super) const CALL: u32 = 3;
    pub(super) const CONDITIONAL: u32 = 4;
    pub(super) const WHILE: u32 = 10;
    pub(super) const KERNEL: u32 = 11;
    /// Of a call, a conditional, a loop, a kernel.
    pub(super) const CALLED: u32 = 1;
    pub(super) const BRANCHES: u32 = 1;
    pub(super) const CONDITION: u32 = 1;
    pub(super) const BODY: u32 = 2;
    pub(super) const ARGUMENTS: u32 = 5;
    pub(super) const RESULTS: u32 = 6;
}

/// The most results of a kernel. The limit bounds the time, because each result is compared with each.
const MOST_RESULTS: usize = 4096;

/// A sort, and the name of its comparator in the code.
#[derive(Debug)]
pub(crate) struct Comparison {
    pub(crate) comparator: String,
    pub(crate) sort: Arc<Sort>,
}

/// Where fused computations without code are found.
#[derive(Debug)]
pub(super) struct Fusions<'a> {
    pub(super) hlo: &'a Hlo<'a>,
    /// The executable, in which the computations are decoded again, in full.
    pub(super) bytes: &'a [u8],
    /// `None` until a thunk asks.
    pub(super) computations: Option<FusedComputations<'a>>,
}

/// What [`read`] has found.
#[derive(Default)]
pub(super) struct AllSteps {
    pub(super) commands: Vec<Command>,
    /// The allocations that the steps need in addition.
    pub(super) added: Vec<Allocation>,
    pub(super) sorts: Vec<Comparison>,
    pub(super) custom_calls: Vec<Arc<CustomCall>>,
}

/// The commands of `thunks`. The recursion is bounded, because the depth of messages is.
///
/// # Errors
/// `DataLoss`: a thunk is incomplete, or one of its numbers is out of range.
pub(super) fn read(
    thunks: &ThunkSequenceProto,
    allocations: &[Allocation],
    handlers: &FfiHandlers,
    fusions: Fusions<'_>,
    reasons: &mut Reasons,
) -> Result<AllSteps, Contradiction> {
    let mut reader = Steps {
        allocations,
        handlers,
        fusions,
        added: Vec::new(),
        written: HashSet::new(),
        scratch: Vec::new(),
        sorts: Vec::new(),
        custom_calls: Vec::new(),
        reasons,
    };
    let commands = reader.sequence(Some(thunks))?;
    let clear = reader.scratch.iter().map(|&to| Command::Fill { pattern: vec![0], to });
    let commands = clear.chain(commands).collect();
    Ok(AllSteps { commands, added: reader.added, sorts: reader.sorts, custom_calls: reader.custom_calls })
}

pub(super) struct Steps<'a> {
    allocations: &'a [Allocation],
    pub(super) handlers: &'a FfiHandlers,
    fusions: Fusions<'a>,
    /// The scratch memory of fusions, which follows the allocations.
    added: Vec<Allocation>,
    /// The slices that kernels and copies have written so far, in the order of the steps.
    written: HashSet<Slice>,
    /// The slices that kernels may read before any step has written them. The program clears them first.
    scratch: Vec<Slice>,
    sorts: Vec<Comparison>,
    pub(super) custom_calls: Vec<Arc<CustomCall>>,
    pub(super) reasons: &'a mut Reasons,
}

impl Steps<'_> {
    fn sequence(&mut self, thunks: Option<&ThunkSequenceProto>) -> Result<Vec<Command>, Contradiction> {
        let mut commands = Vec::new();
        for (number, thunk) in thunks.into_iter().flat_map(|thunks| &thunks.thunks).enumerate() {
            commands.extend(self.command(thunk).map_err(|why| why.within_each(field::THUNKS, number))?);
        }
        Ok(commands)
    }

    /// The command. `None`: it is not supported here, and the cause is added to `reasons`.
    fn command(&mut self, thunk: &ThunkProto) -> Result<Option<Command>, Contradiction> {
        let command =
            match thunk.thunk.as_ref().ok_or_else(|| damage(format!("a thunk of kind '{}' is empty", thunk.kind)))? {
                ThunkKind::Kernel(kernel) => self.kernel(kernel)?,
                ThunkKind::Copy(copy) => return self.copy(copy),
                ThunkKind::Call(call) => {
                    let called = self.sequence(call.called.as_ref());
                    Command::Call(called.map_err(|why| why.within(field::CALLED).within(field::CALL))?.into())
                }
                ThunkKind::While(each) => {
                    let body = self.sequence(each.body.as_ref());
                    let body = body.map_err(|why| why.within(field::BODY).within(field::WHILE))?;
                    match each.trip_count {
                        Some(count) if count.contains_value => {
                            Command::Repeat { trip_count: unsigned(count.value, "a trip count")?, body: body.into() }
                        }
                        _ => {
                            let condition = self.sequence(each.condition.as_ref());
                            let condition =
                                condition.map_err(|why| why.within(field::CONDITION).within(field::WHILE))?.into();
                            let predicate = self.slice(each.predicate.as_ref())?;
                            Command::While { condition, predicate, body: body.into() }
                        }
                    }
                }
                ThunkKind::Conditional(each) => {
                    let index = self.slice(each.index.as_ref())?;
                    let branch = if index.size_bytes == 1 { Branch::Predicate(index) } else { Branch::Index(index) };
                    let branches = each.branches.iter().enumerate().map(|(number, branch)| {
                        let within =
                            |why: Contradiction| why.within_each(field::BRANCHES, number).within(field::CONDITIONAL);
                        Ok(self.sequence(Some(branch)).map_err(within)?.into())
                    });
                    Command::Conditional { branch, branches: branches.collect::<Result<_, Contradiction>>()? }
                }
                ThunkKind::PartitionId(id) => Command::PartitionId { to: self.slice(id.to.as_ref())? },
                ThunkKind::ReplicaId(id) => Command::ReplicaId { to: self.slice(id.to.as_ref())? },
                ThunkKind::Rng(rng) => {
                    let to = self.slice(rng.state.as_ref())?;
                    let state = RngState::new(rng.delta, to.size_bytes).map_err(damage)?;
                    library(Arc::new(state), vec![Operand::write(to)])
                }
                ThunkKind::TopK(top) => self.top_k(top)?,
                ThunkKind::Sort(sort) => return self.sort(sort),
                ThunkKind::Dot(dot) => return self.dot(dot),
                ThunkKind::Fft(fft) => return self.fft(fft),
                ThunkKind::Convolution(convolution) => return self.convolution(convolution),
                ThunkKind::Ynn(fusion) => return self.fusion(fusion),
                ThunkKind::CustomCall(call) => return self.custom_call(call),
                ThunkKind::Collective(each) => return self.collective(each),
                ThunkKind::Xnn(_) | ThunkKind::Infeed(_) | ThunkKind::Outfeed(_) | ThunkKind::RngSeed(_) => {
                    self.reasons.add(format!("thunk of kind '{}'", thunk.kind));
                    return Ok(None);
                }
            };
        Ok(Some(command))
    }

    fn kernel(&mut self, kernel: &KernelProto) -> Result<Command, Contradiction> {
        if kernel.min_alignment.is_some_and(|least| least.contains_value && least.value > 64) {
            self.reasons.add(format!("kernel '{}' wants its operands aligned to more than 64 bytes", kernel.name));
        }
        let mut operands = Vec::with_capacity(kernel.arguments.len() + kernel.results.len());
        let within = |field, number| move |why: Contradiction| why.within_each(field, number).within(field::KERNEL);
        for (number, argument) in kernel.arguments.iter().enumerate() {
            let slice = self.slice(argument.slice.as_ref()).map_err(within(field::ARGUMENTS, number))?;
            let is_invariant = kernel.invariant_arguments.contains(&(number as i64));
            operands.push(if is_invariant { Operand::invariant(slice) } else { Operand::read(slice) });
        }
        let mut results = Vec::with_capacity(kernel.results.len());
        for (number, result) in kernel.results.iter().enumerate() {
            let slice = self.slice(result.slice.as_ref()).map_err(within(field::RESULTS, number))?;
            results.push(Operand::write(slice));
        }
        if results.len() > MOST_RESULTS {
            self.reasons.add(format!("kernel '{}' with {} results", kernel.name, results.len()));
            results.truncate(MOST_RESULTS);
        }
        self.untangle(&mut operands, &mut results);
        self.written.extend(results.iter().filter(|result| result.access.writes()).map(|result| result.slice));
        operands.append(&mut results);
        let size = |number: i64| unsigned(number, "a number of workgroups");
        let workgroups = match kernel.workgroups {
            Some(count) => [size(count.x)?, size(count.y)?, size(count.z)?],
            None => [1; 3],
        };
        Ok(Command::Kernel { kernel: Kernel::unbound(kernel.name.as_str()), workgroups, operands })
    }

    /// XLA compiles a small loop into one kernel. It lists all memory of the loop as arguments and as results: memory
    /// that it only reads, slices that are parts of other slices, and scratch memory that no step has written before.
    /// Validation would refuse that, so the operands are made exact. A result that is not writable, or that is part of
    /// another result, becomes an operand that is only read. Scratch memory is cleared once, when the program begins.
    fn untangle(&mut self, arguments: &mut [Operand], results: &mut [Operand]) {
        let mut is_loop = false;
        for at in 0..results.len() {
            let slice = results[at].slice;
            let is_covered = results.iter().enumerate().any(|(other, operand)| {
                let whole = operand.slice;
                let is_within = whole.overlaps(&slice)
                    && whole.offset_bytes <= slice.offset_bytes
                    && slice.offset_bytes + slice.size_bytes <= whole.offset_bytes + whole.size_bytes;
                // Of two equal results, the first is kept.
                is_within
                    && operand.access.writes()
                    && (other < at || whole.size_bytes > slice.size_bytes)
                    && other != at
            });
            if is_covered || !self.allocations[slice.allocation as usize].kind.is_writable() {
                is_loop = true;
                results[at] = Operand::read(slice);
            }
        }
        if !is_loop {
            return;
        }
        let written =
            |slice: &Slice| results.iter().any(|result| result.slice.overlaps(slice) && result.access.writes());
        for operand in arguments.iter().chain(&*results).filter(|operand| operand.access == OperandAccess::Read) {
            let slice = operand.slice;
            let kind = &self.allocations[slice.allocation as usize].kind;
            let is_undefined = matches!(kind, AllocationKind::Temporary | AllocationKind::Output { .. });
            if is_undefined && !operand.is_invariant && written(&slice) && self.written.insert(slice) {
                self.scratch.push(slice);
            }
        }
    }

    fn copy(&mut self, copy: &CopyProto) -> Result<Option<Command>, Contradiction> {
        let (Some(from), Some(to)) = (self.array(copy.from.as_ref())?, self.array(copy.to.as_ref())?) else {
            return Ok(None);
        };
        if from.0.physical_dims() == to.0.physical_dims() && from.0.layout == to.0.layout {
            self.written.insert(to.1);
            return Ok(Some(Command::Copy { from: from.1, to: to.1 }));
        }
        let transpose = Transpose::new(&from.0, &to.0);
        Ok(self
            .reasons
            .take(transpose)
            .map(|call| library(Arc::new(call), vec![Operand::invariant(from.1), Operand::write(to.1)])))
    }

    fn sort(&mut self, sort: &SortProto) -> Result<Option<Command>, Contradiction> {
        let mut arrays = Vec::new();
        let mut operands = Vec::new();
        for proto in &sort.arrays {
            let Some((array, slice)) = self.array(Some(proto))? else { return Ok(None) };
            arrays.push(array);
            operands.push(Operand::read_write(slice));
        }
        let Some(arrays) = self.reasons.take(SortArrays::new(&arrays, sort.dimension)) else { return Ok(None) };
        let call = Arc::new(Sort::new(arrays));
        self.sorts.push(Comparison { comparator: sort.comparator.clone(), sort: Arc::clone(&call) });
        Ok(Some(library(call, operands)))
    }

    fn top_k(&mut self, top: &TopKProto) -> Result<Command, Contradiction> {
        let [values, output, indices] =
            [&top.values, &top.output, &top.indices].map(|slice| self.slice(slice.as_ref()));
        let (values, output, indices) = (values?, output?, indices?);
        let number = |number: i64| unsigned(number, "a number of elements");
        let sizes = [number(top.batch_size)?, number(top.input_size)?, number(top.k)?];
        let call = TopK::new(sizes, [values, output, indices].map(|slice| slice.size_bytes)).map_err(damage)?;
        Ok(library(Arc::new(call), vec![Operand::invariant(values), Operand::write(output), Operand::write(indices)]))
    }

    fn dot(&mut self, dot: &DotProto) -> Result<Option<Command>, Contradiction> {
        let [lhs, rhs, out] = [&dot.lhs, &dot.rhs, &dot.out].map(|proto| self.array(proto.as_ref()));
        let (Some(lhs), Some(rhs), Some(out)) = (lhs?, rhs?, out?) else { return Ok(None) };
        let dimensions = dot.dimensions.as_ref().ok_or_else(|| damage("a dot has no dimensions".to_owned()))?;
        let call = Dot::new(dimensions, &lhs.0, &rhs.0, &out.0);
        let operands = vec![Operand::invariant(lhs.1), Operand::invariant(rhs.1), Operand::write(out.1)];
        Ok(self.reasons.take(call).map(|call| library(Arc::new(call), operands)))
    }

    fn fft(&mut self, fft: &FftProto) -> Result<Option<Command>, Contradiction> {
        let (Some(from), Some(to)) = (self.array(fft.input.as_ref())?, self.array(fft.output.as_ref())?) else {
            return Ok(None);
        };
        let call = Fft::new(fft.kind, &fft.lengths, &from.0, &to.0);
        let operands = vec![Operand::invariant(from.1), Operand::write(to.1)];
        Ok(self.reasons.take(call).map(|call| library(Arc::new(call), operands)))
    }

    fn collective(&mut self, proto: &CollectiveProto) -> Result<Option<Command>, Contradiction> {
        let Some(collective) = self.reasons.take(collective::read(proto)) else { return Ok(None) };
        let buffers = proto.buffers.as_ref().ok_or_else(|| damage("a collective has no arrays".to_owned()))?;
        if buffers.from.len() != buffers.to.len() {
            return Err(damage(format!("a collective of {} and {} arrays", buffers.from.len(), buffers.to.len())));
        }
        let mut arrays = Vec::with_capacity(buffers.from.len());
        for (from, to) in buffers.from.iter().zip(&buffers.to) {
            let (Some(from), Some(to)) = (self.array(Some(from))?, self.array(Some(to))?) else { return Ok(None) };
            let dtype = from.0.shape.dtype();
            if dtype != to.0.shape.dtype() {
                return Err(damage(format!("a collective from {} to {}", from.0.shape, to.0.shape)));
            }
            self.written.insert(to.1);
            arrays.push(CollectiveArray { from: from.1, to: to.1, dtype });
        }
        Ok(Some(Command::Collective { collective, arrays }))
    }

    fn convolution(&mut self, proto: &ConvolutionProto) -> Result<Option<Command>, Contradiction> {
        let [input, kernel, output] =
            [&proto.input, &proto.kernel, &proto.output].map(|proto| self.array(proto.as_ref()));
        let (Some(input), Some(kernel), Some(output)) = (input?, kernel?, output?) else { return Ok(None) };
        let call = Convolution::new(proto, &input.0, &kernel.0, &output.0);
        let operands = vec![Operand::invariant(input.1), Operand::invariant(kernel.1), Operand::write(output.1)];
        Ok(self.reasons.take(call).map(|call| library(Arc::new(call), operands)))
    }

    /// A fused computation that has no code.
    fn fusion(&mut self, proto: &YnnProto) -> Result<Option<Command>, Contradiction> {
        let instruction = self.fusions.hlo.instruction(proto.instruction);
        let called = instruction.and_then(|instruction| instruction.called.first());
        let called = called.ok_or_else(|| damage(format!("instruction {} calls no computation", proto.instruction)))?;
        let computations = match &mut self.fusions.computations {
            Some(computations) => computations,
            none => none.insert(FusedComputations::find(self.fusions.bytes)?),
        };
        let found = fusion::read(computations, *called, proto.arguments.len(), self.reasons)?;
        let mut operands = Vec::with_capacity(proto.arguments.len() + proto.results.len() + 1);
        let mut arrays = Vec::with_capacity(operands.capacity());
        for (number, argument) in proto.arguments.iter().chain(&proto.results).enumerate() {
            let Some((array, slice)) = self.array(Some(argument))? else { return Ok(None) };
            let is_result = number >= proto.arguments.len();
            operands.push(if is_result { Operand::write(slice) } else { Operand::read(slice) });
            arrays.push(array);
        }
        let Some(found) = found else { return Ok(None) };
        let (arguments, results) = arrays.split_at(proto.arguments.len());
        let same =
            found.parameters.iter().zip(arguments).all(|(each, array)| each.as_ref().is_none_or(|each| each == array));
        if !same || found.results != results {
            return Err(damage("a fusion has other arguments or results than its computation".to_owned()));
        }
        let (read, written) = operands.split_at(arguments.len());
        let in_place = read.iter().any(|each| written.iter().any(|result| result.slice.overlaps(&each.slice)));
        let Some(call) = self.reasons.take(found.plan(in_place)) else { return Ok(None) };
        if !in_place {
            operands[..arguments.len()].iter_mut().for_each(|operand| operand.is_invariant = true);
        }
        let size_bytes = call.scratch_bytes();
        if size_bytes > 0 {
            let number = (self.allocations.len() + self.added.len()) as u32;
            self.added.push(Allocation { size_bytes, kind: AllocationKind::Temporary });
            operands.push(Operand::write(Slice { allocation: number, offset_bytes: 0, size_bytes }));
        }
        self.written.extend(operands.iter().filter(|operand| operand.access.writes()).map(|operand| operand.slice));
        Ok(Some(library(Arc::new(call), operands)))
    }

    /// An array and its slice, which has the size of its shape. `None`: the shape is not supported, and the cause is
    /// added to `reasons`.
    pub(super) fn array(&mut self, proto: Option<&ShapeSliceProto>) -> Result<Option<(Array, Slice)>, Contradiction> {
        let slice = self.slice(proto.and_then(|proto| proto.slice.as_ref()))?;
        let shape =
            proto.and_then(|proto| proto.shape.as_ref()).ok_or_else(|| damage("a slice has no shape".to_owned()))?;
        let Some(array) = self.reasons.take(Array::new(shape)) else { return Ok(None) };
        if array.size_bytes() != slice.size_bytes {
            return Err(damage(format!("{} in {} bytes", array.shape, slice.size_bytes)));
        }
        if !slice.offset_bytes.is_multiple_of(array.shape.dtype().byte_width().clamp(1, 64)) {
            return Err(damage(format!("{} at offset {}", array.shape, slice.offset_bytes)));
        }
        Ok(Some((array, slice)))
    }

    /// A slice that lies in its allocation.
    fn slice(&self, proto: Option<&SliceProto>) -> Result<Slice, Contradiction> {
        let proto = proto.ok_or_else(|| damage("a slice is missing".to_owned()))?;
        let allocation = usize::try_from(proto.allocation).ok().filter(|&number| number < self.allocations.len());
        let slice = (usize::try_from(proto.offset), usize::try_from(proto.size));
        match (allocation, slice) {
            (Some(number), (Ok(offset_bytes), Ok(size_bytes)))
                if offset_bytes
                    .checked_add(size_bytes)
                    .is_some_and(|end| end <= self.allocations[number].size_bytes) =>
            {
                Ok(Slice { allocation: number as u32, offset_bytes, size_bytes })
            }
            _ => Err(damage(format!(
                "a slice of {} bytes at {} of allocation {}: there is no such",
                proto.size, proto.offset, proto.allocation
            ))),
        }
    }
}

pub(super) fn library(call: Arc<dyn LibraryCall>, operands: Vec<Operand>) -> Command {
    Command::Library { call, operands }
}

fn damage(what: String) -> Contradiction {
    Contradiction::new(what)
}

fn unsigned(number: i64, what: &str) -> Result<u64, Contradiction> {
    u64::try_from(number).map_err(|_| damage(format!("{what} of {number}")))
}
