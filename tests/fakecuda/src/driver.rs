//! The one driver of the process: its options, its state under one lock, and the condition that waiters wait for.
//!
//! It is made when the process first calls anything, out of the environment. One lock guards all books: the fake proves
//! order, it is not fast. Streams run their operations outside of the lock.

#![allow(unsafe_code, reason = "handlers of fork and exit are given to libc")]

use std::collections::HashMap;
use std::io::Write as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use purlin_fakecuda_options::Options;

use crate::boundary::Answer;
use crate::code::Code;
use crate::fault::Faults;
use crate::state::State;
use crate::sync::{Condvar, Guard, Mutex};

/// See the module.
pub(crate) struct Driver {
    pub(crate) options: Options,
    pub(crate) faults: Faults,
    pub(crate) state: Mutex<State>,
    /// Told whenever an operation is over, a device breaks, or a control changes.
    pub(crate) changed: Condvar,
    is_initialised: AtomicBool,
    /// The sticky code of each device, 0 without.
    broken: Vec<AtomicU32>,
    /// Raised when the device breaks: kernels end.
    stop: Vec<AtomicBool>,
    handles: AtomicUsize,
    addresses: AtomicU64,
    /// Threads of streams that have not ended.
    pub(crate) threads: AtomicUsize,
}

static IS_CHILD: AtomicBool = AtomicBool::new(false);
static IS_EXITING: AtomicBool = AtomicBool::new(false);

extern "C" fn in_child() {
    // Relaxed, here and for the exit: the child has one thread, and at exit either answer is a right one.
    IS_CHILD.store(true, Ordering::Relaxed);
}

extern "C" fn at_exit() {
    IS_EXITING.store(true, Ordering::Relaxed);
}

/// NOT_INITIALIZED in a child of fork, DEINITIALIZED while the process ends.
pub(crate) fn may_be_called() -> Answer {
    if IS_CHILD.load(Ordering::Relaxed) {
        return Err(Code::NOT_INITIALIZED);
    }
    if IS_EXITING.load(Ordering::Relaxed) { Err(Code::DEINITIALIZED) } else { Ok(()) }
}

static DRIVER: OnceLock<Option<Driver>> = OnceLock::new();

/// The driver; UNKNOWN if the environment is not understood.
pub(crate) fn get() -> Answer<&'static Driver> {
    let from_environment = || Options::from_environment().map(Driver::new).inspect_err(|why| complain(why)).ok();
    DRIVER.get_or_init(from_environment).as_ref().ok_or(Code::UNKNOWN)
}

/// Makes the driver, as the variables say and the environment where they are silent. Whether this was done: not twice,
/// not after a first call, and not out of what is not understood.
pub(crate) fn configure(variables: &HashMap<String, String>) -> bool {
    let variable = |name: &str| variables.get(name).cloned().or_else(|| std::env::var(name).ok());
    let options = Options::from_variables(variable).inspect_err(|why| complain(why));
    options.is_ok_and(|options| DRIVER.set(Some(Driver::new(options))).is_ok())
}

/// Says something on stderr; what cannot be said is not.
pub(crate) fn complain(what: &str) {
    _ = writeln!(std::io::stderr(), "fakecuda: {what}");
}

impl Driver {
    fn new(options: Options) -> Self {
        Self {
            faults: Faults::new(options.faults.clone()),
            state: Mutex::new(State::new(&options)),
            changed: Condvar::default(),
            is_initialised: AtomicBool::new(false),
            broken: (0..options.devices).map(|_| AtomicU32::new(0)).collect(),
            stop: (0..options.devices).map(|_| AtomicBool::new(false)).collect(),
            handles: AtomicUsize::new(0x1000),
            addresses: AtomicU64::new(1 << 32),
            threads: AtomicUsize::new(0),
            options,
        }
    }

    /// `cuInit`.
    pub(crate) fn initialise(&self) {
        // Once for the process: handlers cannot be taken back.
        if !self.is_initialised.swap(true, Ordering::AcqRel) {
            // SAFETY: both handlers are functions of this library, which nobody closes, since nobody closes a driver;
            // they only store a flag.
            unsafe {
                libc::pthread_atfork(None, None, Some(in_child));
                libc::atexit(at_exit);
            }
        }
    }

    pub(crate) fn is_initialised(&self) -> bool {
        self.is_initialised.load(Ordering::Acquire)
    }

    /// A handle that nothing else has, ever.
    pub(crate) fn new_handle(&self) -> usize {
        self.handles.fetch_add(0x10, Ordering::Relaxed)
    }

    /// An address for the empty mode, which has no memory.
    pub(crate) fn empty_address(&self, size_bytes: u64) -> u64 {
        self.addresses.fetch_add(size_bytes.next_multiple_of(512), Ordering::Relaxed)
    }

    /// The device's sticky code, as an error.
    pub(crate) fn works(&self, device: usize) -> Answer {
        match self.broken[device].load(Ordering::Acquire) {
            0 => Ok(()),
            code => Err(Code(code)),
        }
    }

    /// Ends the kernels of the device, once raised.
    pub(crate) fn stop(&self, device: usize) -> &AtomicBool {
        &self.stop[device]
    }

    /// From now on every call on the device answers the code; what it has not begun is dropped. A second code changes
    /// nothing.
    pub(crate) fn break_device(&self, state: &mut State, device: usize, code: u32) {
        if let Some(broken) = self.broken.get(device) {
            _ = broken.compare_exchange(0, code, Ordering::AcqRel, Ordering::Acquire);
            self.stop[device].store(true, Ordering::Release);
            state.wake_streams();
            self.changed.notify_all();
        }
    }

    /// Waits until `is_over`; the device's code if it breaks before.
    pub(crate) fn wait_until<'a>(
        &'a self,
        mut state: Guard<'a, State>,
        device: usize,
        is_over: impl Fn(&State) -> bool,
    ) -> Answer<Guard<'a, State>> {
        loop {
            self.works(device)?;
            if is_over(&state) {
                return Ok(state);
            }
            state = self.changed.wait(state);
        }
    }
}
