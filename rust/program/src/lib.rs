//! Programs: what a compiler has made of a computation, as data that is checked once and run many times.
//!
//! A [`Program`] is a list of allocations and a list of commands over slices of them: kernels, copies, loops, branches,
//! library calls. It comes from a [`ProgramBuilder`], and exists only if every command can be done: so a run checks its
//! arguments and nothing else. Users of Rust see of it what the crate `purlin` re-exports. Bottom up; a module may only
//! use those above it in this list:
//!
//! | module | what it is |
//! |---|---|
//! | `constant` | [`Constant`]: bytes that are the same in all runs |
//! | `allocation` | [`Allocation`], [`Slice`]: the memory that a program names |
//! | `operand` | [`Operand`]: what a command touches, and how |
//! | `float_mode` | denormal numbers taken for zero, while commands run |
//! | `kernel` | [`Kernel`]: native code with XLA:CPU's frame, or a closure |
//! | `library` | [`LibraryCall`]: work that no kernel does |
//! | `command` | [`Command`], [`Sequence`]: what a program does |
//! | `signature` | [`ProgramSignature`]: what it takes and gives |
//! | `validate` | the rules, and the refusals |
//! | `places` | where a run finds each allocation |
//! | `summary` | what a program consists of, and how long it takes |
//! | `program` | [`Program`]: all of this, checked |
//! | `builder` | [`ProgramBuilder`] |
//! | `executable` | [`Executable`]: a program that can be loaded |
//! | `bounce` | memory in place of what is not aligned |
//! | `interpreter` | commands, done |
//! | `launch` | one run on one device, once its memory is there |
//! | `runs` | the runs that are not over |
//! | `loaded` | [`LoadedExecutable`]: a program on devices |
//! | `execute` | [`LoadedExecutable::execute`]: a run, from arguments to outputs |

#![deny(unsafe_code)]

mod allocation;
mod bounce;
mod builder;
mod command;
mod constant;
mod executable;
mod execute;
mod float_mode;
mod interpreter;
mod kernel;
mod launch;
mod library;
mod loaded;
mod operand;
mod places;
mod program;
mod runs;
mod signature;
mod summary;
mod validate;

pub use allocation::{ALIGNMENT_BYTES, Allocation, AllocationKind, Slice};
pub use builder::ProgramBuilder;
pub use command::{Branch, Command, MOST_NESTED, Sequence};
pub use constant::Constant;
pub use executable::Executable;
pub use execute::{ExecuteOptions, Execution, Outputs, OutputsIntoIter};
pub use kernel::{Kernel, KernelArgument, KernelCall, KernelClosure, KernelDim3, KernelFrame, KernelFunction};
pub use library::{LibraryCall, LibraryContext, OperandBytes};
pub use loaded::LoadedExecutable;
pub use operand::{Operand, OperandAccess};
pub use program::Program;
pub use signature::{Alias, ArraySpec, ProgramSignature};
pub use summary::ProgramSummary;
