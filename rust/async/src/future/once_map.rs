//! Values that are computed once for each key, on an executor, however many ask for them.
//!
//! An entry is made under the lock and computed outside it: no code but `Hash` and `Eq` of the key runs under the lock.
//! An entry says whether its computation has ended. If it failed before that, something else has failed it: the
//! executor refused or dropped the task, or this is a child made by `fork`. Such an error is no result, and the next
//! request replaces it.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::mem;
use std::sync::Arc;

use super::on::submit;
use super::{Future, Promise};
use crate::event::guarded;
use crate::task::Executor;
use purlin_base::label::Label;
use purlin_base::status::Error;
use purlin_base::sync::Mutex;
use purlin_base::sync::atomic::{AtomicBool, Ordering};

/// Values that are computed once for each key. The first request for a key starts the computation; every request gets
/// a future of the same value, and no request blocks.
///
/// Errors are kept as values are: a computation that has failed, or panicked, is not tried again until
/// [`forget`](Self::forget) or [`forget_errors`](Self::forget_errors). If the executor refuses or drops the task, then
/// there was no computation, and the next request starts one. A computation goes on when nobody holds its future any
/// more, and its value is kept. Nothing is forgotten unasked.
///
/// The key must have everything on which the value depends. Its `Hash` and `Eq` are called under a lock and must not
/// use the map. A computation may ask the map for other keys; one that waits for its own key waits for itself.
///
/// ```
/// use purlin::{OnceMap, ThreadPool, ThreadPoolOptions};
///
/// let pool = ThreadPool::new(&ThreadPoolOptions { thread_count: 1, ..Default::default() })?;
/// let squares = OnceMap::new();
/// let first = squares.get_or_compute(12_u64, &pool, c"square", || Ok(12 * 12));
/// let second = squares.get_or_compute(12, &pool, c"square", || unreachable!("it is known, or on its way"));
/// assert_eq!(first.wait()?, &144);
/// assert!(std::ptr::eq(first.wait()?, second.wait()?));
/// # Ok::<(), purlin::Error>(())
/// ```
pub struct OnceMap<K, T: Send + Sync + 'static>(Mutex<HashMap<K, Entry<T>>>);

struct Entry<T: Send + Sync + 'static> {
    future: Future<T>,
    has_ended: Arc<AtomicBool>,
}

impl<T: Send + Sync + 'static> Entry<T> {
    /// Whether the future is, or will be, what the computation gave.
    fn is_kept(&self) -> bool {
        // Acquire: pairs with the store that comes before the promise is set. Asked in this order, because it may end
        // in between.
        self.future.error().is_none() || self.has_ended.load(Ordering::Acquire)
    }
}

impl<K: Hash + Eq, T: Send + Sync + 'static> OnceMap<K, T> {
    /// Nothing is known.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The value of `key`, which `compute` computes on `executor` unless it is known or on its way; then `compute` is
    /// dropped. `label` names the task. Never blocks, unless the executor runs tasks inside of `execute`, as
    /// [`InlineExecutor`](crate::InlineExecutor) does for callers that wait anyway.
    ///
    /// The future fails with the error of `compute`, with `Internal` if it panics, with what the executor answers if it
    /// refuses the task, and with `Cancelled` if it drops it.
    #[track_caller]
    pub fn get_or_compute<E: Executor + ?Sized>(
        &self,
        key: K,
        executor: &E,
        label: impl Into<Label>,
        compute: impl FnOnce() -> Result<T, Error> + Send + 'static,
    ) -> Future<T> {
        let label = label.into();
        let (future, promise, has_ended, _replaced) = {
            let mut entries = self.0.lock();
            if let Some(entry) = entries.get(&key).filter(|entry| entry.is_kept()) {
                return entry.future.clone();
            }
            // Key and value are dropped after the lock.
            let replaced = entries.remove_entry(&key);
            let promise = Promise::derived(label);
            let (future, has_ended) = (promise.future(), Arc::new(AtomicBool::new(false)));
            entries.insert(key, Entry { future: future.clone(), has_ended: Arc::clone(&has_ended) });
            (future, promise, has_ended, replaced)
        };
        submit(executor, label, promise, move |promise| {
            let result = guarded("OnceMap", compute);
            has_ended.store(true, Ordering::Release);
            // No other thread sets it.
            let _ = promise.set(result);
        });
        future
    }

    /// The value of `key` if it is known or on its way. Never blocks.
    #[must_use]
    pub fn get(&self, key: &K) -> Option<Future<T>> {
        self.0.lock().get(key).filter(|entry| entry.is_kept()).map(|entry| entry.future.clone())
    }

    /// The next request for `key` computes it anew. Futures that were given out are as they were, also if they are
    /// pending. False if nothing was known.
    pub fn forget(&self, key: &K) -> bool {
        // The lock ends with the statement.
        let gone = self.0.lock().remove_entry(key);
        gone.is_some_and(|(_, entry)| entry.is_kept())
    }

    /// Forgets all computations that have failed.
    pub fn forget_errors(&self) {
        // As in forget.
        let _gone: Vec<_> = self.0.lock().extract_if(|_, entry| entry.future.error().is_some()).collect();
    }

    /// Forgets everything, as [`forget`](Self::forget) does.
    pub fn clear(&self) {
        // As in forget.
        let _gone = mem::take(&mut *self.0.lock());
    }

    /// How many values and errors are known or on their way.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.lock().values().filter(|entry| entry.is_kept()).count()
    }

    /// True if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<K, T: Send + Sync + 'static> Default for OnceMap<K, T> {
    fn default() -> Self {
        Self(Mutex::new(HashMap::new()))
    }
}

impl<K: Hash + Eq, T: Send + Sync + 'static> fmt::Debug for OnceMap<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OnceMap({} keys)", self.len())
    }
}

#[cfg(all(test, not(purlin_model)))]
mod tests;
