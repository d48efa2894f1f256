//! What Purlin itself says on stderr, past std's lock of it: a child made by `fork` while another thread wrote would
//! wait for that lock for ever.

#![allow(unsafe_code, reason = "a descriptor by its number")]

use std::fs::File;
use std::io::Write;
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;

/// Writes `text`. A closed stderr is no reason to fail.
pub fn tell(text: &str) {
    // SAFETY: the descriptor is the process's, and is not closed by this, which is never dropped.
    let mut stderr = ManuallyDrop::new(unsafe { File::from_raw_fd(2) });
    let _ = stderr.write_all(text.as_bytes());
}
