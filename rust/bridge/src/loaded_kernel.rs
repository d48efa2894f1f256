//! `purlin/kernel_loader_spec.h` and `purlin/loaded_kernel.h`. What takes arrays and structs that the headers declare
//! is a plain function.

use std::ffi::{c_char, c_void};
use std::mem::offset_of;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use purlin_async::event::abi::EventHeader;
use purlin_base::status::StatusRep;
use purlin_base::{Error, StatusOr};
use purlin_device::backend::LaunchDimensions;
use purlin_device::{LaunchOptions, RawBuffer};
use purlin_ffi::handle::{self, elements, give, give_handle, share};
use purlin_ffi::number::known;
use purlin_ffi::panic::{contain, guard, guard_at};
use purlin_ffi::struct_size;
use purlin_ffi::words::{Bytes, Location, borrowed, text_of};
use purlin_program::{
    Kernel, KernelArgPackingRelocation, KernelArgPackingSpec, KernelArgsPackingSpec, KernelLaunch, KernelLoaderSpec,
    KernelOperand, KernelPayload, KernelSymbol, LoadedKernel, OperandAccess,
};
use smallvec::SmallVec;

use crate::callback::Callback;
use crate::cancel::label;
use crate::device::DeviceRep;
use crate::kernel::KernelRep;
use crate::program::OPERAND_ACCESSES;
use crate::raw_buffer::RawBufferRep;

/// What a `purlin::LoadedKernel` points to.
pub struct LoadedKernelRep(LoadedKernel);
/// What a `purlin::KernelLaunch` points to.
pub struct KernelLaunchRep(Arc<KernelLaunch>);

#[cxx::bridge(namespace = "purlin::ffi")]
pub(crate) mod ffi {
    unsafe extern "C++" {
        include!("purlin-bridge/src/device.rs.h");

        #[namespace = "purlin::v0::internal"]
        type DeviceRep = crate::device::DeviceRep;
    }

    extern "Rust" {
        #[namespace = "purlin::v0::internal"]
        type LoadedKernelRep;
        #[namespace = "purlin::v0::internal"]
        type KernelLaunchRep;

        unsafe fn loaded_kernel_retain(kernel: *const LoadedKernelRep);
        unsafe fn loaded_kernel_release(kernel: *const LoadedKernelRep);
        /// The device, C++'s.
        fn loaded_kernel_device(kernel: &LoadedKernelRep) -> *const DeviceRep;
        fn loaded_kernel_name(kernel: &LoadedKernelRep) -> &str;

        unsafe fn kernel_launch_retain(launch: *const KernelLaunchRep);
        unsafe fn kernel_launch_release(launch: *const KernelLaunchRep);
    }
}

/// A `purlin::KernelArgPackingRelocation`.
#[repr(C)]
pub struct RawKernelArgPackingRelocation {
    argument_index: u32,
    offset_bytes: usize,
}

/// A `purlin::KernelArgPackingSpec`. Borrowed.
#[repr(C)]
pub struct RawKernelArgument {
    bytes: Bytes,
    relocations: *const RawKernelArgPackingRelocation,
    relocation_count: usize,
}

/// A `purlin::KernelLoaderSpec`. Borrowed, but for `owner`.
#[repr(C)]
pub struct RawKernelLoaderSpec {
    /// A `KernelPayload`, unchecked.
    payload: i32,
    /// Of a text or of machine code.
    code: Bytes,
    /// Of a symbol.
    address: *mut c_void,
    /// Null, or destroyed uncalled when the symbol is not needed any more. Taken over.
    owner: *const Callback,
    kernel_name: Bytes,
    arity: u32,
    has_packing: bool,
    arguments: *const RawKernelArgument,
    argument_count: usize,
}

/// A `purlin::LaunchDimensions`.
#[repr(C)]
pub struct RawLaunchDimensions {
    grid: [u32; 3],
    block: [u32; 3],
    shared_memory_bytes: u32,
}

/// A `purlin::KernelOperand`.
#[repr(C)]
pub struct RawKernelOperand {
    /// Unchecked.
    access: u8,
    size_bytes: usize,
}

/// A `purlin::LaunchOptions`. Borrowed.
#[repr(C)]
pub struct RawLaunchOptions {
    /// The caller's, unchecked.
    struct_size: usize,
    /// Static, ends with a NUL.
    label: *const c_char,
    /// Each of them null or alive.
    dependencies: *const *mut EventHeader,
    dependency_count: usize,
    size_bytes: usize,
    launch_id: i32,
    stream: u8,
    caller_waits: bool,
}

const _: () = assert!(size_of::<RawKernelArgPackingRelocation>() == 16);
const _: () = assert!(offset_of!(RawKernelArgPackingRelocation, offset_bytes) == 8);
const _: () = assert!(size_of::<RawLaunchDimensions>() == 28 && offset_of!(RawLaunchDimensions, block) == 12);
const _: () = assert!(offset_of!(RawLaunchDimensions, shared_memory_bytes) == 24);
const _: () = assert!(size_of::<RawKernelOperand>() == 16 && offset_of!(RawKernelOperand, size_bytes) == 8);

/// The first version of `purlin::LaunchOptions`.
const SMALLEST_OPTIONS_BYTES: usize = 48;

impl RawKernelArgument {
    /// # Errors
    /// `InvalidArgument`: a relocation outside of the bytes.
    ///
    /// # Safety
    /// The fields are what the struct says.
    unsafe fn get(&self) -> StatusOr<KernelArgPackingSpec> {
        // SAFETY: the caller's promise.
        let (bytes, relocations) = unsafe {
            (
                elements(self.bytes.data.cast::<u8>(), self.bytes.size_bytes),
                elements(self.relocations, self.relocation_count),
            )
        };
        let relocations = relocations.iter().map(|&RawKernelArgPackingRelocation { argument_index, offset_bytes }| {
            KernelArgPackingRelocation { argument_index, offset_bytes }
        });
        KernelArgPackingSpec::new(bytes.to_vec(), relocations.collect())
    }
}

impl RawKernelLoaderSpec {
    /// # Errors
    /// `InvalidArgument`: what no spec can be.
    ///
    /// # Safety
    /// The fields are what the struct says.
    unsafe fn get(&self) -> StatusOr<KernelLoaderSpec> {
        // SAFETY: the caller gives it up, so this is the only one.
        let owner = (!self.owner.is_null()).then(|| unsafe { self.owner.read() });
        // SAFETY: the caller's promise.
        let (code, name, arguments) = unsafe {
            (
                elements(self.code.data.cast::<u8>(), self.code.size_bytes),
                elements(self.kernel_name.data.cast::<u8>(), self.kernel_name.size_bytes),
                elements(self.arguments, self.argument_count),
            )
        };
        let name = text_of(name).map_err(|error| error.prefixed("the name of a kernel"))?;
        let values = [("kPtx", Form::Ptx), ("kCubin", Form::Cubin), ("kInProcessSymbol", Form::InProcessSymbol)];
        let payload = match known("KernelPayload", self.payload, &values)? {
            Form::Ptx => KernelPayload::Ptx(
                text_of(code).map_err(|error| error.prefixed(format_args!("the PTX of '{name}'")))?.into(),
            ),
            Form::Cubin => KernelPayload::Cubin(code.into()),
            Form::InProcessSymbol => {
                let null = || Error::invalid_argument(format!("the address of the kernel '{name}' is null"));
                let address = NonNull::new(self.address).ok_or_else(null)?;
                // SAFETY: the caller's promise, which is that of C++'s header.
                let symbol = unsafe { KernelSymbol::new(address, Arc::new(owner)) };
                KernelPayload::InProcessSymbol { symbol, persistent_name: None }
            }
        };
        let spec = KernelLoaderSpec::new(payload, name, self.arity)?;
        if !self.has_packing {
            return Ok(spec);
        }
        let mut packing = KernelArgsPackingSpec::default();
        for (number, argument) in arguments.iter().enumerate() {
            // SAFETY: the caller's promise.
            let argument = unsafe { argument.get() };
            packing.push(argument.map_err(|error| error.prefixed(format_args!("argument {number} of '{name}'")))?);
        }
        Ok(spec.with_packing(packing))
    }
}

/// A `purlin::KernelPayload`.
#[derive(Clone, Copy)]
enum Form {
    Ptx,
    Cubin,
    InProcessSymbol,
}

impl From<&RawLaunchDimensions> for LaunchDimensions {
    fn from(raw: &RawLaunchDimensions) -> Self {
        Self { grid: raw.grid, block: raw.block, shared_memory_bytes: raw.shared_memory_bytes }
    }
}

impl RawKernelOperand {
    /// # Errors
    /// `InvalidArgument`: no access of that number.
    fn get(&self) -> StatusOr<KernelOperand> {
        let access: OperandAccess = known("OperandAccess", self.access, &OPERAND_ACCESSES)?;
        Ok(KernelOperand { access, size_bytes: self.size_bytes })
    }
}

/// A kernel, C++'s, or null and an error. The owner in `spec` is taken over.
///
/// # Safety
/// `spec` is what its struct says. A symbol is a kernel of the device's platform, which any thread may launch until the
/// owner is destroyed, without one for ever.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_loaded_kernel_load(
    device: &DeviceRep,
    spec: &RawKernelLoaderSpec,
    error: &mut *const StatusRep,
) -> *const LoadedKernelRep {
    // SAFETY: the caller's promises.
    let loaded = guard(|| LoadedKernel::load(&device.0, &unsafe { spec.get() }?));
    give_handle(loaded.map(LoadedKernelRep), error)
}

/// A kernel of programs, C++'s, or null and an error. The owner in `spec` is taken over.
///
/// # Safety
/// As [`purlin_loaded_kernel_load`], for each device that a program with the kernel is loaded for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_kernel_of_device(
    spec: &RawKernelLoaderSpec,
    block_x: u64,
    block_y: u64,
    block_z: u64,
    shared_memory_bytes: u32,
    error: &mut *const StatusRep,
) -> *const KernelRep {
    let made = guard(|| {
        // SAFETY: the caller's promises. First: the owner is given up whatever the threads are.
        let spec = unsafe { spec.get() }?;
        let mut block = [0; 3];
        for (to, threads) in block.iter_mut().zip([block_x, block_y, block_z]) {
            let many = |_| {
                let name = spec.kernel_name();
                Error::invalid_argument(format!("a block of '{name}' has no {threads} threads in one dimension"))
            };
            *to = u32::try_from(threads).map_err(many)?;
        }
        Ok(KernelRep(Kernel::of_device(spec, block, shared_memory_bytes)))
    });
    give_handle(made, error)
}

/// A launch, C++'s, or null and an error.
///
/// # Safety
/// `operands` points to `count` structs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_loaded_kernel_bind(
    kernel: &LoadedKernelRep,
    dimensions: &RawLaunchDimensions,
    operands: *const RawKernelOperand,
    count: usize,
    error: &mut *const StatusRep,
) -> *const KernelLaunchRep {
    let bound = guard(|| {
        // SAFETY: the caller's promise.
        let operands = unsafe { elements(operands, count) }.iter().map(RawKernelOperand::get);
        kernel.0.bind(dimensions.into(), &operands.collect::<StatusOr<Vec<_>>>()?)
    });
    give_handle(bound.map(KernelLaunchRep), error)
}

/// Starts a launch, and writes its event to `done`, with one reference, C++'s. Null, or an error, C++'s; then nothing
/// is written.
///
/// # Safety
/// `memory` points to `count` buffers that are alive; `options` and `location` are what their structs say; `done` may
/// be written. As [`KernelLaunch::start`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_kernel_launch_start(
    launch: &KernelLaunchRep,
    memory: *const *const RawBufferRep,
    count: usize,
    options: &RawLaunchOptions,
    location: Location,
    done: &mut *mut EventHeader,
) -> *const StatusRep {
    let start = || {
        struct_size::check("LaunchOptions", options.struct_size, SMALLEST_OPTIONS_BYTES)?;
        // SAFETY: the caller's promises.
        unsafe {
            let memory: SmallVec<[&RawBuffer; 16]> =
                elements(memory, count).iter().map(|&buffer| &(*buffer).0).collect();
            let options = LaunchOptions {
                label: label(options.label),
                launch_id: options.launch_id,
                stream: options.stream,
                size_bytes: options.size_bytes,
                dependencies: borrowed(options.dependencies, options.dependency_count),
                caller_waits: options.caller_waits,
            };
            *done = launch.0.start(&memory, &options)?.into_raw();
        }
        Ok(())
    };
    // SAFETY: the caller's promise.
    give(unsafe { guard_at(location, start) })
}

/// # Safety
/// C++ holds a reference.
unsafe fn loaded_kernel_retain(kernel: *const LoadedKernelRep) {
    // SAFETY: the caller's promise.
    unsafe { handle::retain(kernel) };
}

/// # Safety
/// C++ gives its reference up.
unsafe fn loaded_kernel_release(kernel: *const LoadedKernelRep) {
    contain("loaded_kernel_release", (), || {
        // SAFETY: the caller's promise.
        unsafe { handle::release(kernel) };
    })
}

fn loaded_kernel_device(kernel: &LoadedKernelRep) -> *const DeviceRep {
    contain("loaded_kernel_device", ptr::null(), || share(DeviceRep(kernel.0.device().clone())))
}

fn loaded_kernel_name(kernel: &LoadedKernelRep) -> &str {
    kernel.0.spec().kernel_name()
}

/// # Safety
/// C++ holds a reference.
unsafe fn kernel_launch_retain(launch: *const KernelLaunchRep) {
    // SAFETY: the caller's promise.
    unsafe { handle::retain(launch) };
}

/// # Safety
/// C++ gives its reference up.
unsafe fn kernel_launch_release(launch: *const KernelLaunchRep) {
    contain("kernel_launch_release", (), || {
        // SAFETY: the caller's promise.
        unsafe { handle::release(launch) };
    })
}
