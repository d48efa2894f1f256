//! The thread that gives memory and code back where the driver would hold up whoever does: `cuMemFree` and
//! `cuMemFreeHost` wait for the GPU, and `cuModuleUnload` may.

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
            Self::Pooled(gpu, address, used) => {
                used.iter().for_each(SyncPoint::wait);
                let (Some(pool), _current) = (gpu.pool, gpu.enter().ok()) else { return };
                // SAFETY: allocated by cuMemAllocFromPoolAsync; nothing uses it any more.
                unsafe { (pool.api.free)(address, gpu.stream(Role::Free).handle()) };
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

/// See the module. The thread starts with the first memory, and ends when this is dropped, after the last.
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
    is_freeing: bool,
    ends: bool,
}

impl Janitor {
    pub(crate) fn new(driver: &'static Driver) -> Self {
        Self { driver, shared: Arc::default(), thread: Mutex::new(None) }
    }

    /// Returns when all that it took before is given back.
    pub(crate) fn settle(&self) {
        if !self.driver.is_here() {
            return;
        }
        let mut state = self.shared.state.lock();
        while state.is_freeing || !state.garbage.is_empty() {
            state = self.shared.changed.wait(state);
        }
    }

    /// Returns at once.
    pub(crate) fn take(&self, garbage: Garbage) {
        if !self.driver.is_here() {
            return std::mem::forget(garbage);
        }
        let mut thread = self.thread.lock();
        if thread.is_none() {
            let shared = Arc::clone(&self.shared);
            let builder = Builder::new().name("purlin-cuda-mem".to_owned()).stack_size(STACK_SIZE_BYTES);
            match spawn(builder, move || shared.run()) {
                Ok(started) => *thread = Some(started),
                Err(_) => {
                    drop(thread);
                    return garbage.free();
                }
            }
        }
        drop(thread);
        self.shared.state.lock().garbage.push_back(garbage);
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn run(&self) {
        let mut state = self.state.lock();
        loop {
            if let Some(garbage) = state.garbage.pop_front() {
                state.is_freeing = true;
                drop(state);
                garbage.free();
                state = self.state.lock();
                state.is_freeing = false;
                if state.garbage.is_empty() {
                    self.changed.notify_all();
                }
            } else if state.ends {
                return;
            } else {
                state = self.changed.wait(state);
            }
        }
    }
}

impl Drop for Janitor {
    fn drop(&mut self) {
        let Some(thread) = self.thread.lock().take() else { return };
        if !self.driver.is_here() {
            return std::mem::forget(thread);
        }
        self.shared.state.lock().ends = true;
        self.shared.changed.notify_all();
        if thread.thread().id() != std::thread::current().id() {
            // It runs no code that panics.
            let _ = thread.join();
        }
    }
}
