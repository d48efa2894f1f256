//! Starting and joining a pool's threads. Starting is a value, so that tests can refuse the n-th thread and models can
//! use theirs. Threads that end before the pool are joined by the next one to be started or to end.

use std::io;
use std::thread::{self, Builder, JoinHandle};

use crate::task::STACK_SIZE_BYTES;
use purlin_base::sync::{Mutex, keep_record, spawn};

/// Starts a thread with a name that runs a closure. Without a handle, it cannot be joined.
pub(super) type Starter =
    Box<dyn Fn(String, Box<dyn FnOnce() + Send>) -> io::Result<Option<JoinHandle<()>>> + Send + Sync>;

/// Threads of the system.
pub(super) fn of_the_system() -> Starter {
    Box::new(|name, work| spawn(Builder::new().name(name).stack_size(STACK_SIZE_BYTES), work).map(Some))
}

pub(super) struct Threads {
    name: String,
    starter: Starter,
    started: Mutex<Vec<JoinHandle<()>>>,
}

impl Threads {
    pub(super) fn new(name: &str, starter: Starter) -> Self {
        Self { name: name.to_owned(), starter, started: Mutex::new(Vec::new()) }
    }

    /// The pool's name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Starts thread `name/index`.
    pub(super) fn start(&self, index: usize, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        if let Some(thread) = (self.starter)(format!("{}/{index}", self.name), Box::new(work))? {
            self.started.lock().push(thread);
            self.join_ended();
        }
        Ok(())
    }

    /// Joins those that have ended: until then their stacks stay.
    pub(super) fn join_ended(&self) {
        let ended = self.started.lock().extract_if(.., |thread| thread.is_finished()).collect();
        join_all(ended);
    }

    /// Joins those that were started, also by those that are joined.
    pub(super) fn join(&self) {
        loop {
            let threads = std::mem::take(&mut *self.started.lock());
            if threads.is_empty() {
                return;
            }
            join_all(threads);
        }
    }

    /// Lets them end on their own.
    pub(super) fn let_go(&self) {
        let threads = std::mem::take(&mut *self.started.lock());
        threads.iter().for_each(|thread| keep_record(thread.thread()));
    }
}

fn join_all(threads: Vec<JoinHandle<()>>) {
    for thread in threads {
        if thread.thread().id() == thread::current().id() {
            // In a destructor of a variable of its own: it ends after that.
            keep_record(thread.thread());
            continue;
        }
        // An error would be a panic of the worker itself, which catches those of its tasks.
        let _ = thread.join();
    }
}
