//! The fake's own functions.

#![allow(unsafe_code, reason = "symbols are called")]

use std::ffi::{CString, c_char, c_int};

use libloading::Library;

use crate::Options;
use crate::library::loaded;

/// What the fake has besides the driver's entry points. Changes hold for the whole process, labels for the thread.
///
/// NVIDIA's driver, which tests may meet on a GPU, has none of it: it reports nothing, its books are empty, and what
/// would delay or hold its work or count its calls anew does nothing; all else panics.
#[derive(Clone, Copy, Debug)]
pub struct Control {
    library: &'static Library,
    is_fake: bool,
}

/// Some thread has called some entry point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    /// What was called.
    pub entry: String,
    /// The event that `cuEventQuery` was asked for, else 0.
    pub handle: String,
    /// The name of the thread, as the system has it.
    pub thread: String,
}

fn text(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).expect("nulls are gone")
}

impl Control {
    pub(crate) fn of(library: &'static Library) -> Self {
        // SAFETY: the symbol is only looked up.
        let is_fake = unsafe { library.get::<*const c_char>(b"purlin_fakecuda_ledger") }.is_ok();
        Self { library, is_fake }
    }

    /// That of the driver that this process has loaded; `None` if it has loaded none.
    pub(crate) fn if_loaded() -> Option<Self> {
        loaded().map(Self::of)
    }

    /// Whether the driver is the fake one.
    #[must_use]
    pub const fn is_fake(&self) -> bool {
        self.is_fake
    }

    fn get<F: Copy>(&self, name: &str) -> F {
        // SAFETY: the names and types below are those of tests/fakecuda/src/api/control.rs.
        let found = unsafe { self.library.get::<F>(name.as_bytes()) };
        *found.unwrap_or_else(|why| panic!("the library is not the fake driver: {why}"))
    }

    fn say(&self, name: &str, said: &str) {
        let function: unsafe extern "C" fn(*const c_char) = self.get(name);
        // SAFETY: the text ends in a null and lives during the call.
        unsafe { function(text(said).as_ptr()) };
    }

    fn try_say(&self, name: &str, said: &str) {
        let function: unsafe extern "C" fn(*const c_char) -> c_int = self.get(name);
        // SAFETY: as above.
        let refused = unsafe { function(text(said).as_ptr()) };
        assert_eq!(refused, 0, "{name} does not understand '{said}'");
    }

    fn ask(&self, name: &str, about: &str) -> u64 {
        let function: unsafe extern "C" fn(*const c_char) -> u64 = self.get(name);
        // SAFETY: as above.
        let count = unsafe { function(text(about).as_ptr()) };
        assert_ne!(count, u64::MAX, "{name} knows no '{about}'");
        count
    }

    fn act(&self, name: &str) {
        let function: unsafe extern "C" fn() = self.get(name);
        // SAFETY: it takes nothing.
        unsafe { function() }
    }

    /// The fake is as the options say, whatever the environment does. `false`: something has called it before.
    #[must_use]
    pub fn configure(&self, options: &Options) -> bool {
        let lines: Vec<String> = options.variables().iter().map(|(name, value)| format!("{name}={value}")).collect();
        let function: unsafe extern "C" fn(*const c_char) -> c_int = self.get("purlin_fakecuda_configure");
        // SAFETY: the text ends in a null and lives during the call.
        unsafe { function(text(&lines.join("\n")).as_ptr()) == 0 }
    }

    /// The calls of this thread have that label from now on; reports name it, and waits can be ignored by it.
    pub fn set_label(&self, label: &str) {
        self.say("purlin_fakecuda_set_label", label);
    }

    /// How often an entry point was called.
    #[must_use]
    pub fn calls(&self, entry: &str) -> u64 {
        self.ask("purlin_fakecuda_calls", entry)
    }

    /// All counters are 0; faults count from there, too.
    pub fn reset_calls(&self) {
        if self.is_fake {
            self.act("purlin_fakecuda_reset_calls");
        }
    }

    /// Writes down from now on which threads call what, or does so no longer.
    pub fn watch(&self, is_on: bool) {
        let function: unsafe extern "C" fn(c_int) = self.get("purlin_fakecuda_watch");
        // SAFETY: it takes a number.
        unsafe { function(c_int::from(is_on)) }
    }

    /// What was called while it was last [watched](Self::watch), and by which threads.
    #[must_use]
    pub fn watched(&self) -> Vec<Watched> {
        let parse = |line: String| {
            let mut words = line.splitn(3, ' ');
            let mut word = || words.next().unwrap_or_default().to_owned();
            Watched { entry: word(), handle: word(), thread: word() }
        };
        self.lines("purlin_fakecuda_watched").into_iter().map(parse).collect()
    }

    /// How many of a thing there are: see `purlin_fakecuda_ledger`.
    #[must_use]
    pub fn ledger(&self, what: &str) -> u64 {
        if self.is_fake { self.ask("purlin_fakecuda_ledger", what) } else { 0 }
    }

    /// `ENTRY:NUMBER:CODE[:sticky|:async]`, separated by commas, in place of the faults that were there.
    ///
    /// # Panics
    /// For what is not understood.
    pub fn set_faults(&self, faults: &str) {
        self.try_say("purlin_fakecuda_set_faults", faults);
    }

    /// `KERNEL[:CODE]`, separated by commas, in place of the traps that were there.
    ///
    /// # Panics
    /// For what is not understood.
    pub fn set_traps(&self, traps: &str) {
        self.try_say("purlin_fakecuda_set_traps", traps);
    }

    /// Kernels of these names never end; those that are not named any more do.
    pub fn set_endless(&self, kernels: &str) {
        self.say("purlin_fakecuda_set_endless", kernels);
    }

    /// Which waits do nothing: `all`, or labels separated by commas, or none.
    pub fn ignore_waits(&self, labels: &str) {
        self.say("purlin_fakecuda_ignore_waits", labels);
    }

    /// Each operation begins up to so much later.
    pub fn set_delays(&self, seed: u64, most_us: u64) {
        if !self.is_fake {
            return;
        }
        let function: unsafe extern "C" fn(u64, u64) = self.get("purlin_fakecuda_set_delays");
        // SAFETY: it takes two numbers.
        unsafe { function(seed, most_us) }
    }

    /// While it is held, no operation begins.
    pub fn hold(&self, is_held: bool) {
        if !self.is_fake {
            return;
        }
        let function: unsafe extern "C" fn(c_int) = self.get("purlin_fakecuda_hold");
        // SAFETY: it takes a number.
        unsafe { function(c_int::from(is_held)) }
    }

    /// The device falls off: every call on it answers the code.
    pub fn break_device(&self, device: i32, code: u32) {
        let function: unsafe extern "C" fn(c_int, u32) = self.get("purlin_fakecuda_break_device");
        // SAFETY: it takes two numbers.
        unsafe { function(device, code) }
    }

    /// How many reports there are.
    #[must_use]
    pub fn report_count(&self) -> usize {
        if !self.is_fake {
            return 0;
        }
        let function: unsafe extern "C" fn() -> usize = self.get("purlin_fakecuda_report_count");
        // SAFETY: it takes nothing.
        unsafe { function() }
    }

    /// The detector's reports, of which the first thousand are kept.
    #[must_use]
    pub fn reports(&self) -> Vec<String> {
        if !self.is_fake {
            return Vec::new();
        }
        self.lines("purlin_fakecuda_reports")
    }

    fn lines(&self, name: &str) -> Vec<String> {
        let function: unsafe extern "C" fn(*mut c_char, usize) -> usize = self.get(name);
        // SAFETY: without a buffer it answers how much it needs.
        let size = unsafe { function(std::ptr::null_mut(), 0) };
        let mut bytes = vec![0_u8; size.max(1)];
        // SAFETY: the buffer is as long as it says.
        unsafe { function(bytes.as_mut_ptr().cast(), bytes.len()) };
        let lines = String::from_utf8_lossy(&bytes).into_owned();
        lines.trim_end_matches('\0').lines().map(str::to_owned).collect()
    }

    /// There are no reports from here on.
    pub fn clear_reports(&self) {
        self.act("purlin_fakecuda_clear_reports");
    }

    /// The reports, for a test that expects them: they fail it no more.
    #[must_use]
    pub fn take_reports(&self) -> Vec<String> {
        let reports = self.reports();
        if self.is_fake {
            self.clear_reports();
        }
        reports
    }

    /// The detector is silent.
    ///
    /// # Panics
    /// With the reports, if there are any.
    #[track_caller]
    pub fn no_reports(&self) {
        assert_eq!(self.report_count(), 0, "the detector says:\n{}", self.reports().join("\n"));
    }
}
