//! What was parsed: functions, variables, and where each instruction stands in the text.

use crate::Global;
use crate::instruction::Instruction;

/// All that the kernels of a module share.
pub(crate) struct Program {
    pub(crate) functions: Vec<Function>,
    pub(crate) globals: Vec<Global>,
    pub(crate) shared: Vec<SharedVariable>,
    /// Opcodes with their modifiers, once each.
    pub(crate) opcodes: Vec<String>,
}

/// A variable in shared memory. Where it is depends on the kernel.
pub(crate) struct SharedVariable {
    /// `None`: as much as the launch says (`.extern`).
    pub(crate) size_bytes: Option<u64>,
    pub(crate) align: u64,
}

/// Where an instruction stands, for traps.
#[derive(Clone, Copy)]
pub(crate) struct Origin {
    pub(crate) line: u32,
    /// In [`Program::opcodes`].
    pub(crate) opcode: u32,
}

/// A kernel's or a device function's code.
///
/// Its part of parameter memory has its inputs first, at the places that they have in a launch's buffer, then its
/// results, then what it passes to others.
#[derive(Default)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) code: Vec<Instruction>,
    pub(crate) origins: Vec<Origin>,
    /// The values with which its registers begin.
    pub(crate) registers: Vec<u64>,
    pub(crate) local_bytes: usize,
    pub(crate) parameter_bytes: usize,
    pub(crate) inputs: Vec<Slot>,
    pub(crate) results: Vec<Slot>,
    /// The targets of indexed jumps.
    pub(crate) tables: Vec<Box<[u32]>>,
}

/// A part of a function's parameter memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) offset: usize,
    pub(crate) size_bytes: usize,
    pub(crate) align: usize,
}
