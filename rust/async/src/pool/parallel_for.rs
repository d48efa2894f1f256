//! Loops over ranges, shared among the calling thread and idle workers.
//!
//! The range is cut into chunks of `grain`. The caller schedules at most one helper per worker and then takes chunks
//! like every helper, until none is left; then it waits for chunks that helpers have begun. It never waits for a helper
//! to start: one that starts late finds no chunk and leaves. So a loop inside a loop inside a fully busy pool just runs
//! on its caller.
//!
//! A loop for idle workers only ([`on_idle`]) has one helper per worker that is idle when it begins. These are tasks of
//! low priority, and leave as soon as another task waits. Its caller may be any call, so no task runs on top of it.

use std::ops::Range;
use std::sync::Arc;

use super::worker::{PoolShared, Worker};
use crate::event::{EventPromise, sleeping_only};
use crate::task::{Priority, Task, fork};
use purlin_base::fault;
use purlin_base::label::Label;
use purlin_base::panics::answered;
use purlin_base::status::Error;
use purlin_base::sync::atomic::AtomicUsize;
use purlin_base::sync::atomic::Ordering::{AcqRel, Relaxed};
use purlin_base::sync::{Mutex, Process};

type Body<'a> = dyn Fn(Range<usize>) -> Result<(), Error> + Sync + 'a;

/// Chunks per thread when the caller leaves the grain to us: enough to even out unequal ones.
const CHUNKS_PER_THREAD: usize = 4;

/// Of the tasks and the event of a loop.
const LABEL: Label = Label::new(c"ParallelFor");

/// Helpers of a loop for idle workers. A guess: on more than two cores nothing was measured.
const MOST_IDLE_HELPERS: usize = 7;

struct Loop {
    /// The caller's, lent without its lifetime; see `take_chunks`.
    body: *const Body<'static>,
    count: usize,
    grain: usize,
    chunks: usize,
    next_chunk: AtomicUsize,
    chunks_left: AtomicUsize,
    /// Where the caller and the helpers are.
    process: Process,
    done: EventPromise,
    /// The lowest failed chunk and its error.
    failure: Mutex<Option<(usize, Error)>>,
}

// SAFETY: `body` is Sync, and `take_chunks` uses it only while the caller waits for it.
unsafe impl Send for Loop {}
// SAFETY: as above; everything else is Sync.
unsafe impl Sync for Loop {}

/// The tasks that take chunks beside the caller.
#[derive(Clone, Copy)]
struct Helpers {
    label: Label,
    /// At most.
    count: usize,
    /// They are of low priority and leave once another task waits; and the caller, which asked for none, runs no task
    /// while it waits for them.
    give_way: bool,
}

/// See [`AsyncWorkRunner::parallel_for`](crate::task::AsyncWorkRunner::parallel_for).
pub(super) fn run(shared: &Arc<PoolShared>, count: usize, grain: usize, body: &Body<'_>) -> Result<(), Error> {
    let helpers = Helpers { label: LABEL, count: shared.thread_count(), give_way: false };
    share(shared, count, grain, body, helpers)
}

/// See [`PoolSubmitter::parallel_for_idle`](super::PoolSubmitter::parallel_for_idle).
pub(super) fn on_idle(
    shared: &Arc<PoolShared>,
    label: Label,
    count: usize,
    grain: usize,
    body: &Body<'_>,
) -> Result<(), Error> {
    // The caller, be it a worker or not, takes the place of one: a pool has as many workers as there are cores.
    let idle = shared.idle_count().min(shared.thread_count() - 1).min(MOST_IDLE_HELPERS);
    share(shared, count, grain, body, Helpers { label, count: idle, give_way: true })
}

fn share(shared: &Arc<PoolShared>, count: usize, grain: usize, body: &Body<'_>, helpers: Helpers) -> Result<(), Error> {
    let grain = if grain == 0 { count.div_ceil(shared.thread_count() * CHUNKS_PER_THREAD).max(1) } else { grain };
    let chunks = count.div_ceil(grain);
    if helpers.count == 0 || chunks < 2 {
        return alone(count, 0, body);
    }
    // SAFETY: only the lifetime changes; `take_chunks` says why no thread uses the body after this function returns.
    let body = unsafe { std::mem::transmute::<*const Body<'_>, *const Body<'static>>(body) };
    let this = Arc::new(Loop {
        body,
        count,
        grain,
        chunks,
        next_chunk: AtomicUsize::new(0),
        chunks_left: AtomicUsize::new(chunks),
        process: Process::this(),
        done: EventPromise::guarding(helpers.label),
        failure: Mutex::new(None),
    });
    for _ in 0..helpers.count.min(chunks - 1) {
        let this = Arc::clone(&this);
        let task = Task::new(helpers.label, move || this.take_chunks(|| helpers.give_way && Worker::has_more()));
        let priority = if helpers.give_way { Priority::Low } else { Priority::Normal };
        if shared.submit_and(task, priority, true).is_err() {
            break; // Shutting down: the caller does it all.
        }
    }
    this.take_chunks(|| false);
    // The body is on this stack. The promise cannot be dropped before it is set: we hold it.
    let wait = || this.done.event().wait_uninterruptible();
    let _ = if helpers.give_way { sleeping_only(wait) } else { wait() };
    if !this.process.is_this() {
        return Err(fork::refusal("the rest of a ParallelFor, in whose body it was made,"));
    }
    let failure = this.failure.lock().take();
    failure.map_or(Ok(()), |(_chunk, error)| Err(error))
}

/// The whole loop on this thread.
pub(super) fn alone(count: usize, grain: usize, body: &Body<'_>) -> Result<(), Error> {
    let (grain, mut begin, mut result) = (if grain == 0 { count } else { grain }, 0, Ok(()));
    while begin < count {
        let end = count.min(begin.saturating_add(grain));
        result = result.and(call(body, begin..end));
        begin = end;
    }
    result
}

/// A panic is an error.
fn call(body: &Body<'_>, range: Range<usize>) -> Result<(), Error> {
    let called = || {
        fault::callback("body of ParallelFor");
        body(range)
    };
    answered(|| "a call of ParallelFor", called)
}

impl Loop {
    /// Runs chunks until none is left to begin, or, after one, until `may_leave`.
    fn take_chunks(&self, may_leave: impl Fn() -> bool) {
        let mut mine = 0;
        // A body that forks ends the loop in the child, where the others are not.
        while self.process.is_this() && (mine == 0 || !may_leave()) {
            // Relaxed: a thread that gets a chunk needs only that no other thread gets it. Helpers are few, so this
            // cannot wrap around.
            let chunk = self.next_chunk.fetch_add(1, Relaxed);
            if chunk >= self.chunks {
                break;
            }
            mine += 1;
            let begin = chunk * self.grain;
            let range = begin..self.count.min(begin.saturating_add(self.grain));
            // SAFETY: this chunk is not counted as done, so the caller is still in run(), where the body lives.
            let body = unsafe { &*self.body };
            if let Err(error) = call(body, range) {
                let mut failure = self.failure.lock();
                if failure.as_ref().is_none_or(|(lowest, _)| chunk < *lowest) {
                    *failure = Some((chunk, error));
                }
            }
        }
        // AcqRel: the last one has seen what all others did, and passes it on by the event.
        if mine > 0 && self.chunks_left.fetch_sub(mine, AcqRel) == mine {
            self.done.set_ready();
        }
    }
}
