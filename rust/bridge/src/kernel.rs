//! `purlin/kernel.h`. Making a kernel is a plain function, because it takes code.

use std::ffi::c_void;
use std::mem::offset_of;
use std::ptr;
use std::sync::Arc;

use purlin_base::Error;
use purlin_base::status::{self, StatusRep};
use purlin_ffi::handle::{self, elements, share};
use purlin_ffi::panic::contain;
use purlin_ffi::words::Bytes;
use purlin_program::{Kernel, KernelCall, KernelFunction};
use smallvec::SmallVec;

use crate::callback::Callback;

/// What a `purlin::Kernel` points to.
pub struct KernelRep(pub(crate) Kernel);

#[cxx::bridge(namespace = "purlin::ffi")]
pub(crate) mod ffi {
    extern "Rust" {
        #[namespace = "purlin::v0::internal"]
        type KernelRep;

        unsafe fn kernel_retain(kernel: *const KernelRep);
        unsafe fn kernel_release(kernel: *const KernelRep);
        fn kernel_name(kernel: &KernelRep) -> &str;
    }
}

/// The bytes of an operand: a `Span<std::byte>`.
#[repr(C)]
struct RawSpan {
    data: *const u8,
    size_bytes: usize,
}

/// A `purlin::KernelCall`.
#[repr(C)]
pub struct RawKernelCall {
    workgroup: [u64; 3],
    workgroups: [u64; 3],
    reads: *const RawSpan,
    read_count: usize,
    writes: *const RawSpan,
    write_count: usize,
}

/// A closure, as `purlin/internal/kernel_callback.h` declares it. Owned: `destroy` is called once, when it is no longer
/// called.
#[repr(C)]
pub struct ForeignKernel {
    data: *mut c_void,
    /// Null, or an error, Rust's. Does not unwind.
    call: unsafe extern "C" fn(data: *mut c_void, argument: *const RawKernelCall) -> *const StatusRep,
    /// Does not unwind.
    destroy: unsafe extern "C" fn(data: *mut c_void),
}

const _: () = assert!(size_of::<RawKernelCall>() == 80 && offset_of!(RawKernelCall, workgroups) == 24);
const _: () = assert!(offset_of!(RawKernelCall, reads) == 48 && offset_of!(RawKernelCall, writes) == 64);
const _: () = assert!(size_of::<ForeignKernel>() == 24 && offset_of!(ForeignKernel, data) == 0);
const _: () = assert!(offset_of!(ForeignKernel, call) == 8 && offset_of!(ForeignKernel, destroy) == 16);

// SAFETY: purlin/kernel.h's contract: the closure is called and destroyed on any thread.
unsafe impl Send for ForeignKernel {}
// SAFETY: the same contract: it is called on several threads at once.
unsafe impl Sync for ForeignKernel {}

impl ForeignKernel {
    /// # Errors
    /// That of the closure.
    fn call(&self, call: KernelCall<'_, '_>) -> Result<(), Error> {
        let reads = call.reads.iter().map(|read| RawSpan { data: read.as_ptr(), size_bytes: read.len() });
        let reads: SmallVec<[RawSpan; 8]> = reads.collect();
        let writes = call.writes.iter_mut().map(|write| RawSpan { data: write.as_mut_ptr(), size_bytes: write.len() });
        let writes: SmallVec<[RawSpan; 4]> = writes.collect();
        let argument = RawKernelCall {
            workgroup: call.workgroup,
            workgroups: call.workgroups,
            reads: reads.as_ptr(),
            read_count: reads.len(),
            writes: writes.as_ptr(),
            write_count: writes.len(),
        };
        // SAFETY: C++ gave the function together with the data that it takes, which lives until drop(). The operands
        // are borrowed for the length of the call, those that it may write mutably.
        unsafe { status::from_raw((self.call)(self.data, &raw const argument)) }
    }
}

impl Drop for ForeignKernel {
    fn drop(&mut self) {
        // SAFETY: as above; it is no longer called.
        unsafe { (self.destroy)(self.data) };
    }
}

/// The text of a name.
///
/// # Safety
/// It is bytes that stay readable for the length of the call.
pub(crate) unsafe fn name_of(name: Bytes) -> Arc<str> {
    // SAFETY: the caller's promise.
    String::from_utf8_lossy(unsafe { elements(name.data.cast::<u8>(), name.size_bytes) }).into()
}

/// A kernel, C++'s. `owner`, if it is not null, is taken over, and destroyed uncalled when the code is not needed any
/// more.
///
/// # Safety
/// `name` is readable; `owner` is null or a callback that the caller gives up; until it is destroyed, without it for
/// ever, `function` is what [`Kernel::native`] asks for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_kernel_native(
    name: Bytes,
    function: KernelFunction,
    owner: *const Callback,
) -> *const KernelRep {
    contain("purlin_kernel_native", ptr::null(), || {
        // SAFETY: the caller gives it up, so this is the only one.
        let owner = (!owner.is_null()).then(|| unsafe { owner.read() });
        // SAFETY: the caller's promises.
        share(KernelRep(unsafe { Kernel::native(name_of(name), function, Arc::new(owner)) }))
    })
}

/// A kernel, C++'s. `closure` is taken over.
///
/// # Safety
/// `name` is readable; `closure` is what its struct says, and the caller gives it up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_kernel_from_closure(name: Bytes, closure: *const ForeignKernel) -> *const KernelRep {
    contain("purlin_kernel_from_closure", ptr::null(), || {
        // SAFETY: the caller gives it up, so this is the only one.
        let closure = unsafe { closure.read() };
        // SAFETY: the caller's promise.
        share(KernelRep(Kernel::from_fn(unsafe { name_of(name) }, move |call| closure.call(call))))
    })
}

/// # Safety
/// C++ holds a reference.
unsafe fn kernel_retain(kernel: *const KernelRep) {
    // SAFETY: the caller's promise.
    unsafe { handle::retain(kernel) };
}

/// # Safety
/// C++ gives its reference up.
unsafe fn kernel_release(kernel: *const KernelRep) {
    contain("kernel_release", (), || {
        // SAFETY: the caller's promise.
        unsafe { handle::release(kernel) };
    })
}

fn kernel_name(kernel: &KernelRep) -> &str {
    kernel.0.name()
}
