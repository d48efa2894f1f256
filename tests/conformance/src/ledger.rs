//! The leak ledger: what lives in this process, by name, from what the system and stall reports know.
//!
//! Counted are events whose promises are pending; clients, pools and queues (a client line names its bytes and their
//! holders); threads; file descriptors; and what a driver under test has in its [books](add_books). Every hold, lease,
//! mapping and buffer keeps its client, so none of them outlives a test that ends without clients. What lives as long
//! as the process is no leak: the thread of the timers, which ends a second after the last of them (at once where fail
//! points fail), and whatever is in the ledger that a test began with. A driver of NVIDIA's has threads and files of
//! its own, so on a GPU (PURLIN_GPU_DEVICES) threads are those that Purlin has named, and files are not looked at.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use purlin_base::sync::OnceLock;

/// How long what is ending may take to be gone. Only a failing test waits that long.
const LONG_ENOUGH: Duration = Duration::from_secs(20);
/// Threads that may stay.
const OF_THE_PROCESS: &[&str] = if cfg!(purlin_faults) { &[] } else { &["purlin-timers"] };

/// What a driver has, by name, and how much of it.
pub type Books = fn() -> Vec<(&'static str, u64)>;

static BOOKS: OnceLock<Books> = OnceLock::new();

/// All ledgers of this process have these books, too: the first that are added.
pub fn add_books(books: Books) {
    BOOKS.get_or_init(|| books);
}

/// What lives now.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// Pending events: label, place, what owes them.
    pub promises: Vec<String>,
    /// Clients, pools and queues, a line each.
    pub living: Vec<String>,
    /// Threads by number.
    pub threads: BTreeMap<u64, String>,
    /// Open files by descriptor.
    pub descriptors: BTreeMap<u64, String>,
    /// What is in the books of a driver.
    pub books: BTreeMap<&'static str, u64>,
}

impl Ledger {
    /// Looks.
    #[must_use]
    pub fn now() -> Self {
        let stalls = purlin_async::stalls(Duration::ZERO);
        let promise = |event: &purlin_async::stall::StalledEvent| {
            format!("event '{}' made at {}, owed by {}", event.label, event.location, event.owed_by)
        };
        let on_a_gpu = std::env::var_os("PURLIN_GPU_DEVICES").is_some();
        let descriptors = if on_a_gpu { "" } else { "/proc/self/fd" };
        Self {
            promises: stalls.events.iter().map(promise).collect(),
            living: stalls.executors,
            threads: numbered("/proc/self/task", |path| {
                let name = fs::read_to_string(path.join("comm")).ok()?;
                let name = name.trim().to_owned();
                let is_ours = !on_a_gpu || name.starts_with("purlin");
                (is_ours && !OF_THE_PROCESS.contains(&name.as_str())).then_some(name)
            }),
            // The descriptor by which this very folder is read cannot be read any more.
            descriptors: numbered(descriptors, |path| {
                fs::read_link(path).ok().map(|target| target.to_string_lossy().into_owned())
            }),
            books: BOOKS.get().map_or_else(BTreeMap::new, |books| books().into_iter().collect()),
        }
    }

    /// What lives now, if this process runs one test only: otherwise what lives may be another's.
    #[must_use]
    pub fn of_one_test() -> Option<Self> {
        let alone = std::env::var("NEXTEST_EXECUTION_MODE").is_ok_and(|mode| mode == "process-per-test");
        alone.then(Self::now)
    }

    /// What is here and was not in `before`, in words; empty if nothing.
    #[must_use]
    pub fn beyond(&self, before: &Self) -> String {
        let mut text = String::new();
        let mut tell = |what: &str, now: usize, then: usize, lines: Vec<&String>| {
            if now > then {
                // Writing to a string does not fail.
                let _ = writeln!(text, "{} {what} left behind:", now - then);
                lines.iter().for_each(|line| _ = writeln!(text, "  {line}"));
            }
        };
        tell("promises", self.promises.len(), before.promises.len(), self.promises.iter().collect());
        tell("clients, pools or queues", self.living.len(), before.living.len(), self.living.iter().collect());
        // By number alone: a thread gives itself its name a moment after it has begun.
        let news = |now: &BTreeMap<u64, String>, then: &BTreeMap<u64, String>| -> Vec<String> {
            let new = now.iter().filter(|(number, _)| !then.contains_key(number));
            new.map(|(number, name)| format!("{number}: {name}")).collect()
        };
        let threads = news(&self.threads, &before.threads);
        tell("threads", threads.len(), 0, threads.iter().collect());
        let descriptors = news(&self.descriptors, &before.descriptors);
        tell("descriptors", descriptors.len(), 0, descriptors.iter().collect());
        for (what, now) in &self.books {
            let then = before.books.get(what).copied().unwrap_or(0);
            if *now > then {
                // As above.
                let _ = writeln!(text, "{} {what} of the driver left behind", now - then);
            }
        }
        text
    }

    /// Waits until nothing is left that was not in this ledger.
    ///
    /// # Errors
    /// What was left, in words.
    pub fn settles(&self) -> Result<(), String> {
        self.settles_within(LONG_ENOUGH)
    }

    /// As [`settles`](Self::settles), with less patience: for tests of this ledger.
    ///
    /// # Errors
    /// As there.
    pub fn settles_within(&self, patience: Duration) -> Result<(), String> {
        let end = Instant::now() + patience;
        loop {
            let left = Self::now().beyond(self);
            if left.is_empty() {
                return Ok(());
            }
            if Instant::now() > end {
                return Err(left);
            }
            thread::sleep(Duration::from_micros(200));
        }
    }
}

fn numbered(folder: &str, name: impl Fn(&std::path::Path) -> Option<String>) -> BTreeMap<u64, String> {
    let Ok(entries) = fs::read_dir(folder) else { return BTreeMap::new() };
    let entry = |entry: fs::DirEntry| {
        let number = entry.file_name().to_string_lossy().parse().ok()?;
        Some((number, name(&entry.path())?))
    };
    // What was closed while it was read is not here.
    let mut all: BTreeMap<u64, String> = entries.filter_map(Result::ok).filter_map(entry).collect();
    all.retain(|_, name| !name.starts_with("/proc/") || !name.ends_with("/fd"));
    all
}
