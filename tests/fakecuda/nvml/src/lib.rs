//! A fake `libnvidia-ml.so.1`, for tests only: what a runtime asks of NVML about the devices of the fake driver.
//!
//! A device's handle is its number, from 1. Nothing of it changes but its fabric, if a test says so: memory is free but
//! for what a system takes, utilisation is 0, and temperature and power are those of an idle card. It knows nothing of
//! what the fake driver allocates, which is a library of its own. Calls before `nvmlInit_v2` and after `nvmlShutdown`
//! are answered UNINITIALIZED.

#![deny(unsafe_code)]

mod api;
mod changes;
mod out;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use purlin_fakecuda_options::Options;

/// Numbers of nvmlReturn_t.
pub(crate) mod code {
    pub(crate) const UNINITIALIZED: u32 = 1;
    pub(crate) const INVALID_ARGUMENT: u32 = 2;
    pub(crate) const NOT_FOUND: u32 = 6;
    pub(crate) const INSUFFICIENT_SIZE: u32 = 7;
    pub(crate) const ARGUMENT_VERSION_MISMATCH: u32 = 25;
    pub(crate) const UNKNOWN: u32 = 999;
}

/// What the system takes of a device's memory.
pub(crate) const RESERVED_BYTES: u64 = 64 << 20;

/// Calls of `nvmlInit_v2` without their `nvmlShutdown`.
static USERS: AtomicUsize = AtomicUsize::new(0);

/// The options, while NVML is initialised.
pub(crate) fn options() -> Result<&'static Options, u32> {
    static OPTIONS: OnceLock<Option<Options>> = OnceLock::new();
    if USERS.load(Ordering::Acquire) == 0 {
        return Err(code::UNINITIALIZED);
    }
    OPTIONS.get_or_init(|| Options::from_environment().ok()).as_ref().ok_or(code::UNKNOWN)
}

/// The number of the device with that handle.
pub(crate) fn ordinal(handle: usize) -> Result<(usize, &'static Options), u32> {
    let options = options()?;
    let ordinal = handle.checked_sub(1).filter(|ordinal| *ordinal < options.devices).ok_or(code::INVALID_ARGUMENT)?;
    Ok((ordinal, options))
}

pub(crate) fn initialise() {
    USERS.fetch_add(1, Ordering::AcqRel);
}

pub(crate) fn shut_down() -> Result<(), u32> {
    let fewer = USERS.fetch_update(Ordering::AcqRel, Ordering::Acquire, |users| users.checked_sub(1));
    fewer.map(|_| ()).map_err(|_| code::UNINITIALIZED)
}

/// In words.
pub(crate) const fn words(code: u32) -> &'static std::ffi::CStr {
    match code {
        0 => c"success",
        code::UNINITIALIZED => c"not initialised",
        code::INVALID_ARGUMENT => c"invalid argument",
        code::NOT_FOUND => c"not found",
        code::INSUFFICIENT_SIZE => c"insufficient size",
        code::ARGUMENT_VERSION_MISMATCH => c"version mismatch of an argument",
        _ => c"unknown error",
    }
}
