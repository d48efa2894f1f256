//! `purlin/executable.h`. Starting a run is a plain function, because its options and its outputs are arrays and
//! structs that the header declares.

use std::any::Any;
use std::ffi::c_char;
use std::mem::{self, offset_of};
use std::ops::Deref;
use std::pin::Pin;
use std::ptr;
use std::sync::Arc;

use cxx::CxxString;
use purlin_async::event::abi::EventHeader;
use purlin_base::status::StatusRep;
use purlin_base::{Error, StatusOr};
use purlin_device::{Buffer, Device};
use purlin_ffi::handle::{self, elements, give, give_handle, share};
use purlin_ffi::panic::{contain, guard, guard_at};
use purlin_ffi::struct_size;
use purlin_ffi::words::{Location, borrowed};
use purlin_program::{Executable, ExecuteOptions, Execution, LoadedExecutable, Outputs};
use smallvec::SmallVec;

use crate::buffer::BufferRep;
use crate::cancel::label;
use crate::device::DeviceRep;
use crate::program::ProgramRep;
use crate::raw_buffer::give_event;

/// What a `purlin::Executable` points to.
pub struct ExecutableRep(pub(crate) Executable);
/// What a `purlin::LoadedExecutable` points to.
pub struct LoadedExecutableRep(LoadedExecutable);
/// What a `purlin::ExecuteContext` points to: C++'s alone.
pub struct ExecuteContextRep(pub(crate) Arc<dyn Any + Send + Sync>);

#[cxx::bridge(namespace = "purlin::ffi")]
pub(crate) mod ffi {
    /// The number of commands of a kind.
    struct CommandCount {
        kind: String,
        count: usize,
    }

    /// A `purlin::ProgramSummary`.
    #[derive(Default)]
    struct ProgramSummary {
        command_counts: Vec<CommandCount>,
        parameter_bytes: usize,
        result_bytes: usize,
        alias_bytes: usize,
        constant_bytes: usize,
        temporary_bytes: usize,
        /// The largest number: not known.
        cost_bytes: usize,
        flops: u64,
    }

    unsafe extern "C++" {
        include!("purlin/internal/abi.h");
        include!("purlin-bridge/src/device.rs.h");
        include!("purlin-bridge/src/program.rs.h");

        #[namespace = "purlin::v0::internal"]
        type StatusRep = crate::status::ffi::StatusRep;
        #[namespace = "purlin::v0::internal"]
        type EventHeader = crate::abi::ffi::EventHeader;
        #[namespace = "purlin::v0::internal"]
        type DeviceRep = crate::device::DeviceRep;
        #[namespace = "purlin::v0::internal"]
        type ProgramRep = crate::program::ProgramRep;
    }

    extern "Rust" {
        #[namespace = "purlin::v0::internal"]
        #[derive(ExternType)]
        type ExecutableRep;
        #[namespace = "purlin::v0::internal"]
        type LoadedExecutableRep;
        #[namespace = "purlin::v0::internal"]
        #[derive(ExternType)]
        type ExecuteContextRep;

        /// An executable, C++'s.
        fn executable_new(program: &ProgramRep) -> *const ExecutableRep;
        unsafe fn executable_retain(executable: *const ExecutableRep);
        unsafe fn executable_release(executable: *const ExecutableRep);
        /// The program, C++'s.
        fn executable_program(executable: &ExecutableRep) -> *const ProgramRep;
        fn executable_summary(executable: &ExecutableRep) -> ProgramSummary;
        /// Appends a few lines.
        fn executable_describe(executable: &ExecutableRep, text: Pin<&mut CxxString>);

        /// A loaded executable, C++'s, or null and an error.
        unsafe fn loaded_executable_load(
            executable: &ExecutableRep,
            devices: *const *const DeviceRep,
            count: usize,
            partition_count: usize,
            error: &mut *const StatusRep,
        ) -> *const LoadedExecutableRep;
        unsafe fn loaded_executable_retain(loaded: *const LoadedExecutableRep);
        unsafe fn loaded_executable_release(loaded: *const LoadedExecutableRep);
        /// The executable, C++'s.
        fn loaded_executable_executable(loaded: &LoadedExecutableRep) -> *const ExecutableRep;
        fn loaded_executable_device_count(loaded: &LoadedExecutableRep) -> usize;
        /// Device `index` of `loaded_executable_device_count`, C++'s.
        fn loaded_executable_device_at(loaded: &LoadedExecutableRep, index: usize) -> *const DeviceRep;
        fn loaded_executable_runs_in_flight(loaded: &LoadedExecutableRep) -> usize;
        /// The event, with one reference, C++'s.
        fn loaded_executable_idle_event(loaded: &LoadedExecutableRep) -> *mut EventHeader;
        /// Null, or an error, C++'s. Blocks.
        fn loaded_executable_quiesce(loaded: &LoadedExecutableRep) -> *const StatusRep;
    }
}

/// As many results of a run cross without an allocation.
const FEW: usize = 4;

/// The results of a run, as `purlin/executable.h` declares them.
#[repr(C)]
pub struct RawOutputs {
    few: [*const BufferRep; FEW],
    /// Null if `few` has all; else a boxed slice of `count` buffers.
    many: *mut *const BufferRep,
    count: usize,
}

/// A run, as `purlin/executable.h` declares it.
#[repr(C)]
pub struct RawExecution {
    outputs: RawOutputs,
    /// With one reference, C++'s.
    done: *mut EventHeader,
}

/// The arguments of one device. Borrowed.
#[repr(C)]
pub struct RawShard {
    /// Each of them alive.
    arguments: *const *const BufferRep,
    count: usize,
}

/// A `purlin::ExecuteOptions`. Borrowed.
#[repr(C)]
pub struct RawExecuteOptions {
    /// The caller's, unchecked.
    struct_size: usize,
    /// Static, ends with a NUL.
    label: *const c_char,
    non_donatable: *const usize,
    non_donatable_count: usize,
    /// Each of them null or alive.
    results: *const *const BufferRep,
    result_count: usize,
    /// Each of them null or alive.
    dependencies: *const *mut EventHeader,
    dependency_count: usize,
    execution_stream_id: i64,
    launch_id: i32,
    caller_waits: bool,
    /// Null or alive.
    context: *const ExecuteContextRep,
}

const _: () = assert!(size_of::<RawOutputs>() == 48 && offset_of!(RawOutputs, many) == 32);
const _: () = assert!(offset_of!(RawOutputs, count) == 40);
const _: () = assert!(size_of::<RawExecution>() == 56 && offset_of!(RawExecution, done) == 48);

/// The first version of `purlin::ExecuteOptions`.
const SMALLEST_OPTIONS_BYTES: usize = 88;

/// Values that are made of references of C++'s, and are never dropped. At their usual number they allocate nothing.
struct Lent<T, const N: usize>(SmallVec<[T; N]>)
where
    [T; N]: smallvec::Array<Item = T>;

impl<T, const N: usize> Drop for Lent<T, N>
where
    [T; N]: smallvec::Array<Item = T>,
{
    fn drop(&mut self) {
        self.0.drain(..).for_each(mem::forget);
    }
}

impl<T, const N: usize> Deref for Lent<T, N>
where
    [T; N]: smallvec::Array<Item = T>,
{
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

/// Buffers of C++'s.
///
/// # Safety
/// `arguments` points to `count` buffers that C++ keeps for as long as the answer lives.
unsafe fn lent(arguments: *const *const BufferRep, count: usize) -> Lent<Buffer, 64> {
    // SAFETY: the caller's promises; the answer drops none of them.
    unsafe { Lent(elements(arguments, count).iter().map(|&word| Buffer::from_pointer(word.cast())).collect()) }
}

impl RawExecuteOptions {
    /// Calls `run` with these options.
    ///
    /// # Errors
    /// `InvalidArgument`: a size that no version has. Those of `run`.
    ///
    /// # Safety
    /// The fields are what the struct says.
    unsafe fn with<R>(&self, run: impl FnOnce(&ExecuteOptions<'_>) -> StatusOr<R>) -> StatusOr<R> {
        struct_size::check("ExecuteOptions", self.struct_size, SMALLEST_OPTIONS_BYTES)?;
        // SAFETY: the caller's promises; `results` drops none of them.
        unsafe {
            let results = elements(self.results, self.result_count).iter();
            let results = results.map(|&word| (!word.is_null()).then(|| Buffer::from_pointer(word.cast())));
            let results: Lent<Option<Buffer>, 16> = Lent(results.collect());
            run(&ExecuteOptions {
                launch_id: self.launch_id,
                label: label(self.label),
                non_donatable_input_indices: elements(self.non_donatable, self.non_donatable_count),
                results: &results,
                dependencies: borrowed(self.dependencies, self.dependency_count),
                caller_waits: self.caller_waits,
                execution_stream_id: self.execution_stream_id,
                context: self.context.as_ref().map(|context| Arc::clone(&context.0)),
                ..ExecuteOptions::default()
            })
        }
    }
}

impl RawOutputs {
    fn of(outputs: Outputs) -> Self {
        let count = outputs.len();
        let mut few = [ptr::null(); FEW];
        if count > FEW {
            let many: Box<[*const BufferRep]> = outputs.into_iter().map(BufferRep::of).collect();
            return Self { few, many: Box::into_raw(many).cast(), count };
        }
        for (word, buffer) in few.iter_mut().zip(outputs) {
            *word = BufferRep::of(buffer);
        }
        Self { few, many: ptr::null_mut(), count }
    }
}

impl RawExecution {
    fn of(execution: Execution) -> Self {
        Self { outputs: RawOutputs::of(execution.outputs), done: execution.done.into_raw() }
    }
}

/// Starts a run, and writes it to `execution`. Null, or an error, C++'s; then nothing is written.
///
/// # Safety
/// `arguments`, `options` and `location` are what their structs say; `execution` may be written, and is not read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_loaded_executable_execute(
    loaded: &LoadedExecutableRep,
    arguments: &RawShard,
    options: &RawExecuteOptions,
    location: Location,
    execution: *mut RawExecution,
) -> *const StatusRep {
    let run = || {
        // SAFETY: the caller's promises.
        unsafe {
            let arguments = lent(arguments.arguments, arguments.count);
            let started = options.with(|options| loaded.0.execute(&arguments, options))?;
            execution.write(RawExecution::of(started));
        }
        Ok(())
    };
    // SAFETY: the caller's promise.
    give(unsafe { guard_at(location, run) })
}

/// Starts a run for each of `shards`, and writes them to `executions`. Null, or an error, C++'s; then nothing is
/// written.
///
/// # Safety
/// As [`purlin_loaded_executable_execute`]; `shards` points to `count` structs, and `executions` to room for as many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_loaded_executable_execute_sharded(
    loaded: &LoadedExecutableRep,
    shards: *const RawShard,
    count: usize,
    options: &RawExecuteOptions,
    location: Location,
    executions: *mut RawExecution,
) -> *const StatusRep {
    let run = || {
        // SAFETY: the caller's promises.
        let started = unsafe {
            let shards = elements(shards, count).iter().map(|shard| lent(shard.arguments, shard.count));
            let shards: Vec<_> = shards.collect();
            let shards: Vec<&[Buffer]> = shards.iter().map(|shard| &**shard).collect();
            options.with(|options| loaded.0.execute_sharded(&shards, options))?
        };
        for (index, execution) in started.into_iter().enumerate() {
            // SAFETY: there is a run for each shard, so the index is less than `count`.
            unsafe { executions.add(index).write(RawExecution::of(execution)) };
        }
        Ok(())
    };
    // SAFETY: the caller's promise.
    give(unsafe { guard_at(location, run) })
}

/// Drops the buffers that C++ has not moved away.
///
/// # Safety
/// `outputs` came from a run, and C++ gives them up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_outputs_release(outputs: &RawOutputs) {
    contain("purlin_outputs_release", (), || {
        let give_up = |&word: &*const BufferRep| {
            if !word.is_null() {
                // SAFETY: the reference is C++'s, which gives it up.
                drop(unsafe { Buffer::from_pointer(word.cast()) });
            }
        };
        if outputs.many.is_null() {
            return outputs.few.iter().take(outputs.count).for_each(give_up);
        }
        // SAFETY: RawOutputs::of() made the slice, with this length, and it is given up once.
        let many = unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(outputs.many, outputs.count)) };
        many.iter().for_each(give_up);
    })
}

fn executable_new(program: &ProgramRep) -> *const ExecutableRep {
    contain("executable_new", ptr::null(), || share(ExecutableRep(Executable::new(program.0.clone()))))
}

/// # Safety
/// C++ holds a reference.
unsafe fn executable_retain(executable: *const ExecutableRep) {
    // SAFETY: the caller's promise.
    unsafe { handle::retain(executable) };
}

/// # Safety
/// C++ gives its reference up.
unsafe fn executable_release(executable: *const ExecutableRep) {
    contain("executable_release", (), || {
        // SAFETY: the caller's promise.
        unsafe { handle::release(executable) };
    })
}

fn executable_program(executable: &ExecutableRep) -> *const ProgramRep {
    contain("executable_program", ptr::null(), || share(ProgramRep(executable.0.program().clone())))
}

fn executable_summary(executable: &ExecutableRep) -> ffi::ProgramSummary {
    contain("executable_summary", ffi::ProgramSummary::default(), || {
        let summary = executable.0.program().summary();
        let counts = summary.command_counts.iter();
        ffi::ProgramSummary {
            command_counts: counts
                .map(|(kind, &count)| ffi::CommandCount { kind: (*kind).to_owned(), count })
                .collect(),
            parameter_bytes: summary.parameter_bytes,
            result_bytes: summary.result_bytes,
            alias_bytes: summary.alias_bytes,
            constant_bytes: summary.constant_bytes,
            temporary_bytes: summary.temporary_bytes,
            cost_bytes: summary.cost_bytes,
            flops: summary.flops,
        }
    })
}

fn executable_describe(executable: &ExecutableRep, text: Pin<&mut CxxString>) {
    contain("executable_describe", (), || {
        text.push_str(&executable.0.describe());
    })
}

/// # Safety
/// `devices` points to `count` devices that are alive.
unsafe fn loaded_executable_load(
    executable: &ExecutableRep,
    devices: *const *const DeviceRep,
    count: usize,
    partition_count: usize,
    error: &mut *const ffi::StatusRep,
) -> *const LoadedExecutableRep {
    let load = || {
        // SAFETY: the caller's promise.
        let devices = unsafe { elements(devices, count) };
        // SAFETY: the caller's promise.
        let devices: Vec<Device> = devices.iter().map(|&device| unsafe { (*device).0.clone() }).collect();
        LoadedExecutable::new(&executable.0, &devices, partition_count).map(LoadedExecutableRep)
    };
    give_handle(guard(load), error)
}

/// # Safety
/// C++ holds a reference.
unsafe fn loaded_executable_retain(loaded: *const LoadedExecutableRep) {
    // SAFETY: the caller's promise.
    unsafe { handle::retain(loaded) };
}

/// # Safety
/// C++ gives its reference up.
unsafe fn loaded_executable_release(loaded: *const LoadedExecutableRep) {
    contain("loaded_executable_release", (), || {
        // SAFETY: the caller's promise.
        unsafe { handle::release(loaded) };
    })
}

fn loaded_executable_executable(loaded: &LoadedExecutableRep) -> *const ExecutableRep {
    contain("loaded_executable_executable", ptr::null(), || share(ExecutableRep(loaded.0.executable().clone())))
}

fn loaded_executable_device_count(loaded: &LoadedExecutableRep) -> usize {
    loaded.0.devices().len()
}

fn loaded_executable_device_at(loaded: &LoadedExecutableRep, index: usize) -> *const DeviceRep {
    contain("loaded_executable_device_at", ptr::null(), || share(DeviceRep(loaded.0.devices()[index].clone())))
}

fn loaded_executable_runs_in_flight(loaded: &LoadedExecutableRep) -> usize {
    contain("loaded_executable_runs_in_flight", 0, || loaded.0.runs_in_flight())
}

fn loaded_executable_idle_event(loaded: &LoadedExecutableRep) -> *mut ffi::EventHeader {
    give_event(|| Ok::<_, Error>(loaded.0.idle_event()))
}

fn loaded_executable_quiesce(loaded: &LoadedExecutableRep) -> *const ffi::StatusRep {
    give(guard(|| loaded.0.quiesce()))
}
