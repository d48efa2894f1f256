//! What a process with JAX can be asked: what ran when, and what is pending.
//!
//! | asked by | answer |
//! |---|---|
//! | `PURLIN_PJRT_TRACE=file` | a trace from the first client to the process's exit, written then |
//! | the option `stalls_on_sigquit` | on SIGQUIT, the pending events and what waits for them, on stderr |
//!
//! Names of programs are here, too, because they are the labels by which errors, reports and traces name runs.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::Read;
use std::os::fd::FromRawFd;
use std::path::PathBuf;
use std::thread::Builder;
use std::time::Duration;

use purlin_async::stall::dump_stalls;
use purlin_async::task::STACK_SIZE_BYTES;
use purlin_async::trace;
use purlin_base::stderr::tell;
use purlin_base::sync::{Mutex, OnceLock, Process, spawn};
use purlin_base::{Error, Label, StatusOr};
use purlin_ffi::panic::contain;

/// Begins the trace that `PURLIN_PJRT_TRACE` asks for, once in a process.
///
/// # Errors
/// As [`trace::start`], naming the variable.
pub(crate) fn start_trace() -> Result<(), Error> {
    let Some(path) = std::env::var_os("PURLIN_PJRT_TRACE").filter(|path| !path.is_empty()) else { return Ok(()) };
    let start = || {
        trace::start(&PathBuf::from(&path)).map_err(|error| error.prefixed("PURLIN_PJRT_TRACE"))?;
        // SAFETY: a function of this library, which is never unloaded.
        match unsafe { libc::atexit(write_trace) } {
            0 => Ok(Process::this()),
            _ => Err(Error::resource_exhausted("PURLIN_PJRT_TRACE: the system takes no more functions for the exit")),
        }
    };
    TRACED.get_or_init(start).as_ref().map(|_| ()).map_err(Clone::clone)
}

/// The process that is traced, or why none is.
static TRACED: OnceLock<StatusOr<Process>> = OnceLock::new();

/// At the process's exit, and at that of a child made by `fork`, which records nothing.
extern "C" fn write_trace() {
    contain("PURLIN_PJRT_TRACE", (), || {
        if TRACED.get().is_some_and(|traced| traced.as_ref().is_ok_and(|process| process.is_this()))
            && let Err(error) = trace::stop()
        {
            tell(&format!("purlin: PURLIN_PJRT_TRACE: {error}\n"));
        }
    });
}

/// Has SIGQUIT print the stalls of this process from now on, beside what other libraries do then.
///
/// # Errors
/// `ResourceExhausted`: the system gives no descriptor, no thread or no handler.
pub(crate) fn show_stalls_on_sigquit() -> Result<(), Error> {
    static INSTALLED: OnceLock<Result<(), Error>> = OnceLock::new();
    let refused = |what: &str, error: &dyn std::fmt::Display| {
        Error::resource_exhausted(format!("the option 'stalls_on_sigquit': {what}: {error}"))
    };
    let install = || {
        // SAFETY: no pointer is passed.
        let descriptor = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
        if descriptor < 0 {
            return Err(refused("no descriptor", &std::io::Error::last_os_error()));
        }
        // SAFETY: just made, and owned by nobody else.
        let asked = unsafe { File::from_raw_fd(descriptor) };
        let answer = move || {
            let mut asked = asked;
            while asked.read_exact(&mut [0; 8]).is_ok() {
                tell(&dump_stalls(Duration::ZERO));
            }
        };
        spawn(Builder::new().name("purlin/sigquit".to_owned()).stack_size(STACK_SIZE_BYTES), answer)
            .map_err(|error| refused("no thread", &error))?;
        let home = Process::this();
        let ask = move || {
            // The thread is its process's: a child made by `fork` has none.
            if home.is_this() {
                let one = 1_u64;
                // SAFETY: as many bytes as said; the thread never closes the descriptor.
                unsafe { libc::write(descriptor, (&raw const one).cast(), size_of::<u64>()) };
            }
        };
        // SAFETY: the function reads an atomic and writes to a descriptor, both of which a handler of signals may do.
        unsafe { signal_hook_registry::register(libc::SIGQUIT, ask) }.map_err(|error| refused("no handler", &error))?;
        Ok(())
    };
    INSTALLED.get_or_init(install).clone()
}

/// So many names of programs live for ever. A process has few: that of each function that JAX compiles.
const MOST_NAMES: usize = 4096;

/// The label of the runs of a program named `name`; `execute`, if there are too many names.
pub(crate) fn label_of(name: &str) -> Label {
    static KNOWN: Mutex<BTreeSet<&'static CStr>> = Mutex::new(BTreeSet::new());
    let Ok(name) = CString::new(name) else { return Label::new(c"execute") };
    let mut known = KNOWN.lock();
    let found = known.get(name.as_c_str()).copied();
    Label::new(match found {
        Some(found) => found,
        None if known.len() == MOST_NAMES => c"execute",
        None => {
            let name: &'static CStr = Box::leak(name.into_boxed_c_str());
            known.insert(name);
            name
        }
    })
}
