//! Copies within a GPU whose ends overlap, which the driver does not promise to do right: through a chunk of pinned
//! memory, piece by piece, in an order in which each piece is read before it is written.

#![allow(unsafe_code, reason = "the driver copies by address")]

use std::ffi::c_void;
use std::sync::Arc;

use cudarc::driver::sys::CUstream;

use crate::api::{Base, ResultCode};
use crate::copy::enqueue;
use crate::in_flight::InFlight;
use crate::staging::{CHUNK_BYTES, Chunk, SLAB_BYTES};
use crate::stream::{Content, EndedOn, Role, SyncPoint};

/// Enqueues the copy behind `points`, once there is a chunk. The context is current.
pub(crate) fn start(mut in_flight: Box<InFlight>, points: Vec<SyncPoint>, from: u64, to: u64, bytes: usize) {
    let staging = Arc::clone(&in_flight.unit.staging);
    match staging.take(bytes) {
        Ok(Some(chunk)) => copy_through(chunk, in_flight, &points, from, to, bytes),
        Ok(None) => staging.wait_on(in_flight.runner(), bytes, move |chunk| {
            // The caller is elsewhere.
            in_flight.caller_waits = false;
            match chunk {
                Ok(chunk) => copy_through(chunk, in_flight, &points, from, to, bytes),
                Err(error) => in_flight.end(Err(error), EndedOn::Poller),
            }
        }),
        Err(error) => in_flight.end(Err(error), EndedOn::Poller),
    }
}

fn copy_through(chunk: Chunk, in_flight: Box<InFlight>, points: &[SyncPoint], from: u64, to: u64, bytes: usize) {
    let (base, between) = (&in_flight.unit.gpu.api().base, chunk.address().cast());
    let end = move |outcome| {
        drop(chunk);
        outcome
    };
    enqueue(in_flight, (Role::Within, Content::Bytes(bytes)), points, end, None, move |stream| {
        // SAFETY: the operation keeps both ends, of so many bytes, and the chunk, until its event.
        unsafe { pieces(base, stream, between, from, to, bytes) }
    });
}

/// # Safety
/// Both ends have so many bytes, and nothing else uses the chunk at `between`, until the work on the stream is over. A
/// context is current.
unsafe fn pieces(base: &Base, stream: CUstream, between: *mut c_void, from: u64, to: u64, bytes: usize) -> ResultCode {
    let piece = if bytes <= SLAB_BYTES { SLAB_BYTES } else { CHUNK_BYTES };
    let count = bytes.div_ceil(piece);
    for number in 0..count {
        let number = if to < from { number } else { count - 1 - number };
        let (begin, end) = (number * piece, bytes.min((number + 1) * piece));
        let (from, to) = (from + begin as u64, to + begin as u64);
        // SAFETY: the caller's promise, for a part. The stream does one after the other.
        let code = unsafe {
            match (base.copy_to_host)(between, from, end - begin, stream) {
                0 => (base.copy_to_device)(to, between, end - begin, stream),
                code => code,
            }
        };
        if code != 0 {
            return code;
        }
    }
    0
}
