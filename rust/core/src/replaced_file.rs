//! Files that appear whole or not at all: written under a temporary name in the same directory, then renamed.
//!
//! Links are followed, so that they stay links. What is no regular file (a directory, a pipe, a device such as `/dev/null`) is
//! refused before it is opened: opening may block for ever or have effects, and a rename would replace it. For all of
//! Purlin's crates that write files.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::mem;
use std::path::{self, Path, PathBuf};
use std::process;

use crate::status::StatusCode;
use crate::sync::atomic::{AtomicU64, Ordering};

/// That a regular file is at `path`.
///
/// # Errors
/// The system's; `IsADirectory`; `AlreadyExists`: something else is there.
pub fn regular(path: &Path) -> io::Result<()> {
    let found = fs::metadata(path)?;
    if found.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    if !found.is_file() {
        return Err(io::Error::new(ErrorKind::AlreadyExists, "not a regular file"));
    }
    Ok(())
}

/// `path` made absolute, with links followed if something is there.
///
/// # Errors
/// As [`regular`], but that nothing needs to be there.
pub fn resolve(path: &Path) -> io::Result<PathBuf> {
    let absolute = path::absolute(path)?;
    match regular(&absolute) {
        Ok(()) => fs::canonicalize(&absolute),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            // "new/" would be taken for "new" by everything but the rename.
            let names_a_directory = absolute.as_os_str().as_encoded_bytes().ends_with(b"/");
            if names_a_directory { Err(ErrorKind::IsADirectory.into()) } else { Ok(absolute) }
        }
        Err(error) => Err(error),
    }
}

/// A temporary file, removed unless it is renamed.
#[derive(Debug)]
pub struct UnfinishedFile {
    /// Empty once there is nothing to remove.
    path: PathBuf,
}

impl UnfinishedFile {
    /// A new file in the directory of `path`, named `.purlin-<process>-<number>`.
    ///
    /// # Errors
    /// The system's.
    pub fn create_beside(path: &Path) -> io::Result<(Self, File)> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let directory = path.parent().unwrap_or(Path::new("/"));
        loop {
            // Relaxed: only uniqueness counts. A name that a killed process has left behind is passed over.
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = directory.join(format!(".purlin-{}-{number}", process::id()));
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => return Ok((Self { path }, file)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Makes it the file at `path`, in one step.
    ///
    /// # Errors
    /// The system's; it is then removed.
    pub fn rename_to(mut self, path: &Path) -> io::Result<()> {
        fs::rename(&self.path, path)?;
        self.path = PathBuf::new();
        Ok(())
    }

    /// Removes it.
    ///
    /// # Errors
    /// The system's.
    pub fn remove(mut self) -> io::Result<()> {
        fs::remove_file(mem::take(&mut self.path))
    }
}

impl Drop for UnfinishedFile {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            // The first error is the one that the caller hears of.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The code of what the system says of a file.
#[must_use]
pub fn code_of(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::InvalidInput | ErrorKind::InvalidFilename => StatusCode::InvalidArgument,
        ErrorKind::NotFound => StatusCode::NotFound,
        ErrorKind::PermissionDenied => StatusCode::PermissionDenied,
        ErrorKind::IsADirectory
        | ErrorKind::NotADirectory
        | ErrorKind::AlreadyExists
        | ErrorKind::ReadOnlyFilesystem => StatusCode::FailedPrecondition,
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge | ErrorKind::OutOfMemory => {
            StatusCode::ResourceExhausted
        }
        _ => StatusCode::Unknown,
    }
}
