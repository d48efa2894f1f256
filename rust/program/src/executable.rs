//! An executable: a program with its code that is not bound to devices yet.

use std::fmt;

use crate::program::Program;

/// A program with its code, ready to be loaded any number of times. Clones share it. The kernels keep their code alive,
/// as long as an executable, a [`LoadedExecutable`](crate::LoadedExecutable) or a run of it exists.
///
/// ```
/// use purlin::program::{ArraySpec, Command, Executable, ProgramBuilder};
/// use purlin::{DType, Shape};
///
/// let mut builder = ProgramBuilder::new("ones");
/// let to = builder.result(ArraySpec::new(Shape::new(DType::U8, &[64])?));
/// builder.push(Command::Fill { pattern: vec![1], to });
/// let executable = Executable::new(builder.build()?);
/// assert!(executable.describe().starts_with("ones: () -> (u8[64])\ncommands: 1 fill\n"), "{}", executable.describe());
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone)]
pub struct Executable(Program);

impl Executable {
    /// The executable of a program.
    #[must_use]
    pub fn new(program: Program) -> Self {
        Self(program)
    }

    /// The program.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.0
    }

    /// A few lines of text: name and signature, commands by kind, bytes by kind of allocation, estimated cost of a run.
    #[must_use]
    pub fn describe(&self) -> String {
        format!("{}: {}\n{}", self.0.name(), self.0.signature(), self.0.summary())
    }
}

impl fmt::Debug for Executable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Executable('{}': {})", self.0.name(), self.0.signature())
    }
}
