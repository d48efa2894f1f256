//! What Linux offers and std does not.

#![allow(unsafe_code, reason = "calls of libc")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, IntoRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

#[cfg(not(all(
    target_os = "linux",
    any(
        target_arch = "x86_64",
        target_arch = "aarch64",
        target_arch = "x86",
        target_arch = "arm",
        target_arch = "riscv64"
    )
)))]
compile_error!("the numbers below are Linux's on x86, ARM and RISC-V");

/// `O_NONBLOCK`: neither opening nor reading waits for another process.
pub(super) const DO_NOT_WAIT: c_int = 0o4000;
/// `O_NOCTTY`: a terminal does not become the process's.
pub(super) const DO_NOT_CONTROL: c_int = 0o400;

/// `AT_FDCWD`: paths are of the working folder.
const WORKING_FOLDER: c_int = -100;
const MAY_WRITE: c_int = 2; // W_OK
/// `AT_EACCESS`: for the user for which this thread acts, not the one that started the process.
const AS_WE_ACT: c_int = 0x200;

const NOT_PERMITTED: i32 = 1; // EPERM
const TOO_MANY_LINKS: i32 = 40; // ELOOP
const NO_DATA: i32 = 61; // ENODATA
const NOT_SUPPORTED: i32 = 95; // EOPNOTSUPP
const TABLE_FULL: i32 = 23; // ENFILE
const TOO_MANY_OPEN: i32 = 24; // EMFILE

/// Where Linux keeps the access control list of a file.
const LIST: &CStr = c"system.posix_acl_access";

unsafe extern "C" {
    fn close(descriptor: c_int) -> c_int;
    fn faccessat(folder: c_int, path: *const c_char, asked: c_int, flags: c_int) -> c_int;
    fn lgetxattr(path: *const c_char, name: *const c_char, value: *mut c_void, size: usize) -> isize;
    fn fsetxattr(descriptor: c_int, name: *const c_char, value: *const c_void, size: usize, flags: c_int) -> c_int;
    fn fremovexattr(descriptor: c_int, name: *const c_char) -> c_int;
}

/// The error behind an answer below 0.
fn checked<T: Default + PartialOrd>(answer: T) -> io::Result<T> {
    if answer < T::default() { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

/// Closes `file` and says what became of it, which its drop would not. The descriptor is gone in any case.
pub(super) fn close_telling(file: File) -> io::Result<()> {
    // SAFETY: the descriptor was the file's, which is no more.
    checked(unsafe { close(file.into_raw_fd()) }).map(drop)
}

/// What closing `file` would say, while it stays open: some file systems write, and find the disk full, only then.
pub(super) fn flush(file: &File) -> io::Result<()> {
    loop {
        match close_telling(file.try_clone()?) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            told => return told,
        }
    }
}

/// That this thread may write what is at `path`, links followed.
pub(super) fn may_write(path: &Path) -> io::Result<()> {
    let path = c_path(path)?;
    // SAFETY: the path ends with a NUL.
    checked(unsafe { faccessat(WORKING_FOLDER, path.as_ptr(), MAY_WRITE, AS_WE_ACT) }).map(drop)
}

pub(super) fn is_not_permitted(error: &io::Error) -> bool {
    error.raw_os_error() == Some(NOT_PERMITTED)
}

fn c_path(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

/// The access control list of the file at `path`, which is no link; `None`: it has only its mode.
pub(super) fn access_list(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let path = c_path(path)?;
    let read = |list: &mut [u8]| {
        // SAFETY: path and name end with a NUL; at most as many bytes are written, none if that is 0, which asks for
        // the size.
        checked(unsafe { lgetxattr(path.as_ptr(), LIST.as_ptr(), list.as_mut_ptr().cast(), list.len()) })
    };
    let asked = read(&mut []).and_then(|size_bytes| {
        let mut list = vec![0; size_bytes.cast_unsigned()];
        let size_bytes = read(&mut list)?;
        list.truncate(size_bytes.cast_unsigned());
        Ok(list)
    });
    match asked {
        Ok(list) => Ok(Some(list)),
        Err(error) if has_none(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Gives `file` that access control list and no other, such as one that it has from its folder.
pub(super) fn set_access_list(file: &File, list: Option<&[u8]>) -> io::Result<()> {
    let (file, name) = (file.as_raw_fd(), LIST.as_ptr());
    match list {
        // SAFETY: the name ends with a NUL; so many bytes are there.
        Some(list) => checked(unsafe { fsetxattr(file, name, list.as_ptr().cast(), list.len(), 0) }).map(drop),
        // SAFETY: the name ends with a NUL.
        None => match checked(unsafe { fremovexattr(file, name) }) {
            Err(error) if !has_none(&error) => Err(error),
            _ => Ok(()),
        },
    }
}

/// Whether there is no list, or the file system has none at all.
fn has_none(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(NO_DATA | NOT_SUPPORTED)) || error.kind() == ErrorKind::Unsupported
}

/// The error for following more links than Linux does.
pub(super) fn loop_of_links() -> io::Error {
    io::Error::from_raw_os_error(TOO_MANY_LINKS)
}

pub(super) fn is_loop_of_links(error: &io::Error) -> bool {
    error.raw_os_error() == Some(TOO_MANY_LINKS)
}

/// Whether this process, or the machine, has as many files open as it may.
pub(super) fn is_short_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(TABLE_FULL | TOO_MANY_OPEN))
}
