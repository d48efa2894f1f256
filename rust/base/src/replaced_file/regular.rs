//! Regular files are opened, and nothing else is: opening a pipe may wait for ever, opening a device may have effects.
//!
//! What is at a path may be exchanged between a look and the opening. So the look only spares foreign pipes and devices
//! from being opened; the opening itself never waits; and what counts is what the descriptor says.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use super::system::{self, DO_NOT_CONTROL, DO_NOT_WAIT};

/// The regular file at `path`, for reading, and what it was then. Links are followed. Does not wait for the writer of a
/// pipe.
///
/// # Errors
/// The system's; `IsADirectory`; `AlreadyExists`: something else is there.
pub fn open(path: &Path) -> io::Result<(File, Metadata)> {
    open_with(OpenOptions::new().read(true), path)
}

/// That the caller may write the regular file at `path`. It is asked for, not tried, because opening it for writing
/// notifies the programs that watch the file, and on a layered file system copies it whole.
pub(super) fn check_writable(path: &Path) -> io::Result<()> {
    match system::may_write(path) {
        // An immutable file; or a security policy that keeps this process from asking.
        Err(error) if system::is_not_permitted(&error) => open_with(OpenOptions::new().write(true), path).map(drop),
        answer => answer,
    }
}

fn open_with(options: &mut OpenOptions, path: &Path) -> io::Result<(File, Metadata)> {
    check(&fs::metadata(path)?)?;
    let opened = options.custom_flags(DO_NOT_WAIT | DO_NOT_CONTROL).open(path);
    let file = opened.map_err(|error| {
        // A pipe without readers, or a socket, that was made since the look.
        match fs::metadata(path).and_then(|found| check(&found)) {
            Err(changed) if changed.kind() == ErrorKind::AlreadyExists => changed,
            _ => error,
        }
    })?;
    let found = file.metadata()?;
    check(&found)?;
    Ok((file, found))
}

/// That it is a regular file.
pub(super) fn check(found: &Metadata) -> io::Result<()> {
    let kind = found.file_type();
    let (error, what) = match () {
        () if kind.is_file() => return Ok(()),
        () if kind.is_dir() => (ErrorKind::IsADirectory, "a directory"),
        () if kind.is_fifo() => (ErrorKind::AlreadyExists, "a pipe"),
        () if kind.is_socket() => (ErrorKind::AlreadyExists, "a socket"),
        () if kind.is_char_device() => (ErrorKind::AlreadyExists, "a character device"),
        () if kind.is_block_device() => (ErrorKind::AlreadyExists, "a block device"),
        () => (ErrorKind::AlreadyExists, "of a kind of its own"),
    };
    Err(io::Error::new(error, format!("it is no regular file: it is {what}")))
}
