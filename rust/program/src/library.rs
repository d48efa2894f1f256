//! Work that no kernel does: matrix products, sorts, transforms, custom calls.
//!
//! A [`LibraryCall`] is code with a name. A program knows of it what it touches, and nothing else; so new kinds of work
//! need no new kind of command.

use std::any::Any;
use std::fmt;
use std::ops::Range;

use purlin_async::task::AsyncWorkRunner;
use purlin_base::Error;

/// Work that a command of a program does on the bytes of its operands.
///
/// ```
/// use purlin::Error;
/// use purlin::program::{LibraryCall, LibraryContext, OperandBytes};
///
/// /// Sorts bytes in place.
/// #[derive(Debug)]
/// struct SortBytes;
///
/// impl LibraryCall for SortBytes {
///     fn name(&self) -> &str {
///         "sort"
///     }
///     fn run(&self, operands: &[OperandBytes], _context: &LibraryContext<'_>) -> Result<(), Error> {
///         let [values] = operands else { return Err(Error::invalid_argument("sort takes one operand")) };
///         // SAFETY: the operand of the one command that names this is read and written.
///         unsafe { std::slice::from_raw_parts_mut(values.address, values.size_bytes) }.sort_unstable();
///         Ok(())
///     }
/// }
/// ```
pub trait LibraryCall: Send + Sync + fmt::Debug {
    /// As errors and reports name it, such as `"dot"`.
    fn name(&self) -> &str;

    /// Does the work. `operands` are those of the command, in their order: each is there for as many bytes as its slice
    /// has, and as long as this call lasts nothing else touches what the command writes, or writes what it reads.
    /// Floating-point numbers that are denormal are taken for zero meanwhile, on this thread.
    ///
    /// Called on any thread, on several at once for different runs.
    ///
    /// # Errors
    /// Why it could not be done; the run fails with that. So it does if this panics.
    fn run(&self, operands: &[OperandBytes], context: &LibraryContext<'_>) -> Result<(), Error>;

    /// What it takes as long as, in bytes copied; `None`: as a copy of its operands. A run that is small is done on the
    /// thread that asks for it.
    fn cost_bytes(&self) -> Option<usize> {
        None
    }

    /// Floating-point operations of one call, where they are known; for reports.
    fn flops(&self) -> Option<u64> {
        None
    }
}

/// Where the bytes of an operand are in a run.
#[derive(Clone, Copy, Debug)]
pub struct OperandBytes {
    /// The first byte; never null, and not to be read if there are none.
    pub address: *mut u8,
    /// How many.
    pub size_bytes: usize,
}

/// What a [`LibraryCall`] may know of the run that it is part of.
pub struct LibraryContext<'a> {
    pub(crate) launch_id: i32,
    pub(crate) replica_id: u32,
    pub(crate) partition_id: u32,
    pub(crate) user: Option<&'a (dyn Any + Send + Sync)>,
    pub(crate) runner: Option<&'a dyn AsyncWorkRunner>,
}

impl<'a> LibraryContext<'a> {
    /// The number that the caller of the run gave it.
    #[must_use]
    pub fn launch_id(&self) -> i32 {
        self.launch_id
    }

    /// Which replica this is.
    #[must_use]
    pub fn replica_id(&self) -> u32 {
        self.replica_id
    }

    /// Which partition of the replica this is.
    #[must_use]
    pub fn partition_id(&self) -> u32 {
        self.partition_id
    }

    /// What the caller of the run gave with it, if that is a `T`.
    #[must_use]
    pub fn user<T: Any>(&self) -> Option<&'a T> {
        self.user?.downcast_ref()
    }

    /// Calls `body` with ranges that together are `0..count`, each of at least `grain` but the last, on the threads of
    /// the client; returns when all have been done. Denormal numbers are taken for zero on each of them.
    ///
    /// # Errors
    /// The first of `body`.
    pub fn parallel_for(
        &self,
        count: usize,
        grain: usize,
        body: &(dyn Fn(Range<usize>) -> Result<(), Error> + Sync),
    ) -> Result<(), Error> {
        let Some(runner) = self.runner else { return body(0..count) };
        runner.parallel_for(count, grain, &|range| crate::float_mode::with_flushed_denormals(|| body(range)))
    }
}

impl fmt::Debug for LibraryContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LibraryContext")
            .field("launch_id", &self.launch_id)
            .field("replica_id", &self.replica_id)
            .field("partition_id", &self.partition_id)
            .finish_non_exhaustive()
    }
}
