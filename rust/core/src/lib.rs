//! Purlin: the runtime core beneath a machine-learning stack.
//!
//! Asynchronous work completes once, and says why when it does not. This crate holds all of Purlin's logic; it knows no
//! FFI, no GPU and no socket. `docs/architecture.md` is the map of the whole house; this is the map of this room, bottom
//! up, and a module may only use those above it in this list:
//!
//! | module | what it is |
//! |---|---|
//! | `sync` | locks, atomics and threads, from std, loom, shuttle or parking_lot |
//! | `static_text` | static strings known by one pointer |
//! | [`stderr`] | what Purlin itself says there |
//! | [`status`] | [`Status`]: absl's codes, one word, cheap to share |
//! | [`label`] | [`Label`]: the name of an event or a task |
//! | [`locks`] | those of `sync`, for the other crates of this house |
//! | [`caught`] | panics of strangers, of which the text is left |
//! | [`fault`] | places that fail on purpose, in tests |
//! | [`replaced_file`] | files that appear whole or not at all |
//! | [`slab`] | the memory of events, waiters and tasks |
//! | [`user_context`] | [`UserContext`]: on whose behalf something is done |
//! | [`trace`] | recording of spans, export to Chrome's JSON |
//! | [`event`] | [`Event`], [`EventPromise`], [`when_all`]: something that happens once; [`AsyncValue`]: with a value |
//! | [`exec`] | [`Task`], [`Executor`], [`AsyncWorkRunner`], [`ThreadPool`]; cancellation, timers, semaphores, queues |
//! | [`future`] | [`Future`], [`Promise`]: values that tasks compute; Rust's `async` on an [`Executor`] |
//! | [`stall`] | [`dump_stalls`], [`Watchdog`]: why nothing happens |
//! | [`dtype`], [`shape`], [`layout`] | [`DType`], [`Shape`], [`Layout`]: what arrays are made of |
//! | [`strided`] | [`HostArray`], [`StridedPlan`]: elements between strided host memory and a device's order |
//! | [`backend`] | the traits of a kind of hardware, copies in flight, and the null backend |
//! | `arena` | the allocator's policy: blocks cut from extents, kept warm, limited, given back |
//! | [`device`] | [`Device`], [`MemorySpace`]: where memory is, and its books |
//! | [`raw_buffer`] | [`RawBuffer`]: bytes in a memory space |
//! | [`buffer`] | [`Buffer`]: an array on a device |
//! | [`transfer`] | [`AsyncHostToDeviceTransferManager`]: buffers that are filled piece by piece |
//! | [`staging`] | [`StagingPool`], [`StagingCopier`], [`StagingSink`]: bytes between devices and a transport |
//! | [`client`] | [`Client`]: the root of it all |
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

#![deny(unsafe_code)]

mod arena;
pub mod backend;
pub mod buffer;
pub mod caught;
pub mod client;
pub mod device;
pub mod dtype;
pub mod event;
pub mod exec;
pub mod fault;
pub mod future;
pub mod label;
pub mod layout;
#[cfg(not(any(loom, shuttle)))]
pub mod locks;
mod quoted;
pub mod raw_buffer;
// Its numbers are of the process, which models do not have.
#[cfg(not(any(loom, shuttle)))]
pub mod replaced_file;
pub mod shape;
pub mod slab;
pub mod staging;
#[cfg(not(any(loom, shuttle)))]
pub mod stall;
mod static_text;
pub mod status;
pub mod stderr;
pub mod strided;
mod sync;
// A recording is one per process, which models, that begin anew thousands of times, cannot have.
#[cfg(not(any(loom, shuttle)))]
pub mod trace;
pub mod transfer;
pub mod user_context;

pub use backend::NullBackend;
pub use buffer::{
    Aliasing, Buffer, BufferPromise, DonationHold, ExternalReference, FromHostOptions, HostAddress,
    HostBufferSemantics, HostShard, OnDone, UsageHold,
};
pub use client::{Client, ClientOptions};
pub use device::{
    AllocOptions, Device, DmaMapping, MemoryHolder, MemoryHook, MemoryReport, MemorySpace, MemoryStats, OomPolicy,
};
pub use dtype::{DType, Element};
pub use event::{
    AsyncValue, AsyncValueRef, CountDown, DefinitionStream, ErrorPolicy, Event, EventPromise, EventState, JoinOptions,
    StreamEventMap, after_all, run_when_ready, when_all, when_all_with,
};
pub use exec::cancel::{CancelRegistration, CancelSource, CancelToken};
#[cfg(not(any(loom, shuttle)))]
pub use exec::elastic_pool::{ElasticPool, ElasticPoolOptions, Shutdown};
pub use exec::inline::InlineExecutor;
pub use exec::options::{Priority, TaskOptions};
pub use exec::semaphore::{PendingPermit, Permit, Semaphore};
pub use exec::serial_queue::SerialQueue;
#[cfg(not(any(loom, shuttle)))]
pub use exec::timer::{Clock, ManualClock, SystemClock, Timer, Timers};
pub use exec::{
    AsyncWorkRunner, Executor, ShutdownMode, ShutdownOptions, Task, ThreadPool, ThreadPoolAsyncWorkRunner,
    ThreadPoolOptions,
};
pub use future::{AlreadySet, Future, Joined, Promise, SharedPromise, future_on, join_futures, spawn, try_spawn};
pub use label::Label;
pub use layout::Layout;
pub use raw_buffer::{Mutability, RawBuffer, RawBufferPromise};
pub use shape::Shape;
pub use staging::{StagedPiece, StagingCopier, StagingLease, StagingOptions, StagingPool, StagingSink};
#[cfg(not(any(loom, shuttle)))]
pub use stall::{StallReport, Watchdog, WatchdogAction, WatchdogOptions, dump_stalls, stalls};
pub use status::{SourceLocation, Status, StatusCode, StatusOr};
pub use strided::{HostArray, StridedPlan};
pub use transfer::{AsyncHostToDeviceTransferManager, TransferSpec};
pub use user_context::{UserContext, UserContextScope, with_user_context};
