//! An interpreter of PTX, for tests alone: without a GPU, the fake CUDA driver runs with it the very text that ships.
//!
//! [`Module::parse`] turns a text into instructions with numbered registers and refuses, by line and name, whatever it
//! does not know: nothing is ever skipped. [`Kernel::run`] runs a grid block by block. Within a block one thread runs
//! at a time, in order, up to the next barrier or the next instruction that a warp executes together; so results never
//! depend on timing. Two threads of a block that touch the same shared memory without a barrier between them are told.
//! Global memory is the caller's ([`Memory`]); shared, local and parameter memory are the interpreter's own, and begin
//! filled with a pattern.
//!
//! What ends a kernel other than its end is a [`Trap`], which names kernel, line, instruction, block and thread. Texts,
//! arguments and addresses may be anybody's: there is an error for each mistake, never a panic, and what is allocated
//! is bounded (`limits`).
//!
//! ```
//! use purlin_ptx::Module;
//!
//! let module = Module::parse(".version 8.2\n.target sm_75\n.address_size 64\n.visible .entry nothing() { ret; }").unwrap();
//! assert_eq!(module.kernel("nothing").unwrap().parameters().len(), 0);
//! let refused = Module::parse(".version 8.2\n.target sm_75\n.entry k()\n{ wgmma.fence.sync.aligned; ret; }").unwrap_err();
//! assert_eq!(refused.to_string(), "line 4: wgmma.fence.sync.aligned: this instruction is not known");
//! ```

#![forbid(unsafe_code)]

mod block;
mod decode;
mod execute;
mod instruction;
mod kernel;
mod limits;
mod memory;
mod module;
mod number;
mod parse;
mod program;
mod race;
mod refusal;
mod spaces;
mod thread;
mod trap;
mod types;
mod warp;

pub use kernel::{Kernel, Launch, Parameter};
pub use memory::{Fault, Memory};
pub use module::{Global, Module};
pub use refusal::Refusal;
pub use trap::{Place, Trap};
