//! A valid program whose kernels may have no code yet.
//!
//! Code that comes with a program is loaded after validation, so that nothing is loaded for a program that is refused.
//! Until then the program is an [`UnboundProgram`], which cannot run. [`UnboundProgram::bind`] gives its kernels their
//! code. It changes nothing else, so the program stays valid.

use std::fmt;
use std::sync::Arc;

use crate::allocation::Allocation;
use crate::command::{Command, Sequence};
use crate::kernel::{Kernel, KernelCode};
use crate::places::Places;
use crate::plan::plan;
use crate::program::{Parts, Program};
use crate::signature::ProgramSignature;
use crate::summary::ProgramSummary;
use crate::validate::validate;
use purlin_base::{Error, StatusOr};
use purlin_device::backend::INLINE_LIMIT_BYTES;

/// A validated program in which kernels may have no code ([`Kernel::unbound`]). It cannot run. A
/// [`ProgramBuilder`](crate::ProgramBuilder) makes it.
///
/// ```
/// use std::ffi::c_void;
/// use std::ptr::null_mut;
/// use std::sync::Arc;
///
/// use purlin::program::{ArraySpec, Command, Kernel, KernelFrame, Operand, ProgramBuilder};
/// use purlin::{DType, Shape};
///
/// /// Writes 7 to a byte.
/// unsafe extern "C" fn seven(frame: *const KernelFrame) -> *mut c_void {
///     // SAFETY: the frame has one operand, of one byte.
///     unsafe { *(*(*frame).args).data.cast::<u8>() = 7 };
///     null_mut()
/// }
///
/// let mut builder = ProgramBuilder::new("seven");
/// let to = builder.result(ArraySpec::new(Shape::new(DType::U8, &[1])?));
/// let (kernel, operands) = (Kernel::unbound("seven"), vec![Operand::write(to)]);
/// builder.push(Command::Kernel { kernel, workgroups: [1, 1, 1], operands });
/// let unbound = builder.build_unbound()?;
/// // Now is the time to load the code.
/// let program = unbound.bind(|name| {
///     // SAFETY: the function is part of this program, and accesses what its operands are.
///     (name == "seven").then(|| unsafe { Kernel::native("seven", seven, Arc::new(())) })
/// })?;
/// assert_eq!(program.name(), "seven");
/// # Ok::<(), purlin::Error>(())
/// ```
#[must_use = "a program without code does nothing"]
pub struct UnboundProgram(Parts);

impl UnboundProgram {
    /// A program of these parts, which are validated here.
    ///
    /// # Errors
    /// `InvalidArgument`: a rule of [`validate`](crate::validate) is broken, or the temporaries have more bytes than an
    /// address counts.
    pub(crate) fn checked(
        name: Arc<str>,
        signature: ProgramSignature,
        allocations: Vec<Allocation>,
        mut sequence: Sequence,
        parallel_from_bytes: usize,
    ) -> StatusOr<Self> {
        let named = |error: Error| refused(&name, error.message());
        validate(&signature, &allocations, &sequence).map_err(named)?;
        let places = Places::of(&allocations, signature.parameters.len(), signature.results.len()).map_err(named)?;
        let summary = ProgramSummary::of(&allocations, &sequence, places.temporary_bytes);
        let pays = plan(&mut sequence, parallel_from_bytes);
        let is_straight = !pays.is_parallel
            && summary.cost_bytes <= INLINE_LIMIT_BYTES
            && !["library", "collective"].iter().any(|kind| summary.command_counts.contains_key(kind));
        Ok(Self(Parts { name, signature, allocations, sequence, places, summary, pays, is_straight }))
    }

    /// The program in which the kernels without code have been replaced by those that `code` returns for their names.
    /// `code` is called on this thread, once for each command with such a kernel.
    ///
    /// # Errors
    /// `InvalidArgument`: `code` returned `None`, or a kernel that is not native; the rules for the operands of
    /// closures are stricter. The message names the command.
    pub fn bind(self, mut code: impl FnMut(&str) -> Option<Kernel>) -> StatusOr<Program> {
        let Self(mut parts) = self;
        if let Err((number, why)) = bind(&mut parts.sequence, &mut code) {
            let command = parts.sequence.path_of(number).unwrap_or_default();
            return Err(refused(&parts.name, &format!("command {command} {why}")));
        }
        Ok(Program::new(parts))
    }
}

/// `UnboundProgram('step': (f32[8]) -> (f32[8]))`
impl fmt::Debug for UnboundProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UnboundProgram('{}': {})", self.0.name, self.0.signature)
    }
}

/// Binds the kernels of a sequence, which is nested as deep as validation permits. The error is the number of the
/// command, and what is wrong with it.
fn bind(sequence: &mut Sequence, code: &mut dyn FnMut(&str) -> Option<Kernel>) -> Result<(), (u32, &'static str)> {
    let first = sequence.first();
    for (number, command) in (first..).zip(sequence.commands_mut()) {
        if let Command::Kernel { kernel, .. } = command
            && matches!(kernel.code(), KernelCode::Unbound)
        {
            *kernel = code(kernel.name()).ok_or((number, "has no code"))?;
            if !matches!(kernel.code(), KernelCode::Native { .. }) {
                return Err((number, "is bound to a kernel that is not native"));
            }
        }
        command.sequences_mut().try_for_each(|inner| bind(inner, code))?;
    }
    Ok(())
}

fn refused(program: &str, why: &str) -> Error {
    Error::invalid_argument(format!("the program '{program}' cannot run: {why}"))
}
