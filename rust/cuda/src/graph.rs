//! Lists of commands as graphs: what a list has the GPU do, recorded once and launched by one call.
//!
//! A list becomes a graph when it is launched again. While its addresses stay, a launch is one call; where they change,
//! the graph is recorded anew and the executable one updated, unless that has happened so often that single calls are
//! cheaper. Where the driver refuses any of it, the commands are enqueued one by one.

#![allow(unsafe_code, reason = "the driver is called")]

use std::ffi::c_void;
use std::ptr;
use std::sync::{Arc, Weak};

use cudarc::driver::sys::{CUgraph, CUgraphExec, CUstream};
use purlin_base::sync::{Mutex, MutexGuard};
use purlin_device::backend::CommandList;
use smallvec::SmallVec;

use crate::api::{Graphs as Api, ResultCode};
use crate::gpu::Gpu;
use crate::janitor::Garbage;
use crate::launch::perform;
use crate::memory::Keepers;
use crate::stream::NON_BLOCKING;

/// A list with fewer commands is not worth a graph.
const LEAST_COMMANDS: usize = 5;
/// From so many updates on, more than one for two launches are too many.
const MANY_UPDATES: u32 = 8;

/// The graphs of a list, one for each device.
#[derive(Default)]
pub(crate) struct Graphs(Mutex<Vec<OfGpu>>);

struct OfGpu {
    gpu: Arc<Gpu>,
    keepers: Weak<Keepers>,
    launches: u32,
    updates: u32,
    /// The driver has refused a graph.
    is_refused: bool,
    executable: Option<Executable>,
}

struct Executable {
    handle: CUgraphExec,
    /// Those of the ranges, in its commands.
    addresses: SmallVec<[u64; 16]>,
}

// SAFETY: handles of the driver may be used from any thread.
unsafe impl Send for OfGpu {}

/// A graph that is about to be launched. No other thread changes it meanwhile.
pub(crate) struct Prepared<'a> {
    api: Api,
    handle: CUgraphExec,
    _graphs: MutexGuard<'a, Vec<OfGpu>>,
}

impl Prepared<'_> {
    pub(crate) fn launch(self, stream: CUstream) -> ResultCode {
        // SAFETY: the handle is there until the list is dropped, or another takes its place; the promise to prepare()
        // was for its commands.
        unsafe { (self.api.launch)(self.handle, stream) }
    }
}

/// `list` as a graph, where that is worth it. The driver may take its time, so no stream is locked. `None`: it is not.
///
/// # Safety
/// As [`perform`], for each command and the stream on which it is launched.
pub(crate) unsafe fn prepare<'a>(
    list: &'a CommandList,
    gpu: &Arc<Gpu>,
    keepers: &Arc<Keepers>,
    addresses: &[u64],
) -> Option<Prepared<'a>> {
    let api = gpu.api().graphs?;
    if list.commands().len() < LEAST_COMMANDS {
        return None;
    }
    let mut graphs = list.backend_state(Graphs::default)?.0.lock();
    let at = graphs.iter().position(|of_gpu| Arc::ptr_eq(&of_gpu.gpu, gpu)).unwrap_or_else(|| {
        graphs.push(OfGpu::new(gpu, keepers));
        graphs.len() - 1
    });
    let of_gpu = &mut graphs[at];
    of_gpu.launches = of_gpu.launches.saturating_add(1);
    // SAFETY: the caller's promise.
    let handle = unsafe { of_gpu.executable(api, list, addresses) }?;
    Some(Prepared { api, handle, _graphs: graphs })
}

impl OfGpu {
    fn new(gpu: &Arc<Gpu>, keepers: &Arc<Keepers>) -> Self {
        let (gpu, keepers) = (Arc::clone(gpu), Arc::downgrade(keepers));
        Self { gpu, keepers, launches: 0, updates: 0, is_refused: false, executable: None }
    }

    /// The executable graph with these addresses, if one is worth it.
    ///
    /// # Safety
    /// As [`prepare`].
    unsafe fn executable(&mut self, api: Api, list: &CommandList, addresses: &[u64]) -> Option<CUgraphExec> {
        if let Some(executable) = self.executable.as_ref().filter(|known| *known.addresses == *addresses) {
            return Some(executable.handle);
        }
        let changes_too_often = self.updates > MANY_UPDATES && self.updates > self.launches / 2;
        if self.launches < 2 || self.is_refused || changes_too_often {
            return None;
        }
        // SAFETY: the caller's promise.
        let recorded = unsafe { record(&self.gpu, api, list, addresses) };
        let made = recorded.and_then(|graph| {
            let made = self.update(api, graph);
            // SAFETY: recorded in the line above. What fails here has nobody to be told.
            unsafe { (api.destroy)(graph) };
            made
        });
        let Ok(handle) = made else {
            self.is_refused = true;
            return None;
        };
        self.executable = Some(Executable { handle, addresses: addresses.into() });
        Some(handle)
    }

    /// An executable graph like `graph`: the one that is there, if it can be updated.
    ///
    /// # Errors
    /// What the driver says.
    fn update(&mut self, api: Api, graph: CUgraph) -> Result<CUgraphExec, ResultCode> {
        if let Some(Executable { handle, .. }) = self.executable.take() {
            self.updates = self.updates.saturating_add(1);
            // `CUgraphExecUpdateResultInfo`: a number and two handles.
            let mut why = [0_u64; 3];
            // SAFETY: both are there, and the driver writes so many bytes.
            if unsafe { (api.update)(handle, graph, why.as_mut_ptr().cast()) } == 0 {
                return Ok(handle);
            }
            self.give_up(handle);
        }
        let mut handle = ptr::null_mut();
        // SAFETY: the driver writes a handle, which is destroyed when the list is dropped.
        match unsafe { (api.instantiate)(&mut handle, graph, 0) } {
            0 => Ok(handle),
            code => Err(code),
        }
    }

    /// Has it destroyed. One that is in flight is destroyed after that (CUDA driver API, "cuGraphExecDestroy").
    fn give_up(&self, handle: CUgraphExec) {
        if let (true, Some(keepers)) = (self.gpu.driver.is_here(), self.keepers.upgrade()) {
            keepers.janitor.take(Garbage::Graph(Arc::clone(&self.gpu), handle));
        }
    }
}

impl Drop for OfGpu {
    fn drop(&mut self) {
        if let Some(Executable { handle, .. }) = self.executable.take() {
            self.give_up(handle);
        }
    }
}

/// A graph of the list's commands.
///
/// # Errors
/// What the driver says.
///
/// # Safety
/// As [`prepare`].
unsafe fn record(gpu: &Gpu, api: Api, list: &CommandList, addresses: &[u64]) -> Result<CUgraph, ResultCode> {
    /// `CU_STREAM_CAPTURE_MODE_RELAXED`: nothing is forbidden meanwhile to any thread, nor later to this one, should
    /// the driver refuse to end it. Nothing but commands is called until its end.
    const RELAXED: u32 = 2;
    let (base, mut stream, mut graph) = (&gpu.api().base, ptr::null_mut(), ptr::null_mut());
    // SAFETY: the driver writes a handle, which is destroyed below. The context is current.
    let made = unsafe { (base.create_stream)(&mut stream, NON_BLOCKING) };
    if made != 0 {
        return Err(made);
    }
    // SAFETY: the stream is this function's. The commands are recorded, and run where the graph is launched, as the
    // caller promises.
    let code = unsafe {
        let begun = (api.begin_capture)(stream, RELAXED);
        let mut code = begun;
        for command in list.commands() {
            code = if code == 0 { perform(base, command, addresses, stream) } else { code };
        }
        let ended = if begun == 0 { (api.end_capture)(stream, &mut graph) } else { begun };
        if begun == 0 && ended != 0 {
            // Once more: a capture that goes on keeps what is recorded. One that has ended refuses this.
            (api.end_capture)(stream, &mut graph);
        }
        (base.destroy_stream)(stream);
        if code == 0 { ended } else { code }
    };
    if code == 0 {
        return Ok(graph);
    }
    if !graph.is_null() {
        // SAFETY: the driver wrote it. What fails here has nobody to be told.
        unsafe { (api.destroy)(graph) };
    }
    Err(code)
}

/// What the driver writes where an update is refused.
const _: () = assert!(size_of::<[u64; 3]>() == size_of::<u64>() + 2 * size_of::<*mut c_void>());
