//! The symbols. Nothing here panics: all of it is look-ups, copies and texts.

#![allow(unsafe_code, reason = "symbols have names that others could have, and C's pointers are read and written")]
#![allow(non_snake_case, reason = "the names of the symbols")]

mod control;

use std::ffi::{CStr, c_char, c_int, c_uint};

use crate::compile::TARGETS;
use crate::program::{self, Program, use_program};
use crate::{code, words};

fn answer(result: Result<(), u32>) -> u32 {
    result.err().unwrap_or(0)
}

/// Writes the value.
fn set<T>(place: *mut T, value: T) -> Result<(), u32> {
    if place.is_null() {
        return Err(code::INVALID_INPUT);
    }
    // SAFETY: nvrtc's contract, kept by the caller in C: a place that is not null is one for the value.
    unsafe { place.write(value) };
    Ok(())
}

/// A text that C gives.
fn text(text: *const c_char) -> Result<String, u32> {
    if text.is_null() {
        return Err(code::INVALID_INPUT);
    }
    // SAFETY: nvrtc's contract, kept by the caller in C: a text that is not null ends in a null byte.
    Ok(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// A list of texts that C gives.
fn texts(list: *const *const c_char, count: c_int) -> Result<Vec<String>, u32> {
    let count = usize::try_from(count).map_err(|_| code::INVALID_INPUT)?;
    if list.is_null() && count > 0 {
        return Err(code::INVALID_INPUT);
    }
    // SAFETY: nvrtc's contract, kept by the caller in C: there are so many.
    (0..count).map(|at| text(unsafe { *list.add(at) })).collect()
}

/// Writes the text and a null, for which the caller has asked the size.
fn put(place: *mut c_char, text: &str) -> Result<(), u32> {
    if place.is_null() {
        return Err(code::INVALID_INPUT);
    }
    for (at, byte) in text.bytes().chain([0]).enumerate() {
        // SAFETY: nvrtc's contract, kept by the caller in C: there is room for as many bytes as the size says.
        unsafe { place.add(at).write(byte.cast_signed()) };
    }
    Ok(())
}

#[unsafe(no_mangle)]
extern "C" fn nvrtcVersion(major: *mut c_int, minor: *mut c_int) -> u32 {
    answer(set(major, 12).and_then(|()| set(minor, 2)))
}

#[unsafe(no_mangle)]
extern "C" fn nvrtcGetErrorString(code: c_uint) -> *const c_char {
    words(code).as_ptr()
}

#[unsafe(no_mangle)]
extern "C" fn nvrtcGetNumSupportedArchs(count: *mut c_int) -> u32 {
    answer(set(count, TARGETS.len() as c_int))
}

#[unsafe(no_mangle)]
extern "C" fn nvrtcGetSupportedArchs(targets: *mut c_int) -> u32 {
    answer(TARGETS.iter().enumerate().try_for_each(|(at, target)| set(targets.wrapping_add(at), *target)))
}

#[unsafe(no_mangle)]
extern "C" fn nvrtcCreateProgram(
    handle: *mut usize,
    source: *const c_char,
    name: *const c_char,
    count: c_int,
    headers: *const *const c_char,
    header_names: *const *const c_char,
) -> u32 {
    let create = || {
        let headers = texts(header_names, count)?.into_iter().zip(texts(headers, count)?).collect();
        let program = Program { name: text(name)?, text: text(source)?, headers, ..Program::default() };
        program.answer("nvrtcCreateProgram")?;
        set(handle, program::add(program))
    };
    answer(create())
}

#[unsafe(no_mangle)]
extern "C" fn nvrtcDestroyProgram(handle: *mut usize) -> u32 {
    if handle.is_null() {
        return code::INVALID_PROGRAM;
    }
    // SAFETY: nvrtc's contract, kept by the caller in C: it is a place with a handle.
    let program = unsafe { *handle };
    answer(program::destroy(program).and_then(|()| set(handle, 0)))
}

#[unsafe(no_mangle)]
extern "C" fn nvrtcAddNameExpression(handle: usize, expression: *const c_char) -> u32 {
    answer(text(expression).and_then(|expression| {
        use_program(handle, |program| {
            program.answer("nvrtcAddNameExpression")?;
            if program.ptx.is_some() {
                return Err(code::NO_NAMES_AFTER_COMPILATION);
            }
            program.expressions.push(expression);
            Ok(())
        })
    }))
}

#[unsafe(no_mangle)]
extern "C" fn nvrtcCompileProgram(handle: usize, count: c_int, options: *const *const c_char) -> u32 {
    let compile = || {
        let options = texts(options, count)?;
        program::begin(&use_program(handle, |program| Ok(program.name.clone()))?);
        use_program(handle, |program| {
            program.answer("nvrtcCompileProgram")?;
            program.compile(&options)
        })
    };
    answer(compile())
}

#[unsafe(no_mangle)]
extern "C" fn nvrtcGetProgramLogSize(handle: usize, size_bytes: *mut usize) -> u32 {
    answer(use_program(handle, |program| {
        program.answer("nvrtcGetProgramLogSize")?;
        set(size_bytes, program.log.len() + 1)
    }))
}

#[unsafe(no_mangle)]
extern "C" fn nvrtcGetProgramLog(handle: usize, log: *mut c_char) -> u32 {
    answer(use_program(handle, |program| {
        program.answer("nvrtcGetProgramLog")?;
        put(log, &program.log)
    }))
}

#[unsafe(no_mangle)]
extern "C" fn nvrtcGetPTXSize(handle: usize, size_bytes: *mut usize) -> u32 {
    answer(use_program(handle, |program| {
        program.answer("nvrtcGetPTXSize")?;
        let size = program.said("a PTX of ").and_then(|words| words.split(' ').next()?.parse().ok());
        let ptx = program.ptx.as_ref().ok_or(code::INVALID_PROGRAM)?;
        set(size_bytes, size.unwrap_or(ptx.len() + 1))
    }))
}

#[unsafe(no_mangle)]
extern "C" fn nvrtcGetPTX(handle: usize, ptx: *mut c_char) -> u32 {
    answer(use_program(handle, |program| {
        program.answer("nvrtcGetPTX")?;
        put(ptx, program.ptx.as_ref().ok_or(code::INVALID_PROGRAM)?)
    }))
}

#[unsafe(no_mangle)]
extern "C" fn nvrtcGetLoweredName(handle: usize, expression: *const c_char, name: *mut *const c_char) -> u32 {
    answer(text(expression).and_then(|expression| {
        use_program(handle, |program| {
            program.answer("nvrtcGetLoweredName")?;
            if program.ptx.is_none() {
                return Err(code::NO_NAMES_BEFORE_COMPILATION);
            }
            let lowered = program.lowered.get(&expression).ok_or(code::NAME_EXPRESSION_NOT_VALID)?;
            set(name, lowered.as_ptr())
        })
    }))
}
