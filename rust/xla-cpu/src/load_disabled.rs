//! The loader on other architectures than x86-64: it refuses every executable.

use purlin_base::{Error, StatusOr};
use purlin_program::Program;

use crate::ffi::FfiHandlers;

/// The options of a load.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// See the module for x86-64.
    pub trust_code: bool,
    /// See the module for x86-64.
    pub unwind_tables: bool,
    /// See the module for x86-64.
    pub perf_map: bool,
    /// See the module for x86-64.
    pub handlers: FfiHandlers,
}

/// Loads nothing.
///
/// # Errors
/// `Unimplemented`: always, because the loader needs x86-64.
pub fn load_program(_bytes: &[u8], _options: &LoadOptions) -> StatusOr<Program> {
    check(&[])?;
    unreachable!("check() has refused it")
}

/// Loads nothing.
///
/// # Errors
/// `Unimplemented`: always, because the loader needs x86-64.
pub fn check(_bytes: &[u8]) -> StatusOr<()> {
    Err(Error::unimplemented("XLA:CPU executables are loaded on x86-64 alone"))
}

/// Reads nothing.
///
/// # Errors
/// `Unimplemented`: always, because the loader needs x86-64.
pub fn donated_parameters(_bytes: &[u8]) -> StatusOr<Vec<usize>> {
    check(&[]).map(|()| Vec::new())
}
