//! `purlin/elastic_pool.h`.
//!
//! In the safety sections, "alive" means that C++ holds a reference for the length of the call.

use std::ffi::c_char;
use std::str;

use purlin_async::task::node::TaskNode;
use purlin_async::{ElasticPool, ElasticPoolOptions, Executor};
use purlin_base::Error;
use purlin_base::status::StatusRep;
use purlin_ffi::handle::{elements, give, give_handle, release, retain};
use purlin_ffi::panic::{contain, guard};

use crate::executor::{shutdown_options, take};
use crate::timer::duration;

/// What a `purlin::ElasticPool` points to.
pub struct ElasticPoolRep(ElasticPool);

/// A pool with one reference, C++'s, or null and an error.
///
/// # Safety
/// `name` points to `name_size_bytes` bytes that stay readable during this call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_elastic_pool_new(
    max_threads: usize,
    idle_timeout_ns: i64,
    stack_size_bytes: usize,
    name: *const c_char,
    name_size_bytes: usize,
    error: &mut *const StatusRep,
) -> *const ElasticPoolRep {
    let made = guard(|| {
        // SAFETY: the caller's promise.
        let name = unsafe { elements::<u8>(name.cast(), name_size_bytes) };
        let name = str::from_utf8(name).map_err(|why| {
            Error::invalid_argument(format!("an elastic pool's name is not UTF-8: {:?}: {why}", name.escape_ascii()))
        })?;
        let idle_timeout = duration(idle_timeout_ns);
        ElasticPool::new(&ElasticPoolOptions { max_threads, idle_timeout, stack_size_bytes, name: name.to_owned() })
    });
    give_handle(made.map(ElasticPoolRep), error)
}

/// One more reference.
///
/// # Safety
/// `pool` is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_elastic_pool_retain(pool: *const ElasticPoolRep) {
    // SAFETY: alive.
    unsafe { retain(pool) };
}

/// One reference less; the last drains the pool and joins its threads.
///
/// # Safety
/// The caller owns a reference and gives it up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_elastic_pool_release(pool: *const ElasticPoolRep) {
    contain("purlin_elastic_pool_release", (), || {
        // SAFETY: the caller's promise.
        unsafe { release(pool) };
    })
}

/// Runs a task on the pool. Null, or an error, C++'s; then the task has been dropped.
///
/// # Safety
/// `pool` is alive; `task` is null or a node that the caller owns and gives up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_elastic_pool_execute(
    pool: *const ElasticPoolRep,
    task: *mut TaskNode,
) -> *const StatusRep {
    // SAFETY: alive, and the caller's promise.
    give(guard(|| unsafe { (*pool).0.execute(take(task)?) }))
}

/// Threads now.
///
/// # Safety
/// `pool` is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_elastic_pool_num_threads(pool: *const ElasticPoolRep) -> usize {
    contain("purlin_elastic_pool_num_threads", 0, || {
        // SAFETY: alive.
        unsafe { (*pool).0.num_threads() }
    })
}

/// Threads that wait for work now.
///
/// # Safety
/// `pool` is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_elastic_pool_num_idle(pool: *const ElasticPoolRep) -> usize {
    contain("purlin_elastic_pool_num_idle", 0, || {
        // SAFETY: alive.
        unsafe { (*pool).0.num_idle() }
    })
}

/// Ends the pool with the numbers of C++'s `ShutdownOptions`. Null, or an error, C++'s. Blocks.
///
/// # Safety
/// `pool` is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_elastic_pool_shutdown(
    pool: *const ElasticPoolRep,
    mode: u32,
    timeout_ns: i64,
) -> *const StatusRep {
    // SAFETY: alive.
    give(guard(|| unsafe { (*pool).0.shutdown_with(shutdown_options(mode, timeout_ns)?) }))
}
