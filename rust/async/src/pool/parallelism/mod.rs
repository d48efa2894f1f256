//! How many threads this process may keep busy, and why.
//!
//! A pool that is larger than its share of the machine loses: threads beyond the affinity mask take turns, and threads
//! beyond a cgroup's quota are all stopped for the rest of the period. So the answer is the smallest of
//! - the CPUs in the calling thread's affinity mask (which holds what cpusets allow),
//! - the CPU quota of our cgroup and of every cgroup above it, rounded up (`cgroup.rs`),
//! - `PURLIN_NPROC`, a cap that the user may set.
//!
//! Whether a filter of system calls is in force is read here, too: the same file says it.
//!
//! Nothing here fails: what cannot be read or understood is left out, and the reason says so. Files are read below a
//! root directory, so that tests bring machines of their own.

mod cgroup;
#[cfg(test)]
mod tests;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;

/// The variable that caps the number of threads: a whole number from 1.
const USER_CAP: &str = "PURLIN_NPROC";

/// A number of threads and where it comes from.
///
/// ```
/// use purlin::pool::parallelism::Parallelism;
///
/// let found = Parallelism::detect();
/// assert!(found.threads >= 1);
/// assert!(found.reason.starts_with(&found.threads.to_string()), "{}", found.reason);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Parallelism {
    /// At least 1.
    pub threads: usize,
    /// One line, the deciding limit first: `2 threads: cgroup quota 1.5 CPUs (/sys/fs/cgroup/x/cpu.max), affinity
    /// allows 8`.
    pub reason: String,
}

impl Parallelism {
    /// Asks the system at each call: both limits can change while a process runs. Reads a few small files.
    #[must_use]
    pub fn detect() -> Self {
        let system = System::new(PathBuf::from("/"));
        Self::of(system, env::var_os(USER_CAP), thread::available_parallelism().ok().map(usize::from))
    }

    /// The limits of `system` and the user's cap; `std_answer` counts only where the affinity mask is unknown.
    fn of(mut system: System, user_cap: Option<OsString>, std_answer: Option<usize>) -> Self {
        let mut limits = vec![match (system.affinity(), std_answer) {
            (Some(cpus), _) => (cpus, format!("affinity allows {cpus}")),
            (None, Some(cpus)) => (cpus.max(1), format!("the standard library reports {cpus}")),
            (None, None) => (1, "the number of CPUs is unknown".to_owned()),
        }];
        let quota = cgroup::smallest_quota(&mut system);
        if let Some(quota) = &quota {
            limits.push((quota.threads(), quota.to_string()));
        }
        if let Some(value) = user_cap {
            match value.to_str().map(|text| text.trim().parse()) {
                Some(Ok(cap)) if cap > 0 => limits.push((cap, format!("{USER_CAP}={cap}"))),
                _ => system.ignored.push(format!("{USER_CAP}={value:?} (not a whole number from 1)")),
            }
        }
        // Stable: of equal limits, the one that the user can least change is named first.
        limits.sort_by_key(|(threads, _)| *threads);

        let threads = limits[0].0;
        let mut parts: Vec<String> = limits.into_iter().map(|(_, text)| text).collect();
        if quota.is_none() {
            parts.push("no cgroup quota".to_owned());
        }
        let mut reason = format!("{threads} thread{}: {}", if threads == 1 { "" } else { "s" }, parts.join(", "));
        if !system.ignored.is_empty() {
            reason += &format!("; ignored: {}", system.ignored.join(", "));
        }
        Self { threads, reason: reason.replace(char::is_control, "?") }
    }
}

/// The files of a machine, and what in them was not understood.
struct System {
    root: PathBuf,
    /// Each with its cause, for the reason.
    ignored: Vec<String>,
}

impl System {
    fn new(root: PathBuf) -> Self {
        Self { root, ignored: Vec::new() }
    }

    /// The content of the file that the machine calls `path`; a file that exists but cannot be read is noted.
    fn read(&mut self, path: &Path) -> Option<String> {
        match fs::read(self.root.join(path.strip_prefix("/").unwrap_or(path))) {
            Ok(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                self.ignored.push(format!("{} ({error})", path.display()));
                None
            }
        }
    }

    /// Notes that `path` says `text`, which makes no sense there.
    fn ignore(&mut self, path: &Path, text: &str) {
        // The first line, and not all of a long one: the reason stays one line that can be read.
        let shown: String = text.lines().next().unwrap_or("").chars().take(60).collect();
        self.ignored.push(format!("{} ({shown:?})", path.display()));
    }

    /// How many CPUs the calling thread, and so a thread that it spawns, may run on.
    fn affinity(&mut self) -> Option<usize> {
        // Kernels before 3.17 have no thread-self; there the main thread must answer.
        for path in ["/proc/thread-self/status", "/proc/self/status"].map(Path::new) {
            let Some(status) = self.read(path) else { continue };
            let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap_or("").trim();
            let cpus = count_cpus(list);
            if cpus.is_none() {
                self.ignore(path, &format!("Cpus_allowed_list: {list}"));
            }
            return cpus;
        }
        self.ignored.push("affinity (no /proc/self/status)".to_owned());
        None
    }

    fn calls_are_filtered(&mut self) -> bool {
        let Some(status) = self.read(Path::new("/proc/thread-self/status")) else { return true };
        // Kernels without filters have no such line.
        let mode = status.lines().find_map(|line| line.strip_prefix("Seccomp:"));
        mode.is_some_and(|mode| mode.trim() != "0")
    }
}

/// Whether a filter of system calls (seccomp) is in force for the calling thread, or that is not known.
pub(super) fn calls_are_filtered() -> bool {
    System::new(PathBuf::from("/")).calls_are_filtered()
}

/// How many CPUs a kernel list such as `0-3,8` holds; `None` if it is no such list or holds none.
fn count_cpus(list: &str) -> Option<usize> {
    let mut count = 0usize;
    for range in list.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        count = count.checked_add(usize::try_from(last.checked_sub(first)?).ok()?)?.checked_add(1)?;
    }
    Some(count)
}
