//! Code that computes: a function of XLA:CPU's frame, or a closure.
//!
//! A kernel is called once for each workgroup of its grid, on one thread or several, with the addresses of its operands
//! in their order. A native kernel is code that somebody linked; it is kept by its owner, for as long as a clone of the
//! kernel lives.

#![allow(unsafe_code, reason = "kernels are functions that take addresses")]

use std::any::Any;
use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

use purlin_base::{Error, StatusOr};

/// Three numbers of a grid, as XLA:CPU's kernels take them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct KernelDim3 {
    /// The fastest.
    pub x: u64,
    /// The next.
    pub y: u64,
    /// The slowest.
    pub z: u64,
}

/// An operand, as XLA:CPU's kernels take it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct KernelArgument {
    /// The first byte; null if the operand is thread-local.
    pub data: *mut c_void,
    /// How many bytes.
    pub size_bytes: usize,
}

/// What a native kernel is called with: XLA:CPU's call frame, version of 2025 and 2026.
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
    /// Which workgroup this call is.
    pub id: *const KernelDim3,
    /// How many operands follow.
    pub num_args: usize,
    /// The operands, arguments before results.
    pub args: *const KernelArgument,
}

/// A native kernel. It answers null, or a pointer of its own that says that it has failed.
pub type KernelFunction = unsafe extern "C" fn(*const KernelFrame) -> *mut c_void;

/// What a closure is called with: the bytes of the operands, as slices.
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
    /// Which workgroup of the grid this call is.
    pub workgroup: [u64; 3],
    /// The size of the grid.
    pub workgroups: [u64; 3],
    /// The operands that are only read, in their order.
    pub reads: &'call [&'bytes [u8]],
    /// The operands that are written, in their order. What is only written has unspecified bytes before.
    pub writes: &'call mut [&'bytes mut [u8]],
}

/// A closure over the bytes of its operands.
pub type KernelClosure = dyn Fn(KernelCall<'_, '_>) -> Result<(), Error> + Send + Sync;

/// Code that computes, and its name. Clones share it.
#[derive(Clone)]
pub struct Kernel {
    name: Arc<str>,
    code: KernelCode,
}

/// Of which kind a kernel's code is.
#[derive(Clone)]
pub(crate) enum KernelCode {
    Native { function: KernelFunction, _owner: Arc<dyn Any + Send + Sync> },
    Closure(Arc<KernelClosure>),
}

impl Kernel {
    /// A function that `owner` keeps where it is, for as long as a reference to that lives.
    ///
    /// # Safety
    /// As long as `owner` lives, any thread may call `function` with a frame whose operands are those of a command that
    /// names this kernel. It reads and writes no bytes but those, reads no operand that is only written before it has
    /// written it, writes no operand that is only read, does not unwind, and comes back.
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

    /// A closure. It may be called on any thread, on several at once; a panic of it fails the run. What it reads is
    /// disjoint from what it writes: validation refuses commands in which it is not.
    #[must_use]
    pub fn from_fn(
        name: impl Into<Arc<str>>,
        closure: impl Fn(KernelCall<'_, '_>) -> Result<(), Error> + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), code: KernelCode::Closure(Arc::new(closure)) }
    }

    /// As errors name it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn code(&self) -> &KernelCode {
        &self.code
    }

    /// Whether it takes addresses, and not slices that Rust promises to be there and disjoint.
    pub(crate) fn takes_addresses(&self) -> bool {
        matches!(self.code, KernelCode::Native { .. })
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

/// The size of a grid, checked.
///
/// # Errors
/// More workgroups than a `u64` counts.
pub(crate) fn workgroup_count(workgroups: [u64; 3]) -> StatusOr<u64> {
    let [x, y, z] = workgroups;
    x.checked_mul(y).and_then(|plane| plane.checked_mul(z)).ok_or_else(|| {
        Error::invalid_argument(format!("a grid of {x} x {y} x {z} workgroups has more than a u64 counts"))
    })
}
