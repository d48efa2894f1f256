//! Purlin: the runtime core beneath a machine-learning stack.
//!
//! Asynchronous work completes once, and says why when it does not. This crate is what users of Rust see: names,
//! documentation and examples; all logic is in the crates below it (`docs/architecture.md` is the map).
//!
//! ```
//! use purlin::{EventPromise, Error, ThreadPool, ThreadPoolOptions};
//!
//! let pool = ThreadPool::new(&ThreadPoolOptions { thread_count: 2, ..Default::default() })?;
//! let promise = EventPromise::new(c"answer");
//! let event = promise.event();
//! pool.schedule(c"compute", move || _ = promise.set_ready())?;
//! event.wait()?;
//! # Ok::<(), Error>(())
//! ```

#![forbid(unsafe_code)]

pub use purlin_array::{dtype, layout, shape, strided};
pub use purlin_async::{event, executors, future, pool, services, stall, task, trace, user_context};
pub use purlin_base::{fault, label, status};
pub use purlin_device::{backend, buffer, client, device, memory, platform, raw_buffer, staging, transfer};

pub use purlin_array::{DType, Element, HostArray, Layout, Section, Sections, Shape, StridedPlan};
pub use purlin_async::{
    AlreadySet, AsyncValue, AsyncValueRef, AsyncWorkRunner, CancelRegistration, CancelSource, CancelToken, Clock,
    CountDown, DefinitionStream, ElasticPool, ElasticPoolOptions, ErrorPolicy, Event, EventPromise, EventState,
    Executor, Future, InlineExecutor, JoinOptions, Joined, ManualClock, OnceMap, PendingPermit, Permit, Priority,
    Promise, Semaphore, SerialQueue, SharedPromise, ShutdownMode, ShutdownOptions, StallReport, StreamEventMap,
    SystemClock, Task, TaskOptions, ThreadPool, ThreadPoolAsyncWorkRunner, ThreadPoolOptions, Timer, Timers,
    UserContext, UserContextScope, Watchdog, WatchdogAction, WatchdogOptions, after_all, dump_stalls, future_on,
    join_futures, run_when_ready, spawn, stalls, try_spawn, when_all, when_all_with, with_user_context,
};
pub use purlin_base::{Error, Label, SourceLocation, StatusCode, StatusOr};
#[cfg(feature = "cuda")]
pub use purlin_cuda as cuda;
pub use purlin_device::{
    Aliasing, AllocOptions, AsyncHostToDeviceTransferManager, BorrowedDonationHold, BorrowedUsageHold, Buffer,
    BufferPromise, Client, ClientOptions, Device, DmaMapping, DonationHold, ExternalReference, FromHostOptions,
    HostAddress, HostBufferSemantics, HostShard, LaunchOptions, MemoryHolder, MemoryHook, MemoryReport, MemorySpace,
    MemoryStats, Mutability, NullBackend, OnDone, OomPolicy, RawBuffer, RawBufferPromise, StagedPiece, StagingCopier,
    StagingLease, StagingOptions, StagingPool, StagingSink, TransferSpec, UsageHold,
};
pub use purlin_host as host;
#[cfg(feature = "interchange")]
pub use purlin_interchange as interchange;
pub use purlin_program as program;
#[cfg(feature = "sim")]
pub use purlin_sim as sim;
#[cfg(feature = "xla-cpu")]
pub use purlin_xla_cpu as xla_cpu;

/// The platforms of this process by name: those that Purlin was built with, and those that the program has registered.
///
/// ```
/// use purlin::platform::PlatformOptions;
/// use purlin::{Client, ClientOptions};
///
/// assert!(purlin::platforms().names().contains(&"host".to_owned()));
/// let backend = purlin::platforms().open("host", &PlatformOptions::default())?;
/// assert_eq!(Client::new(&ClientOptions::default(), backend)?.platform_name(), "host");
/// # Ok::<(), purlin::Error>(())
/// ```
#[must_use]
pub fn platforms() -> &'static platform::Platforms {
    static PLATFORMS: platform::Platforms = platform::Platforms::new(&[
        platform::NULL,
        host::PLATFORM,
        #[cfg(feature = "cuda")]
        cuda::PLATFORM,
        #[cfg(feature = "sim")]
        sim::PLATFORM,
    ]);
    &PLATFORMS
}

// The Rust programs of the tutorial are tests of this crate; its C++ programs are those of tests/tutorial.
#[cfg(all(doctest, feature = "sim"))]
#[doc = include_str!("../../../docs/tutorial.md")]
struct Tutorial;

// So is the program of the page on programs.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/programs.md")]
struct Programs;
