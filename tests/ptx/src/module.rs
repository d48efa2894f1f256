//! A module: kernels and variables of one text.

use std::fmt;
use std::sync::Arc;

use crate::parse;
use crate::program::Program;
use crate::{Kernel, Refusal};

/// What [`Module::parse`] understood. Never changes; may be shared between threads.
pub struct Module {
    pub(crate) version: (u32, u32),
    pub(crate) target: String,
    pub(crate) kernels: Vec<Kernel>,
    pub(crate) program: Arc<Program>,
}

impl Module {
    /// Understands a text, up to its first zero byte if there is one.
    ///
    /// # Errors
    /// The first thing that is not known, or not right: its line, what stands there, and why.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        parse::parse(text)
    }

    /// The kernel of that name.
    #[must_use]
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.kernels.iter().find(|kernel| kernel.name() == name)
    }

    /// All kernels, in the order of the text.
    pub fn kernels(&self) -> impl Iterator<Item = &Kernel> {
        self.kernels.iter()
    }

    /// The variables in global and constant memory, in the order of the text. The caller places them, and says where
    /// they are when a kernel is run.
    #[must_use]
    pub fn globals(&self) -> &[Global] {
        &self.program.globals
    }

    /// `.version`, as (major, minor).
    #[must_use]
    pub fn version(&self) -> (u32, u32) {
        self.version
    }

    /// `.target`, as the text has it: `sm_75`.
    #[must_use]
    pub fn target(&self) -> &str {
        &self.target
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kernels: Vec<_> = self.kernels.iter().map(Kernel::name).collect();
        f.debug_struct("Module")
            .field("version", &self.version)
            .field("target", &self.target)
            .field("kernels", &kernels)
            .finish_non_exhaustive()
    }
}

/// A variable of a module in global or constant memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Global {
    pub(crate) name: String,
    pub(crate) size: usize,
    pub(crate) align: usize,
    pub(crate) initial: Vec<u8>,
    pub(crate) is_constant: bool,
}

impl Global {
    /// Its name. A variable within a function has the function's before it, with a dot: no other name has one.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// In bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// What its address is to be a multiple of, in bytes: a power of two.
    #[must_use]
    pub fn align(&self) -> usize {
        self.align
    }

    /// The bytes with which it begins; those beyond them, up to [`size`](Self::size), are zero.
    #[must_use]
    pub fn initial(&self) -> &[u8] {
        &self.initial
    }

    /// Whether it is in constant memory, which kernels cannot write.
    #[must_use]
    pub fn is_constant(&self) -> bool {
        self.is_constant
    }
}
