//! Files as bytes, and files that appear whole or not at all.
//!
//! A mapped file is the file: who truncates it meanwhile takes pages away that are in use, and the process gets a `SIGBUS`;
//! who writes it changes arrays that are said to be frozen. So mapping is a promise ([`FileAccess::mapped`]). Replacing the
//! file by a rename, as everything here and every careful program does, leaves the mapping as it was.
//!
//! How files are written, and which are refused: `purlin::replaced_file`.

#![allow(unsafe_code, reason = "files are mapped")]

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::ops::Deref;
use std::path::Path;

use memmap2::Mmap;
use purlin::replaced_file::{UnfinishedFile, code_of, regular, resolve};
use purlin::{Status, StatusOr};

/// How the bytes of a file come into memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileAccess {
    is_mapped: bool,
}

impl FileAccess {
    /// They are read, all of them, and then copied to where buffers have their memory. Nobody has to promise anything.
    #[must_use]
    pub const fn read() -> Self {
        Self { is_mapped: false }
    }

    /// They stay in the file, which is mapped: what is not used is not read. Where alignment and order allow, buffers use the
    /// mapping itself, which ends with the last of them.
    ///
    /// # Safety
    /// Until every buffer that aliases it is gone, and during the calls that got this, nobody writes or truncates the file.
    /// Renaming, removing and replacing it by a rename are fine.
    #[must_use]
    pub const unsafe fn mapped() -> Self {
        Self { is_mapped: true }
    }
}

/// How a file is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// Whether the bytes, and then the name, are on the disk when the call returns (`fsync`); otherwise the system writes them
    /// when it likes, and a loss of power may leave an empty file.
    pub is_durable: bool,
}

/// The bytes of a file, for as long as this lives.
#[derive(Debug)]
pub(crate) enum FileBytes {
    Mapped(Mmap),
    Read(Vec<u8>),
}

impl FileBytes {
    /// Blocks.
    ///
    /// # Errors
    /// Names the file: `NotFound`, `PermissionDenied`, `FailedPrecondition` (no regular file), `ResourceExhausted` (more than
    /// memory has), `Unknown` (what else the system says).
    pub(crate) fn open(path: &Path, access: FileAccess) -> StatusOr<Self> {
        let opened = regular(path).and_then(|()| File::open(path)).and_then(|file| Self::of(&file, access));
        opened.map_err(|error| failure("read", path, &error))
    }

    fn of(file: &File, access: FileAccess) -> io::Result<Self> {
        if access.is_mapped {
            // SAFETY: the promise of FileAccess::mapped.
            return unsafe { Mmap::map(file) }.map(Self::Mapped);
        }
        let mut bytes = Vec::new();
        let size_bytes = usize::try_from(file.metadata()?.len()).map_err(|_| ErrorKind::OutOfMemory)?;
        bytes.try_reserve_exact(size_bytes)?;
        // A file that grows meanwhile is none that we were asked for.
        file.take(size_bytes as u64).read_to_end(&mut bytes)?;
        Ok(Self::Read(bytes))
    }

    /// Whether buffers may use the bytes where they are.
    pub(crate) fn is_mapped(&self) -> bool {
        matches!(self, Self::Mapped(_))
    }
}

impl Deref for FileBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Read(bytes) => bytes,
        }
    }
}

/// Makes `path` the file that `content` writes, once all of it is written; otherwise leaves what was there. Blocks.
///
/// # Errors
/// What `content` fails with; otherwise as [`FileBytes::open`], also `ResourceExhausted`: the disk is full.
pub(crate) fn replace(
    path: &Path,
    options: WriteOptions,
    content: impl FnOnce(&mut Output<'_>) -> Result<(), Status>,
) -> Result<(), Status> {
    let failed = |error: io::Error| failure("write", path, &error);
    let target = resolve(path).map_err(failed)?;
    let (unfinished, file) = UnfinishedFile::create_beside(&target).map_err(failed)?;
    content(&mut Output { path, file: &file })?;
    let finish = || {
        if options.is_durable {
            file.sync_all()?;
        }
        unfinished.rename_to(&target)?;
        if options.is_durable {
            File::open(target.parent().unwrap_or(Path::new("/")))?.sync_all()?;
        }
        Ok(())
    };
    finish().map_err(failed)
}

/// A file that is being written.
pub(crate) struct Output<'a> {
    path: &'a Path,
    file: &'a File,
}

impl Output<'_> {
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Status> {
        self.file.write_all(bytes).map_err(|error| failure("write", self.path, &error))
    }
}

fn failure(verb: &str, path: &Path, error: &io::Error) -> Status {
    Status::new(code_of(error.kind()), format!("cannot {verb} {}: {error}", path.display()))
}
