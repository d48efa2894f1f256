//! Library calls: work other than kernels, such as matrix products, sorts, transforms, custom calls.
//!
//! A [`LibraryCall`] is code with a name. A program knows its operands and nothing else, so a new kind of work needs no
//! new kind of command. It runs on a thread of its run, and may use more threads of the client by
//! [`LibraryContext::parallel_for`] and [`LibraryContext::spawn`]. If it returns an error or panics, the run fails.

use std::any::Any;
use std::fmt;
use std::ops::Range;

use crate::float_mode::FloatMode;
use purlin_async::pool::ThreadPool;
use purlin_async::task::{AsyncWorkRunner as _, Executor as _, Task};
use purlin_base::{Error, Label};

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
    /// The name, which errors and reports show, such as `"dot"`.
    fn name(&self) -> &str;

    /// Does the work. `operands` are those of the command, in their order, each valid for as many bytes as its slice
    /// has. During the call, nothing else accesses the bytes that the command writes, and nothing else writes the bytes
    /// that it reads. On x86-64, this thread treats denormal floating-point numbers as zero during the call.
    ///
    /// Any thread may call it, and different runs call it on several threads at once.
    ///
    /// # Errors
    /// Any code: the cause why the work failed. The run fails with it. A panic also fails the run.
    fn run(&self, operands: &[OperandBytes], context: &LibraryContext<'_>) -> Result<(), Error>;

    /// The estimated cost: as long as a copy of this many bytes takes. `None` means a copy of the operands. A run whose
    /// estimated cost is small is executed on the thread that starts it.
    fn cost_bytes(&self) -> Option<usize> {
        None
    }

    /// Whether the call only accesses its operands, and nothing else that another call could see, such as a state of
    /// its own or a file. Pure calls may run at the same time as other commands of their run, if no command writes a
    /// byte that another one accesses. Calls that are not pure keep their order.
    fn is_pure(&self) -> bool {
        false
    }

    /// The number of floating-point operations of one call, if it is known. Reports show it.
    fn flops(&self) -> Option<u64> {
        None
    }
}

/// The memory of an operand in a run.
#[derive(Clone, Copy, Debug)]
pub struct OperandBytes {
    /// The address of the first byte. It is never null, and must not be read if `size_bytes` is 0.
    pub address: *mut u8,
    /// The number of bytes.
    pub size_bytes: usize,
}

/// The run that a [`LibraryCall`] is part of.
pub struct LibraryContext<'a> {
    pub(crate) launch_id: i32,
    pub(crate) device: u16,
    pub(crate) replica_id: u32,
    pub(crate) partition_id: u32,
    pub(crate) user: Option<&'a (dyn Any + Send + Sync)>,
    pub(crate) runner: Option<&'a ThreadPool>,
}

impl<'a> LibraryContext<'a> {
    /// The number that the caller gave the run.
    #[must_use]
    pub fn launch_id(&self) -> i32 {
        self.launch_id
    }

    /// The number of the device that the run is on.
    #[must_use]
    pub fn device(&self) -> u16 {
        self.device
    }

    /// The number of the replica.
    #[must_use]
    pub fn replica_id(&self) -> u32 {
        self.replica_id
    }

    /// The number of the partition in its replica.
    #[must_use]
    pub fn partition_id(&self) -> u32 {
        self.partition_id
    }

    /// The context that the caller gave the run, if it is a `T`.
    #[must_use]
    pub fn user<T: Any>(&self) -> Option<&'a T> {
        self.user?.downcast_ref()
    }

    /// The number of threads of the client's pool, on which [`spawn`](Self::spawn) runs work.
    #[must_use]
    pub fn thread_count(&self) -> usize {
        self.runner.map_or(1, ThreadPool::num_threads)
    }

    /// Runs `work` on a thread of the client's pool, in general after this returns. On x86-64, that thread treats
    /// denormal numbers as zero during the call. Work that uses the operands must end before the library call returns.
    /// A panic in it is reported and swallowed.
    ///
    /// # Errors
    /// `Cancelled`: the pool has shut down. `work` was dropped uncalled.
    pub fn spawn(&self, label: impl Into<Label>, work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        let work = || crate::float_mode::with_flushed_denormals(work);
        match self.runner {
            Some(pool) => pool.execute(Task::new(label, work)),
            None => {
                Task::new(label, work).run();
                Ok(())
            }
        }
    }

    /// Calls `body` on the threads of the client, with ranges that together are `0..count`. Each range but the last has
    /// at least `grain` elements. Returns when all calls have returned. On x86-64, each of these threads has
    /// the floating-point mode of the calling thread during the call, and treats denormal numbers as zero.
    ///
    /// # Errors
    /// The first error that `body` returns, with its code.
    pub fn parallel_for(
        &self,
        count: usize,
        grain: usize,
        body: &(dyn Fn(Range<usize>) -> Result<(), Error> + Sync),
    ) -> Result<(), Error> {
        let Some(runner) = self.runner else { return body(0..count) };
        let mode = FloatMode::current().flushing();
        runner.parallel_for(count, grain, &|range| mode.during(|| body(range)))
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
