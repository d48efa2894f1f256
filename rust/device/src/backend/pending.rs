//! An operation that is in flight, as the operation knows it.
//!
//! An operation is over when its waiters have run, so none of these can wait for the client's end: it would wait for
//! itself. A thread that runs an operation's waiters notes that ([`Pending::notifying`]), and a shutdown asks
//! ([`is_notifying_here`]).

use std::cell::RefCell;
use std::sync::Arc;

use super::{IdleWorkers, Share};
use purlin_async::task::Task;
use purlin_base::status::Error;
use purlin_base::sync::per_thread;

/// Counts what is in flight, and runs what of it has to.
pub(crate) trait Accounting: Share + Send + Sync {
    /// Runs `task` on the client's runner.
    ///
    /// # Errors
    /// The runner's, which has dropped the task.
    fn execute(&self, task: Task) -> Result<(), Error>;

    /// An operation that has begun is over. Called under no lock.
    fn operation_is_over(&self);
}

/// An operation that is in flight until this is dropped.
pub(crate) struct Pending(Arc<dyn Accounting>);

// The accounting of the operations whose waiters run further out on this stack, by address.
per_thread!(static NOTIFYING: RefCell<Vec<usize>> = RefCell::new(Vec::new()));

/// An entry in that list.
struct Entry;

impl Drop for Entry {
    fn drop(&mut self) {
        let _ = NOTIFYING.try_with(|list| list.borrow_mut().pop());
    }
}

impl Pending {
    /// Of an operation that `accounting` has counted.
    pub(crate) fn new(accounting: Arc<dyn Accounting>) -> Self {
        Self(accounting)
    }

    /// The workers of its client that may help.
    pub(super) fn idle_workers(&self) -> IdleWorkers<'_> {
        IdleWorkers::of(&*self.0)
    }

    /// What has counted it.
    pub(super) fn accounting(&self) -> Arc<dyn Accounting> {
        Arc::clone(&self.0)
    }

    /// Calls `notify`, which runs the operation's waiters.
    #[inline]
    pub(crate) fn notifying<R>(&self, notify: impl FnOnce() -> R) -> R {
        // An ending thread has no such list; then a shutdown there is not noticed.
        let _ = NOTIFYING.try_with(|list| list.borrow_mut().push(Arc::as_ptr(&self.0).addr()));
        let _here = Entry;
        notify()
    }

    /// As [`notifying`](Self::notifying) of `pending`, if it is an operation.
    #[inline]
    pub(crate) fn notifying_for<R>(pending: Option<&Self>, notify: impl FnOnce() -> R) -> R {
        match pending {
            Some(pending) => pending.notifying(notify),
            None => notify(),
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.0.operation_is_over();
    }
}

/// True in a waiter of an operation that `accounting` counts, and that is over when the waiter has returned.
pub(crate) fn is_notifying_here<A: Accounting>(accounting: &A) -> bool {
    let here = std::ptr::from_ref(accounting).addr();
    NOTIFYING.try_with(|list| list.borrow().contains(&here)).unwrap_or(false)
}
