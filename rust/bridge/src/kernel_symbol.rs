//! `purlin/kernel_symbol.h`: plain functions, because they take addresses of code.

use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use purlin_base::status::StatusRep;
use purlin_base::{Error, StatusOr};
use purlin_ffi::handle::{elements, give, give_or};
use purlin_ffi::panic::guard;
use purlin_ffi::words::{Bytes, text_of};
use purlin_program::{KernelSymbol, SymbolRegistry};

/// # Errors
/// `InvalidArgument`: not UTF-8.
///
/// # Safety
/// The bytes stay readable for `'a`.
unsafe fn text<'a>(what: &str, bytes: Bytes) -> StatusOr<&'a str> {
    // SAFETY: the caller's promise.
    let bytes = unsafe { elements(bytes.data.cast::<u8>(), bytes.size_bytes) };
    text_of(bytes).map_err(|error| error.prefixed(format_args!("the {what} of a kernel symbol")))
}

/// Null, or an error, C++'s.
///
/// # Safety
/// The texts are readable; `address` is null or for ever a kernel of the platform, which any thread may launch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_kernel_symbol_register(
    name: Bytes,
    platform: Bytes,
    address: *mut c_void,
) -> *const StatusRep {
    give(guard(|| {
        // SAFETY: the caller's promise.
        let (name, platform) = unsafe { (text("name", name)?, text("platform", platform)?) };
        let null = || Error::invalid_argument(format!("the address of the kernel symbol '{name}' is null"));
        let address = NonNull::new(address).ok_or_else(null)?;
        // SAFETY: the caller's promise, which holds without an owner.
        let symbol = unsafe { KernelSymbol::new(address, Arc::new(())) };
        SymbolRegistry::global().register(name, platform, symbol)
    }))
}

/// The address, which stays valid because no entry is removed; or null and an error.
///
/// # Safety
/// The texts are readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_kernel_symbol_find(
    name: Bytes,
    platform: Bytes,
    error: &mut *const StatusRep,
) -> *mut c_void {
    let found = guard(|| {
        // SAFETY: the caller's promise.
        let (name, platform) = unsafe { (text("name", name)?, text("platform", platform)?) };
        Ok(SymbolRegistry::global().find(name, platform)?.address().as_ptr())
    });
    give_or(found, ptr::null_mut(), error)
}
