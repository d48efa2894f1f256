//! Loads an executable: parse, read, link, bind.
//!
//! The steps before linking are pure. Together they find every unknown part, and one error reports all of them. Only
//! then is code mapped, and bound to the commands that name it. At the end the program is validated; if that fails, the
//! code is unmapped.

#![allow(unsafe_code, reason = "addresses of linked code become functions")]

use std::any::Any;
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::Arc;

use purlin_base::{Error, StatusOr};
use purlin_program::{Command, Kernel, KernelFunction, LibraryCall as _, Program, ProgramBuilder, Sequence};

use crate::fault::Reasons;
use crate::ffi::FfiHandlers;
use crate::library::{Comparator, Sort};
use crate::link::{Code, Linkable, ObjectFile};
use crate::module::{Module, Step};
use crate::proto::{self, Parsed};

/// XLA's numbers for the kinds of functions in the code.
const KERNEL: i32 = 1;
const COMPARATOR: i32 = 2;

/// The options of a load.
///
/// ```
/// use purlin_xla_cpu::LoadOptions;
///
/// assert!(!LoadOptions::default().trust_code, "no code is trusted by default");
/// ```
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// The caller's promise that the executable's machine code may run in this process, with all rights of the process.
    /// It means that the code comes from a compiler that the caller trusts, through a channel on which no other party
    /// could change it. The loader cannot check that. Without the promise it loads nothing.
    pub trust_code: bool,
    /// Whether to register the code's unwind tables, so that a backtrace from inside a kernel (of a crash handler) is
    /// complete. The unwinder then searches these tables at every unwinding in the process.
    pub unwind_tables: bool,
    /// The handlers of the program's custom calls, by the names of their targets.
    pub handlers: FfiHandlers,
}

/// Loads an executable that stock XLA:CPU has compiled: the bytes of `PJRT_Executable_Serialize`, or of jaxlib's
/// `serialize()`. Loading runs none of its code; executing the program does. The code stays mapped as long as a clone
/// of the program lives. At the end, the handlers of its custom calls are asked to instantiate, if they have that
/// stage.
///
/// # Errors
/// `FailedPrecondition`: [`LoadOptions::trust_code`] is false. `DataLoss`: the bytes are no such executable, or a
/// damaged one; the message of a parsing error has the offset. `Unimplemented`: the executable is sound, but a part of
/// it cannot run here, such as a custom call without a handler. The message lists up to 20 reasons and the number of
/// the others, and nothing was mapped. `Unimplemented` also: the program breaks a rule of validation; its code is then
/// unmapped again. `ResourceExhausted`: the system has no memory for the code. `PermissionDenied`: the system forbids
/// executable pages. Any code: the error of a handler that cannot instantiate, with its text.
pub fn load_program(bytes: &[u8], options: &LoadOptions) -> StatusOr<Program> {
    if !options.trust_code {
        return Err(Error::failed_precondition(
            "an XLA:CPU executable is machine code that would run with all rights of this process; \
             LoadOptions::trust_code must say that it may",
        ));
    }
    let parsed = proto::parse(bytes)?;
    let (module, code) = read(&parsed, &options.handlers, |linkable| linkable.load(options.unwind_tables))?;
    let code = Arc::new(code?);
    let Module { name, signature, allocations, steps, custom_calls } = module;
    let mut builder = ProgramBuilder::with_signature(Arc::clone(&name), signature);
    for allocation in allocations {
        builder.allocate(allocation);
    }
    let mut binder = Binder { code, kernels: HashMap::new() };
    for step in steps {
        builder.push(binder.command(step));
    }
    // The messages are consistent. So a rule that is still broken means that XLA compiled something in a way that is
    // not known here.
    let program = builder
        .build()
        .map_err(|error| Error::unimplemented(format!("program '{name}' cannot run here: {}", error.message())))?;
    for call in custom_calls {
        call.instantiate().map_err(|error| {
            let why = format!("program '{name}', custom call target '{}': {}", call.name(), error.message());
            Error::new(error.code(), why)
        })?;
    }
    Ok(program)
}

/// Checks whether [`load_program`] can load these bytes, without mapping code: the parsing, the steps and the linking.
/// It needs no trust in the code. It does not run the program's validation. It knows no handlers, so a custom call is a
/// reason.
///
/// # Errors
/// `DataLoss`, `Unimplemented`: as [`load_program`] for these steps.
pub fn check(bytes: &[u8]) -> StatusOr<()> {
    read(&proto::parse(bytes)?, &FfiHandlers::default(), |_| ()).map(|_| ())
}

/// Does all steps that map no code, and then calls `with` on the files, which can be linked.
fn read<R>(
    parsed: &Parsed<'_>,
    handlers: &FfiHandlers,
    with: impl FnOnce(&Linkable<'_>) -> R,
) -> StatusOr<(Module, R)> {
    let mut reasons = Reasons::default();
    parsed.unknown.iter().for_each(|field| reasons.add(field.clone()));
    let module = Module::read(parsed, handlers, &mut reasons)?;
    let mut files = Vec::with_capacity(parsed.result.objects.len());
    for object in &parsed.result.objects {
        files.push(ObjectFile::read(&object.name, &object.contents, &mut reasons)?);
    }
    let linkable = Linkable::new(files, &mut reasons);
    if let Some(linkable) = &linkable {
        let kinds: HashMap<&str, i32> =
            parsed.result.symbols.iter().map(|symbol| (symbol.name.as_str(), symbol.kind)).collect();
        check_functions(&module.steps, linkable, &kinds, &mut reasons);
    }
    reasons.into_result(&module.name)?;
    let linkable = linkable.expect("where it is missing there is a reason");
    let with = with(&linkable);
    Ok((module, with))
}

/// Checks that the code defines each function, with the right kind.
fn check_functions(steps: &[Step], code: &Linkable<'_>, kinds: &HashMap<&str, i32>, reasons: &mut Reasons) {
    let mut check = |name: &str, what: &str, kind: i32| {
        if !code.defines(name) || kinds.get(name) != Some(&kind) {
            reasons.add(format!("{what} '{name}' is not in the code"));
        }
    };
    let mut left: Vec<&Step> = steps.iter().collect();
    while let Some(step) = left.pop() {
        match step {
            Step::Kernel { function, .. } => check(function, "kernel", KERNEL),
            Step::Sort { comparator, .. } => check(comparator, "comparator", COMPARATOR),
            Step::Call(body) | Step::Repeat { body, .. } => left.extend(body),
            Step::While { condition, body, .. } => left.extend(condition.iter().chain(body)),
            Step::Conditional { branches, .. } => left.extend(branches.iter().flatten()),
            Step::Ready(_) => {}
        }
    }
}

/// Turns steps into commands, bound to their code.
struct Binder {
    code: Arc<Code>,
    /// The kernels made so far, which several steps may share.
    kernels: HashMap<String, Kernel>,
}

impl Binder {
    fn command(&mut self, step: Step) -> Command {
        match step {
            Step::Ready(command) => command,
            Step::Kernel { function, workgroups, operands } => {
                Command::Kernel { kernel: self.kernel(function), workgroups, operands }
            }
            Step::Sort { comparator, arrays, operands } => {
                // SAFETY: the caller of load_program() vouches for the code, whose symbols say that this is a
                // comparator. The pages stay mapped as long as `code` lives.
                let call = unsafe {
                    let comparator = std::mem::transmute::<*const c_void, Comparator>(self.function(&comparator));
                    Sort::new(arrays, comparator, self.owner())
                };
                Command::Library { call: Arc::new(call), operands }
            }
            Step::Call(body) => Command::Call(self.sequence(body)),
            Step::Repeat { trip_count, body } => Command::Repeat { trip_count, body: self.sequence(body) },
            Step::While { condition, predicate, body } => {
                Command::While { condition: self.sequence(condition), predicate, body: self.sequence(body) }
            }
            Step::Conditional { branch, branches } => {
                let branches = branches.into_iter().map(|branch| self.sequence(branch)).collect();
                Command::Conditional { branch, branches }
            }
        }
    }

    fn sequence(&mut self, steps: Vec<Step>) -> Sequence {
        Sequence::new(steps.into_iter().map(|step| self.command(step)).collect())
    }

    fn kernel(&mut self, function: String) -> Kernel {
        if let Some(kernel) = self.kernels.get(&function) {
            return kernel.clone();
        }
        // SAFETY: the caller of load_program() vouches for the code, whose symbols say that this is a kernel: it
        // accesses its operands as the command says, and returns. The pages stay mapped as long as `code` lives.
        let kernel = unsafe {
            let code = std::mem::transmute::<*const c_void, KernelFunction>(self.function(&function));
            Kernel::native(function.as_str(), code, self.owner())
        };
        self.kernels.insert(function, kernel.clone());
        kernel
    }

    fn function(&self, name: &str) -> *const c_void {
        let address = self.code.function(name).expect("check_functions() has found it");
        std::ptr::with_exposed_provenance(address)
    }

    fn owner(&self) -> Arc<dyn Any + Send + Sync> {
        Arc::clone(&self.code) as Arc<dyn Any + Send + Sync>
    }
}
