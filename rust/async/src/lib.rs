//! Things that happen once, and what makes them happen: events, values, futures, executors, pools, and reports of what
//! does not happen.
//!
//! Nothing in here knows memory of devices. Users of Rust see of it what the crate `purlin` re-exports. Bottom up; a
//! module may only use those above it in this list:
//!
//! | module | what it is |
//! |---|---|
//! | [`user_context`] | [`UserContext`]: on whose behalf something is done |
//! | [`trace`] | recording of spans, export to Chrome's JSON |
//! | [`event`] | [`Event`], [`EventPromise`], [`when_all`]: something that happens once; [`AsyncValue`]: with a value |
//! | [`task`] | [`Task`], [`Executor`], [`AsyncWorkRunner`], [`TaskOptions`], [`CancelToken`]: work on its way to a thread |
//! | [`services`] | [`Timers`], [`Semaphore`]: when, and how much at a time |
//! | [`pool`] | [`ThreadPool`]: a fixed number of threads that never stands still |
//! | [`executors`] | [`InlineExecutor`], [`SerialQueue`], [`ElasticPool`] |
//! | [`future`] | [`Future`], [`Promise`], [`OnceMap`]: values that tasks compute; Rust's `async` on an [`Executor`] |
//! | [`stall`] | [`dump_stalls`], [`Watchdog`]: why nothing happens |

#![deny(unsafe_code)]

pub mod event;
pub mod executors;
pub mod future;
pub mod pool;
pub mod services;
#[cfg(not(purlin_model))]
pub mod stall;
pub mod task;
// A recording is one per process, which models, that begin anew thousands of times, cannot have.
#[cfg(not(purlin_model))]
pub mod trace;
pub mod user_context;

pub use event::{
    AsyncValue, AsyncValueRef, CountDown, DefinitionStream, ErrorPolicy, Event, EventPromise, EventState, JoinOptions,
    StreamEventMap, after_all, run_when_ready, when_all, when_all_with,
};
#[cfg(not(purlin_model))]
pub use executors::elastic_pool::{ElasticPool, ElasticPoolOptions};
pub use executors::inline::InlineExecutor;
pub use executors::serial_queue::SerialQueue;
pub use future::{
    AlreadySet, Future, Joined, OnceMap, Promise, SharedPromise, future_on, join_futures, spawn, try_spawn,
};
pub use pool::{ThreadPool, ThreadPoolAsyncWorkRunner, ThreadPoolOptions};
pub use services::semaphore::{PendingPermit, Permit, Semaphore};
#[cfg(not(purlin_model))]
pub use services::timer::{Clock, ManualClock, SystemClock, Timer, Timers};
#[cfg(not(purlin_model))]
pub use stall::{StallReport, Watchdog, WatchdogAction, WatchdogOptions, dump_stalls, stalls};
pub use task::cancel::{CancelRegistration, CancelSource, CancelToken};
pub use task::{AsyncWorkRunner, Executor, Priority, ShutdownMode, ShutdownOptions, Task, TaskOptions};
pub use user_context::{UserContext, UserContextScope, with_user_context};

#[cfg(all(test, not(purlin_model)))]
mod closure_tests;

/// Longer than any machine takes for what a test does; one that is not done by then hangs.
#[cfg(all(test, not(purlin_model)))]
const LIMIT: std::time::Duration = std::time::Duration::from_secs(60);
