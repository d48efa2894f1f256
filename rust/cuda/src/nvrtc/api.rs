//! nvrtc's entry points, called by address; its codes, as numbers and as statuses.
//!
//! Results stay plain numbers, for the reason that the driver's do.

#![allow(unsafe_code, reason = "entry points are looked up by name and called by address")]

use std::ffi::{CStr, c_char, c_int, c_void};

use libloading::Library;
use purlin_base::StatusCode;

use crate::api::{ResultCode, group};

/// `NVRTC_ERROR_BUILTIN_OPERATION_FAILURE`: the library beside it is not there.
pub(super) const NO_BUILTINS: ResultCode = 7;

/// `nvrtcProgram`.
pub(super) type Program = *mut c_void;

group! {
    /// What every nvrtc has, from 11.2 on.
    Base {
        version = "nvrtcVersion"(*mut c_int, *mut c_int);
        target_count = "nvrtcGetNumSupportedArchs"(*mut c_int);
        targets = "nvrtcGetSupportedArchs"(*mut c_int);
        create_program = "nvrtcCreateProgram"(*mut Program, *const c_char, *const c_char, c_int, *const *const c_char,
            *const *const c_char);
        destroy_program = "nvrtcDestroyProgram"(*mut Program);
        add_name_expression = "nvrtcAddNameExpression"(Program, *const c_char);
        compile_program = "nvrtcCompileProgram"(Program, c_int, *const *const c_char);
        log_size_bytes = "nvrtcGetProgramLogSize"(Program, *mut usize);
        log = "nvrtcGetProgramLog"(Program, *mut c_char);
        ptx_size_bytes = "nvrtcGetPTXSize"(Program, *mut usize);
        ptx = "nvrtcGetPTX"(Program, *mut c_char);
        lowered_name = "nvrtcGetLoweredName"(Program, *const c_char, *mut *const c_char);
    }
}

type ErrorName = unsafe extern "C" fn(ResultCode) -> *const c_char;

/// All entry points that are used.
#[derive(Clone, Copy)]
pub(super) struct Api {
    pub(super) base: Base,
    error_name: Option<ErrorName>,
}

impl Api {
    /// # Errors
    /// The first name that the library lacks.
    ///
    /// # Safety
    /// The library is nvrtc: its symbols have the types of its manual. It stays loaded.
    pub(super) unsafe fn of(library: &Library) -> Result<Self, &'static str> {
        // SAFETY: the caller's promise.
        let base = unsafe { Base::of(library) }?;
        // SAFETY: as above.
        let error_name = unsafe { library.get::<ErrorName>(b"nvrtcGetErrorString\0") }.ok();
        Ok(Self { base, error_name: error_name.map(|name| *name) })
    }

    /// `NVRTC_ERROR_COMPILATION (6)`
    pub(super) fn describe(&self, code: ResultCode) -> String {
        // SAFETY: nvrtc answers a text that stays, for any number.
        let name = self.error_name.map_or(std::ptr::null(), |name| unsafe { name(code) });
        if name.is_null() {
            return format!("nvrtc's error {code}");
        }
        // SAFETY: as above; it ends in a null.
        format!("{} ({code})", unsafe { CStr::from_ptr(name) }.to_string_lossy())
    }
}

/// The code that a caller can act on: whether the source, an option or a name expression is to be mended.
pub(super) fn status(code: ResultCode) -> StatusCode {
    match code {
        5 | 6 | 10 => StatusCode::InvalidArgument,
        1 => StatusCode::ResourceExhausted,
        _ => StatusCode::Internal,
    }
}
