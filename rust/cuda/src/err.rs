//! The driver's codes as errors.

#![allow(unsafe_code, reason = "the driver says what its codes mean")]

use std::ffi::{CStr, c_char};
use std::ptr;

use purlin_base::{Error, StatusCode};

use crate::api::{Api, ResultCode};

/// `CUDA_ERROR_INVALID_VALUE`.
pub(crate) const INVALID_VALUE: ResultCode = 1;
/// `CUDA_ERROR_OUT_OF_MEMORY`.
pub(crate) const OUT_OF_MEMORY: ResultCode = 2;
/// `CUDA_ERROR_NOT_READY`: no error.
pub(crate) const NOT_READY: ResultCode = 600;
/// `CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED`: somebody else in this process has done it.
pub(crate) const PEER_ALREADY_ENABLED: ResultCode = 704;
/// `CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED`.
pub(crate) const ALREADY_REGISTERED: ResultCode = 712;

/// Whether every later call on that device answers the code, until the process ends (CUDA driver API, "CUresult").
/// Newer drivers have more such codes: see [`Gpu::failed`](crate::gpu::Gpu::failed).
pub(crate) fn is_sticky(code: ResultCode) -> bool {
    matches!(code, 214 | 220 | 226 | 700 | 702 | 710 | 714..=719 | 721)
}

/// What became of `what`: an error unless the code is 0.
pub(crate) fn check(api: &Api, code: ResultCode, what: impl FnOnce() -> String) -> Result<(), Error> {
    if code == 0 { Ok(()) } else { Err(error(api, code, &what())) }
}

/// `copy of 4 bytes: CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered`
pub(crate) fn error(api: &Api, code: ResultCode, what: &str) -> Error {
    let mut message = match text(api.base.error_name, code) {
        Some(name) => format!("{what}: {name} ({code})"),
        None => format!("{what}: CUDA error {code}, which this driver has no name for"),
    };
    if let Some(text) = text(api.base.error_text, code) {
        message = format!("{message}: {text}");
    }
    Error::new(status(code), message)
}

fn text(ask: unsafe extern "C" fn(ResultCode, *mut *const c_char) -> ResultCode, code: ResultCode) -> Option<String> {
    let mut text = ptr::null();
    // SAFETY: the driver writes a pointer, to a text that stays.
    let refused = unsafe { ask(code, &mut text) } != 0;
    if refused || text.is_null() {
        return None;
    }
    // SAFETY: as above; it ends in a null.
    Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// The code that a caller can act on.
fn status(code: ResultCode) -> StatusCode {
    match code {
        1 | 218 => StatusCode::InvalidArgument,
        2 => StatusCode::ResourceExhausted,
        3 | 4 | 900..=909 => StatusCode::FailedPrecondition,
        100 => StatusCode::Unavailable,
        101 | 500 => StatusCode::NotFound,
        209 | 221..=223 | 801 => StatusCode::Unimplemented,
        _ if is_sticky(code) => StatusCode::Internal,
        _ => StatusCode::Unknown,
    }
}
