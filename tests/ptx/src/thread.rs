//! A thread: its registers, its stack of calls, and where it is.

use crate::instruction::{Call, Op, Operand, Predicate, Register};
use crate::kernel::Run;
use crate::program::{Function, Program};
use crate::spaces::UNWRITTEN;
use crate::{Place, limits};

/// A stack that grew beyond this is given back when its thread ends.
const KEPT_BYTES: usize = 64 << 10;

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Runs,
    /// At a barrier of that number.
    AtBarrier(u32),
    /// At an instruction that a warp executes together.
    InWarp,
    Over,
}

/// A function that was called, and where its parts of the stacks begin.
#[derive(Clone, Copy, Default)]
pub(crate) struct Frame {
    pub(crate) function: u32,
    /// The instruction that is next, or under way.
    pub(crate) at: u32,
    pub(crate) registers: usize,
    pub(crate) local: usize,
    pub(crate) parameters: usize,
}

/// See the module.
pub(crate) struct Thread {
    pub(crate) state: State,
    /// Its number within the block.
    pub(crate) number: u32,
    pub(crate) registers: Vec<u64>,
    pub(crate) local: Vec<u8>,
    pub(crate) parameters: Vec<u8>,
    /// The function that runs.
    pub(crate) frame: Frame,
    /// Those that called it, the kernel first.
    callers: Vec<Frame>,
    pub(crate) carry: bool,
    pub(crate) clock: u64,
}

/// `%tid` of a thread of that number.
pub(crate) fn thread_index(run: &Run<'_>, number: u32) -> [u32; 3] {
    let [x, y, _] = run.launch.block;
    [number % x, number / x % y, number / x / y]
}

/// Calls are nested too deeply.
pub(crate) struct TooDeep;

impl Thread {
    pub(crate) fn new() -> Self {
        Self {
            state: State::Over,
            number: 0,
            registers: Vec::new(),
            local: Vec::new(),
            parameters: Vec::new(),
            frame: Frame::default(),
            callers: Vec::new(),
            carry: false,
            clock: 0,
        }
    }

    /// Becomes thread `number` of a block, at the beginning of the kernel.
    pub(crate) fn begin(&mut self, run: &Run<'_>, number: u32, used: &mut usize) -> Result<(), TooDeep> {
        self.registers.clear();
        self.local.clear();
        self.parameters.clear();
        self.callers.clear();
        (self.state, self.number, self.carry, self.clock) = (State::Runs, number, false, 0);
        self.frame = Frame { function: run.kernel.function, ..Frame::default() };
        self.grow(run.kernel.code(), used)?;
        self.parameters[..run.parameters.len()].copy_from_slice(run.parameters);
        Ok(())
    }

    /// Its stacks are no longer counted.
    pub(crate) fn end(&mut self, used: &mut usize) {
        *used = used.saturating_sub(self.size_bytes());
        if self.size_bytes() > KEPT_BYTES {
            (self.registers, self.local, self.parameters) = (Vec::new(), Vec::new(), Vec::new());
        }
        self.state = State::Over;
    }

    fn size_bytes(&self) -> usize {
        self.registers.len() * 8 + self.local.len() + self.parameters.len()
    }

    /// Room for a function's registers and memory, at the ends of the stacks. `used`: the bytes of all of the block.
    fn grow(&mut self, function: &Function, used: &mut usize) -> Result<(), TooDeep> {
        let before = self.size_bytes();
        let align = limits::FRAME_ALIGNMENT as usize;
        let local = self.local.len().next_multiple_of(align);
        let parameters = self.parameters.len().next_multiple_of(align);
        let (local_end, parameters_end) = (local + function.local_bytes, parameters + function.parameter_bytes);
        let registers_end = self.registers.len() + function.registers.len();
        let most = limits::LOCAL_BYTES as usize;
        if local_end > most || parameters_end > most || registers_end > limits::THREAD_REGISTERS {
            return Err(TooDeep);
        }
        let more = registers_end * 8 + local_end + parameters_end - before;
        if *used + more > limits::BLOCK_BYTES {
            return Err(TooDeep);
        }
        *used += more;
        (self.frame.registers, self.frame.local, self.frame.parameters) = (self.registers.len(), local, parameters);
        self.registers.extend_from_slice(&function.registers);
        self.local.resize(local_end, UNWRITTEN);
        self.parameters.resize(parameters_end, UNWRITTEN);
        Ok(())
    }

    /// Goes to the beginning of a function; the frame's `at` is the call.
    pub(crate) fn call(&mut self, program: &Program, call: &Call, used: &mut usize) -> Result<(), TooDeep> {
        if self.callers.len() >= limits::CALLS {
            return Err(TooDeep);
        }
        let caller = self.frame;
        let function = &program.functions[call.function as usize];
        self.grow(function, used)?;
        (self.frame.function, self.frame.at) = (call.function, 0);
        self.callers.push(caller);
        for (&from, slot) in call.inputs.iter().zip(&function.inputs) {
            let (from, to) = (caller.parameters + from, self.frame.parameters + slot.offset);
            self.parameters.copy_within(from..from + slot.size_bytes, to);
        }
        Ok(())
    }

    /// Goes back behind the call. False: there was none, the kernel is over.
    pub(crate) fn come_back(&mut self, program: &Program, used: &mut usize) -> bool {
        let Some(caller) = self.callers.pop() else { return false };
        let function = &program.functions[self.frame.function as usize];
        if let Op::Call(call) = &program.functions[caller.function as usize].code[caller.at as usize].op {
            for (&to, slot) in call.results.iter().zip(&function.results) {
                let (from, to) = (self.frame.parameters + slot.offset, caller.parameters + to);
                self.parameters.copy_within(from..from + slot.size_bytes, to);
            }
        }
        let before = self.size_bytes();
        self.registers.truncate(self.frame.registers);
        self.local.truncate(self.frame.local);
        self.parameters.truncate(self.frame.parameters);
        *used = used.saturating_sub(before - self.size_bytes());
        self.frame = caller;
        self.frame.at += 1;
        true
    }

    /// A register's value, or a constant.
    pub(crate) fn value(&self, operand: Operand) -> u64 {
        match operand {
            Operand::Register(register) => self.registers[self.frame.registers + register as usize],
            Operand::Immediate(value) => value,
        }
    }

    pub(crate) fn holds(&self, predicate: Predicate) -> bool {
        (self.value(predicate.value) != 0) != predicate.negated
    }

    pub(crate) fn set(&mut self, register: Register, value: u64) {
        self.registers[self.frame.registers + register as usize] = value;
    }

    /// `%tid`.
    pub(crate) fn index(&self, run: &Run<'_>) -> [u32; 3] {
        thread_index(run, self.number)
    }

    /// Where it is, for a trap.
    pub(crate) fn place(&self, run: &Run<'_>, block: [u32; 3]) -> Box<Place> {
        let program = &run.kernel.program;
        let function = &program.functions[self.frame.function as usize];
        let origin = function.origins[self.frame.at as usize];
        Box::new(Place {
            kernel: run.kernel.name.clone(),
            function: function.name.clone(),
            line: origin.line as usize,
            instruction: program.opcodes[origin.opcode as usize].clone(),
            block,
            thread: self.index(run),
        })
    }
}
