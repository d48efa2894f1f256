//! Which types may go to another thread, and which may be shared among threads. It is part of their contract, and a
//! private field is enough to change it.

use std::marker::PhantomData;

use purlin::backend::{Backend, CommandList, DeviceKernel, KernelCommand, Memory};
use purlin::event::EventFuture;
use purlin::future::FutureRef;
use purlin::host::{ByteSource, HostBackend, SystemSource};
use purlin::interchange::{DlpackTensor, FileAccess, NpyReadOptions, SafetensorsFile, Tensor, WriteOptions};
use purlin::program::{
    Executable, ExecuteOptions, Execution, Kernel, KernelLaunch, LibraryCall, LoadedExecutable, LoadedKernel, Outputs,
    Program, ProgramBuilder,
};
use purlin::sim::{SimBackend, SimDriver, SimOptions, SimReport};
use purlin::*;

/// Answers whether a type is `Send`, or `Sync`: an inherent constant, where its bound holds, hides that of the trait.
struct SendOf<T: ?Sized>(PhantomData<T>);
struct SyncOf<T: ?Sized>(PhantomData<T>);
trait No {
    const ANSWER: bool = false;
}
impl<T: ?Sized> No for SendOf<T> {}
impl<T: ?Sized> No for SyncOf<T> {}
impl<T: Send + ?Sized> SendOf<T> {
    const ANSWER: bool = true;
}
impl<T: Sync + ?Sized> SyncOf<T> {
    const ANSWER: bool = true;
}

/// The types, by name, with whether they are `Send` and `Sync`.
macro_rules! types {
    ($($one:ty),* $(,)?) => { &[$((stringify!($one), SendOf::<$one>::ANSWER, SyncOf::<$one>::ANSWER)),*] };
}

/// All others are both.
const EXCEPTIONS: [(&str, bool, bool); 3] = [
    // It has an address of the caller's.
    ("HostShard<'static>", false, false),
    // One thread runs it.
    ("Task", true, false),
    // It changes what its thread does.
    ("UserContextScope", false, false),
];

const TYPES: &[(&str, bool, bool)] = types![
    Aliasing,
    AllocOptions,
    AlreadySet<i32>,
    AsyncHostToDeviceTransferManager,
    AsyncValue<i32>,
    AsyncValueRef<i32>,
    BorrowedDonationHold<'static>,
    BorrowedUsageHold<'static>,
    Buffer,
    BufferPromise,
    CancelRegistration,
    CancelSource,
    CancelToken,
    Client,
    ClientOptions,
    CountDown,
    DType,
    DefinitionStream,
    Device,
    DmaMapping,
    DonationHold,
    ElasticPool,
    ElasticPoolOptions,
    ErrorPolicy,
    Event,
    EventPromise,
    EventState,
    ExternalReference,
    FromHostOptions,
    Future<i32>,
    HostAddress,
    HostArray,
    HostBufferSemantics,
    HostShard<'static>,
    InlineExecutor,
    JoinOptions,
    Joined<i32>,
    Label,
    LaunchOptions<'static>,
    Layout,
    ManualClock,
    MemoryHolder,
    MemoryHook,
    MemoryReport,
    MemorySpace,
    MemoryStats,
    Mutability,
    NullBackend,
    OnDone,
    OnceMap<i32, i32>,
    OomPolicy,
    PendingPermit,
    Permit,
    Priority,
    Promise<i32>,
    RawBuffer,
    RawBufferPromise,
    Section,
    Sections,
    Semaphore,
    SerialQueue,
    Shape,
    SharedPromise<i32>,
    ShutdownMode,
    ShutdownOptions,
    SourceLocation,
    StagedPiece,
    StagingCopier,
    StagingLease,
    StagingOptions,
    StagingPool,
    StagingSink,
    StallReport,
    Error,
    StatusCode,
    StatusOr<i32>,
    StreamEventMap,
    StridedPlan,
    SystemClock,
    Task,
    TaskOptions,
    ThreadPool,
    ThreadPoolAsyncWorkRunner,
    ThreadPoolOptions,
    Timer,
    Timers,
    TransferSpec,
    UsageHold,
    UserContext,
    UserContextScope,
    Watchdog,
    WatchdogAction,
    WatchdogOptions,
    // Traits that are used as objects.
    dyn AsyncWorkRunner,
    dyn Backend,
    dyn ByteSource,
    dyn Clock,
    dyn DeviceKernel,
    dyn Executor,
    dyn LibraryCall,
    dyn Memory,
    // What is not at the top of the crate.
    CommandList,
    DlpackTensor,
    EventFuture,
    Executable,
    ExecuteOptions<'static>,
    Execution,
    FileAccess,
    FutureRef<'static, i32>,
    HostBackend,
    Kernel,
    KernelCommand,
    KernelLaunch,
    LoadedExecutable,
    LoadedKernel,
    NpyReadOptions,
    Outputs,
    Program,
    ProgramBuilder,
    SafetensorsFile,
    SimBackend,
    SimDriver,
    SimOptions,
    SimReport,
    SystemSource,
    Tensor,
    WriteOptions,
];

#[test]
fn all_types_are_send_and_sync_but_three() {
    let others: Vec<_> = TYPES.iter().filter(|(_, send, sync)| !(*send && *sync)).copied().collect();
    assert_eq!(others, EXCEPTIONS);
}

#[cfg(feature = "cuda")]
#[test]
fn all_types_of_cuda_are_send_and_sync() {
    use purlin::cuda::{CompileCache, Compiler, CudaBackend, KernelSource, Ptx};
    let types: &[(&str, bool, bool)] = types![CompileCache, Compiler, CudaBackend, KernelSource, Ptx];
    assert!(types.iter().all(|(_, send, sync)| *send && *sync), "{types:?}");
}

#[test]
fn every_type_at_the_top_of_the_crate_is_in_the_list() {
    let bare = |name: &str| name.trim_start_matches("dyn ").split('<').next().map(str::to_owned);
    let listed: Vec<String> = TYPES.iter().filter_map(|(name, ..)| bare(name)).collect();
    let missing: Vec<&str> = include_str!("../src/lib.rs")
        .split("pub use ")
        .skip(1)
        .filter_map(|rest| rest.split(';').next())
        .flat_map(|names| names.split(['{', '}', ',', ' ', '\n', ':']))
        // No object can be made of it.
        .filter(|name| name.starts_with(char::is_uppercase) && *name != "Element")
        .filter(|name| !listed.iter().any(|one| one == name))
        .collect();
    assert_eq!(missing, [""; 0], "say in this file whether threads may share them");
}
