//! What a stall report says of a GPU: what is in flight on each of its streams, and what that is behind.

use std::fmt::Write as _;
use std::sync::{Arc, Weak};
use std::thread::Builder;

use purlin_async::task::STACK_SIZE_BYTES;
use purlin_async::task::census::{self, Occupation, Occupied};
use purlin_base::sync::{keep_record, spawn};

use crate::gpu::Gpu;
use crate::stream::Pending;

/// Listed as long as its GPU is open. The report must not become what closes it.
pub(crate) struct Listing(Weak<Gpu>);

impl Listing {
    /// Has reports speak of the GPU, as long as the answer is kept.
    pub(crate) fn new(gpu: &Weak<Gpu>) -> Arc<Self> {
        let listing = Arc::new(Self(Weak::clone(gpu)));
        census::enlist(Arc::downgrade(&listing) as Weak<dyn Occupied>);
        listing
    }
}

impl Occupied for Listing {
    fn occupation(&self) -> Occupation {
        // Without one it is about to be opened, or being closed.
        let Some(gpu) = self.0.upgrade() else { return Occupation::default() };
        let text = describe(&gpu);
        let_go(gpu);
        Occupation { text, ..Default::default() }
    }
}

/// A line for each stream that has something in flight; one that says so if none has.
fn describe(gpu: &Gpu) -> String {
    let mut text = format!("cuda:{} (GPU {})", gpu.index, gpu.ordinal);
    match gpu.check_whole() {
        Ok(()) => text += ": its streams have",
        Err(error) => text += &format!(", {}; its streams have", error.message()),
    }
    let side_streams = gpu.side_streams.busy();
    let streams: Vec<_> = gpu.lines(&side_streams).collect();
    let pending: Vec<_> =
        streams.iter().filter_map(|(line, stream)| stream.pending().map(|pending| (line, pending))).collect();
    if pending.is_empty() {
        return text + " nothing in flight";
    }
    for (line, Pending { number, name, known, count }) in &pending {
        let last = number + *count as u64 - 1;
        // Writing to a text does not fail.
        _ = write!(text, "\n  '{line}': {count} in flight, numbers {number} to {last}; the oldest is the {name}");
        for ((device, other), number) in known.iter() {
            // Of this GPU it is known which are over; a side stream that is idle has nothing that is not.
            let is_over = || {
                let stream = streams.iter().find(|(line, _)| *line == other);
                stream.is_none_or(|(_, stream)| stream.is_over(number))
            };
            if device != gpu.index {
                _ = write!(text, "; behind number {number} of '{other}' of cuda:{device}");
            } else if !is_over() {
                _ = write!(text, "; behind number {number} of '{other}'");
            }
        }
    }
    text
}

/// Where the report has the last reference, another thread closes the GPU, which calls the driver.
fn let_go(gpu: Arc<Gpu>) {
    let Some(gpu) = Arc::into_inner(gpu) else { return };
    let thread = Builder::new().name("purlin-report".to_owned()).stack_size(STACK_SIZE_BYTES);
    // Without a thread it is closed here and now: the closure is dropped with what it holds.
    if let Ok(started) = spawn(thread, move || drop(gpu)) {
        keep_record(started.thread());
    }
}
