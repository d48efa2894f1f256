//! An executor that C++ implements (`purlin/internal/executor_ref.h`), as one of ours.

use std::ffi::c_void;
use std::mem::offset_of;

use purlin_async::task::node::TaskNode;
use purlin_async::{Executor, Task};
use purlin_base::Error;
use purlin_base::status::{self, StatusRep};

/// The executor, as `purlin/internal/executor_ref.h` declares it. Owned: `release` is called once, when it is no longer
/// used.
#[repr(C)]
pub struct ForeignExecutor {
    data: *mut c_void,
    /// Takes the task over; null, or an error, the caller's, when the task has been destroyed. Does not unwind.
    execute: unsafe extern "C" fn(data: *mut c_void, task: *mut TaskNode) -> *const StatusRep,
    /// Does not unwind.
    release: unsafe extern "C" fn(data: *mut c_void),
}

const _: () = assert!(size_of::<ForeignExecutor>() == 24 && offset_of!(ForeignExecutor, data) == 0);
const _: () = assert!(offset_of!(ForeignExecutor, execute) == 8 && offset_of!(ForeignExecutor, release) == 16);

// SAFETY: an Executor may be used and destroyed on any thread, says its contract in purlin/executor.h.
unsafe impl Send for ForeignExecutor {}
// SAFETY: as above.
unsafe impl Sync for ForeignExecutor {}

impl Executor for ForeignExecutor {
    fn execute(&self, task: Task) -> Result<(), Error> {
        // SAFETY: C++ gave the function together with the data that it takes, and gives an error away.
        unsafe { status::from_raw((self.execute)(self.data, task.into_raw())) }
    }
}

impl Drop for ForeignExecutor {
    fn drop(&mut self) {
        // SAFETY: the only call.
        unsafe { (self.release)(self.data) };
    }
}
