//! What one thread did, or one stream of a device, in one recording.
//!
//! The thread writes; the end of the recording takes everything out, once. A span that C++ ends on another thread is
//! ended here by that thread. What a device did is told when it is over. Nothing but moves of our own data happens
//! under the lock.

use std::cmp::Reverse;
use std::ffi::CStr;
use std::fs;
use std::mem;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tracing::Metadata;

use super::fields::Fields;
use super::session::Span;
use purlin_base::sync::Mutex;
use purlin_base::sync::atomic::{AtomicU64, Ordering};

/// Records per vector of a lane: it begins small, for threads that live shortly, and never moves what it holds.
const CHUNK_RECORDS: (usize, usize) = (16, 4096);

/// What was going on.
#[derive(Debug)]
pub(super) enum Recorded {
    /// Inside a span.
    Span(Arc<Span>),
    /// Inside a span of C++.
    Named(&'static CStr),
    /// An event, which takes no time.
    Event(&'static Metadata<'static>, Box<Fields>),
    /// Something of a device.
    Told(Box<Told>),
}

/// A span of a device, which was told afterwards.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) name: String,
    pub(super) fields: Fields,
}

#[derive(Debug)]
pub(super) struct Record {
    pub(super) what: Recorded,
    /// Since the recording began.
    pub(super) start: Duration,
    /// Zero for events.
    pub(super) length: Duration,
}

/// A span that a thread is inside of.
struct Open {
    id: u64,
    what: Recorded,
    start: Duration,
}

#[derive(Default)]
struct LaneContent {
    /// Innermost last.
    open: Vec<Open>,
    /// In order of their ends.
    chunks: Vec<Vec<Record>>,
}

impl LaneContent {
    fn push(&mut self, record: Record) {
        if self.chunks.last().is_none_or(|chunk| chunk.len() == chunk.capacity()) {
            let (first, largest) = CHUNK_RECORDS;
            let capacity = self.chunks.last().map_or(first, |chunk| (chunk.len() * 2).min(largest));
            self.chunks.push(Vec::with_capacity(capacity));
        }
        if let Some(chunk) = self.chunks.last_mut() {
            chunk.push(record);
        }
    }

    fn end(&mut self, id: u64, now: Duration) -> bool {
        let Some(at) = self.open.iter().rposition(|open| open.id == id) else { return false };
        let Open { what, start, .. } = self.open.remove(at);
        self.push(Record { what, start, length: now.saturating_sub(start) });
        true
    }
}

/// Numbers that no kernel gives, because they lie above its limit of 2^22.
pub(super) fn number_of_no_thread() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new((1 << 22) + 1);
    // Relaxed: only uniqueness counts.
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The records of one thread, or of one stream.
pub(super) struct Lane {
    thread_id: u64,
    thread_name: String,
    content: Mutex<LaneContent>,
}

/// A finished lane.
pub(super) struct Track {
    pub(super) thread_id: u64,
    pub(super) thread_name: String,
    /// By start; of equal starts, the outer one first.
    pub(super) records: Vec<Record>,
}

impl Lane {
    /// A lane for the calling thread.
    pub(super) fn new() -> Self {
        // The kernel's number and name of this thread: other tools show the same.
        let link = fs::read_link("/proc/thread-self").ok();
        let thread_id = link.and_then(|path| path.file_name()?.to_str()?.parse().ok());
        // Without /proc there is none.
        let thread_id = thread_id.unwrap_or_else(number_of_no_thread);
        let named_by_kernel = || {
            let name = fs::read("/proc/thread-self/comm").ok()?;
            Some(String::from_utf8_lossy(&name).trim_end().to_owned())
        };
        let thread_name = thread::current().name().map(str::to_owned).or_else(named_by_kernel);
        let thread_name = thread_name.unwrap_or_else(|| format!("thread {thread_id}"));
        Self::named(thread_id, thread_name)
    }

    /// A lane that readers show under that name; each number is another lane.
    pub(super) fn named(thread_id: u64, thread_name: String) -> Self {
        Self { thread_id, thread_name, content: Mutex::new(LaneContent::default()) }
    }

    pub(super) fn begin(&self, id: u64, what: Recorded, start: Duration) {
        self.content.lock().open.push(Open { id, what, start });
    }

    /// False if this thread is not inside that span.
    pub(super) fn end(&self, id: u64, now: Duration) -> bool {
        self.content.lock().end(id, now)
    }

    pub(super) fn instant(&self, what: Recorded, start: Duration) {
        self.content.lock().push(Record { what, start, length: Duration::ZERO });
    }

    pub(super) fn told(&self, what: Told, start: Duration, length: Duration) {
        self.content.lock().push(Record { what: Recorded::Told(Box::new(what)), start, length });
    }

    /// Takes everything out; what is open ends now.
    pub(super) fn finish(&self, end: Duration) -> Track {
        let LaneContent { open, chunks } = mem::take(&mut *self.content.lock());
        let mut records: Vec<Record> = chunks.into_iter().flatten().collect();
        records.extend(open.into_iter().rev().map(|Open { what, start, .. }| Record {
            what,
            start,
            length: end.saturating_sub(start),
        }));
        // Readers nest what begins at the same time in the order of the file. Of equal spans the inner one ended first.
        records.reverse();
        records.sort_by_key(|record| (record.start, Reverse(record.length)));
        Track { thread_id: self.thread_id, thread_name: self.thread_name.clone(), records }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outer_spans_stand_before_inner_ones_of_equal_times() {
        let lane = Lane::new();
        for (id, name) in [(1, c"outer"), (2, c"middle"), (3, c"inner")] {
            lane.begin(id, Recorded::Named(name), Duration::from_nanos(5));
        }
        // The clock may stand still while one ends and not while the next does.
        for (id, end) in [(3, 7), (2, 7), (1, 8)] {
            assert!(lane.end(id, Duration::from_nanos(end)));
        }
        let names = lane.finish(Duration::from_nanos(9)).records.into_iter().map(|record| match record.what {
            Recorded::Named(name) => name,
            _ => panic!("only named spans are recorded here"),
        });
        assert!(names.eq([c"outer", c"middle", c"inner"]));
    }

    #[test]
    fn chunks_grow_and_keep_the_order() {
        let mut content = LaneContent::default();
        for nanosecond in 0..20_000 {
            let start = Duration::from_nanos(nanosecond);
            content.push(Record { what: Recorded::Named(c"x"), start, length: Duration::ZERO });
        }
        let (first, largest) = CHUNK_RECORDS;
        assert_eq!(content.chunks[0].len(), first);
        assert!(content.chunks.iter().all(|chunk| chunk.len() <= largest));
        assert!(content.chunks.iter().flatten().map(|record| record.start.as_nanos()).eq(0..20_000));
    }
}
