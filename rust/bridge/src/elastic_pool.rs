//! `purlin/elastic_pool.h`. Running a task is a plain function.

use std::str;

use purlin_async::task::node::TaskNode;
use purlin_async::{ElasticPool, ElasticPoolOptions, Executor};
use purlin_base::Error;
use purlin_base::status::StatusRep;
use purlin_ffi::handle::{self, give, give_handle};
use purlin_ffi::panic::{contain, guard};

use crate::executor::{shutdown_options, take};
use crate::timer::duration;

/// What a `purlin::ElasticPool` points to.
pub struct ElasticPoolRep(ElasticPool);

#[cxx::bridge(namespace = "purlin::ffi")]
pub(crate) mod ffi {
    /// `purlin::ElasticPoolOptions`. A negative time counts as none.
    struct RawElasticPoolOptions<'a> {
        max_threads: usize,
        idle_timeout_ns: i64,
        stack_size_bytes: usize,
        name: &'a [u8],
    }

    unsafe extern "C++" {
        include!("purlin/internal/abi.h");

        #[namespace = "purlin::v0::internal"]
        type StatusRep = crate::status::ffi::StatusRep;
    }

    extern "Rust" {
        #[namespace = "purlin::v0::internal"]
        type ElasticPoolRep;

        /// A pool with one reference, C++'s, or null and an error.
        fn elastic_pool_new(options: &RawElasticPoolOptions, error: &mut *const StatusRep) -> *const ElasticPoolRep;
        unsafe fn elastic_pool_retain(pool: *const ElasticPoolRep);
        /// The last drains the pool and joins its threads.
        unsafe fn elastic_pool_release(pool: *const ElasticPoolRep);
        /// Threads now.
        fn elastic_pool_num_threads(pool: &ElasticPoolRep) -> usize;
        /// Threads that wait for work now.
        fn elastic_pool_num_idle(pool: &ElasticPoolRep) -> usize;
        /// Ends the pool with the numbers of C++'s `ShutdownOptions`. Null, or an error, C++'s. Blocks.
        fn elastic_pool_shutdown(pool: &ElasticPoolRep, mode: u32, timeout_ns: i64) -> *const StatusRep;
    }
}

fn elastic_pool_new(
    options: &ffi::RawElasticPoolOptions<'_>,
    error: &mut *const ffi::StatusRep,
) -> *const ElasticPoolRep {
    let made = guard(|| {
        let &ffi::RawElasticPoolOptions { max_threads, idle_timeout_ns, stack_size_bytes, name } = options;
        let name = str::from_utf8(name).map_err(|why| {
            Error::invalid_argument(format!("an elastic pool's name is not UTF-8: {:?}: {why}", name.escape_ascii()))
        })?;
        let idle_timeout = duration(idle_timeout_ns);
        ElasticPool::new(&ElasticPoolOptions { max_threads, idle_timeout, stack_size_bytes, name: name.to_owned() })
    });
    give_handle(made.map(ElasticPoolRep), error)
}

/// # Safety
/// C++ holds a reference.
unsafe fn elastic_pool_retain(pool: *const ElasticPoolRep) {
    // SAFETY: the caller's promise.
    unsafe { handle::retain(pool) };
}

/// # Safety
/// C++ gives its reference up.
unsafe fn elastic_pool_release(pool: *const ElasticPoolRep) {
    contain("elastic_pool_release", (), || {
        // SAFETY: the caller's promise.
        unsafe { handle::release(pool) };
    })
}

/// Runs a task on the pool. Null, or an error, C++'s; then the task has been dropped.
///
/// # Safety
/// `task` is null or a node that the caller owns and gives up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_elastic_pool_execute(pool: &ElasticPoolRep, task: *mut TaskNode) -> *const StatusRep {
    // SAFETY: the caller's promise.
    give(guard(|| pool.0.execute(unsafe { take(task) }?)))
}

fn elastic_pool_num_threads(pool: &ElasticPoolRep) -> usize {
    contain("elastic_pool_num_threads", 0, || pool.0.num_threads())
}

fn elastic_pool_num_idle(pool: &ElasticPoolRep) -> usize {
    contain("elastic_pool_num_idle", 0, || pool.0.num_idle())
}

fn elastic_pool_shutdown(pool: &ElasticPoolRep, mode: u32, timeout_ns: i64) -> *const ffi::StatusRep {
    give(guard(|| pool.0.shutdown_with(shutdown_options(mode, timeout_ns)?)))
}
