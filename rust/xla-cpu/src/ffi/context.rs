//! The context of one call of a handler: what the functions of the table know about the call.
//!
//! A handler may pass the context to tasks of its own, so any thread may use it until the call is over.

#![allow(unsafe_code, reason = "scratch memory is given out by address; tasks are the user's functions")]

use std::alloc::{Layout, alloc, dealloc};
use std::ffi::{c_int, c_void};

use purlin_base::sync::Mutex;
use purlin_base::{Error, StatusOr, panics};
use purlin_program::LibraryContext;

use super::abi::{Stage, TaskFunction};
use super::handlers::FfiUserData;
use super::state::StateSlot;

/// The states that a call can reach: of the program, and of the run's two stages before `execute`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct States<'a> {
    pub(crate) instantiate: &'a StateSlot,
    pub(crate) prepare: &'a StateSlot,
    pub(crate) initialize: &'a StateSlot,
}

/// What `XLA_FFI_ExecutionContext` points to.
pub(crate) struct Context<'a> {
    stage: Stage,
    /// The run; `None` in the stage `instantiate`.
    run: Option<&'a LibraryContext<'a>>,
    states: States<'a>,
    scratch: Mutex<Vec<Scratch>>,
}

/// Memory that a handler has allocated and not freed. It is freed with this.
struct Scratch {
    address: *mut u8,
    layout: Layout,
    /// As it was asked for.
    size_bytes: usize,
}

// SAFETY: the memory is the handler's, by address, and this only frees it.
unsafe impl Send for Scratch {}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SAFETY: the memory was allocated with this layout, and is freed once, here.
        unsafe { dealloc(self.address, self.layout) };
    }
}

impl<'a> Context<'a> {
    pub(crate) fn new(stage: Stage, run: Option<&'a LibraryContext<'a>>, states: States<'a>) -> Self {
        Self { stage, run, states, scratch: Mutex::new(Vec::new()) }
    }

    fn run(&self, what: &str) -> StatusOr<&'a LibraryContext<'a>> {
        self.run.ok_or_else(|| Error::failed_precondition(format!("the stage 'instantiate' has no {what}")))
    }

    /// The value that the caller of the run has given for that type.
    pub(crate) fn user_data(&self, id: i64) -> StatusOr<*mut c_void> {
        let data = self.run("user data")?.user::<FfiUserData>();
        data.and_then(|data| data.get(id)).ok_or_else(|| {
            Error::not_found(format!("the context of the run has no user data of type {id} (FfiUserData)"))
        })
    }

    /// Sets the state of a stage, which must be the one that is running.
    pub(crate) fn set_state(&self, stage: c_int, id: i64, object: *mut c_void) -> Result<(), Error> {
        let slot = self.slot(stage)?;
        if stage != self.stage as c_int {
            return Err(Error::failed_precondition(format!(
                "the state of stage {stage} cannot be set in stage '{}'",
                self.stage.name()
            )));
        }
        slot.set(id, object)
    }

    pub(crate) fn state(&self, stage: c_int, id: i64) -> StatusOr<*mut c_void> {
        self.slot(stage)?.get(id)
    }

    fn slot(&self, stage: c_int) -> StatusOr<&'a StateSlot> {
        match stage {
            0 => Ok(self.states.instantiate),
            1 => Ok(self.states.prepare),
            2 => Ok(self.states.initialize),
            other => Err(Error::invalid_argument(format!("stage {other} has no state"))),
        }
    }

    /// Memory that is freed when the call is over, at the latest.
    pub(crate) fn allocate(&self, size_bytes: usize, alignment: usize) -> StatusOr<*mut c_void> {
        self.run("memory of a device")?;
        let refused = || Error::invalid_argument(format!("{size_bytes} bytes aligned to {alignment}"));
        let layout = Layout::from_size_align(size_bytes.max(1), alignment.max(1)).map_err(|_| refused())?;
        // SAFETY: the layout has a size.
        let address = unsafe { alloc(layout) };
        if address.is_null() {
            return Err(Error::resource_exhausted(format!("no {size_bytes} bytes for an XLA FFI handler")));
        }
        self.scratch.lock().push(Scratch { address, layout, size_bytes });
        Ok(address.cast())
    }

    pub(crate) fn free(&self, size_bytes: usize, data: *mut c_void) -> Result<(), Error> {
        let freed = {
            let mut scratch = self.scratch.lock();
            let at = scratch.iter().position(|one| one.address == data.cast() && one.size_bytes == size_bytes);
            at.map(|at| scratch.swap_remove(at))
        };
        match freed {
            Some(_) => Ok(()),
            None => Err(Error::invalid_argument(format!("this call has no {size_bytes} bytes at {data:p}"))),
        }
    }

    /// Runs a task once: on the client's pool, or inside this call if the pool has shut down.
    ///
    /// # Safety
    /// `task` may be called with `data` on any thread.
    pub(crate) unsafe fn schedule(&self, task: TaskFunction, data: *mut c_void) -> Result<(), Error> {
        let run = self.run("threads")?;
        let scheduled = Scheduled { task, data };
        // A pool that refuses the task drops it, which runs it.
        drop(run.spawn(c"XLA FFI handler's task", move || drop(scheduled)));
        Ok(())
    }

    pub(crate) fn thread_count(&self) -> StatusOr<usize> {
        Ok(self.run("threads")?.thread_count())
    }

    pub(crate) fn run_id(&self) -> StatusOr<i64> {
        Ok(self.run("run")?.launch_id().into())
    }

    pub(crate) fn device(&self) -> StatusOr<i32> {
        Ok(self.run("device")?.device().into())
    }
}

/// A task that runs when it is dropped, so that it runs once, whatever becomes of it.
struct Scheduled {
    task: TaskFunction,
    data: *mut c_void,
}

// SAFETY: the caller of schedule() promises that any thread may run it.
unsafe impl Send for Scheduled {}

impl Drop for Scheduled {
    fn drop(&mut self) {
        // SAFETY: the caller's promise to schedule(); this is the only call.
        panics::reported(|| "a task of an XLA FFI handler", || unsafe { (self.task)(self.data) });
    }
}

#[cfg(test)]
mod tests {
    use purlin_base::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use super::*;

    unsafe extern "C-unwind" fn count(data: *mut c_void) {
        // SAFETY: the test gives the address of a counter that outlives the task.
        unsafe { &*data.cast::<AtomicUsize>() }.fetch_add(1, SeqCst);
    }

    #[test]
    fn a_task_that_a_pool_drops_has_run_once() {
        let calls = AtomicUsize::new(0);
        let scheduled = Scheduled { task: count, data: std::ptr::from_ref(&calls).cast_mut().cast() };
        let refused = move || drop(scheduled);
        assert_eq!(calls.load(SeqCst), 0);
        drop(refused);
        assert_eq!(calls.load(SeqCst), 1);
    }
}
