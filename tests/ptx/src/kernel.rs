//! A kernel, and running it: the grid's blocks one after the other, x first.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::block::Block;
use crate::instruction::{Base, Op};
use crate::program::{Function, Program};
use crate::{Memory, Trap, limits};

/// An entry of a module. Belongs to it; may be run by several threads at once.
pub struct Kernel {
    pub(crate) name: String,
    pub(crate) program: Arc<Program>,
    /// In [`Program::functions`].
    pub(crate) function: u32,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) most_threads: Option<[u32; 3]>,
    pub(crate) exact_threads: Option<[u32; 3]>,
    pub(crate) linked: Linked,
}

/// A parameter of a kernel: where it is in the buffer of a launch, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Parameter {
    /// A multiple of `align`, behind the parameter before.
    pub offset: usize,
    /// How many.
    pub size: usize,
    /// A power of two.
    pub align: usize,
}

/// How a kernel is to be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Blocks along x, y and z; none is 0.
    pub grid: [u32; 3],
    /// Threads of a block along x, y and z: none is 0, and there are 1024 at most.
    pub block: [u32; 3],
    /// Shared memory of `.extern` variables.
    pub dynamic_shared_bytes: u32,
}

/// What follows from the kernel's code and that of the functions that it calls.
#[derive(Default)]
pub(crate) struct Linked {
    /// Where each of [`Program::shared`] is, if the kernel uses it.
    pub(crate) shared: Vec<u64>,
    pub(crate) static_shared_bytes: usize,
    /// Where the launch's shared memory begins.
    pub(crate) dynamic_offset: u64,
    /// Which of [`Program::globals`] it uses.
    pub(crate) globals: Vec<u32>,
    /// Threads wait for each other.
    pub(crate) waits: bool,
}

impl Linked {
    pub(crate) fn new(program: &Program, kernel: u32) -> Self {
        let mut linked = Self { shared: vec![0; program.shared.len()], ..Self::default() };
        let mut uses_shared = vec![false; program.shared.len()];
        let mut uses_global = vec![false; program.globals.len()];
        let mut reached = vec![false; program.functions.len()];
        let mut to_look_at = vec![kernel];
        while let Some(function) = to_look_at.pop() {
            if std::mem::replace(&mut reached[function as usize], true) {
                continue;
            }
            for instruction in &program.functions[function as usize].code {
                match &instruction.op {
                    Op::Call(call) => to_look_at.push(call.function),
                    Op::Barrier(_) | Op::Together(_) => linked.waits = true,
                    _ => {}
                }
                match instruction.op.base() {
                    Some(Base::Shared(variable)) => uses_shared[variable as usize] = true,
                    Some(Base::Global(variable)) => uses_global[variable as usize] = true,
                    _ => {}
                }
            }
        }
        linked.globals = (0..).zip(uses_global).filter_map(|(global, used)| used.then_some(global)).collect();
        linked.place_shared(program, &uses_shared);
        linked
    }

    /// Variables of a size first; all others begin where those end.
    fn place_shared(&mut self, program: &Program, uses: &[bool]) {
        let (mut end, mut dynamic_align) = (0_u64, 16);
        for (index, variable) in program.shared.iter().enumerate().filter(|(index, _)| uses[*index]) {
            match variable.size_bytes {
                Some(size_bytes) => {
                    // Sizes are bounded, and so is the number of variables in a text.
                    let offset = end.next_multiple_of(variable.align);
                    self.shared[index] = offset;
                    end = offset.saturating_add(size_bytes);
                }
                None => dynamic_align = variable.align.max(dynamic_align),
            }
        }
        self.static_shared_bytes = end as usize;
        self.dynamic_offset = end.next_multiple_of(dynamic_align);
        for (index, variable) in program.shared.iter().enumerate() {
            if variable.size_bytes.is_none() {
                self.shared[index] = self.dynamic_offset;
            }
        }
    }
}

/// A launch that is under way.
pub(crate) struct Run<'a> {
    pub(crate) kernel: &'a Kernel,
    pub(crate) launch: Launch,
    pub(crate) parameters: &'a [u8],
    pub(crate) memory: &'a dyn Memory,
    pub(crate) stop: &'a AtomicBool,
    /// The addresses of [`Program::globals`], of those that are used.
    pub(crate) globals: Vec<u64>,
    pub(crate) shared_bytes: usize,
}

impl Kernel {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its parameters, in order. [`run`](Self::run) is given them in one buffer.
    #[must_use]
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// The size of that buffer.
    #[must_use]
    pub fn parameter_bytes(&self) -> usize {
        self.parameters.last().map_or(0, |last| last.offset + last.size)
    }

    /// Shared memory of the variables that it and the functions that it calls use.
    #[must_use]
    pub fn static_shared_bytes(&self) -> usize {
        self.linked.static_shared_bytes
    }

    /// Local memory of a thread, without that of the functions that it calls.
    #[must_use]
    pub fn local_bytes(&self) -> usize {
        self.code().local_bytes
    }

    /// How many threads a block may have, if the text says so: `.maxntid` or `.reqntid`.
    #[must_use]
    pub fn max_threads(&self) -> Option<u32> {
        let most = self.exact_threads.or(self.most_threads)?;
        Some(most.iter().fold(1, |product: u32, &along| product.saturating_mul(along)))
    }

    /// Runs all threads of the grid, in this thread. `parameters` has at least
    /// [`parameter_bytes`](Self::parameter_bytes) bytes; `globals` says where the module's variables are; the flag
    /// `stop`, once raised, ends it soon, at the latest at the next jump or call.
    ///
    /// # Errors
    /// Why it did not come to its end; what was written before that stays.
    pub fn run(
        &self,
        launch: &Launch,
        parameters: &[u8],
        globals: &dyn Fn(&str) -> Option<u64>,
        memory: &dyn Memory,
        stop: &AtomicBool,
    ) -> Result<(), Trap> {
        let refuse = |why| Trap::Launch { kernel: self.name.clone(), why };
        let shared_bytes = self.check(launch, parameters).map_err(refuse)?;
        let mut addresses = vec![0; self.program.globals.len()];
        for &global in &self.linked.globals {
            let name = self.program.globals[global as usize].name();
            let unknown = || refuse(format!("it uses the variable {name}, which has no address"));
            addresses[global as usize] = globals(name).ok_or_else(unknown)?;
        }
        let parameters = &parameters[..self.parameter_bytes()];
        let run = Run { kernel: self, launch: *launch, parameters, memory, stop, globals: addresses, shared_bytes };
        let mut block = Block::new(&run);
        let [blocks_x, blocks_y, blocks_z] = launch.grid;
        for z in 0..blocks_z {
            for y in 0..blocks_y {
                for x in 0..blocks_x {
                    block.run([x, y, z])?;
                }
            }
        }
        Ok(())
    }

    /// The bytes of a block's shared memory, or why it cannot be launched so.
    fn check(&self, launch: &Launch, parameters: &[u8]) -> Result<usize, String> {
        let Launch { grid, block, dynamic_shared_bytes } = *launch;
        let beyond = |dimensions: [u32; 3], most: [u32; 3]| {
            dimensions.iter().zip(most).any(|(&along, most)| along == 0 || along > most)
        };
        if beyond(grid, limits::BLOCKS_ALONG) {
            return Err(format!("a grid of {grid:?} blocks; each is 1 to {:?}", limits::BLOCKS_ALONG));
        }
        let threads: u32 = block.iter().fold(1, |product: u32, &along| product.saturating_mul(along));
        if beyond(block, limits::THREADS_ALONG) || threads > limits::THREADS {
            return Err(format!("a block of {block:?} threads; there are 1 to {} in all", limits::THREADS));
        }
        if let Some(most) = self.most_threads.filter(|_| Some(threads) > self.max_threads()) {
            return Err(format!("a block of {block:?} threads; .maxntid allows {most:?}"));
        }
        if let Some(exact) = self.exact_threads.filter(|&exact| exact != block) {
            return Err(format!("a block of {block:?} threads; .reqntid asks for {exact:?}"));
        }
        let wanted = self.parameter_bytes();
        if parameters.len() < wanted {
            return Err(format!("{} bytes of parameters; it has {wanted}", parameters.len()));
        }
        let dynamic = u64::from(dynamic_shared_bytes);
        let shared = match dynamic {
            0 => self.linked.static_shared_bytes as u64,
            _ => self.linked.dynamic_offset.saturating_add(dynamic),
        };
        if shared > limits::SHARED_BYTES {
            return Err(format!("{shared} bytes of shared memory; there are {}", limits::SHARED_BYTES));
        }
        Ok(shared as usize)
    }

    pub(crate) fn code(&self) -> &Function {
        &self.program.functions[self.function as usize]
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("name", &self.name).field("parameters", &self.parameters).finish_non_exhaustive()
    }
}
