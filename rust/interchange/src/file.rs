//! Files as bytes, and files that appear whole or not at all.
//!
//! A file is read in three steps, so that one that is refused costs no more than its header: its first bytes say how
//! long its header is ([`Opened::front`]), the header says whether the file is as long as it should be, and only then
//! the rest is read or mapped ([`Opened::whole`]). The size is asked for once; a change of it meanwhile is an error.
//!
//! A mapped file is the file: a truncation meanwhile takes pages away that are in use, and the process gets a `SIGBUS`;
//! a write changes arrays that are said to be frozen. So mapping is a promise ([`FileAccess::mapped`]), and headers are
//! read even then. Replacing the file by a rename, as everything here and every careful program does, leaves the
//! mapping as it was.
//!
//! How files are written, and which are refused: `purlin_base::replaced_file`.

#![allow(unsafe_code, reason = "files are mapped")]

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read, Write};
use std::ops::Deref;
use std::path::Path;

use memmap2::{Mmap, MmapOptions};
use purlin_base::fault::{self, Site};
use purlin_base::replaced_file::{Failure, Replacement, code_of, open};
use purlin_base::{Error, StatusOr};

/// How the bytes of a file are brought into memory.
///
/// ```
/// use purlin::interchange::FileAccess;
///
/// assert_eq!(FileAccess::default(), FileAccess::read());
/// // SAFETY: this program's files are neither written nor made shorter while buffers use them.
/// let mapped = unsafe { FileAccess::mapped() };
/// assert_ne!(mapped, FileAccess::read());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileAccess {
    is_mapped: bool,
}

impl FileAccess {
    /// They are read, all of them, and then copied to where buffers have their memory. No process promises anything,
    /// and it is the default.
    #[must_use]
    pub const fn read() -> Self {
        Self { is_mapped: false }
    }

    /// They stay in the file, which is mapped: what is not used is not read. Where alignment and order allow, buffers
    /// use the mapping itself, which ends with the last of them.
    ///
    /// # Safety
    /// Until every buffer that aliases it is gone, and during the calls that got this, nothing writes or truncates the
    /// file. Renaming, removing and replacing it by a rename are fine.
    #[must_use]
    pub const unsafe fn mapped() -> Self {
        Self { is_mapped: true }
    }
}

/// How a file is written.
///
/// ```
/// use purlin::Buffer;
/// use purlin::interchange::{WriteOptions, write_npy};
/// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
/// # let space = client.devices()[0].default_memory_space();
///
/// let path = std::env::temp_dir().join(format!("purlin-doc-durable-{}.npy", std::process::id()));
/// let buffer = Buffer::from_slice(&[1_i32, 2], &[2], &space)?;
/// write_npy(&path, &buffer, WriteOptions { is_durable: true })?;
/// assert!(path.exists());
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// Whether the bytes, and then the name, are on the disk when the call returns (`fsync`); otherwise the system
    /// writes them when it likes, and a loss of power may leave an empty file. Where the folder cannot be opened for
    /// that, the error says that the file is written whole and in its place.
    pub is_durable: bool,
}

/// The bytes of a file, for as long as this lives.
#[derive(Debug)]
pub(crate) enum FileBytes {
    Mapped(Mmap),
    Read(Vec<u8>),
}

impl FileBytes {
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

/// A file of which the first bytes are known.
#[derive(Debug)]
pub(crate) struct Opened<'a> {
    path: &'a Path,
    file: File,
    size_bytes: usize,
    front: Vec<u8>,
}

impl<'a> Opened<'a> {
    /// Blocks, but for no other program.
    ///
    /// # Errors
    /// Names the file: `NotFound`, `PermissionDenied`, `FailedPrecondition` (no regular file), `ResourceExhausted`
    /// (more than memory has), `Unknown` (what else the system says).
    pub(crate) fn open(path: &'a Path) -> StatusOr<Self> {
        let opened = open(path).and_then(|(file, found)| Ok((file, size_of(&found)?)));
        let (file, size_bytes) = opened.map_err(|error| failure(path, &error))?;
        Ok(Self { path, file, size_bytes, front: Vec::new() })
    }

    /// How long the file is.
    pub(crate) fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    /// So many bytes from its beginning on, or all if it has no more. Blocks.
    ///
    /// # Errors
    /// As [`open`](Self::open), and `Aborted`: the file is shorter than it was.
    pub(crate) fn front(&mut self, size_bytes: usize) -> StatusOr<&[u8]> {
        let (have, want) = (self.front.len(), size_bytes.min(self.size_bytes));
        if have < want {
            let read = read_more(&mut self.file, &mut self.front, want - have);
            read.map_err(|error| failure(self.path, &error))?;
            if self.front.len() < want {
                return Err(self.changed(format_args!("it ended after {} bytes", self.front.len())));
            }
        }
        Ok(&self.front[..want])
    }

    /// All of it. Blocks.
    ///
    /// # Errors
    /// As [`front`](Self::front), and `Aborted`: the file is longer than it was.
    pub(crate) fn whole(mut self, access: FileAccess) -> StatusOr<FileBytes> {
        let bytes = if access.is_mapped {
            // SAFETY: the promise of FileAccess::mapped.
            let mapped = unsafe { MmapOptions::new().len(self.size_bytes).map(&self.file) };
            FileBytes::Mapped(mapped.map_err(|error| failure(self.path, &error))?)
        } else {
            self.front(usize::MAX)?;
            FileBytes::Read(std::mem::take(&mut self.front))
        };
        let now = self.file.metadata().and_then(|found| size_of(&found)).map_err(|error| failure(self.path, &error))?;
        if now != self.size_bytes {
            return Err(self.changed(format_args!("it is {now} bytes long now")));
        }
        Ok(bytes)
    }

    fn changed(&self, how: std::fmt::Arguments<'_>) -> Error {
        let (path, size_bytes) = (self.path.display(), self.size_bytes);
        Error::aborted(format!("{path} was changed while it was read: it was {size_bytes} bytes long, and {how}"))
    }
}

fn size_of(found: &Metadata) -> io::Result<usize> {
    usize::try_from(found.len()).map_err(|_| ErrorKind::OutOfMemory.into())
}

/// Up to so many bytes more.
fn read_more(file: &mut File, bytes: &mut Vec<u8>, size_bytes: usize) -> io::Result<()> {
    fault::file(Site::ReadFile)?;
    bytes.try_reserve_exact(size_bytes).map_err(|_| {
        io::Error::new(ErrorKind::OutOfMemory, format!("the host has no memory for {size_bytes} bytes of it"))
    })?;
    file.take(size_bytes as u64).read_to_end(bytes)?;
    Ok(())
}

/// Makes `path` the file that `content` writes, once all of it is written; otherwise leaves what was there. Blocks.
///
/// # Errors
/// What `content` fails with; otherwise as [`Opened::open`], also `ResourceExhausted`: the disk is full. An error that
/// says that the file is in its place is of a durable write whose folder could not be synchronised.
pub(crate) fn replace(
    path: &Path,
    options: WriteOptions,
    content: impl FnOnce(&mut Output<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let failed = |failure: Failure| failure.error("", path);
    let replacement = Replacement::begin(path).map_err(|error| failed(error.into()))?;
    content(&mut Output { path, file: replacement.file() })?;
    replacement.commit(options.is_durable).map_err(failed)
}

/// A file that is being written.
pub(crate) struct Output<'a> {
    path: &'a Path,
    file: &'a File,
}

impl Output<'_> {
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let written = fault::file(Site::WriteFile).and_then(|()| self.file.write_all(bytes));
        written.map_err(|error| Failure::Left(error).error("", self.path))
    }
}

fn failure(path: &Path, error: &io::Error) -> Error {
    Error::new(code_of(error), format!("cannot read {}: {error}", path.display()))
}
