//! Workers that have nothing to do, for an operation that is large.

use std::fmt;
use std::ops::Range;

use purlin_async::pool::PoolSubmitter;
use purlin_async::task::Executor;
use purlin_base::status::Error;

/// A part of some work: what is to be done for a range of it.
pub(crate) type Piece<'a> = dyn Fn(Range<usize>) -> Result<(), Error> + Sync + 'a;

/// What shares work with idle workers.
pub(crate) trait Share {
    /// See [`IdleWorkers::share`].
    ///
    /// # Errors
    /// As there.
    fn share(&self, count: usize, grain: usize, piece: &Piece<'_>) -> Result<(), Error>;
}

/// Where a client's tasks run.
pub(crate) trait ClientTasks: Executor + Share {}

impl<T: Executor + Share> ClientTasks for T {}

impl Share for PoolSubmitter {
    fn share(&self, count: usize, grain: usize, piece: &Piece<'_>) -> Result<(), Error> {
        self.parallel_for_idle(c"piece of a copy", count, grain, piece)
    }
}

/// The workers of a client that have nothing to do: they may do pieces of an operation, which
/// [`Schedule::run_in_pieces`](super::Schedule::run_in_pieces) executes.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// use purlin::backend::IdleWorkers;
///
/// let sum = AtomicUsize::new(0);
/// IdleWorkers::none().share(1000, 100, &|range| {
///     sum.fetch_add(range.sum(), Ordering::Relaxed);
///     Ok(())
/// })?;
/// assert_eq!(sum.into_inner(), 999 * 1000 / 2);
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct IdleWorkers<'a>(Option<&'a dyn Share>);

impl<'a> IdleWorkers<'a> {
    /// No workers: the calling thread does everything.
    #[must_use]
    pub const fn none() -> Self {
        Self(None)
    }

    /// Those that `share` shares with.
    pub(super) fn of(share: &'a dyn Share) -> Self {
        Self(Some(share))
    }

    /// Calls `piece` for consecutive ranges that together cover `0..count`, on this thread and on workers that are idle
    /// now, each range at most `grain` long (0: chosen from the count and the number of threads); returns when all
    /// calls have returned. If no worker is idle, that is one call, for the whole range.
    ///
    /// # Errors
    /// The error of the lowest range that failed; a panic counts as [`Internal`](purlin_base::StatusCode::Internal).
    pub fn share(
        &self,
        count: usize,
        grain: usize,
        piece: &(dyn Fn(Range<usize>) -> Result<(), Error> + Sync),
    ) -> Result<(), Error> {
        match self.0 {
            Some(workers) => workers.share(count, grain, piece),
            None => piece(0..count),
        }
    }
}

impl fmt::Debug for IdleWorkers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdleWorkers").finish_non_exhaustive()
    }
}
