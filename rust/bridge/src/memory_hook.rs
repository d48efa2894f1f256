//! A C++ function that is asked to free memory (`ClientOptions::on_out_of_memory` in `purlin/client.h`).

use std::ffi::c_void;

use purlin_device::MemoryReport;

use crate::memory_report::ffi;

/// Owned: `destroy` is called once, when it is no longer used.
#[repr(C)]
pub struct ForeignMemoryHook {
    /// What the functions take; null: there is no hook.
    data: *mut c_void,
    /// True if it may have freed something. `report` is a `purlin::ffi::MemoryReport`, for the length of the call. Does
    /// not unwind.
    call: unsafe extern "C" fn(data: *mut c_void, report: *const c_void) -> bool,
    /// Does not unwind.
    destroy: unsafe extern "C" fn(data: *mut c_void),
}

// SAFETY: purlin/client.h's contract: the hook is called and destroyed on any thread.
unsafe impl Send for ForeignMemoryHook {}
// SAFETY: the same contract: on several threads at once.
unsafe impl Sync for ForeignMemoryHook {}

impl ForeignMemoryHook {
    /// The hook, unless there is none.
    pub(crate) fn into_hook(self) -> Option<purlin_device::MemoryHook> {
        (!self.data.is_null()).then(|| std::sync::Arc::new(move |report: &MemoryReport| self.ask(report)) as _)
    }

    fn ask(&self, report: &MemoryReport) -> bool {
        let report = ffi::MemoryReport::from(report.clone());
        // SAFETY: C++ gave the function together with the data that it takes, which lives until drop().
        unsafe { (self.call)(self.data, (&raw const report).cast()) }
    }
}

impl Drop for ForeignMemoryHook {
    fn drop(&mut self) {
        if !self.data.is_null() {
            // SAFETY: as above; it is no longer called.
            unsafe { (self.destroy)(self.data) };
        }
    }
}
