//! A file under a name of its own, which only its maker can open, removed unless it is renamed.
//!
//! Its maker holds a lock of it (`flock`), which ends with the process, however that ends: a file that can be locked
//! has no owner any more (`leftovers.rs`). A writer that has made one and finds it locked, or without a name, was
//! mistaken for one that has ended between the two steps, and makes another. Where the file system has no locks, the
//! name says so, and no process takes it for left behind.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process;

use super::is_same;

/// Before the process's number and a random one.
const BEGINNING: &str = ".purlin-";
const WITHOUT_LOCK: &str = ".purlin-unlocked-";
/// Names are random: more than two attempts mean that a program makes these files on purpose.
const MOST_ATTEMPTS: usize = 100;

/// A name that no other file has, except by chance.
fn new_name(beginning: &str) -> String {
    // Of the process, too: a child made by fork draws the same numbers.
    let process = process::id();
    format!("{beginning}{process}-{:016x}", RandomState::new().hash_one(process))
}

pub(super) fn name_in(folder: &Path) -> PathBuf {
    folder.join(new_name(BEGINNING))
}

/// Whether `name` is one of a temporary file that can be locked.
pub(super) fn is_name(name: &[u8]) -> bool {
    let Some(numbers) = name.strip_prefix(BEGINNING.as_bytes()) else { return false };
    let Some(dash) = numbers.iter().position(|byte| *byte == b'-') else { return false };
    let (process, random) = (&numbers[..dash], &numbers[dash + 1..]);
    dash > 0 && process.iter().all(u8::is_ascii_digit) && random.len() == 16 && random.iter().all(u8::is_ascii_hexdigit)
}

#[derive(Debug)]
pub(super) struct Temporary {
    /// `None` once it is renamed.
    file: Option<File>,
    path: PathBuf,
}

impl Temporary {
    pub(super) fn create(folder: &Path) -> io::Result<Self> {
        let mut beginning = BEGINNING;
        for _ in 0..MOST_ATTEMPTS {
            let path = folder.join(new_name(beginning));
            let file = match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
                Ok(file) => file,
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            };
            let this = Self { file: Some(file), path };
            if beginning == WITHOUT_LOCK {
                return Ok(this);
            }
            match this.file().try_lock() {
                Ok(()) if this.has_its_name() => return Ok(this),
                Ok(()) | Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(_)) => beginning = WITHOUT_LOCK,
            }
        }
        Err(io::Error::new(ErrorKind::AlreadyExists, "other programs take the temporary file away again and again"))
    }

    fn has_its_name(&self) -> bool {
        let looked = self.file().metadata().and_then(|ours| Ok(is_same(&ours, &fs::symlink_metadata(&self.path)?)));
        looked.unwrap_or(false)
    }

    pub(super) fn file(&self) -> &File {
        match &self.file {
            Some(file) => file,
            None => unreachable!("only a rename takes the file, and it takes all"),
        }
    }

    /// Renames it, and returns the file.
    pub(super) fn rename_to(mut self, path: &Path) -> io::Result<File> {
        fs::rename(&self.path, path)?;
        match self.file.take() {
            Some(file) => {
                // A child made by fork meanwhile must not keep the new file locked.
                let _ = file.unlock();
                Ok(file)
            }
            None => unreachable!("it was there until now"),
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if self.file.is_some() {
            // The caller gets the first error; this would be a second one.
            let _ = fs::remove_file(&self.path);
        }
    }
}
