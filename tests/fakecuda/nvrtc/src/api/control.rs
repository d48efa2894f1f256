//! What tests ask and turn; `purlin-fakecuda` has it for Rust.

use std::ffi::c_char;

use super::text;
use crate::program;

/// How many compilations of sources of that name have begun.
#[unsafe(no_mangle)]
extern "C" fn purlin_fakenvrtc_compilations(name: *const c_char) -> u64 {
    text(name).map_or(0, |name| program::compilations(&name))
}

/// Compilations of sources of that name do not end until they are released.
#[unsafe(no_mangle)]
extern "C" fn purlin_fakenvrtc_hold(name: *const c_char) {
    if let Ok(name) = text(name) {
        program::hold(name);
    }
}

#[unsafe(no_mangle)]
extern "C" fn purlin_fakenvrtc_release(name: *const c_char) {
    if let Ok(name) = text(name) {
        program::release(&name);
    }
}

/// How many programs were created and not destroyed.
#[unsafe(no_mangle)]
extern "C" fn purlin_fakenvrtc_programs() -> u64 {
    program::count()
}
