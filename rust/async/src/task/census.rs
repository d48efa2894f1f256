//! All executors of ours in the process, and clients, so that a stall report can say what each is doing. Known weakly:
//! being listed keeps nothing alive.

use std::sync::{Arc, Weak};

use purlin_base::sync::Mutex;

/// What an executor is doing.
#[derive(Clone, Debug, Default)]
pub struct Occupation {
    /// One line for people, or several. Empty: there is nothing to report.
    pub text: String,
    /// The number of the task that all of `queued` wait for; only of executors that run one at a time.
    pub running: Option<usize>,
    /// The numbers of the tasks that wait for `running`, or are queued in a pool that stands still.
    pub queued: Vec<usize>,
    /// Of a pool that stands still, because each of its threads waits, tasks are queued and no thread is to be had: its
    /// address, and how many threads wait. Each of `queued` waits for all of them.
    pub standstill: Option<(usize, usize)>,
}

/// An executor that can be asked.
pub trait Occupied: Send + Sync {
    /// Takes the executor's own locks, for a moment.
    fn occupation(&self) -> Occupation;
}

static ALL: Mutex<Vec<Weak<dyn Occupied>>> = Mutex::new(Vec::new());

/// Lists an executor, or anything else that has an occupation to report.
pub fn enlist(executor: Weak<dyn Occupied>) {
    let mut all = ALL.lock();
    if all.len() == all.capacity() {
        all.retain(|known| known.strong_count() > 0);
    }
    all.push(executor);
}

/// What all threads are doing.
pub(crate) fn occupations() -> Vec<Occupation> {
    let all: Vec<Arc<dyn Occupied>> = ALL.lock().iter().filter_map(Weak::upgrade).collect();
    all.iter().map(|executor| executor.occupation()).collect()
}
