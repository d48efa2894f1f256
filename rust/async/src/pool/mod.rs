//! A fixed number of threads, and what they do.
//!
//! Files: `deque.rs`, `injector.rs` and `idle.rs` are the protocols under the pool; `seat.rs` has what others see of a
//! thread, `worker.rs` says what it does, `blocking.rs` what it does when a task waits, `relief.rs` when a task waits
//! unseen, `roles.rs` which thread stands in for which, `seats.rs` where they sit; `fork_join.rs` and `parallel_for.rs`
//! are work that is shared and waited for; `threads.rs` and `thread_pool.rs` say how a pool begins and ends;
//! `parallelism` how many threads this machine grants. Models: `loom_model.rs` and, the whole pool, `shuttle_model.rs`.

#![allow(unsafe_code, reason = "tasks are intrusive; loops lend their body to other threads")]

mod blocking;
mod cores;
mod deque;
mod fork_join;
mod idle;
mod injector;
mod parallel_for;
pub mod parallelism;
#[cfg_attr(purlin_model, path = "relief_model.rs")]
pub(crate) mod relief;
mod roles;
mod seat;
mod seats;
mod submitter;
pub(crate) mod thread_pool;
mod threads;
pub(crate) mod waits;
mod worker;

pub use crate::task::shutdown::{ShutdownMode, ShutdownOptions};
pub use submitter::PoolSubmitter;
pub use thread_pool::{MAX_SPARES, MAX_THREADS, ThreadPool, ThreadPoolOptions};

/// The field's name for [`ThreadPool`], as C++ has it.
///
/// ```
/// use purlin::{AsyncWorkRunner, ThreadPoolAsyncWorkRunner, ThreadPoolOptions};
///
/// let options = ThreadPoolOptions { thread_count: 2, ..Default::default() };
/// let runner: Box<dyn AsyncWorkRunner> = Box::new(ThreadPoolAsyncWorkRunner::new(&options)?);
/// let squares = std::sync::Mutex::new(Vec::new());
/// runner.parallel_for(4, 1, &|range| {
///     squares.lock().unwrap().extend(range.map(|number| number * number));
///     Ok(())
/// })?;
/// assert_eq!(squares.into_inner().unwrap().iter().sum::<usize>(), 14);
/// # Ok::<(), purlin::Error>(())
/// ```
pub type ThreadPoolAsyncWorkRunner = ThreadPool;

#[cfg(all(test, not(purlin_model)))]
mod blocking_tests;
#[cfg(all(test, not(purlin_model)))]
mod fairness_tests;
#[cfg(all(test, loom))]
mod loom_model;
#[cfg(all(test, shuttle))]
mod shuttle_model;
#[cfg(all(test, not(purlin_model)))]
mod tests;
