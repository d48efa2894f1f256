//! Files that appear whole or not at all: written under a temporary name in the same folder, then renamed. For all of
//! Purlin's crates that read and write files; `regular.rs` says which files they open at all.
//!
//! A [`Replacement`] goes through these steps:
//! 1. `place.rs`: what is at the path is looked at, links are followed to where the file is, or would be. A user that
//!    may not write the file may not replace it, although a rename asks the folder alone.
//! 2. `leftovers.rs`: what writers that are gone have left in the folder is removed.
//! 3. `temporary.rs`: a file that only its maker can open, under a name of its own, locked for as long as its maker
//!    lives.
//! 4. The content is written by the caller.
//! 5. `kept.rs`: owner, group, mode and access control list of the file that was there, or what a new file would get.
//! 6. `fsync`, if asked for; then an answer from `close`, which is the last to report what could not be written.
//! 7. The rename. Until here every error leaves what was there, and no temporary file.
//! 8. `fsync` of the folder, if asked for. An error says that the file is there.

mod kept;
mod leftovers;
mod place;
mod regular;
mod system;
mod temporary;
#[cfg(test)]
mod tests;

use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::fault::{self, Site};
use crate::status::{Error, StatusCode};
use kept::Kept;
use place::Place;
pub use regular::open;
use temporary::Temporary;

/// A file that is being written, and will take the place of what is at its path, if anything is.
#[derive(Debug)]
pub struct Replacement {
    place: PathBuf,
    kept: Kept,
    temporary: Temporary,
}

impl Replacement {
    /// An empty one for `path`. It is removed unless it is committed.
    ///
    /// # Errors
    /// The system's. `PermissionDenied` also: there is a file that the caller may not write. `IsADirectory`;
    /// `AlreadyExists`: what is there is no regular file, or has no name that a rename could take.
    pub fn begin(path: &Path) -> io::Result<Self> {
        let Place { path, kept } = Place::find(path)?;
        let folder = folder_of(&path);
        leftovers::remove(folder);
        let kept = kept.map_or_else(|| Kept::of_new(folder), Ok)?;
        Ok(Self { temporary: Temporary::create(folder)?, place: path, kept })
    }

    /// The path without links: where the file will be.
    #[must_use]
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// What the content is written to.
    #[must_use]
    pub fn file(&self) -> &File {
        self.temporary.file()
    }

    /// Makes it the file at its path, in one step. If `is_durable`, its bytes are on the disk before, and its name
    /// after that.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn commit(self, is_durable: bool) -> Result<(), Failure> {
        self.kept.give(self.file())?;
        if is_durable {
            fault::file(Site::SyncFile)?;
            self.file().sync_all()?;
        }
        fault::file(Site::CloseFile)?;
        system::flush(self.file())?;
        fault::file(Site::RenameFile)?;
        let file = self.temporary.rename_to(&self.place)?;
        system::close_telling(file).map_err(Failure::InPlace)?;
        if is_durable {
            let synced = fault::file(Site::SyncFolder).and_then(|()| File::open(folder_of(&self.place))?.sync_all());
            synced.map_err(Failure::InPlace)?;
        }
        Ok(())
    }
}

/// Why a file was not replaced, or not as it should be.
#[derive(Debug)]
pub enum Failure {
    /// What was there is as it was.
    Left(io::Error),
    /// The new file is there; a loss of power may undo that.
    InPlace(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Left(error)
    }
}

impl Failure {
    /// As an error of writing `what`, to the file that the caller calls `path`.
    #[must_use]
    pub fn error(&self, what: impl Display, path: &Path) -> Error {
        let path = path.display();
        match self {
            Self::Left(error) => Error::new(code_of(error), format!("cannot write {what}{path}: {error}")),
            Self::InPlace(error) => {
                let doubt = "but a loss of power may undo that, because its folder cannot be synchronised";
                Error::new(code_of(error), format!("{path} is written whole and in its place, {doubt}: {error}"))
            }
        }
    }
}

/// The folder of an absolute path.
fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

/// Whether both are the same file.
fn is_same(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// The code of what the system says of a file.
#[must_use]
pub fn code_of(error: &io::Error) -> StatusCode {
    match error.kind() {
        ErrorKind::InvalidInput | ErrorKind::InvalidFilename => StatusCode::InvalidArgument,
        ErrorKind::NotFound => StatusCode::NotFound,
        ErrorKind::PermissionDenied => StatusCode::PermissionDenied,
        ErrorKind::IsADirectory
        | ErrorKind::NotADirectory
        | ErrorKind::AlreadyExists
        | ErrorKind::ResourceBusy
        | ErrorKind::ExecutableFileBusy
        | ErrorKind::ReadOnlyFilesystem => StatusCode::FailedPrecondition,
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge | ErrorKind::OutOfMemory => {
            StatusCode::ResourceExhausted
        }
        _ if system::is_short_of_descriptors(error) => StatusCode::ResourceExhausted,
        _ if system::is_loop_of_links(error) => StatusCode::FailedPrecondition,
        _ => StatusCode::Unknown,
    }
}
