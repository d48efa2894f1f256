//! What a stream runs: one operation with all that it needs, captured at its call.
//!
//! It runs outside of the driver's lock and holds its memory by reference, so that nothing that is freed meanwhile is
//! touched.

#![allow(unsafe_code, reason = "host functions of the program are called")]

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::detector::Access;
use crate::detector::clock::Clock;
use crate::detector::shadow::Span;
use crate::detector::stamp::Stamp;
use crate::kernel::launch::{Launch, Outcome};
use crate::memory::bytes::{self, Bytes};
use crate::stream::Point;
use crate::thread;

/// A host function of the program, and what it is given, by address.
#[derive(Clone, Copy)]
pub(crate) struct HostFunction {
    pub(crate) function: unsafe extern "C" fn(*mut c_void),
    pub(crate) data: usize,
}

impl HostFunction {
    /// Calls it, as what `stamp` put on a stream.
    pub(crate) fn run(self, stamp: Option<&Arc<Stamp>>) {
        let Self { function, data } = self;
        thread::host_function(stamp, || {
            // SAFETY: CUDA's contract, kept by the program: the function may be called with its data, on any thread,
            // when the stream comes to it.
            unsafe { function(ptr::with_exposed_provenance_mut(data)) }
        });
    }
}

/// One end of a copy.
#[derive(Clone)]
pub(crate) enum End {
    /// Known memory, from that offset on.
    Bytes(Arc<Bytes>, u64),
    /// A pageable source, as it was at the call.
    Staged(Arc<[u8]>),
    /// A pageable destination, whose caller waits.
    Pageable(usize),
}

/// Rows of bytes, from one end to another. A copy in one dimension has one row.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rows {
    pub(crate) width: u64,
    pub(crate) height: u64,
    pub(crate) from_pitch: u64,
    pub(crate) to_pitch: u64,
}

/// What an operation does.
#[derive(Clone)]
pub(crate) enum Work {
    /// It only has a place in the order.
    Nothing,
    /// Notes when it ran, in nanoseconds since the driver's first note, from 1.
    Record(Arc<AtomicU64>),
    Copy {
        from: End,
        to: End,
        rows: Rows,
    },
    /// The pattern, `count` times in each row.
    Fill {
        to: Arc<Bytes>,
        offset: u64,
        pattern: Arc<[u8]>,
        count: u64,
    },
    Host(HostFunction),
    /// A block, and where it was.
    Free(Arc<Bytes>, u64),
    Launch(Arc<Launch>),
}

/// What is asked of a stream.
pub(crate) struct Request {
    pub(crate) work: Work,
    pub(crate) accesses: Vec<Access>,
    /// What is copied within devices: from, to.
    pub(crate) copied: Vec<(Span, Span)>,
    pub(crate) waits: Vec<Point>,
    /// What it is ordered behind besides.
    pub(crate) clock: Option<Clock>,
    /// The call that it was captured from.
    pub(crate) origin: Option<Origin>,
}

/// A call that was captured.
pub(crate) struct Origin {
    pub(crate) entry: &'static str,
    pub(crate) label: Arc<str>,
    /// Lane, number in it, and what it comes after, if these are not those of the stream.
    pub(crate) place: Option<(usize, u64, Clock)>,
}

impl Request {
    pub(crate) fn new(work: Work) -> Self {
        Self { work, accesses: Vec::new(), copied: Vec::new(), waits: Vec::new(), clock: None, origin: None }
    }
}

/// What is queued on a stream.
pub(crate) struct Operation {
    pub(crate) sequence: u64,
    pub(crate) stamp: Arc<Stamp>,
    pub(crate) waits: Vec<Point>,
    pub(crate) work: Work,
    /// It fails with this instead of running.
    pub(crate) fault: Option<u32>,
    /// Reads to be looked at when all before it is known.
    pub(crate) reads: Vec<Span>,
    /// Copies on devices, likewise.
    pub(crate) copied: Vec<(Span, Span)>,
}

impl Work {
    /// Does it. Only launches can fail, and host functions are not among what a broken device runs.
    pub(crate) fn run(&self, stamp: &Arc<Stamp>) -> Outcome {
        match self {
            Self::Nothing => {}
            Self::Record(time) => time.store(now_ns(), Ordering::Release),
            Self::Copy { from, to, rows } => copy(from, to, *rows),
            Self::Fill { to, offset, pattern, count } => fill(to, *offset, pattern, *count),
            Self::Host(function) => function.run(Some(stamp)),
            Self::Free(bytes, _) => bytes.free(),
            Self::Launch(launch) => return launch.run(stamp),
        }
        Outcome::default()
    }
}

fn now_ns() -> u64 {
    static BEGIN: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    u64::try_from(BEGIN.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(u64::MAX).saturating_add(1)
}

/// Bytes that are moved at once.
const STEP_BYTES: u64 = 1 << 16;

fn copy(from: &End, to: &End, rows: Rows) {
    let mut step = vec![0; usize::try_from(rows.width.min(STEP_BYTES)).unwrap_or(0)];
    for row in 0..rows.height {
        let (source, destination) = (row * rows.from_pitch, row * rows.to_pitch);
        let mut done = 0;
        while done < rows.width {
            // At most STEP_BYTES.
            let size = (rows.width - done).min(STEP_BYTES) as usize;
            let step = &mut step[..size];
            from.read(source + done, step);
            to.write(destination + done, step);
            done += size as u64;
        }
    }
}

impl End {
    fn read(&self, offset: u64, out: &mut [u8]) {
        match self {
            Self::Bytes(bytes, start) => bytes.read(start + offset, out),
            Self::Staged(bytes) => {
                let staged = usize::try_from(offset).ok().and_then(|at| bytes.get(at..at + out.len()));
                out.copy_from_slice(staged.expect("the source was staged whole"));
            }
            Self::Pageable(address) => bytes::read_host(address + usize::try_from(offset).unwrap_or(0), out),
        }
    }

    fn write(&self, offset: u64, from: &[u8]) {
        match self {
            Self::Bytes(bytes, start) => bytes.write(start + offset, from),
            Self::Staged(_) => {}
            Self::Pageable(address) => bytes::write_host(address + usize::try_from(offset).unwrap_or(0), from),
        }
    }
}

fn fill(to: &Bytes, offset: u64, pattern: &[u8], count: u64) {
    let size = count * pattern.len() as u64;
    // Whole patterns, and no more than there are bytes to write.
    let step = pattern.repeat((size.min(STEP_BYTES) as usize).div_ceil(pattern.len()));
    let mut done = 0;
    while done < size {
        let part = (size - done).min(step.len() as u64);
        to.write(offset + done, &step[..part as usize]);
        done += part;
    }
}
