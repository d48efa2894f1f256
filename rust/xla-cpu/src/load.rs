//! Loads an executable: parse, read, validate, map, bind.
//!
//! The steps before mapping are pure. Reading finds every unknown part, and one error reports all of them. Then the
//! program is validated, with kernels that have no code. Only if all of that succeeds is code mapped, and bound to the
//! commands that name it.

#![allow(unsafe_code, reason = "addresses of linked code become functions")]

use std::any::Any;
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::Arc;

use purlin_base::{Error, StatusOr};
use purlin_program::{Command, Kernel, KernelFunction, LibraryCall as _, Program, ProgramBuilder, UnboundProgram};

use crate::fault::{Part, Reasons};
use crate::ffi::{CustomCall, FfiHandlers};
use crate::library::Comparator;
use crate::link::{Code, Linkable, ObjectFile, perf_map};
use crate::module::{Comparison, Module};
use crate::proto::{self, Parsed};

/// XLA's numbers for the kinds of functions in the code.
const KERNEL: i32 = 1;
const COMPARATOR: i32 = 2;

/// The fields that lead to the bytes of an object.
const OBJECTS: u32 = 8;
const CONTENTS: u32 = 1;

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
    /// Whether to append the addresses, sizes and names of the code's functions to `/tmp/perf-PID.map`, where PID is
    /// the number of this process. `perf report` shows their names then. The lines stay when the code is unmapped.
    pub perf_map: bool,
    /// The handlers of the program's custom calls, by the names of their targets.
    pub handlers: FfiHandlers,
}

/// Loads an executable that stock XLA:CPU has compiled: the bytes of `PJRT_Executable_Serialize`, or of jaxlib's
/// `serialize()`. Loading runs none of its code; executing the program does. The code stays mapped as long as a clone
/// of the program lives. The handlers of its custom calls are asked to instantiate, if they have that stage, before the
/// code is mapped.
///
/// # Errors
/// `FailedPrecondition`: [`LoadOptions::trust_code`] is false. `DataLoss`: the bytes are no such executable, or a
/// damaged one; the message has the offset. `Unimplemented`: the executable is sound, but a part of
/// it cannot run here, such as a custom call without a handler. The message lists up to 20 reasons and the number of
/// the others. `Unimplemented` also: the program breaks a rule of validation. Any code: the error of a handler that
/// cannot instantiate, with its text. Up to here nothing was mapped. `ResourceExhausted`: the system has no memory for
/// the code. `PermissionDenied`: the system forbids executable pages. `PermissionDenied`, `Unavailable`:
/// [`LoadOptions::perf_map`] is true, and the file is another user's, or cannot be written; the code is unmapped then.
pub fn load_program(bytes: &[u8], options: &LoadOptions) -> StatusOr<Program> {
    if !options.trust_code {
        return Err(Error::failed_precondition(
            "an XLA:CPU executable is machine code that would run with all rights of this process; \
             LoadOptions::trust_code must say that it may",
        ));
    }
    let parsed = proto::parse(bytes)?;
    let Checked { program, linkable, sorts, custom_calls, name } = Checked::new(&parsed, &options.handlers)?;
    for call in custom_calls {
        call.instantiate().map_err(|error| {
            let why = format!("program '{name}', custom call target '{}': {}", call.name(), error.message());
            Error::new(error.code(), why)
        })?;
    }
    let code = Arc::new(linkable.load(options.unwind_tables)?);
    if options.perf_map {
        perf_map::append(&linkable.perf_map(&code))?;
    }
    for Comparison { comparator, sort } in sorts {
        // SAFETY: the caller of load_program() vouches for the code, whose symbols say that this is a comparator. The
        // pages stay mapped as long as `code` lives.
        unsafe {
            let comparator = std::mem::transmute::<*const c_void, Comparator>(function(&code, &comparator));
            sort.bind(comparator, owner(&code));
        }
    }
    // Several commands may share a kernel.
    let mut kernels: HashMap<String, Kernel> = HashMap::new();
    program.bind(|name| {
        if let Some(kernel) = kernels.get(name) {
            return Some(kernel.clone());
        }
        // SAFETY: the caller of load_program() vouches for the code, whose symbols say that this is a kernel: it
        // accesses its operands as the command says, and returns. The pages stay mapped as long as `code` lives.
        let kernel = unsafe {
            let address = std::mem::transmute::<*const c_void, KernelFunction>(function(&code, name));
            Kernel::native(name, address, owner(&code))
        };
        kernels.insert(name.to_owned(), kernel.clone());
        Some(kernel)
    })
}

fn function(code: &Code, name: &str) -> *const c_void {
    std::ptr::with_exposed_provenance(code.function(name).expect("check_functions() has found it"))
}

fn owner(code: &Arc<Code>) -> Arc<dyn Any + Send + Sync> {
    Arc::clone(code) as Arc<dyn Any + Send + Sync>
}

/// Checks whether [`load_program`] can load these bytes: all of its steps but those that map code. It needs no trust in
/// the code. It knows no handlers, so a custom call is a reason.
///
/// # Errors
/// `DataLoss`, `Unimplemented`: as [`load_program`], with the same messages.
pub fn check(bytes: &[u8]) -> StatusOr<()> {
    Checked::new(&proto::parse(bytes)?, &FfiHandlers::default()).map(drop)
}

/// The parameters whose memory a run of the executable gives to its results, unless its caller keeps them. It says
/// nothing about whether [`load_program`] can load it.
///
/// # Errors
/// `DataLoss`: the bytes are no such executable, or a damaged one.
pub fn donated_parameters(bytes: &[u8]) -> StatusOr<Vec<usize>> {
    let parsed = proto::parse(bytes)?;
    Ok(parsed.donated_parameters())
}

/// An executable that can be loaded: nothing in it is unknown, and its program is valid. No code is mapped yet.
struct Checked<'a> {
    name: Arc<str>,
    program: UnboundProgram,
    linkable: Linkable<'a>,
    sorts: Vec<Comparison>,
    custom_calls: Vec<Arc<CustomCall>>,
}

impl<'a> Checked<'a> {
    /// Does all steps that map no code.
    fn new(parsed: &'a Parsed<'a>, handlers: &FfiHandlers) -> StatusOr<Self> {
        let mut reasons = Reasons::default();
        parsed.unknown.iter().for_each(|field| reasons.add(field.clone()));
        let module = Module::read(parsed, handlers, &mut reasons).map_err(|why| parsed.located(why))?;
        let mut files = Vec::with_capacity(parsed.result.objects.len());
        for (number, object) in parsed.result.objects.iter().enumerate() {
            let path = [Part { field: OBJECTS, index: Some(number) }, Part { field: CONTENTS, index: None }];
            let file = ObjectFile::read(&object.name, &object.contents, &mut reasons);
            files.push(file.map_err(|fault| fault.within(parsed.offset_of(&path)))?);
        }
        let linkable = Linkable::new(files, &mut reasons);
        if let Some(linkable) = &linkable {
            let kinds: HashMap<&str, i32> =
                parsed.result.symbols.iter().map(|symbol| (symbol.name.as_str(), symbol.kind)).collect();
            check_functions(&module, linkable, &kinds, &mut reasons);
        }
        reasons.into_result(&module.name)?;
        let linkable = linkable.expect("where it is missing there is a reason");
        let Module { name, signature, allocations, commands, sorts, custom_calls } = module;
        let mut builder = ProgramBuilder::with_signature(Arc::clone(&name), signature);
        for allocation in allocations {
            builder.allocate(allocation);
        }
        for command in commands {
            builder.push(command);
        }
        // The messages are consistent. So a rule that is broken means that XLA compiled something in a way that is not
        // known here.
        let program = builder
            .build_unbound()
            .map_err(|error| Error::unimplemented(format!("program '{name}' cannot run here: {}", error.message())))?;
        Ok(Self { name, program, linkable, sorts, custom_calls })
    }
}

/// Checks that the code defines each function, with the right kind.
fn check_functions(module: &Module, code: &Linkable<'_>, kinds: &HashMap<&str, i32>, reasons: &mut Reasons) {
    let mut check = |name: &str, what: &str, kind: i32| {
        if !code.defines(name) || kinds.get(name) != Some(&kind) {
            reasons.add(format!("{what} '{name}' is not in the code"));
        }
    };
    let mut left: Vec<&Command> = module.commands.iter().collect();
    while let Some(command) = left.pop() {
        if let Command::Kernel { kernel, .. } = command {
            check(kernel.name(), "kernel", KERNEL);
        }
        left.extend(command.sequences().flat_map(|(_, inner)| inner.commands()));
    }
    module.sorts.iter().for_each(|each| check(&each.comparator, "comparator", COMPARATOR));
}
