//! The thread that gives memory and code back where the driver would hold up the thread that does: `cuMemFree` and
//! `cuMemFreeHost` wait for the GPU, `cuModuleUnload` may, and a pool keeps what is freed until a thread waits.

#![allow(unsafe_code, reason = "the driver is called")]

use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use cudarc::driver::sys::{CUdeviceptr, CUgraphExec, CUmodule};
use purlin_async::task::STACK_SIZE_BYTES;
use purlin_base::sync::{Condvar, Mutex, spawn};

use crate::driver::Driver;
use crate::gpu::Gpu;
use crate::stream::{Role, SyncPoint};

/// Memory, or code, that nothing uses any more once some work of GPUs is over.
pub(crate) enum Garbage {
    Device(Arc<Gpu>, CUdeviceptr, Vec<SyncPoint>),
    /// Of the GPU's pool, and freed in the order of its stream: for other processes it is free after a wait for that.
    Freed(Arc<Gpu>),
    /// Of the GPU's pool, which could not be freed in the order of a stream.
    Pooled(Arc<Gpu>, CUdeviceptr, Vec<SyncPoint>),
    Host(Arc<Gpu>, *mut c_void),
    /// Code whose kernels nobody has any more.
    Module(Arc<Gpu>, CUmodule),
    Graph(Arc<Gpu>, CUgraphExec),
}

// SAFETY: an address or a handle, of what is the janitor's now.
unsafe impl Send for Garbage {}

impl Garbage {
    /// Gives it back. What fails here has nobody to be told.
    fn free(self) {
        match self {
            Self::Device(gpu, address, used) => {
                used.iter().for_each(SyncPoint::wait);
                let _current = gpu.enter().ok();
                // SAFETY: allocated by cuMemAlloc; nothing uses it any more.
                unsafe { (gpu.api().base.free)(address) };
            }
            Self::Freed(gpu) => gpu.stream(Role::Free).settle(&gpu),
            Self::Pooled(gpu, address, used) => {
                used.iter().for_each(SyncPoint::wait);
                let (Some(pool), _current) = (gpu.pool, gpu.enter().ok()) else { return };
                let stream = gpu.stream(Role::Free);
                // SAFETY: allocated by cuMemAllocFromPoolAsync; nothing uses it any more.
                unsafe { (pool.api.free)(address, stream.handle()) };
                stream.settle(&gpu);
            }
            Self::Host(gpu, address) => {
                let _current = gpu.enter().ok();
                // SAFETY: allocated by cuMemHostAlloc; nothing uses it any more.
                unsafe { (gpu.api().base.free_host)(address) };
            }
            Self::Module(gpu, module) => {
                let _current = gpu.enter().ok();
                // SAFETY: loaded on this GPU, and no kernel of it is launched any more or in flight.
                unsafe { (gpu.api().base.unload_module)(module) };
            }
            Self::Graph(gpu, graph) => {
                let (Some(graphs), _current) = (gpu.api().graphs, gpu.enter().ok()) else { return };
                // SAFETY: instantiated on this GPU, and launched no more.
                unsafe { (graphs.destroy_executable)(graph) };
            }
        }
    }
}

/// See the module. The thread starts with the first garbage, and ends when this is dropped, after the last. Where none
/// can be made, garbage stays until one can: no thread is held up that did not ask for that.
pub(crate) struct Janitor {
    driver: &'static Driver,
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    garbage: VecDeque<Garbage>,
    /// How many threads are giving something back.
    freeing: usize,
    ends: bool,
}

impl Janitor {
    pub(crate) fn new(driver: &'static Driver) -> Self {
        Self { driver, shared: Arc::default(), thread: Mutex::new(None) }
    }

    /// Returns when all that it took before is given back. Without a thread this one gives it back.
    pub(crate) fn settle(&self) {
        if !self.driver.is_here() {
            return;
        }
        loop {
            let has_thread = self.thread.lock().is_some();
            if !has_thread && self.shared.free_one() {
                continue;
            }
            let state = self.shared.state.lock();
            if state.freeing == 0 && state.garbage.is_empty() {
                return;
            }
            // What came meanwhile, and has no thread either, is this one's.
            if has_thread || state.garbage.is_empty() {
                drop(self.shared.changed.wait(state));
            }
        }
    }

    /// Returns at once.
    pub(crate) fn take(&self, garbage: Garbage) {
        if !self.driver.is_here() {
            return std::mem::forget(garbage);
        }
        self.shared.state.lock().garbage.push_back(garbage);
        let mut thread = self.thread.lock();
        if thread.is_none() {
            let shared = Arc::clone(&self.shared);
            let builder = Builder::new().name("purlin-cuda-mem".to_owned()).stack_size(STACK_SIZE_BYTES);
            *thread = spawn(builder, move || shared.run()).ok();
        }
        drop(thread);
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn run(&self) {
        loop {
            while self.free_one() {}
            let state = self.state.lock();
            if state.garbage.is_empty() {
                if state.ends {
                    return;
                }
                drop(self.changed.wait(state));
            }
        }
    }

    /// Gives the oldest back, if there is one.
    fn free_one(&self) -> bool {
        let mut state = self.state.lock();
        let Some(garbage) = state.garbage.pop_front() else { return false };
        state.freeing += 1;
        drop(state);
        garbage.free();
        self.state.lock().freeing -= 1;
        self.changed.notify_all();
        true
    }
}

impl Drop for Janitor {
    fn drop(&mut self) {
        let thread = self.thread.lock().take();
        if !self.driver.is_here() {
            return std::mem::forget(thread);
        }
        let Some(thread) = thread else {
            while self.shared.free_one() {}
            return;
        };
        self.shared.state.lock().ends = true;
        self.shared.changed.notify_all();
        if thread.thread().id() != std::thread::current().id() {
            // It runs no code that panics.
            let _ = thread.join();
        }
    }
}
