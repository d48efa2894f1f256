//! What sequences have met, and the sequences that are kept because they met something first.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::model::hash;
use crate::op::{Op, Verb};

/// Pairs of an operation (with the state of what it works on) and its answer, numbers and names of errors left out.
#[derive(Clone, Debug, Default)]
pub struct Coverage(BTreeSet<String>);

impl Coverage {
    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True before the first.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &String> {
        self.0.iter()
    }

    /// True if it is new.
    pub(crate) fn meet(&mut self, op: Op, state: &str, answer: &str) -> bool {
        if !matches!(op.verb, Verb::Look | Verb::End) {
            return self.0.insert(format!("{} ({state}): {}", op.verb.name(), general(answer)));
        }
        let mut new = false;
        for part in answer.split(' ').filter(|part| !part.starts_with("mem=") && !part.starts_with("h=")) {
            let Some((slot, text)) = part.split_once('=') else { continue };
            let kind = slot.trim_end_matches(|c: char| c.is_ascii_digit());
            new |= self.0.insert(format!("seen {kind}: {}", general(text)));
        }
        new
    }
}

/// Without what differs between sequences that do the same: numbers of errors, hashes, counts above one.
fn general(answer: &str) -> String {
    let part = |part: &str| match part.split_once(':') {
        Some((_, what)) if what.starts_with('#') => "user error".to_owned(),
        Some((_, what)) => what.to_owned(),
        None if part.starts_with('h') && part.len() == 9 => "bytes".to_owned(),
        None => part.parse::<u32>().map_or(part.to_owned(), |count| count.min(2).to_string()),
    };
    answer.split(',').map(part).collect::<Vec<_>>().join(",")
}

/// A folder of files of bytes, each a sequence for one thread.
#[derive(Debug)]
pub struct Corpus {
    folder: PathBuf,
}

impl Corpus {
    /// The one beside this crate's sources.
    #[must_use]
    pub fn here() -> Self {
        Self { folder: Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus") }
    }

    /// That folder, which need not be there.
    #[must_use]
    pub fn at(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// All sequences, by name.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn load(&self) -> io::Result<Vec<(String, Vec<u8>)>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "ops") {
                let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                files.push((name, fs::read(&path)?));
            }
        }
        files.sort();
        Ok(files)
    }

    /// Keeps a sequence; its name.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep(&self, prefix: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        self.write(&format!("{prefix}{:08x}.ops", hash(bytes)), bytes)
    }

    /// As [`keep`](Self::keep), under that name.
    ///
    /// # Errors
    /// As there.
    pub fn write(&self, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        fs::create_dir_all(&self.folder)?;
        let path = self.folder.join(name);
        fs::write(&path, bytes)?;
        Ok(path)
    }
}
