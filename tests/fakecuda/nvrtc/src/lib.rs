//! A fake nvrtc 12.2, for tests only, which compiles nothing: the sources of tests/ptx/kernels it knows by heart, and
//! of any other it makes a module with an entry for each name expression, and with all that it was given in comments.
//!
//! A source says what becomes of it, as the preprocessor would: `#error TEXT`, `#warning TEXT`. Besides:
//! - `// fake: ENTRY answers CODE`: that entry point does;
//! - `// fake: a log of N bytes`: so much is written besides;
//! - `// fake: a PTX of N bytes`: that is the size that it answers.
//!
//! `api::control` counts compilations and holds them, by the name of the source, so that tests do not meet each other.

#![deny(unsafe_code)]

mod api;
mod compile;
mod known;
mod program;
#[path = "../../src/sync.rs"]
mod sync;

/// Numbers of nvrtcResult.
pub(crate) mod code {
    pub(crate) const INVALID_INPUT: u32 = 3;
    pub(crate) const INVALID_PROGRAM: u32 = 4;
    pub(crate) const INVALID_OPTION: u32 = 5;
    pub(crate) const COMPILATION: u32 = 6;
    pub(crate) const NO_NAMES_AFTER_COMPILATION: u32 = 8;
    pub(crate) const NO_NAMES_BEFORE_COMPILATION: u32 = 9;
    pub(crate) const NAME_EXPRESSION_NOT_VALID: u32 = 10;
}

/// In words, as nvrtc 12.2 has them.
pub(crate) const fn words(code: u32) -> &'static std::ffi::CStr {
    match code {
        0 => c"NVRTC_SUCCESS",
        1 => c"NVRTC_ERROR_OUT_OF_MEMORY",
        2 => c"NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
        code::INVALID_INPUT => c"NVRTC_ERROR_INVALID_INPUT",
        code::INVALID_PROGRAM => c"NVRTC_ERROR_INVALID_PROGRAM",
        code::INVALID_OPTION => c"NVRTC_ERROR_INVALID_OPTION",
        code::COMPILATION => c"NVRTC_ERROR_COMPILATION",
        7 => c"NVRTC_ERROR_BUILTIN_OPERATION_FAILURE",
        code::NO_NAMES_AFTER_COMPILATION => c"NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
        code::NO_NAMES_BEFORE_COMPILATION => c"NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
        code::NAME_EXPRESSION_NOT_VALID => c"NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
        11 => c"NVRTC_ERROR_INTERNAL_ERROR",
        _ => c"NVRTC_ERROR unknown",
    }
}
