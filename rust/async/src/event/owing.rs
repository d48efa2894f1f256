//! What a thread completes as soon as a user's callback has returned to it: the event of a copy whose memory it
//! releases, of a buffer whose `on_done` it calls, of all reads of a copier whose `on_piece` it calls. If the callback
//! waits for that event, or for one that waits for it, the wait would never end, and is refused. So is the wait of a
//! task for what it owes itself.

use std::cell::Cell;
use std::{iter, ptr};

use super::abi::{EventCell, EventHeader};
use super::debt::{self, Node, Seen};
use super::{Event, EventPromise, describe, lent};
use purlin_base::status::{Error, StatusCode};
use purlin_base::sync::per_thread;
use purlin_base::thread_state;

/// On the stack of the callback's caller.
struct Owing {
    /// Whether the event at an address is such a one, for `of`.
    owes: unsafe fn(of: *const (), address: usize) -> bool,
    of: *const (),
    outer: *const Owing,
}

per_thread!(static INNERMOST: Cell<*const Owing> = Cell::new(ptr::null()));

/// Ends an [`Owing`], also if the callback panics.
struct Scope(*const Owing);

impl Drop for Scope {
    fn drop(&mut self) {
        let outer = self.0;
        // Without a thread's own memory there is nothing to take back.
        let _ = INNERMOST.try_with(|innermost| innermost.set(outer));
    }
}

impl EventPromise {
    /// Calls `f`, which may be user code; then this thread sets this.
    pub fn owed_after<R>(&self, f: impl FnOnce() -> R) -> R {
        self.0.owed_after(f)
    }
}

impl Event {
    /// Calls `f`, which may be user code, without whose end this does not happen.
    pub fn owed_after<R>(&self, f: impl FnOnce() -> R) -> R {
        let event = self.as_raw().addr();
        owed_after(&|address| address == event, f)
    }
}

/// Calls `f`, which may be user code; the events at whose address `owes` is true do not happen before `f` ends. `owes`
/// is called under no lock.
pub fn owed_after<O: Fn(usize) -> bool, R>(owes: &O, f: impl FnOnce() -> R) -> R {
    let Ok(outer) = INNERMOST.try_with(Cell::get) else { return f() };
    let owing = Owing { owes: call::<O>, of: ptr::from_ref(owes).cast(), outer };
    INNERMOST.with(|innermost| innermost.set(&raw const owing));
    let _scope = Scope(outer);
    f()
}

/// # Safety
/// `of` points to such an `O`.
unsafe fn call<O: Fn(usize) -> bool>(of: *const (), address: usize) -> bool {
    // SAFETY: the caller's promise.
    unsafe { (*of.cast::<O>())(address) }
}

/// Why a wait of this thread for `event` would never end, if it is so. Not for what its own tasks owe, unless
/// `looks_at_tasks`, and not if memory is lent until the event.
#[cold]
pub(super) fn why_never(event: &EventHeader, looks_at_tasks: bool) -> Option<Error> {
    let innermost = INNERMOST.try_with(Cell::get).unwrap_or(ptr::null());
    let runs_a_task = || looks_at_tasks && thread_state::running_tasks().next().is_some();
    if innermost.is_null() && (Seen::of(event)?.is_owed_by_a_promise() || !runs_a_task()) {
        return None;
    }
    // SAFETY: each lies on this thread's stack, in a call that has not returned, and so does what it points to.
    let owings = || iter::successors(unsafe { innermost.as_ref() }, |owing| unsafe { owing.outer.as_ref() });
    // SAFETY: as above.
    let is_owed = |address| owings().any(|owing| unsafe { (owing.owes)(owing.of, address) });
    let task_of = |node: &Node| {
        let owner = node.seen.task().filter(|_| looks_at_tasks)?;
        thread_state::running_tasks().find(|&(task, _)| task == owner)
    };
    let nodes = debt::reach(event, |node| is_owed(node.link.address) || task_of(node).is_some());
    let last = nodes.last()?;
    // SAFETY: all events are EventCells.
    let cell = unsafe { &*ptr::from_ref(event).cast::<EventCell>() };
    let why = match task_of(last) {
        // What it waits for besides may go on, and use the memory.
        Some(_) if lent::is_lent_until(event) => return None,
        Some((_, label)) => format!("what it waits for is owed by task '{label}', which this thread runs"),
        None => "this thread completes it once the callback that waits has returned".to_owned(),
    };
    let message = format!("the wait for {}, which is still pending, would never end: {why}", describe(cell));
    Some(Error::with_location(StatusCode::FailedPrecondition, message, cell.location()))
}

#[cfg(all(test, not(purlin_model)))]
mod tests {
    use std::time::Duration;

    use super::why_never;
    use crate::event::abi::DEBT_TASK;
    use crate::event::{Event, EventPromise, debt, when_all};
    use purlin_base::status::StatusCode;
    use purlin_base::thread_state;

    #[test]
    fn a_wait_for_what_this_thread_completes_next_is_told_so() {
        let (promise, outer) = (EventPromise::guarding(c"owed"), EventPromise::guarding(c"owed further out"));
        let (other, follower) = (EventPromise::guarding(c"other"), EventPromise::guarding(c"follower"));
        let (event, follows) = (promise.event(), follower.event());
        follower.forward(&outer.event());
        let all = when_all(&[other.event(), event.clone()]);
        outer.owed_after(|| {
            promise.owed_after(|| {
                for never in [&event, &all, &follows, &outer.event()] {
                    let error = never.wait().unwrap_err();
                    assert_eq!(error.code(), StatusCode::FailedPrecondition, "{error}");
                    assert!(error.message().contains("would never end"), "{error}");
                    assert_eq!(never.wait_for(Duration::from_secs(100)).unwrap_err().code(), error.code());
                }
                let unrelated = other.event().wait_for(Duration::ZERO).unwrap_err();
                assert_eq!(unrelated.code(), StatusCode::DeadlineExceeded, "{unrelated}");
                let elsewhere = std::thread::scope(|scope| {
                    scope.spawn(|| event.wait_for(Duration::ZERO).unwrap_err().code()).join().unwrap()
                });
                assert_eq!(elsewhere, StatusCode::DeadlineExceeded, "another thread may wait");
            });
            assert!(is_never(&outer.event()) && !is_never(&event), "the inner one is over");
        });
        assert!(!is_never(&outer.event()));
    }

    #[test]
    fn what_a_task_owes_itself_ends_no_wait_until_which_memory_is_lent() {
        let (own, copy) = (EventPromise::new(c"own"), EventPromise::guarding(c"copy"));
        let (result, copied) = (own.event(), copy.event());
        debt::note(result.header().unwrap(), 64 | DEBT_TASK);
        let (follows, both) = (when_all(&[result.clone(), Event::ready()]), when_all(&[result.clone(), copied]));
        thread_state::running(64, c"task".as_ptr(), || {
            for never in [&result, &follows] {
                let error = never.wait().unwrap_err();
                assert_eq!(error.code(), StatusCode::FailedPrecondition);
                assert!(error.message().contains("is owed by task 'task', which this thread runs"), "{error}");
            }
            assert!(why_never(both.header().unwrap(), true).is_none(), "the copy may go on");
        });
        assert!(why_never(result.header().unwrap(), true).is_none(), "the task is over");
        assert!(own.set_ready() && copy.set_ready());
    }

    fn is_never(event: &Event) -> bool {
        why_never(event.header().unwrap(), false).is_some()
    }
}
