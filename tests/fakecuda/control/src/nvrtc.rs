//! The fake nvrtc in the hands of tests.

#![allow(unsafe_code, reason = "symbols are called")]

use std::ffi::{CString, c_char};
use std::path::PathBuf;

use libloading::Library;

use crate::find;
use crate::library::open;

/// The fake nvrtc. It stays loaded.
#[derive(Clone, Copy, Debug)]
pub struct Nvrtc {
    library: &'static Library,
}

impl Nvrtc {
    /// Where it is: what code under test loads, as the same library.
    ///
    /// # Panics
    /// If it is not built, with a line that says how to.
    #[must_use]
    pub fn path() -> PathBuf {
        find("libpurlin_fakenvrtc.so").unwrap_or_else(|why| panic!("{why}"))
    }

    /// Opens it.
    ///
    /// # Panics
    /// As [`path`](Self::path).
    #[must_use]
    pub fn open() -> Self {
        Self { library: open(Ok(Self::path())) }
    }

    fn get<F: Copy>(&self, name: &str) -> F {
        // SAFETY: the names and types below are those of tests/fakecuda/nvrtc/src/api/control.rs.
        *unsafe { self.library.get::<F>(name.as_bytes()) }.expect("the library is the fake nvrtc")
    }

    fn say<R>(&self, name: &str, source: &str) -> R {
        let function: unsafe extern "C" fn(*const c_char) -> R = self.get(name);
        let source = CString::new(source).expect("a name has no null");
        // SAFETY: the text ends in a null and lives during the call.
        unsafe { function(source.as_ptr()) }
    }

    /// How many compilations of sources of that name have begun.
    #[must_use]
    pub fn compilations(&self, source: &str) -> u64 {
        self.say("purlin_fakenvrtc_compilations", source)
    }

    /// Compilations of sources of that name do not end until [`release`](Self::release).
    pub fn hold(&self, source: &str) {
        self.say("purlin_fakenvrtc_hold", source)
    }

    /// They end.
    pub fn release(&self, source: &str) {
        self.say("purlin_fakenvrtc_release", source)
    }

    /// How many programs were created and not destroyed.
    #[must_use]
    pub fn programs(&self) -> u64 {
        let function: unsafe extern "C" fn() -> u64 = self.get("purlin_fakenvrtc_programs");
        // SAFETY: it takes nothing.
        unsafe { function() }
    }
}
