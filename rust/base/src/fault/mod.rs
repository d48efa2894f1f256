//! Fail points: the places where something outside Purlin may fail, or user code may panic, made to do so on purpose.
//!
//! A place is a [`Site`]. Where the code asks the system for memory, a thread or a file, starts or runs a copy, gives a
//! task away or opens a backend's door, it passes [`point`]; where it calls user code, it passes [`callback`] inside
//! the guard that contains that code's panic. In ordinary builds both are nothing. Under `--cfg purlin_faults`
//! (`walk.rs`) a test arms one site: its n-th reach fails, or the n-th and all after it. `tests/faults` walks n = 1, 2,
//! 3 ... over every site in every scenario.
//!
//! Small allocations of Rust's own (`Box`, `Vec`, the slab's chunks) are no sites: they end the process when the system
//! has no memory at all, as everywhere in Rust; what is large or asked for by a user is a site and an error value.

use crate::status::StatusCode;

#[cfg(not(purlin_faults))]
mod disabled;
#[cfg(not(purlin_faults))]
pub use disabled::{callback, file, point, spawn};
#[cfg(purlin_faults)]
mod walk;
#[cfg(purlin_faults)]
pub use walk::{Plan, Seen, arm, callback, disarm, file, point, seen, spawn};

/// What kind of thing fails there.
///
/// ```
/// use purlin::StatusCode;
/// use purlin::fault::{Kind, Site};
///
/// assert_eq!(Site::SpawnWorker.kind(), Kind::Spawn);
/// assert_eq!(Kind::Spawn.code(), StatusCode::ResourceExhausted);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// Memory.
    Allocation,
    /// A thread.
    Spawn,
    /// A copy, at its start or while it runs.
    Copy,
    /// An executor refuses a task.
    Submit,
    /// The driver says no.
    Driver,
    /// A file is not read, written, closed, synchronised or renamed.
    File,
    /// User code panics.
    Callback,
}

impl Kind {
    /// With what code.
    #[must_use]
    pub const fn code(self) -> StatusCode {
        match self {
            Self::Allocation | Self::Spawn | Self::File => StatusCode::ResourceExhausted,
            Self::Submit | Self::Driver => StatusCode::Unavailable,
            Self::Copy | Self::Callback => StatusCode::Internal,
        }
    }
}

macro_rules! sites {
    ($($(#[$doc:meta])* $site:ident: $kind:ident $name:literal,)*) => {
        /// A place that may fail.
        ///
        /// ```
        /// use purlin::fault::{Kind, Site};
        ///
        /// let threads: Vec<&str> =
        ///     Site::ALL.iter().filter(|site| site.kind() == Kind::Spawn).map(|site| site.name()).collect();
        /// assert!(threads.contains(&"pool.spawn"));
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Site {
            $($(#[$doc])* $site,)*
        }

        impl Site {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$site,)*];

            /// As errors name it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$site => $name,)*
                }
            }

            /// What fails there.
            #[must_use]
            pub const fn kind(self) -> Kind {
                match self {
                    $(Self::$site => Kind::$kind,)*
                }
            }
        }
    };
}

sites! {
    /// A block of a memory space, warm or not.
    Allocate: Allocation "memory.allocate",
    /// An extent from a backend.
    Map: Allocation "arena.map",
    /// Host memory from the kernel.
    MapHost: Allocation "host.mmap",
    /// A block from an allocator of the user's.
    TakeHost: Allocation "host.allocator",
    /// Host memory for elements on their way to or from a layout.
    Stage: Allocation "copy.staging",
    /// A vector for an array's elements.
    Collect: Allocation "buffer.to_vec",
    /// A worker of a pool.
    SpawnWorker: Spawn "pool.spawn",
    /// A thread that stands in for a blocked worker.
    SpawnSpare: Spawn "pool.spawn_spare",
    /// A thread of an elastic pool.
    SpawnElastic: Spawn "elastic_pool.spawn",
    /// The thread of the timers.
    SpawnTimers: Spawn "timer.spawn",
    /// A watchdog.
    SpawnWatchdog: Spawn "watchdog.spawn",
    /// The simulator's thread.
    SpawnSimulator: Spawn "sim.spawn",
    /// A copy or a program is given to its backend.
    StartCopy: Copy "copy.start",
    /// A copy moves its bytes, perhaps later on a worker.
    RunCopy: Copy "copy.run",
    /// Elements are gathered or scattered, or a program runs, perhaps later on a worker.
    RunWork: Copy "copy.elements",
    /// The simulated hardware moves bytes.
    RunSimulated: Copy "sim.copy",
    /// A pool takes a task.
    Submit: Submit "pool.submit",
    /// A pool takes a task whose events have happened.
    SubmitLate: Submit "pool.submit_when_ready",
    /// An elastic pool takes a task.
    SubmitElastic: Submit "elastic_pool.submit",
    /// A serial queue takes a task.
    SubmitSerial: Submit "serial_queue.submit",
    /// A memory of a device is opened.
    OpenMemory: Driver "backend.open_memory",
    /// Foreign memory is imported.
    Import: Driver "backend.import",
    /// Host memory is mapped for the hardware.
    MapDma: Driver "backend.dma_map",
    /// A file is read.
    ReadFile: File "file.read",
    /// Some bytes of a file are written.
    WriteFile: File "file.write",
    /// A file's bytes are to be on the disk.
    SyncFile: File "file.fsync",
    /// A file that was written is closed.
    CloseFile: File "file.close",
    /// A file takes its place.
    RenameFile: File "file.rename",
    /// A file's name is to be on the disk.
    SyncFolder: File "folder.fsync",
    /// A task.
    Task: Callback "task",
    /// A timer's action.
    Timer: Callback "timer",
    /// A cancellation's callback.
    Cancel: Callback "cancel callback",
    /// `on_done` of host memory.
    HostDone: Callback "on_done of host memory",
    /// `on_done` of a transfer.
    TransferDone: Callback "on_done of a transfer",
    /// The release of imported memory.
    Release: Callback "release of imported memory",
    /// The client's hook for when memory is short.
    MemoryHook: Callback "out-of-memory hook",
    /// An allocator of the user's gives memory.
    TakeHook: Callback "allocator of host memory",
    /// An allocator of the user's takes memory back.
    GiveBackHook: Callback "allocator of host memory, taking back",
    /// A closure that computes a value.
    Closure: Callback "closure",
    /// A loop's body.
    LoopBody: Callback "body of ParallelFor",
    /// A watchdog's sink.
    Sink: Callback "sink of a watchdog",
    /// A waiter of an event: reached by the tests' own.
    Waiter: Callback "waiter",
    /// One of two closures that a pool joins: reached by the tests' own.
    Join: Callback "closure of join",
    /// A kernel or a library call of a program.
    CallKernel: Callback "kernel",
}
