//! Kernels: native functions that take XLA:CPU's call frame, Rust closures, or code of a device.
//!
//! A command calls its kernel once for each workgroup of its grid, with the operands in their order. The workgroups of
//! a large native kernel are given out to several threads, and several runs may call a kernel at once. The code of a
//! native kernel belongs to an owner, which each clone of the kernel keeps alive. A call can fail by the kernel's
//! answer, and a closure also by a panic; both fail the run.

#![allow(unsafe_code, reason = "kernels are functions that take addresses")]

use std::any::Any;
use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

use crate::kernels::KernelLoaderSpec;
use purlin_base::{Error, StatusOr};

/// A position in a grid of workgroups, or its size, in the layout of XLA:CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct KernelDim3 {
    /// The fastest dimension.
    pub x: u64,
    /// The middle dimension.
    pub y: u64,
    /// The slowest dimension.
    pub z: u64,
}

/// An operand, in the layout of XLA:CPU.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct KernelArgument {
    /// The address of the first byte; null if the operand is thread-local.
    pub data: *mut c_void,
    /// The number of bytes.
    pub size_bytes: usize,
}

/// The argument of a native kernel: XLA:CPU's call frame, as of 2025 and 2026.
///
/// ```
/// use purlin::program::{KernelArgument, KernelDim3, KernelFrame};
///
/// let one = KernelDim3 { x: 1, y: 1, z: 1 };
/// let id = KernelDim3 { x: 0, y: 0, z: 0 };
/// let mut sum = 0.0_f32;
/// let arguments = [KernelArgument { data: (&raw mut sum).cast(), size_bytes: 4 }];
/// let frame = KernelFrame { num_workgroups: &one, id: &id, num_args: 1, args: arguments.as_ptr() };
/// assert_eq!((size_of_val(&frame), frame.num_args), (32, 1));
/// ```
#[derive(Debug)]
#[repr(C)]
pub struct KernelFrame {
    /// The size of the grid.
    pub num_workgroups: *const KernelDim3,
    /// The workgroup of this call.
    pub id: *const KernelDim3,
    /// The number of operands.
    pub num_args: usize,
    /// The operands, arguments before results.
    pub args: *const KernelArgument,
}

/// A native kernel. It returns null if it succeeds, and any other pointer if it fails.
pub type KernelFunction = unsafe extern "C" fn(*const KernelFrame) -> *mut c_void;

/// The argument of a closure: the bytes of the operands, as slices.
///
/// ```
/// use purlin::program::{Kernel, KernelCall};
///
/// let add_one = Kernel::from_fn("add_one", |call: KernelCall<'_, '_>| {
///     for (to, from) in call.writes[0].iter_mut().zip(call.reads[0]) {
///         *to = from.wrapping_add(1);
///     }
///     Ok(())
/// });
/// assert_eq!(format!("{add_one:?}"), "Kernel('add_one')");
/// ```
#[derive(Debug)]
pub struct KernelCall<'call, 'bytes> {
    /// The workgroup of this call.
    pub workgroup: [u64; 3],
    /// The size of the grid.
    pub workgroups: [u64; 3],
    /// The operands that are only read, in their order.
    pub reads: &'call [&'bytes [u8]],
    /// The operands that are written, in their order. An operand that is only written has unspecified bytes before the
    /// call.
    pub writes: &'call mut [&'bytes mut [u8]],
}

/// A closure over the bytes of its operands.
pub type KernelClosure = dyn Fn(KernelCall<'_, '_>) -> Result<(), Error> + Send + Sync;

/// The code of a kernel, and its name. Clones share the code.
#[derive(Clone)]
pub struct Kernel {
    name: Arc<str>,
    code: KernelCode,
}

/// The kinds of code, and none.
#[derive(Clone)]
pub(crate) enum KernelCode {
    Native {
        function: KernelFunction,
        _owner: Arc<dyn Any + Send + Sync>,
    },
    Closure(Arc<KernelClosure>),
    /// What devices load.
    OfDevice(Arc<DeviceKernelCode>),
    /// Native code that does not exist yet. No program has such a kernel.
    Unbound,
}

/// The code of a kernel of devices, and its blocks of threads.
pub(crate) struct DeviceKernelCode {
    pub(crate) spec: KernelLoaderSpec,
    pub(crate) block: [u32; 3],
    pub(crate) shared_memory_bytes: u32,
}

impl Kernel {
    /// A kernel of devices, which each device loads. `workgroups` of its command are the blocks of its grid, `block`
    /// the threads of each, and `shared_memory_bytes` their dynamic shared memory. The addresses that the spec's
    /// packing names are those of the command's operands, in their order. A program with such a kernel runs on
    /// platforms that load kernels, and all its commands are then the device's.
    ///
    /// ```
    /// use purlin::program::{Kernel, KernelLoaderSpec, KernelPayload};
    ///
    /// let spec = KernelLoaderSpec::new(KernelPayload::Ptx(".version 8.0 ...".into()), "scale", 2)?;
    /// assert_eq!(Kernel::of_device(spec, [256, 1, 1], 0).name(), "scale");
    /// # Ok::<(), purlin::Error>(())
    /// ```
    #[must_use]
    pub fn of_device(spec: KernelLoaderSpec, block: [u32; 3], shared_memory_bytes: u32) -> Self {
        let name = spec.kernel_name().into();
        Self { name, code: KernelCode::OfDevice(Arc::new(DeviceKernelCode { spec, block, shared_memory_bytes })) }
    }

    /// A native function, whose code stays mapped while `owner` has a reference.
    ///
    /// # Safety
    /// As long as `owner` lives, any thread may call `function` with a frame whose operands are those of a command that
    /// names this kernel, also for several workgroups of one command at once: a workgroup accesses no byte that another
    /// one writes. The function accesses no bytes but those of its operands. It reads no bytes of a write-only operand
    /// before it has written them. It writes no operand that is only read. It does not unwind, and it returns.
    ///
    /// # Examples
    /// ```
    /// use std::ffi::c_void;
    /// use std::sync::Arc;
    ///
    /// use purlin::program::{Kernel, KernelFrame};
    ///
    /// /// Adds one to an f32.
    /// unsafe extern "C" fn add_one(frame: *const KernelFrame) -> *mut c_void {
    ///     // SAFETY: the frame has two operands of four bytes.
    ///     unsafe {
    ///         let args = (*frame).args;
    ///         *(*args.add(1)).data.cast::<f32>() = *(*args).data.cast::<f32>() + 1.0;
    ///     }
    ///     std::ptr::null_mut()
    /// }
    ///
    /// // SAFETY: the function is part of this program, and touches what its operands are.
    /// let kernel = unsafe { Kernel::native("add_one", add_one, Arc::new(())) };
    /// assert_eq!(kernel.name(), "add_one");
    /// ```
    #[must_use]
    pub unsafe fn native(
        name: impl Into<Arc<str>>,
        function: KernelFunction,
        owner: Arc<dyn Any + Send + Sync>,
    ) -> Self {
        Self { name: name.into(), code: KernelCode::Native { function, _owner: owner } }
    }

    /// A closure. Any thread may call it, several at once: for other runs, and for commands of one run that are
    /// independent. The workgroups of one command are called one after the other, because each gets all of the bytes.
    /// If it panics, the run fails. The bytes that it reads are disjoint from those that it writes: validation refuses
    /// other commands.
    #[must_use]
    pub fn from_fn(
        name: impl Into<Arc<str>>,
        closure: impl Fn(KernelCall<'_, '_>) -> Result<(), Error> + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), code: KernelCode::Closure(Arc::new(closure)) }
    }

    /// A native kernel without code. Only an [`UnboundProgram`](crate::UnboundProgram) may name it, whose `bind` puts a
    /// kernel with code in its place.
    ///
    /// ```
    /// use purlin::program::Kernel;
    ///
    /// assert_eq!(Kernel::unbound("add_one").name(), "add_one");
    /// ```
    #[must_use]
    pub fn unbound(name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), code: KernelCode::Unbound }
    }

    /// The name, which errors show.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn code(&self) -> &KernelCode {
        &self.code
    }

    /// Whether the code takes addresses. A closure takes slices instead, which must be valid and disjoint.
    pub(crate) fn takes_addresses(&self) -> bool {
        !matches!(self.code, KernelCode::Closure(_))
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kernel('{}')", self.name)
    }
}

const _: () = {
    assert!(size_of::<KernelFrame>() == 32 && size_of::<KernelArgument>() == 16 && size_of::<KernelDim3>() == 24);
    assert!(std::mem::offset_of!(KernelFrame, args) == 24 && std::mem::offset_of!(KernelArgument, size_bytes) == 8);
};

/// The number of workgroups of a grid.
///
/// # Errors
/// `InvalidArgument`: the grid has more workgroups than a `u64` counts.
pub(crate) fn workgroup_count(workgroups: [u64; 3]) -> StatusOr<u64> {
    let [x, y, z] = workgroups;
    x.checked_mul(y).and_then(|plane| plane.checked_mul(z)).ok_or_else(|| {
        Error::invalid_argument(format!("a grid of {x} x {y} x {z} workgroups has more than a u64 counts"))
    })
}
