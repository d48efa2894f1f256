//! Purlin: the runtime core beneath a machine-learning stack.
//!
//! Asynchronous work completes once, and says why when it does not. This crate is what users of Rust see: names,
//! documentation and examples; all logic is in the crates below it (`docs/architecture.md` is the map).
//!
//! ```
//! use purlin::{EventPromise, Status, ThreadPool, ThreadPoolOptions};
//!
//! let pool = ThreadPool::new(&ThreadPoolOptions { thread_count: 2, ..Default::default() })?;
//! let promise = EventPromise::new(c"answer");
//! let event = promise.event();
//! pool.schedule(c"compute", move || _ = promise.set_ready())?;
//! event.wait()?;
//! # Ok::<(), Status>(())
//! ```

#![forbid(unsafe_code)]

pub use purlin_array::{dtype, layout, shape, strided};
pub use purlin_async::{event, executors, future, pool, services, stall, task, trace, user_context};
pub use purlin_base::{fault, label, status};
pub use purlin_device::{backend, buffer, client, device, memory, raw_buffer, staging, transfer};

pub use purlin_array::{DType, Element, HostArray, Layout, Shape, StridedPlan};
pub use purlin_async::{
    AlreadySet, AsyncValue, AsyncValueRef, AsyncWorkRunner, CancelRegistration, CancelSource, CancelToken, Clock,
    CountDown, DefinitionStream, ElasticPool, ElasticPoolOptions, ErrorPolicy, Event, EventPromise, EventState,
    Executor, Future, InlineExecutor, JoinOptions, Joined, ManualClock, PendingPermit, Permit, Priority, Promise,
    Semaphore, SerialQueue, SharedPromise, Shutdown, ShutdownMode, ShutdownOptions, StallReport, StreamEventMap,
    SystemClock, Task, TaskOptions, ThreadPool, ThreadPoolAsyncWorkRunner, ThreadPoolOptions, Timer, Timers,
    UserContext, UserContextScope, Watchdog, WatchdogAction, WatchdogOptions, after_all, dump_stalls, future_on,
    join_futures, run_when_ready, spawn, stalls, try_spawn, when_all, when_all_with, with_user_context,
};
pub use purlin_base::{Label, SourceLocation, Status, StatusCode, StatusOr};
pub use purlin_device::{
    Aliasing, AllocOptions, AsyncHostToDeviceTransferManager, Buffer, BufferPromise, Client, ClientOptions, Device,
    DmaMapping, DonationHold, ExternalReference, FromHostOptions, HostAddress, HostBufferSemantics, HostShard,
    MemoryHolder, MemoryHook, MemoryReport, MemorySpace, MemoryStats, Mutability, NullBackend, OnDone, OomPolicy,
    RawBuffer, RawBufferPromise, StagedPiece, StagingCopier, StagingLease, StagingOptions, StagingPool, StagingSink,
    TransferSpec, UsageHold,
};
pub use purlin_host as host;
#[cfg(feature = "interchange")]
pub use purlin_interchange as interchange;
#[cfg(feature = "sim")]
pub use purlin_sim as sim;
