//! Which bytes of a GPU's memory are which of the host's, in parts that fit into a chunk.
//!
//! A dense copy and a strided or packed array are the same here, so that they go one road: a dense copy is an array of
//! bytes. A part is what the host moves at a time, and one copy of the GPU; of a transposed array, several, because its
//! part is a few elements of each of many rows.

#![allow(unsafe_code, reason = "bytes are copied by address")]

use std::ptr;

use cudarc::driver::sys::CUstream;
use purlin_array::{Section, Sections, StridedPlan};
use purlin_device::backend::{Operation, Work};

use crate::api::{Base, ResultCode};
use crate::staging::CHUNK_BYTES;

/// See the module. The operation keeps both ends until its event.
pub(crate) struct Route {
    /// Of the host's first element.
    host: usize,
    device: u64,
    bytes: usize,
    plan: StridedPlan,
}

impl Route {
    /// That of a copy between the host's memory and a GPU's.
    pub(crate) fn of(operation: &Operation, host: usize, device: u64) -> Self {
        let bytes = operation.size_bytes();
        let plan = match operation.work() {
            Work::Gather(_, plan) | Work::Scatter(plan, _) => StridedPlan::clone(plan),
            _ => StridedPlan::dense(bytes),
        };
        Self { host, device, bytes, plan }
    }

    /// On the GPU.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Each fits into a chunk; the only one of a small copy, into a slab.
    pub(crate) fn parts(&self) -> Sections {
        self.plan.sections(CHUNK_BYTES)
    }

    /// Those that a part has in a chunk.
    pub(crate) fn part_bytes(&self, part: &Section) -> usize {
        part.runs().map(|run| self.plan.device_bytes(&run).len()).sum()
    }

    /// The host's bytes of a part to a chunk.
    ///
    /// # Safety
    /// The operation's event has not happened. Nothing else uses the chunk, which has room for the part.
    pub(crate) unsafe fn fill(&self, part: &Section, chunk: *mut u8) {
        // SAFETY: the elements are readable until the event; the caller's promise.
        unsafe { self.plan.gather_section(ptr::with_exposed_provenance(self.host), chunk, part) };
    }

    /// A part that is in a chunk to the host's bytes.
    ///
    /// # Safety
    /// The operation's event has not happened. Nothing writes the chunk, and no other part that is the same is emptied.
    pub(crate) unsafe fn empty(&self, part: &Section, chunk: *const u8) {
        // SAFETY: the elements are writable until the event, and are no other part's; the caller's promise.
        unsafe { self.plan.scatter_section(chunk, ptr::with_exposed_provenance_mut(self.host), part) };
    }

    /// Enqueues the copies of a part from a chunk to the GPU.
    ///
    /// # Safety
    /// A context is current. The chunk has the part, and nothing else writes it until the work on the stream is over.
    pub(crate) unsafe fn to_device(&self, part: &Section, chunk: *mut u8, base: &Base, stream: CUstream) -> ResultCode {
        // SAFETY: the operation keeps the bytes of the GPU until its event; the caller's promise.
        self.each_run(part, |at, to, bytes| unsafe {
            (base.copy_to_device)(to, chunk.wrapping_add(at).cast(), bytes, stream)
        })
    }

    /// Enqueues the copies of a part from the GPU to a chunk.
    ///
    /// # Safety
    /// A context is current. The chunk has room for the part, and nothing else uses it until the work on the stream is
    /// over.
    pub(crate) unsafe fn to_chunk(&self, part: &Section, chunk: *mut u8, base: &Base, stream: CUstream) -> ResultCode {
        // SAFETY: the operation keeps the bytes of the GPU until its event; the caller's promise.
        self.each_run(part, |at, from, bytes| unsafe {
            (base.copy_to_host)(chunk.wrapping_add(at).cast(), from, bytes, stream)
        })
    }

    /// Calls `copy` for each run of a part, with its place in the chunk, its address on the GPU and its bytes, until
    /// one is refused.
    fn each_run(&self, part: &Section, mut copy: impl FnMut(usize, u64, usize) -> ResultCode) -> ResultCode {
        let mut at = 0;
        for run in part.runs() {
            let bytes = self.plan.device_bytes(&run);
            let code = copy(at, self.device + bytes.start as u64, bytes.len());
            if code != 0 {
                return code;
            }
            at += bytes.len();
        }
        0
    }
}
