//! `purlin/executor.h`: pools and task nodes. What takes tasks or calls C++ is a plain function.

use std::ffi::c_void;
use std::ops::Range;
use std::pin::Pin;
use std::time::Duration;

use cxx::CxxString;
use purlin_async::event::abi::EventHeader;
use purlin_async::task::node::TaskNode;
use purlin_async::{AsyncWorkRunner, Executor, ShutdownMode, ShutdownOptions, Task, ThreadPool, ThreadPoolOptions};
use purlin_base::status::StatusRep;
use purlin_base::{Error, StatusOr};
use purlin_ffi::handle::{self, give, give_handle};
use purlin_ffi::number::known;
use purlin_ffi::panic::{contain, guard};
use purlin_ffi::words;

use crate::task_options::RawTaskOptions;

/// What a `purlin::ThreadPoolAsyncWorkRunner` points to.
pub struct ThreadPoolRep(pub(crate) ThreadPool);

#[cxx::bridge(namespace = "purlin::ffi")]
pub(crate) mod ffi {
    unsafe extern "C++" {
        include!("purlin/internal/abi.h");

        #[namespace = "purlin::v0::internal"]
        type StatusRep = crate::status::ffi::StatusRep;
    }

    extern "Rust" {
        #[namespace = "purlin::v0::internal"]
        #[derive(ExternType)]
        type ThreadPoolRep;

        /// A new pool, or null and an error.
        fn thread_pool_create(thread_count: usize, name: &[u8], error: &mut *const StatusRep) -> *const ThreadPoolRep;
        unsafe fn thread_pool_retain(pool: *const ThreadPoolRep);
        /// The last shuts the pool down.
        unsafe fn thread_pool_release(pool: *const ThreadPoolRep);
        /// Number of threads.
        fn thread_pool_num_threads(pool: &ThreadPoolRep) -> usize;
        /// Which of the pool's threads this is; the largest number on every other thread.
        fn thread_pool_current_thread(pool: &ThreadPoolRep) -> usize;
        /// Refuses new tasks, runs what is queued or drops it, as `mode` says, joins the threads. A negative
        /// `timeout_ns` is none. Null, or an error, C++'s.
        fn thread_pool_shutdown(pool: &ThreadPoolRep, mode: u32, timeout_ns: i64) -> *const StatusRep;
        /// Appends one line.
        fn thread_pool_describe(pool: &ThreadPoolRep, text: Pin<&mut CxxString>);
    }
}

fn thread_pool_create(thread_count: usize, name: &[u8], error: &mut *const ffi::StatusRep) -> *const ThreadPoolRep {
    let made = guard(|| {
        let name = std::str::from_utf8(name).map_err(|why| {
            Error::invalid_argument(format!("a thread pool's name is not UTF-8: {:?}: {why}", name.escape_ascii()))
        })?;
        ThreadPool::new(&ThreadPoolOptions { thread_count, name: name.to_owned() }).map(ThreadPoolRep)
    });
    give_handle(made, error)
}

fn thread_pool_describe(pool: &ThreadPoolRep, text: Pin<&mut CxxString>) {
    contain("thread_pool_describe", (), || {
        text.push_str(&pool.0.describe());
    })
}

/// # Safety
/// C++ holds a reference.
unsafe fn thread_pool_retain(pool: *const ThreadPoolRep) {
    // SAFETY: the caller's promise.
    unsafe { handle::retain(pool) };
}

/// # Safety
/// C++ gives its reference up.
unsafe fn thread_pool_release(pool: *const ThreadPoolRep) {
    contain("thread_pool_release", (), || {
        // SAFETY: the caller's promise.
        unsafe { handle::release(pool) };
    })
}

fn thread_pool_num_threads(pool: &ThreadPoolRep) -> usize {
    pool.0.num_threads()
}

fn thread_pool_current_thread(pool: &ThreadPoolRep) -> usize {
    pool.0.current_thread().unwrap_or(usize::MAX)
}

fn thread_pool_shutdown(pool: &ThreadPoolRep, mode: u32, timeout_ns: i64) -> *const ffi::StatusRep {
    give(guard(|| pool.0.shutdown_with(shutdown_options(mode, timeout_ns)?)))
}

/// Runs a task on the pool. Null, or an error, C++'s; then the task has been dropped.
///
/// # Safety
/// `task` is null or a node that the caller owns and gives up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_thread_pool_execute(pool: &ThreadPoolRep, task: *mut TaskNode) -> *const StatusRep {
    // SAFETY: the caller's promise.
    give(guard(|| pool.0.execute(unsafe { take(task) }?)))
}

/// Runs a task on the pool as the options say. Null, or an error, C++'s; then the task has been dropped.
///
/// # Safety
/// As [`purlin_thread_pool_execute`]; the options are what their struct says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_thread_pool_execute_with(
    pool: &ThreadPoolRep,
    task: *mut TaskNode,
    options: &RawTaskOptions,
) -> *const StatusRep {
    give(guard(|| {
        // SAFETY: the caller's promise. The task first: it is given up whatever the options are.
        let task = unsafe { take(task)? };
        // SAFETY: the caller's promise.
        pool.0.execute_with(task, &unsafe { options.get() }?)
    }))
}

/// Runs a task after events. Null, or an error, C++'s; then the task has been dropped.
///
/// # Safety
/// As [`purlin_thread_pool_execute`]; `events` as `event::borrowed`, for this call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_thread_pool_execute_when_ready(
    pool: &ThreadPoolRep,
    events: *const *mut EventHeader,
    count: usize,
    task: *mut TaskNode,
) -> *const StatusRep {
    // SAFETY: the caller's promises.
    give(guard(|| unsafe { pool.0.schedule_when_ready(words::borrowed(events, count), take(task)?) }))
}

/// # Safety
/// `task` is null or a node that the caller owns and gives up.
pub(crate) unsafe fn take(task: *mut TaskNode) -> Result<Task, Error> {
    if task.is_null() {
        return Err(Error::invalid_argument(
            "an empty task (moved from, run, or of an empty function) was given to an executor",
        ));
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { Task::from_raw(task) })
}

/// A C++ loop body; false when a call threw.
type RangeCall = unsafe extern "C" fn(data: *mut c_void, begin: usize, end: usize) -> bool;

/// A loop body and what it works on.
struct Body {
    call: RangeCall,
    data: *mut c_void,
}

// SAFETY: ParallelFor's contract in purlin/executor.h: its body is called from several threads at once. The data
// outlives the calls because ParallelFor returns after the last of them.
unsafe impl Sync for Body {}

impl Body {
    fn run(&self, range: Range<usize>) -> Result<(), Error> {
        // SAFETY: C++ gave a function together with the data that it takes, for the length of
        // purlin_thread_pool_parallel_for.
        if unsafe { (self.call)(self.data, range.start, range.end) } {
            Ok(())
        } else {
            Err(Error::internal(format!("ParallelFor: the call for [{}, {}) threw", range.start, range.end)))
        }
    }
}

/// Calls `call(data, begin, end)` for ranges that cover `[0, count)`. Null, or an error, C++'s.
///
/// # Safety
/// `call` may be called from any thread until this returns, with `data`, and does not unwind.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_thread_pool_parallel_for(
    pool: &ThreadPoolRep,
    count: usize,
    grain: usize,
    call: RangeCall,
    data: *mut c_void,
) -> *const StatusRep {
    let body = Body { call, data };
    give(guard(|| pool.0.parallel_for(count, grain, &|range| body.run(range))))
}

/// One half of a C++ Join; false when it threw.
type JoinCall = unsafe extern "C" fn(data: *mut c_void) -> bool;

/// A half and what it works on.
struct Half {
    call: JoinCall,
    data: *mut c_void,
}

// SAFETY: Join's contract in purlin/executor.h: its closures are called on any thread, each once. The data outlives the
// calls because Join returns after both.
unsafe impl Send for Half {}

impl Half {
    fn run(self) -> bool {
        // SAFETY: C++ gave a function together with the data that it takes, for the length of purlin_thread_pool_join.
        unsafe { (self.call)(self.data) }
    }
}

/// Calls `a(a_data)` and `b(b_data)`, perhaps at the same time, and returns when both have returned. Null, or an error,
/// C++'s.
///
/// # Safety
/// Both may be called on any thread until this returns, with their data, and do not unwind.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_thread_pool_join(
    pool: &ThreadPoolRep,
    a: JoinCall,
    a_data: *mut c_void,
    b: JoinCall,
    b_data: *mut c_void,
) -> *const StatusRep {
    let (a, b) = (Half { call: a, data: a_data }, Half { call: b, data: b_data });
    give(guard(|| match pool.0.try_join(|| a.run(), || b.run())? {
        (true, true) => Ok(()),
        (false, _) => Err(Error::internal("Join: the first call threw")),
        (true, false) => Err(Error::internal("Join: the second call threw")),
    }))
}

/// A `purlin::ShutdownOptions`; a negative `timeout_ns` is none.
///
/// # Errors
/// `InvalidArgument`: there is no mode of that number.
pub(crate) fn shutdown_options(mode: u32, timeout_ns: i64) -> StatusOr<ShutdownOptions> {
    let modes = [("kDrain", ShutdownMode::Drain), ("kCancelPending", ShutdownMode::CancelPending)];
    let mode = known("ShutdownMode", mode, &modes)?;
    Ok(ShutdownOptions { mode, timeout: u64::try_from(timeout_ns).ok().map(Duration::from_nanos) })
}
