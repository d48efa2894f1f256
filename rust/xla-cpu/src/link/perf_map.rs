//! The list of functions that `perf report` reads for code which no file on disk has: `/tmp/perf-PID.map`, a line for
//! each function with its address and size in hexadecimal, and its name. See
//! `tools/perf/Documentation/jit-interface.txt` of Linux.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::PathBuf;

use purlin_base::{Error, StatusCode, StatusOr};

/// A function in memory.
#[derive(Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) address: usize,
    pub(crate) size_bytes: usize,
    pub(crate) name: &'a str,
}

/// The lines of the entries.
pub(crate) fn text(entries: &[Entry<'_>]) -> String {
    let mut lines = String::new();
    for Entry { address, size_bytes, name } in entries {
        // A name comes from the executable, and must not begin a line of its own.
        let name: String = name.chars().map(|each| if each.is_control() { '?' } else { each }).collect();
        writeln!(lines, "{address:x} {size_bytes:x} {name}").expect("a string takes all that is written");
    }
    lines
}

/// The file of this process.
pub(crate) fn path() -> PathBuf {
    PathBuf::from(format!("/tmp/perf-{}.map", std::process::id()))
}

/// Appends `text` to the file of this process, in one write, so that lines of several threads do not mix.
///
/// # Errors
/// `PermissionDenied`: the file is another user's, or none. `Unavailable`: the system cannot write it.
pub(crate) fn append(text: &str) -> StatusOr<()> {
    let path = path();
    let refused = |code, why: &dyn std::fmt::Display| Error::new(code, format!("perf map {}: {why}", path.display()));
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::PermissionDenied => refused(StatusCode::PermissionDenied, &error),
        _ => refused(StatusCode::Unavailable, &error),
    };
    // Everyone may write in this folder. So no link is followed, no pipe is waited for, and the file must be ours.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let options = OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(flags).clone();
    let mut file = options.open(&path).map_err(failed)?;
    let is = file.metadata().map_err(failed)?;
    if !is.is_file() || is.uid() != own_user() {
        return Err(refused(StatusCode::PermissionDenied, &"it is no file of this user"));
    }
    file.write_all(text.as_bytes()).map_err(failed)
}

#[allow(unsafe_code, reason = "a function of C")]
fn own_user() -> u32 {
    // SAFETY: it has no arguments, and cannot fail.
    unsafe { libc::geteuid() }
}
