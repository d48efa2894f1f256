//! The loader of this program: whether it has one, and what it says of a library that it cannot load.

#![allow(unsafe_code, reason = "libraries are loaded")]

use std::error::Error as _;
use std::ffi::OsStr;

use libloading::Library;

/// Loads a library of that name or path.
///
/// # Errors
/// What the loader says, which begins with the name.
///
/// # Safety
/// The initialisers of the library may run now.
pub(crate) unsafe fn load(name: &OsStr) -> Result<Library, String> {
    // SAFETY: the caller's promise.
    unsafe { Library::new(name) }.map_err(|why| match why.source() {
        Some(words) => words.to_string(),
        None => format!("{}: {why}", name.display()),
    })
}

/// Whether this program has no loader that could load a driver or a compiler.
pub(crate) fn is_static() -> bool {
    const INTERPRETER: u32 = 3;
    // SAFETY: it reads the vector that the kernel gave the process.
    let (first, count) = unsafe { (libc::getauxval(libc::AT_PHDR), libc::getauxval(libc::AT_PHNUM)) };
    let first = std::ptr::with_exposed_provenance::<libc::Elf64_Phdr>(first as usize);
    if first.is_null() {
        return false;
    }
    // SAFETY: the kernel has mapped so many headers there, for the life of the process.
    let headers = unsafe { std::slice::from_raw_parts(first, count as usize) };
    headers.iter().all(|header| header.p_type != INTERPRETER)
}
