//! The file that a recording becomes: all of it or what was there before.
//!
//! That it can be written and renamed is tried out when the recording begins; nothing stays on disk in between.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use purlin_base::fault::{self, Site};
use purlin_base::replaced_file::{Failure, Replacement};
use purlin_base::status::Error;

/// Where a recording is written.
#[derive(Debug)]
pub(super) struct Target {
    /// As the caller wrote it, for messages.
    shown: PathBuf,
    /// Absolute, because the working directory may change until the file is written.
    path: PathBuf,
}

impl Target {
    /// Tries out whether `path` can be written.
    pub(super) fn check(path: &Path) -> Result<Self, Error> {
        if path.as_os_str().is_empty() {
            return Err(Error::invalid_argument("the path of the trace is empty"));
        }
        let tried = Replacement::begin(path).map_err(|error| failure(path, &error.into()))?;
        Ok(Self { shown: path.to_owned(), path: tried.place().to_owned() })
    }

    /// Replaces the file by what `content` writes, once all of it is written.
    pub(super) fn write(&self, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Error> {
        self.replace(content).map_err(|error| failure(&self.shown, &error))
    }

    fn replace(&self, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
        let replacement = Replacement::begin(&self.path)?;
        let mut out = BufWriter::new(replacement.file());
        content(&mut out)?;
        fault::file(Site::WriteFile)?;
        out.flush()?;
        drop(out);
        replacement.commit(false)
    }
}

fn failure(path: &Path, error: &Failure) -> Error {
    error.error("the trace to ", path)
}

#[cfg(test)]
mod tests;
