//! What codes mean.

#![allow(unsafe_code, reason = "symbols have names that others could have")]
#![allow(non_snake_case, reason = "the names of the symbols")]

use std::ffi::{CStr, c_char, c_uint};
use std::ptr;

use crate::boundary::{Out, call};
use crate::code::{self, Code};
use crate::entry::Entry;

fn answer(text: Out<*const c_char>, found: Option<&'static CStr>) -> Result<(), Code> {
    text.set(found.map_or(ptr::null(), CStr::as_ptr))?;
    found.map(|_| ()).ok_or(Code::INVALID_VALUE)
}

#[unsafe(no_mangle)]
extern "C" fn cuGetErrorName(code: c_uint, name: Out<*const c_char>) -> u32 {
    call(Entry::cuGetErrorName, |_| answer(name, code::name(code)))
}

#[unsafe(no_mangle)]
extern "C" fn cuGetErrorString(code: c_uint, words: Out<*const c_char>) -> u32 {
    call(Entry::cuGetErrorString, |_| answer(words, code::words(code)))
}
