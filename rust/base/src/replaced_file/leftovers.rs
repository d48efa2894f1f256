//! Temporary files whose maker was killed are removed by the next writer in their folder.
//!
//! A writer that gets the lock of such a file knows that its maker is gone (`temporary.rs`), and holds the lock while
//! the name is removed. Names are random, so that none is made again between the last look and the removal.
//!
//! A folder is listed at every write, unless it is large: then at every n-th of this process, n being a thousandth of
//! its entries. That bounds what a write pays for it, on average, to the listing of a thousand names.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use super::is_same;
use super::system::{DO_NOT_CONTROL, DO_NOT_WAIT};
use super::temporary::is_name;
use crate::sync::atomic::{AtomicU64, Ordering};

const ENTRIES_PER_WRITE: u64 = 1000;

/// For some large folders, which in the upper bits, and how many writes there are before the next listing in the lower
/// ones. Relaxed everywhere: a folder that is overlooked or forgotten is listed too often, or a little later.
static SKIPPED: [AtomicU64; 16] = [const { AtomicU64::new(0) }; 16];
const COUNT: u64 = 0xffff;

/// Where `folder` is counted, and its upper bits there.
fn counter(folder: &Metadata) -> (&'static AtomicU64, u64) {
    let mixed = (folder.ino() ^ folder.dev().rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (&SKIPPED[(mixed >> 60) as usize], mixed & !COUNT)
}

/// Removes them from `folder`. What cannot be removed, or looked at, stays.
pub(super) fn remove(folder: &Path) {
    let Ok(found) = fs::metadata(folder) else { return };
    let (counter, which) = counter(&found);
    let counted = counter.load(Ordering::Relaxed);
    if counted & !COUNT == which && counted & COUNT > 0 {
        counter.store(counted - 1, Ordering::Relaxed);
        return;
    }
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut count = 0;
    // An error would be returned again and again.
    for entry in entries.map_while(Result::ok) {
        count += 1;
        if is_name(entry.file_name().as_bytes()) {
            let _ = remove_if_left(&entry.path());
        }
    }
    let skipped = (count / ENTRIES_PER_WRITE).min(COUNT);
    if skipped > 0 || counted & !COUNT == which {
        counter.store(which | skipped, Ordering::Relaxed);
    }
}

fn remove_if_left(path: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(path)?;
    if found.is_file() {
        let file = open(path)?;
        // Locked, or not to be locked: another process uses it.
        if is_same(&file.metadata()?, &found)
            && file.try_lock().is_ok()
            && is_same(&fs::symlink_metadata(path)?, &found)
        {
            return fs::remove_file(path);
        }
    }
    Ok(())
}

/// For writing, if that is allowed: some file systems lock only such.
fn open(path: &Path) -> io::Result<File> {
    let open = |options: &mut OpenOptions| options.custom_flags(DO_NOT_WAIT | DO_NOT_CONTROL).open(path);
    open(OpenOptions::new().write(true)).or_else(|_| open(OpenOptions::new().read(true)))
}
