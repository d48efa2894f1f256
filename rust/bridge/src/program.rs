//! `purlin/program.h`. Builders and sequences are one type, [`CommandsRep`]. What adds to them is a plain function,
//! because slices and operands are structs that the header declares.
//!
//! In the safety sections, "`commands`" stands for: alive, and used by no other thread.

use std::mem::offset_of;
use std::ptr;

use purlin_array::Layout;
use purlin_base::slab::SlabBox;
use purlin_base::status::StatusRep;
use purlin_base::{Error, StatusOr};
use purlin_ffi::handle::{self, elements, give_handle, own, owned};
use purlin_ffi::number::known;
use purlin_ffi::panic::{contain, guard};
use purlin_ffi::words::{Bytes, text_of};
use purlin_program::{
    ArraySpec, Branch, Collective, CollectiveArray, CollectiveKind, Command, GroupMode, Operand, OperandAccess,
    Program, ProgramBuilder, Reduction, Sequence, Slice,
};

use crate::kernel::{KernelRep, name_of};
use crate::layout::RawLayout;
use crate::shape::{RawShape, dtype};
use crate::status::given;

/// What a `purlin::ProgramBuilder` or `purlin::Sequence` points to: C++'s alone. A sequence has neither name nor
/// memory.
#[derive(Default)]
pub struct CommandsRep {
    name: String,
    builder: ProgramBuilder,
    commands: Vec<Command>,
    /// The first error of what was added.
    error: Option<Error>,
}

/// What a `purlin::Program` points to.
pub struct ProgramRep(pub(crate) Program);

#[cxx::bridge(namespace = "purlin::ffi")]
pub(crate) mod ffi {
    /// A `purlin::ArraySpec`.
    struct ArraySpecParts {
        dims: Vec<i64>,
        /// Not 0: that dimension is dynamic. None at all: none is.
        dynamic: Vec<u8>,
        dtype: u8,
        has_layout: bool,
        minor_to_major: Vec<i64>,
        memory_kind: String,
    }

    extern "Rust" {
        #[namespace = "purlin::v0::internal"]
        #[derive(ExternType)]
        type ProgramRep;

        unsafe fn program_retain(program: *const ProgramRep);
        unsafe fn program_release(program: *const ProgramRep);
        fn program_name(program: &ProgramRep) -> &str;
        fn program_specs(program: &ProgramRep, are_results: bool) -> Vec<ArraySpecParts>;
    }
}

/// A `purlin::Slice`, as `purlin/program.h` declares it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RawSlice {
    allocation: u32,
    offset_bytes: usize,
    size_bytes: usize,
}

/// A `purlin::Operand`, as `purlin/program.h` declares it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RawOperand {
    slice: RawSlice,
    /// Unchecked.
    access: u8,
    is_invariant: bool,
}

/// A `purlin::ArraySpec`. Borrowed, and unchecked.
#[repr(C)]
pub struct RawArraySpec {
    shape: RawShape,
    /// Null: row-major.
    layout: *const RawLayout,
    /// Empty: the device's default.
    memory_kind: Bytes,
}

/// A `purlin::CollectiveArray`, as `purlin/program.h` declares it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RawCollectiveArray {
    from: RawSlice,
    to: RawSlice,
    /// Unchecked.
    dtype: u8,
}

/// A `purlin::Collective`. Borrowed, and unchecked.
#[repr(C)]
pub struct RawCollective {
    kind: u8,
    reduction: u8,
    mode: u8,
    /// The members of all groups, one group after the other.
    members: *const u32,
    /// How many members each group has.
    group_sizes: *const usize,
    group_count: usize,
    /// Twice as many numbers as pairs.
    pairs: *const u32,
    pair_count: usize,
}

const _: () = assert!(size_of::<RawCollectiveArray>() == 56 && offset_of!(RawCollectiveArray, to) == 24);
const _: () = assert!(offset_of!(RawCollectiveArray, dtype) == 48);
const _: () = assert!(size_of::<RawSlice>() == 24 && offset_of!(RawSlice, offset_bytes) == 8);
const _: () = assert!(size_of::<RawOperand>() == 32 && offset_of!(RawOperand, access) == 24);
const _: () = assert!(offset_of!(RawOperand, is_invariant) == 25);

impl From<RawSlice> for Slice {
    fn from(raw: RawSlice) -> Self {
        Self { allocation: raw.allocation, offset_bytes: raw.offset_bytes, size_bytes: raw.size_bytes }
    }
}

impl From<Slice> for RawSlice {
    fn from(slice: Slice) -> Self {
        Self { allocation: slice.allocation, offset_bytes: slice.offset_bytes, size_bytes: slice.size_bytes }
    }
}

/// Those of `purlin::OperandAccess`.
pub(crate) const OPERAND_ACCESSES: [(&str, OperandAccess); 3] =
    [("kRead", OperandAccess::Read), ("kWrite", OperandAccess::Write), ("kReadWrite", OperandAccess::ReadWrite)];

impl RawOperand {
    /// # Errors
    /// `InvalidArgument`: no access of that number.
    fn get(&self) -> StatusOr<Operand> {
        let access = known("OperandAccess", self.access, &OPERAND_ACCESSES)?;
        Ok(Operand { slice: self.slice.into(), access, is_invariant: self.is_invariant })
    }
}

impl RawCollectiveArray {
    /// # Errors
    /// `InvalidArgument`: no element type of that number.
    fn get(&self) -> StatusOr<CollectiveArray> {
        Ok(CollectiveArray { from: self.from.into(), to: self.to.into(), dtype: dtype(self.dtype)? })
    }
}

impl RawCollective {
    /// # Errors
    /// `InvalidArgument`: no kind, reduction or mode of that number.
    ///
    /// # Safety
    /// The struct is what it says.
    unsafe fn get(&self) -> StatusOr<Collective> {
        let reduction = || {
            let values = [
                ("kSum", Reduction::Sum),
                ("kProduct", Reduction::Product),
                ("kMin", Reduction::Min),
                ("kMax", Reduction::Max),
                ("kAnd", Reduction::And),
                ("kOr", Reduction::Or),
            ];
            known("Reduction", self.reduction, &values)
        };
        // SAFETY: the caller's promise.
        let (sizes, pairs) =
            unsafe { (elements(self.group_sizes, self.group_count), elements(self.pairs, 2 * self.pair_count)) };
        // SAFETY: the caller's promise: as many as all groups together.
        let mut members = unsafe { elements(self.members, sizes.iter().sum()) };
        let mut groups = Vec::with_capacity(sizes.len());
        for &size in sizes {
            let (group, rest) = members.split_at(size);
            groups.push(group.to_vec());
            members = rest;
        }
        let kinds = ["kAllReduce", "kAllGather", "kReduceScatter", "kAllToAll", "kPermute"].map(|name| (name, name));
        let kind = match known("CollectiveKind", self.kind, &kinds)? {
            "kAllReduce" => CollectiveKind::AllReduce(reduction()?),
            "kAllGather" => CollectiveKind::AllGather,
            "kReduceScatter" => CollectiveKind::ReduceScatter(reduction()?),
            "kAllToAll" => CollectiveKind::AllToAll,
            _ => CollectiveKind::Permute(pairs.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()),
        };
        let modes = [
            ("kReplicas", GroupMode::Replicas),
            ("kPartitions", GroupMode::Partitions),
            ("kReplicasOfAllPartitions", GroupMode::ReplicasOfAllPartitions),
            ("kParticipants", GroupMode::Participants),
        ];
        Ok(Collective { kind, mode: known("GroupMode", self.mode, &modes)?, groups })
    }
}

impl RawArraySpec {
    /// # Errors
    /// `InvalidArgument`: no shape, no layout of it, or a kind that is not UTF-8.
    ///
    /// # Safety
    /// The structs are what they say.
    unsafe fn get(&self) -> StatusOr<ArraySpec> {
        // SAFETY: the caller's promises.
        let (shape, layout, kind) = unsafe {
            let kind = elements(self.memory_kind.data.cast::<u8>(), self.memory_kind.size_bytes);
            (self.shape.get()?, RawLayout::get(self.layout)?, text_of(kind)?)
        };
        let mut spec = ArraySpec::new(shape);
        if let Some(layout) = layout {
            spec = spec.with_layout(layout)?;
        }
        Ok(if kind.is_empty() { spec } else { spec.in_memory(kind) })
    }
}

impl CommandsRep {
    fn fail(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }

    fn push(&mut self, command: StatusOr<Command>) {
        match command {
            Ok(command) => self.commands.push(command),
            Err(error) => self.fail(error),
        }
    }

    /// The commands of a sequence, which C++ gives up, and its error, which becomes this one's.
    ///
    /// # Safety
    /// `sequence` is null (moved from, which is an error here already) or owned by the caller, which gives it up.
    unsafe fn take(&mut self, sequence: *mut Self) -> Sequence {
        if sequence.is_null() {
            return Sequence::default();
        }
        // SAFETY: the caller's promise.
        let taken = SlabBox::into_inner(unsafe { owned(sequence) });
        if let Some(error) = taken.error {
            self.fail(error);
        }
        Sequence::new(taken.commands)
    }

    /// # Errors
    /// The first error of what was added, or that of [`ProgramBuilder::build`].
    fn build(mut self) -> StatusOr<Program> {
        if let Some(error) = self.error {
            return Err(Error::new(error.code(), format!("the program '{}': {}", self.name, error.message())));
        }
        for command in self.commands {
            self.builder.push(command);
        }
        self.builder.build()
    }
}

/// A builder of that name, C++'s; a sequence has none.
///
/// # Safety
/// `name` is readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_commands_new(name: Bytes) -> *mut CommandsRep {
    contain("purlin_commands_new", ptr::null_mut(), || {
        // SAFETY: the caller's promise.
        let name = unsafe { name_of(name) };
        let text = name.to_string();
        own(CommandsRep { name: text, builder: ProgramBuilder::new(name), ..CommandsRep::default() })
    })
}

/// # Safety
/// C++ gives `commands` up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_commands_release(commands: *mut CommandsRep) {
    contain("purlin_commands_release", (), || {
        // SAFETY: the caller's promise.
        drop(unsafe { owned(commands) });
    })
}

/// What was added cannot be built.
///
/// # Safety
/// `commands`; `error` is owned by the caller, which gives it up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_commands_fail(commands: &mut CommandsRep, error: *const StatusRep) {
    contain("purlin_commands_fail", (), || {
        // SAFETY: the caller's promise.
        commands.fail(unsafe { given(error, "a ProgramBuilder") });
    })
}

/// Adds a parameter (0), a result (1) or both in one memory (2), and gives all its bytes.
///
/// # Safety
/// `commands`; `spec` is what its struct says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_commands_add_array(
    commands: &mut CommandsRep,
    role: u8,
    spec: &RawArraySpec,
) -> RawSlice {
    let nowhere = RawSlice { allocation: u32::MAX, offset_bytes: 0, size_bytes: 0 };
    contain("purlin_commands_add_array", nowhere, || {
        // SAFETY: the caller's promise.
        let spec = match unsafe { spec.get() } {
            Ok(spec) => spec,
            Err(error) => {
                let what = if role == 1 { "result" } else { "parameter" };
                commands.fail(Error::new(error.code(), format!("a {what}: {}", error.message())));
                return nowhere;
            }
        };
        match role {
            0 => commands.builder.parameter(spec),
            1 => commands.builder.result(spec),
            _ => commands.builder.donated_parameter(spec),
        }
        .into()
    })
}

/// Adds a constant, and gives all its bytes.
///
/// # Safety
/// `commands`; `bytes` are readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_commands_add_constant(commands: &mut CommandsRep, bytes: Bytes) -> RawSlice {
    let nowhere = RawSlice { allocation: u32::MAX, offset_bytes: 0, size_bytes: 0 };
    contain("purlin_commands_add_constant", nowhere, || {
        // SAFETY: the caller's promise.
        commands.builder.constant(unsafe { elements(bytes.data.cast(), bytes.size_bytes) }).into()
    })
}

/// Adds a temporary, and gives all its bytes.
#[unsafe(no_mangle)]
pub extern "C" fn purlin_commands_add_temporary(commands: &mut CommandsRep, size_bytes: usize) -> RawSlice {
    let nowhere = RawSlice { allocation: u32::MAX, offset_bytes: 0, size_bytes: 0 };
    contain("purlin_commands_add_temporary", nowhere, || commands.builder.temporary(size_bytes).into())
}

/// # Safety
/// `commands`; `workgroups` points to three numbers, and `operands` to `count` operands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_commands_add_kernel(
    commands: &mut CommandsRep,
    kernel: &KernelRep,
    workgroups: *const u64,
    operands: *const RawOperand,
    count: usize,
) {
    contain("purlin_commands_add_kernel", (), || {
        // SAFETY: the caller's promises.
        let (workgroups, operands) = unsafe { (*workgroups.cast::<[u64; 3]>(), elements(operands, count)) };
        let command = operands.iter().map(RawOperand::get).collect::<StatusOr<Vec<_>>>();
        let named = |error: Error| Error::new(error.code(), format!("{:?}: {}", kernel.0, error.message()));
        let kernel = kernel.0.clone();
        commands.push(command.map(|operands| Command::Kernel { kernel, workgroups, operands }).map_err(named));
    })
}

/// Adds a copy.
#[unsafe(no_mangle)]
pub extern "C" fn purlin_commands_add_copy(commands: &mut CommandsRep, from: RawSlice, to: RawSlice) {
    contain("purlin_commands_add_copy", (), || {
        commands.push(Ok(Command::Copy { from: from.into(), to: to.into() }));
    })
}

/// # Safety
/// `commands`; `pattern` is readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_commands_add_fill(commands: &mut CommandsRep, pattern: Bytes, to: RawSlice) {
    contain("purlin_commands_add_fill", (), || {
        // SAFETY: the caller's promise.
        let pattern = unsafe { elements(pattern.data.cast(), pattern.size_bytes) }.to_vec();
        commands.push(Ok(Command::Fill { pattern, to: to.into() }));
    })
}

/// # Safety
/// `commands`; C++ gives `body` up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_commands_add_call(commands: &mut CommandsRep, body: *mut CommandsRep) {
    contain("purlin_commands_add_call", (), || {
        // SAFETY: the caller's promise.
        let body = unsafe { commands.take(body) };
        commands.push(Ok(Command::Call(body)));
    })
}

/// # Safety
/// `commands`; C++ gives `condition` and `body` up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_commands_add_while(
    commands: &mut CommandsRep,
    condition: *mut CommandsRep,
    predicate: RawSlice,
    body: *mut CommandsRep,
) {
    contain("purlin_commands_add_while", (), || {
        // SAFETY: the caller's promise.
        let (condition, body) = unsafe { (commands.take(condition), commands.take(body)) };
        commands.push(Ok(Command::While { condition, predicate: predicate.into(), body }));
    })
}

/// # Safety
/// `commands`; C++ gives `body` up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_commands_add_repeat(
    commands: &mut CommandsRep,
    trip_count: u64,
    body: *mut CommandsRep,
) {
    contain("purlin_commands_add_repeat", (), || {
        // SAFETY: the caller's promise.
        let body = unsafe { commands.take(body) };
        commands.push(Ok(Command::Repeat { trip_count, body }));
    })
}

/// Adds a choice by a predicate, or, if `is_index`, by an index.
///
/// # Safety
/// `commands`; `branches` points to `count` sequences, which C++ gives up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_commands_add_conditional(
    commands: &mut CommandsRep,
    is_index: bool,
    choice: RawSlice,
    branches: *const *mut CommandsRep,
    count: usize,
) {
    contain("purlin_commands_add_conditional", (), || {
        let branch = if is_index { Branch::Index(choice.into()) } else { Branch::Predicate(choice.into()) };
        // SAFETY: the caller's promise.
        let branches = unsafe { elements(branches, count) };
        // SAFETY: the caller's promise.
        let branches = branches.iter().map(|&sequence| unsafe { commands.take(sequence) }).collect();
        commands.push(Ok(Command::Conditional { branch, branches }));
    })
}

/// # Safety
/// `commands`; `collective` is what its struct says, and `arrays` points to `count` arrays.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_commands_add_collective(
    commands: &mut CommandsRep,
    collective: &RawCollective,
    arrays: *const RawCollectiveArray,
    count: usize,
) {
    contain("purlin_commands_add_collective", (), || {
        // SAFETY: the caller's promises.
        let (collective, arrays) = unsafe { (collective.get(), elements(arrays, count)) };
        let command = collective.and_then(|collective| {
            let arrays = arrays.iter().map(RawCollectiveArray::get).collect::<StatusOr<Vec<_>>>()?;
            Ok(Command::Collective { collective, arrays })
        });
        commands.push(command.map_err(|error| Error::new(error.code(), format!("a collective: {}", error.message()))));
    })
}

/// Adds what writes the number of the replica, or, if `is_partition`, of the partition.
#[unsafe(no_mangle)]
pub extern "C" fn purlin_commands_add_id(commands: &mut CommandsRep, is_partition: bool, to: RawSlice) {
    contain("purlin_commands_add_id", (), || {
        let to = to.into();
        commands.push(Ok(if is_partition { Command::PartitionId { to } } else { Command::ReplicaId { to } }));
    })
}

/// A program, C++'s, or null and an error.
///
/// # Safety
/// C++ gives `commands` up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_commands_build(
    commands: *mut CommandsRep,
    error: &mut *const StatusRep,
) -> *const ProgramRep {
    let build = || {
        // SAFETY: the caller's promise.
        SlabBox::into_inner(unsafe { owned(commands) }).build().map(ProgramRep)
    };
    give_handle(guard(build), error)
}

/// # Safety
/// C++ holds a reference.
unsafe fn program_retain(program: *const ProgramRep) {
    // SAFETY: the caller's promise.
    unsafe { handle::retain(program) };
}

/// # Safety
/// C++ gives its reference up.
unsafe fn program_release(program: *const ProgramRep) {
    contain("program_release", (), || {
        // SAFETY: the caller's promise.
        unsafe { handle::release(program) };
    })
}

fn program_name(program: &ProgramRep) -> &str {
    program.0.name()
}

fn program_specs(program: &ProgramRep, are_results: bool) -> Vec<ffi::ArraySpecParts> {
    contain("program_specs", vec![], || {
        let signature = program.0.signature();
        let specs = if are_results { &signature.results } else { &signature.parameters };
        specs.iter().map(parts).collect()
    })
}

fn parts(spec: &ArraySpec) -> ffi::ArraySpecParts {
    let shape = spec.shape();
    let dynamic = (0..shape.rank()).map(|axis| u8::from(shape.dynamic_dimension(axis)));
    ffi::ArraySpecParts {
        dims: shape.dims().to_vec(),
        dynamic: if shape.is_dynamic() { dynamic.collect() } else { vec![] },
        dtype: shape.dtype() as u8,
        has_layout: spec.layout().is_some(),
        minor_to_major: spec.layout().map_or_else(Vec::new, |layout: &Layout| layout.minor_to_major().to_vec()),
        memory_kind: spec.memory_kind().unwrap_or_default().to_owned(),
    }
}
