//! Programs: the output of a compiler for one computation, as data that is validated once and run many times.
//!
//! A [`Program`] is a list of allocations and a list of commands over slices of them: kernels, copies, loops, branches,
//! library calls. A [`ProgramBuilder`] makes it, and only if every command is valid. So a run checks its arguments and
//! nothing else. Rust users reach the public part through the crate `purlin`.
//!
//! States of a program: [`ProgramBuilder`] (unchecked), [`UnboundProgram`] (validated, kernels may lack code),
//! [`Program`] (immutable), [`Executable`] (can be
//! loaded), [`LoadedExecutable`] (bound to devices). Each [`LoadedExecutable::execute`] starts one run. A run executes
//! its commands on one thread; large commands that are independent, large kernels and library calls use more threads of
//! the client. Building can fail by an invalid
//! command, allocation or alias, loading by unsuitable devices, a run by its arguments, by memory, or by a kernel or
//! library call.
//!
//! The modules, bottom up; a module may use only those above it in this list:
//!
//! | module | what it is |
//! |---|---|
//! | `constant` | [`Constant`]: bytes that are the same in all runs |
//! | `allocation` | [`Allocation`], [`Slice`]: the memory that a program names |
//! | `operand` | [`Operand`]: the bytes that a command accesses, and how |
//! | `float_mode` | denormal numbers are treated as zero while commands run |
//! | `kernels` | descriptions of kernels for GPUs and other platforms, and registries of kernels |
//! | `kernel` | [`Kernel`]: native code with XLA:CPU's frame, a closure, or code of a device |
//! | `loaded_kernel` | [`LoadedKernel`]: a kernel that is loaded for a device, and launches of it alone |
//! | `library` | [`LibraryCall`]: work other than kernels, such as a sort |
//! | `collective` | [`Collective`]: devices of one launch exchange arrays |
//! | `command` | [`Command`], [`Sequence`]: the steps of a program |
//! | `plan` | which commands run side by side, and which kernels on several threads |
//! | `signature` | [`ProgramSignature`]: parameters, results and aliases |
//! | `validate` | the rules for programs, and the errors that report a broken rule |
//! | `places` | where a run finds each allocation |
//! | `cost` | the estimated cost of commands |
//! | `summary` | counts of commands and bytes, and the estimated cost of a run |
//! | `program` | [`Program`]: all of this, validated |
//! | `unbound` | [`UnboundProgram`]: the same, before kernels have their code |
//! | `builder` | [`ProgramBuilder`]: collects the parts of a program |
//! | `executable` | [`Executable`]: a program that can be loaded |
//! | `bounce` | aligned memory in place of arguments and results that are not aligned |
//! | `watch` | the runs that execute commands, for stall reports |
//! | `interpreter` | executes commands |
//! | `launch` | one run on one device, once its memory is allocated |
//! | `runs` | the runs in flight |
//! | `lower` | the commands of a device that loads kernels, in place of a program's |
//! | `loaded` | [`LoadedExecutable`]: a program on devices |
//! | `execute` | [`LoadedExecutable::execute`]: a run, from arguments to outputs |

#![deny(unsafe_code)]

mod allocation;
mod bounce;
mod builder;
mod collective;
mod command;
mod constant;
mod cost;
mod executable;
mod execute;
mod float_mode;
mod interpreter;
mod kernel;
mod kernels;
mod launch;
mod library;
mod loaded;
mod loaded_kernel;
mod lower;
mod operand;
mod places;
mod plan;
mod program;
mod runs;
mod signature;
mod summary;
mod unbound;
mod validate;
mod watch;

pub use allocation::{ALIGNMENT_BYTES, Allocation, AllocationKind, Slice};
pub use builder::ProgramBuilder;
pub use collective::{
    Collective, CollectiveArray, CollectiveCall, CollectiveEngine, CollectiveKind, CollectiveLaunch, GroupMode,
    InProcess, Reduction,
};
pub use command::{Branch, Command, MOST_NESTED, Sequence};
pub use constant::Constant;
pub use executable::Executable;
pub use execute::{ExecuteOptions, Execution, Outputs, OutputsIntoIter};
pub use kernel::{Kernel, KernelArgument, KernelCall, KernelClosure, KernelDim3, KernelFrame, KernelFunction};
pub use kernels::{
    ComputeCapability, DeviceCode, FeatureExtension, KernelArgPackingRelocation, KernelArgPackingSpec,
    KernelArgsPackingSpec, KernelLoaderSpec, KernelPayload, KernelRegistry, KernelSymbol, PackedKernelArgs,
    RegistryKey, SymbolRegistry,
};
pub use library::{LibraryCall, LibraryContext, OperandBytes};
pub use loaded::LoadedExecutable;
pub use loaded_kernel::{KernelLaunch, KernelOperand, LoadedKernel};
pub use operand::{Operand, OperandAccess};
pub use program::Program;
pub use signature::{Alias, ArraySpec, ProgramSignature};
pub use summary::{LibraryWork, ProgramSummary};
pub use unbound::UnboundProgram;
