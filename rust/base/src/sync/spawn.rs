//! Starting threads, never while another thread forks.
//!
//! glibc gives a new thread the stack of one that has ended, and frees the thread-local memory of that one before it
//! forgets where that was. A child that is forked in between does both again when it starts a thread itself, and ends
//! with "double free or corruption" (glibc 2.36, `get_cached_stack`). Threads that other libraries start can still be
//! in between.

use std::io;
use std::thread::{Builder, JoinHandle};

#[cfg(not(purlin_model))]
use super::without_forks;

/// [`Builder::spawn`]; a fork waits until the thread has started.
///
/// # Errors
/// As there.
pub fn spawn<T: Send + 'static>(
    builder: Builder,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    #[cfg(not(purlin_model))]
    let _no_fork = without_forks();
    builder.spawn(work)
}
