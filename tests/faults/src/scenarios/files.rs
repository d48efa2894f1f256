//! Files: whatever fails, one of two whole files is there, and nothing else.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{env, fs, process};

use purlin_async::trace;
use purlin_base::Error;
use purlin_device::Buffer;
use purlin_interchange::{
    FileAccess, NpyReadOptions, SafetensorsFile, WriteOptions, read_npy, write_npy, write_safetensors,
};

use crate::run::Run;

const DURABLE: WriteOptions = WriteOptions { is_durable: true };

/// A folder that is removed at the end of its scope.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("purlin-faults-{}-{number}", process::id()));
        fs::create_dir(&path).expect("the temporary folder can be written to");
        Self(path)
    }

    /// A file that is there before.
    fn old(&self) -> PathBuf {
        let path = self.0.join("file");
        fs::write(&path, "old").expect("the folder can be written to");
        path
    }

    /// That `written` is true of the file: it is the old one, unless the error says that the new one is there.
    fn check(&self, path: &Path, written: Result<(), Error>) -> Result<(), Error> {
        let names: Vec<_> =
            fs::read_dir(&self.0).expect("it is a folder").map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["file"], "no temporary file is left");
        let is_new = fs::read(path).expect("a file is there") != b"old";
        let says_so =
            written.as_ref().err().is_none_or(|error| error.message().contains("written whole and in its place"));
        assert_eq!(is_new, says_so, "{written:?}");
        written
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(super) fn npy(run: &Arc<Run>) -> Result<(), Error> {
    let (space, folder) = (run.space()?, Folder::new());
    let array = Buffer::from_slice(&[1_u32; 100], &[100], &space)?;
    for options in [WriteOptions::default(), DURABLE] {
        let path = folder.old();
        folder.check(&path, write_npy(&path, &array, options))?;
        let (read, _) = read_npy(&path, &space, &NpyReadOptions::default())?;
        assert_eq!(read.to_vec::<u32>()?, [1; 100]);
    }
    Ok(())
}

pub(super) fn safetensors(run: &Arc<Run>) -> Result<(), Error> {
    let (space, folder) = (run.space()?, Folder::new());
    let (one, two) = (Buffer::from_slice(&[1_u8; 9], &[3, 3], &space)?, Buffer::from_slice(&[2_i64; 9], &[9], &space)?);
    let path = folder.old();
    folder.check(&path, write_safetensors(&path, &[("one", &one), ("two", &two)], &[("format", "pt")], DURABLE))?;
    let file = SafetensorsFile::open(&path, FileAccess::read())?;
    assert_eq!(file.read("two", &space)?.0.to_vec::<i64>()?, [2; 9]);
    Ok(())
}

pub(super) fn traced(_run: &Arc<Run>) -> Result<(), Error> {
    let folder = Folder::new();
    let path = folder.old();
    trace::start(&path)?;
    trace::end_span(trace::begin_span(c"a span"));
    folder.check(&path, trace::stop())
}
