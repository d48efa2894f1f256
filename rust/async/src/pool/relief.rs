//! Spares for threads that are blocked where the pool cannot see it: in a `std::future`, a foreign lock, a read.
//!
//! 1. A thread that pushes a task and finds that all are busy and none watches (`idle.rs`) asks for a *round*, a timer
//!    of [`ROUND`] on timers of the pools' own: user callbacks do not delay it. While rounds go on, a push costs
//!    nothing.
//! 2. A round in which tasks wait looks at every thread of the pool. If each is asleep, and was in the round before,
//!    without a moment awake in between, the pool is at a *standstill*: no thread computes, and none takes a task.
//! 3. At a standstill the pool is *granted* one more thread, so each round at most one. With the grant, as many threads
//!    as before may work beside those that are blocked unseen.
//! 4. A second of rounds without a standstill takes one grant back; then a spare is superfluous, and ends as
//!    `blocking.rs` says.
//! 5. Rounds end when no task waits and nothing is granted. The thread that ends them looks at the queues once more
//!    after saying so.
//!
//! A thread that computes, or one that waits for the processor, is awake, so a pool that computes does not grow,
//! however long its tasks are. Where the system does not say what threads do, a pool is at a standstill when no thread
//! has taken or begun a task for [`BLIND_ROUNDS`]; then long computations may make it grow, by one thread in that time.

use std::ffi::c_int;
use std::fs;
use std::sync::Weak;
use std::time::{Duration, Instant};

use super::worker::PoolShared;
use crate::services::timer::Timers;
use purlin_base::sync::{Mutex, OnceLock};

pub(super) const ROUND: Duration = Duration::from_millis(50);
/// Rounds after which a grant is taken back.
pub(super) const CALM_ROUNDS: u32 = 20;
/// Rounds after which a pool is at a standstill of which only its queues can be seen.
pub(super) const BLIND_ROUNDS: u32 = 100;
/// How long no round is asked for after the system has refused the thread of the timers.
const REFUSED: Duration = Duration::from_secs(1);
/// How long that thread stays when there is no round.
const LINGER: Duration = Duration::from_millis(if cfg!(purlin_faults) { 1 } else { 1000 });

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// It sleeps, for the so-manieth time.
    Asleep(u64),
    /// It computes, or could if there were a processor for it.
    Awake,
    /// The system does not say.
    Unknown,
}

/// The world, as rounds see it.
pub(super) struct Relief {
    timers: Timers,
    /// What the thread of that number does.
    doing: Box<dyn Fn(u32) -> Doing + Send + Sync>,
    last: Mutex<LastRound>,
}

/// What the last round has seen.
#[derive(Default)]
struct LastRound {
    /// The threads, if all were asleep.
    asleep: Vec<(u32, Doing)>,
    /// The state of the queues, if the system did not say.
    queues: Vec<usize>,
    /// For how many rounds.
    same: u32,
    /// Rounds since the last standstill or the last grant that was taken back.
    calm: u32,
    /// Until then no round is asked for.
    not_before: Option<Instant>,
}

/// The pools' own.
pub(crate) fn timers() -> &'static Timers {
    static TIMERS: OnceLock<Timers> = OnceLock::new();
    TIMERS.get_or_init(|| Timers::with_thread(LINGER))
}

impl Relief {
    pub(super) fn of_the_system() -> Self {
        Self::new(timers().clone(), Box::new(doing))
    }

    pub(super) fn new(timers: Timers, doing: Box<dyn Fn(u32) -> Doing + Send + Sync>) -> Self {
        Self { timers, doing, last: Mutex::new(LastRound::default()) }
    }

    /// Whether `threads` are at a standstill; `queues` says what they have taken.
    fn is_standstill(&self, threads: Vec<u32>, queues: impl FnOnce() -> Vec<usize>) -> bool {
        let mut seen = Vec::with_capacity(threads.len());
        for thread in threads {
            match (self.doing)(thread) {
                // One is enough, so a pool that computes costs little.
                Doing::Awake => {
                    self.saw_progress();
                    return false;
                }
                doing => seen.push((thread, doing)),
            }
        }
        let is_blind = seen.iter().any(|(_, doing)| *doing == Doing::Unknown);
        let queues = if is_blind { queues() } else { Vec::new() };
        let mut last = self.last.lock();
        if last.asleep == seen && last.queues == queues {
            last.same += 1;
        } else {
            (last.asleep, last.queues, last.same) = (seen, queues, 0);
        }
        if last.same < if is_blind { BLIND_ROUNDS } else { 1 } {
            return false;
        }
        (last.same, last.calm) = (0, 0);
        true
    }

    fn saw_progress(&self) {
        let mut last = self.last.lock();
        last.asleep.clear();
        last.queues.clear();
        last.same = 0;
    }

    /// Whether it is time to take a grant back.
    fn is_calm(&self) -> bool {
        let mut last = self.last.lock();
        last.calm += 1;
        let is_calm = last.calm >= CALM_ROUNDS;
        if is_calm {
            last.calm = 0;
        }
        is_calm
    }
}

impl PoolShared {
    /// Step 1.
    #[cold]
    pub(super) fn watch(&self) {
        let refused = self.relief.last.lock().not_before.is_some_and(|then| Instant::now() < then);
        if !refused && self.idle.begin_watch() {
            self.plan_round();
        }
    }

    fn plan_round(&self) {
        let (timers, shared) = (&self.relief.timers, Weak::clone(self.me()));
        let round = move |outcome: Result<(), purlin_base::Error>| {
            let Some(shared) = shared.upgrade() else { return };
            if outcome.is_ok() {
                shared.round();
            } else {
                shared.relief.last.lock().not_before = Some(Instant::now() + REFUSED);
                shared.idle.end_watch(|| false);
            }
        };
        timers.call_at(timers.after(ROUND), c"relief of a pool", round).detach();
    }

    /// Steps 2 to 5.
    fn round(&self) {
        if self.ended().is_ready() {
            return;
        }
        let tasks_wait = self.has_work() && self.idle.all_busy();
        let standstill = if tasks_wait {
            self.relief.is_standstill(self.numbers_of_threads(), || self.traces_of_work())
        } else {
            self.relief.saw_progress();
            false
        };
        if standstill {
            self.is_covered(self.roles.grant());
        } else if self.relief.is_calm() && self.roles.take_back_grant() {
            // Superfluous threads notice when they look.
            self.idle.wake_all();
        }
        let is_over = !self.has_work() && !self.roles.has_granted();
        if is_over && self.idle.end_watch(|| self.has_work()) {
            return;
        }
        self.plan_round();
    }
}

unsafe extern "C" {
    fn gettid() -> c_int;
}

/// The system's number of this thread.
pub(super) fn this_thread() -> u32 {
    // SAFETY: it takes nothing and cannot fail.
    unsafe { gettid() }.cast_unsigned()
}

/// What a thread of this process does, by Linux.
fn doing(thread: u32) -> Doing {
    // The thread may have ended.
    let Ok(status) = fs::read_to_string(format!("/proc/self/task/{thread}/status")) else { return Doing::Unknown };
    read_status(&status)
}

fn read_status(status: &str) -> Doing {
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    match (field("State:"), field("voluntary_ctxt_switches:").and_then(|count| count.parse().ok())) {
        // A thread that wakes up and sleeps again has switched once more.
        (Some(state), Some(switches)) if state.starts_with(['S', 'D']) => Doing::Asleep(switches),
        (Some(state), _) if !state.starts_with(['S', 'D']) => Doing::Awake,
        _ => Doing::Unknown,
    }
}

#[cfg(test)]
mod tests;
