//! Two closures, perhaps at the same time, on one stack and without an allocation.
//!
//! The caller lends the second closure, as a job on its stack, to the worker that steals it, and calls the first. Then
//! it takes the job back if it has not begun, and calls it itself; else it works for others until the thief has
//! finished. The job's latch says so:
//!
//! ```text
//!  OPEN --- the caller goes to sleep ---> AWAITED
//!     '----------- the thief is done -----------+--> SET
//! ```
//!
//! The caller does not return before the latch is set, by value or by panic, so the job outlives its use. The thread
//! that sets it does not touch the job afterwards. Release by the thief pairs with acquire by the caller: the result is
//! readable.
//!
//! In a child made by `fork`, a thief is not there: no thread continues what it has begun, and the join has no answer.
//!
//! A job that is dropped instead of run (the pool is being cancelled) is left whole, and the caller calls it.

use std::cell::UnsafeCell;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr;
use std::thread;

use super::blocking::{Doze, MAX_HELPS};
use super::worker::{PoolShared, Until, Worker};
use crate::event::EventPromise;
use crate::task::node::{INLINE_BYTES, TaskNode, TaskOp};
use crate::task::{Priority, Task};
use purlin_base::panics::{Thrown, kept};
use purlin_base::sync::atomic::AtomicU32;
use purlin_base::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

const OPEN: u32 = 0;
const AWAITED: u32 = 1;
const SET: u32 = 2;

/// Set once; awaited by one worker.
struct Latch {
    state: AtomicU32,
    shared: *const PoolShared,
    /// The worker to be woken.
    seat: usize,
}

/// How the caller learns that its job is done.
trait Done {
    /// # Safety
    /// `this` is alive until it is set, and so is its pool afterwards: the caller is one of its threads or holds a
    /// handle.
    unsafe fn set(this: *const Self);
}

impl Done for Latch {
    #[inline]
    unsafe fn set(this: *const Self) {
        // SAFETY: alive until the swap.
        let (shared, seat, before) = unsafe { ((*this).shared, (*this).seat, (*this).state.swap(SET, AcqRel)) };
        if before == AWAITED {
            // SAFETY: the pool is alive.
            unsafe { (*shared).idle.wake(seat) };
        }
    }
}

/// For a caller that is no worker.
impl Done for ManuallyDrop<EventPromise> {
    unsafe fn set(this: *const Self) {
        // SAFETY: alive until it is set, and set once: the promise is taken out, because setting it outlives `this`.
        ManuallyDrop::into_inner(unsafe { this.read() }).set_ready();
    }
}

impl Until for Latch {
    #[inline]
    fn is_over(&self) -> bool {
        self.state.load(Acquire) == SET
    }

    fn is_over_before_sleep(&self) -> bool {
        // A thread that sets it from here on wakes us, under a lock that we hold.
        self.state.compare_exchange(OPEN, AWAITED, Relaxed, Acquire).is_err_and(|state| state == SET)
    }
}

/// A latch, until it is known that no thread sets it: a task that was run meanwhile has forked, and this is the child.
struct Awaited<'a>(&'a Latch, &'a PoolShared);

impl Until for Awaited<'_> {
    #[inline]
    fn is_over(&self) -> bool {
        self.0.is_over() || !self.1.is_here()
    }

    fn is_over_before_sleep(&self) -> bool {
        self.0.is_over_before_sleep() || !self.1.is_here()
    }
}

/// A closure that is lent, with room for what it gives.
#[repr(C)]
struct Job<F, R, D> {
    node: TaskNode,
    done: D,
    closure: UnsafeCell<Option<F>>,
    result: UnsafeCell<Option<Result<R, Thrown>>>,
}

impl<F: FnOnce() -> R, R, D: Done> Job<F, R, D> {
    #[inline]
    fn new(closure: F, done: D) -> Self {
        let node = TaskNode {
            next: ptr::null_mut(),
            invoke: Self::invoke,
            label: c"Join".as_ptr(),
            storage: [MaybeUninit::uninit(); INLINE_BYTES],
        };
        Self { node, done, closure: UnsafeCell::new(Some(closure)), result: UnsafeCell::new(None) }
    }

    unsafe extern "C" fn invoke(node: *mut TaskNode, op: TaskOp) {
        let this = node.cast::<Self>();
        // SAFETY: `node` is the first field of a job whose caller waits until it is done; till then it is ours.
        unsafe {
            if op == TaskOp::RUN
                && let Some(closure) = (*(*this).closure.get()).take()
            {
                *(*this).result.get() = Some(kept(closure));
            }
            D::set(&raw const (*this).done);
        }
    }

    /// What the thief has made of it, or else its closure.
    fn into_result(self) -> R {
        match (self.result.into_inner(), self.closure.into_inner()) {
            (Some(Ok(value)), _) => value,
            (Some(Err(panic)), _) => panic.resume(),
            (None, Some(closure)) => closure(),
            (None, None) => unreachable!("a closure that was called has left a result"),
        }
    }
}

/// See [`ThreadPool::try_join`](crate::pool::ThreadPool::try_join), which has no answer where this has none.
#[inline]
pub(super) fn join<A, B, RA, RB>(shared: &PoolShared, a: A, b: B) -> Option<(RA, RB)>
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    match shared.current() {
        Some(worker) => on_worker(shared, worker, a, b),
        None => from_outside(shared, a, b),
    }
}

// Always, as take_back() below: calls of their own are a part of what a join of small closures costs.
#[inline(always)]
fn on_worker<A, B, RA, RB>(shared: &PoolShared, worker: &Worker, a: A, b: B) -> Option<(RA, RB)>
where
    A: FnOnce() -> RA,
    B: FnOnce() -> RB + Send,
    RB: Send,
{
    let latch = Latch { state: AtomicU32::new(OPEN), shared, seat: worker.seat };
    let mut job = Job::new(b, latch);
    let node = (&raw mut job).cast::<TaskNode>();
    // SAFETY: this function leaves the job only when it was taken back or its latch is set.
    if !unsafe { shared.lend(worker, node) } {
        let a = a();
        return Some((a, job.into_result()));
    }
    let a = kept(a);
    let is_ours = take_back(shared, worker, node, &job.done);
    match a {
        Ok(a) if is_ours => Some((a, job.into_result())),
        Err(panic) if is_ours => {
            // Before the panic continues: two at once end the process. What the thief has made of it is not wanted.
            drop(job);
            panic.resume()
        }
        // What the thief was doing with the job stays as the fork has copied it.
        Ok(_) => {
            std::mem::forget(job);
            None
        }
        Err(panic) => {
            std::mem::forget(job);
            panic.resume()
        }
    }
}

/// Returns when the job is the caller's again; false if it never will be.
#[inline(always)]
fn take_back(shared: &PoolShared, worker: &Worker, job: *mut TaskNode, latch: &Latch) -> bool {
    // What is newer was scheduled by the first closure.
    while let Some(task) = shared.pop(worker) {
        if task == job {
            return true;
        }
        shared.run(worker, task);
    }
    latch.is_over() || wait(shared, worker, latch)
}

/// Works until the thief is done; false if it is not in this process.
#[cold]
fn wait(shared: &PoolShared, worker: &Worker, latch: &Latch) -> bool {
    if !shared.is_here() {
        return false;
    }
    let helps = worker.helps.get();
    if helps < MAX_HELPS {
        worker.helps.set(helps + 1);
        shared.work_until(worker, &Awaited(latch, shared));
        worker.helps.set(helps);
    } else {
        // Too deep to begin anything else, if another thread can.
        if shared.enter_blocking(None) {
            while !latch.is_over() {
                shared.idle.sleep_alone(worker.seat, || latch.is_over_before_sleep());
            }
        } else {
            let (is_over, most_helps) = (|| Awaited(latch, shared).is_over(), 2 * MAX_HELPS);
            shared.doze(worker, &Doze { is_over: &is_over, nap: &|nap| thread::sleep(nap), wait: None, most_helps });
        }
        shared.leave_blocking(None, true);
    }
    latch.is_over()
}

/// Hands both to a worker and blocks; does both here if the pool has shut down.
#[cold]
#[inline(never)]
fn from_outside<A, B, RA, RB>(shared: &PoolShared, a: A, b: B) -> Option<(RA, RB)>
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    let both = || match shared.current() {
        Some(worker) => on_worker(shared, worker, a, b),
        None => Some((a(), b())),
    };
    let done = EventPromise::guarding(c"Join");
    let event = done.event();
    let mut job = Job::new(both, ManuallyDrop::new(done));
    // SAFETY: the job is complete, and what it holds is Send. It is invoked, or dropped, before the event happens.
    let task = unsafe { Task::from_raw((&raw mut job).cast()) };
    // An executor that refuses a task gives it back; dropping it sets the event.
    drop(shared.submit(task, Priority::Normal));
    // The job is on this stack. The event cannot fail, because its promise is only set.
    let _ = event.wait_uninterruptible();
    job.into_result()
}
