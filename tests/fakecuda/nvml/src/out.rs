//! C's pointers: places for values, and texts.

#![allow(unsafe_code, reason = "pointers that C gives are read and written here, and nowhere else")]

use std::ffi::{CStr, c_char};

use crate::code;

/// A place that C gives for a value; null is none.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Out<T>(*mut T);

impl<T: Copy> Out<T> {
    /// Writes the value; INVALID_ARGUMENT if there is no place.
    pub(crate) fn set(self, value: T) -> Result<(), u32> {
        if self.0.is_null() {
            return Err(code::INVALID_ARGUMENT);
        }
        // SAFETY: NVML's contract, kept by the caller in C: a place that is not null is one for the value.
        unsafe { self.0.write_unaligned(value) };
        Ok(())
    }

    /// What is there before; INVALID_ARGUMENT if there is no place.
    pub(crate) fn get(self) -> Result<T, u32> {
        if self.0.is_null() {
            return Err(code::INVALID_ARGUMENT);
        }
        // SAFETY: NVML's contract, kept by the caller in C: what is read and then written has a value.
        Ok(unsafe { self.0.read_unaligned() })
    }
}

impl Out<c_char> {
    /// Writes the text and a null; INSUFFICIENT_SIZE if there is no room for both.
    pub(crate) fn set_text(self, text: &str, size_bytes: u32) -> Result<(), u32> {
        if self.0.is_null() {
            return Err(code::INVALID_ARGUMENT);
        }
        if text.len() >= size_bytes as usize {
            return Err(code::INSUFFICIENT_SIZE);
        }
        for (at, byte) in text.bytes().chain([0]).enumerate() {
            // SAFETY: NVML's contract, kept by the caller in C: there is room for `size_bytes`, which were just
            // compared.
            unsafe { self.0.add(at).write(byte.cast_signed()) };
        }
        Ok(())
    }
}

/// A text that C gives; null is none.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Text(*const c_char);

impl Text {
    pub(crate) fn get(self) -> Result<String, u32> {
        if self.0.is_null() {
            return Err(code::INVALID_ARGUMENT);
        }
        // SAFETY: NVML's contract, kept by the caller in C: a text that is not null ends in a null byte.
        Ok(unsafe { CStr::from_ptr(self.0) }.to_string_lossy().into_owned())
    }
}
