//! One recording in memory.
//!
//! Each thread writes into a lane of its own, whose lock it shares only with the end of the recording; spans are found
//! by their number in a few maps. Memory is bounded: [`BUDGET_BYTES`] hold about three million spans with a short label
//! each; what is recorded after them is counted and discarded, and the file says how many.
//!
//! A thread keeps its lane in a variable of the thread, with the recording's number, and looks for a new one when that
//! number is no longer [`super::ACTIVE`]. Locks here guard a few moves of our own data and are never nested.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::CStr;
use std::mem;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tracing::Metadata;

use super::fields::Fields;
use super::lane::{Lane, Record, Recorded, Told, Track};
use purlin_base::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use purlin_base::sync::{Mutex, Process, per_thread};

/// What records, spans, values and lanes may take together. The vectors that hold records may reserve as much again.
const BUDGET_BYTES: usize = 512 << 20;
const SHARDS: usize = 16;

/// The numbers of spans, of `tracing` and of C++ alike; never used twice in a process, so that a span of an old
/// recording is known as such. Relaxed: only uniqueness counts.
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

pub(super) fn next_id() -> u64 {
    NEXT_ID.fetch_add(1, Ordering::Relaxed)
}

/// A span of `tracing`, from its creation until its last handle and its last record are gone.
#[derive(Debug)]
pub(super) struct Span {
    pub(super) metadata: &'static Metadata<'static>,
    /// Relaxed to count up, because a handle is held; to count down see [`Session::release_span`].
    handles: AtomicUsize,
    pub(super) fields: Mutex<Fields>,
}

/// A finished recording.
pub(super) struct Recording {
    pub(super) tracks: Vec<Track>,
    pub(super) dropped_records: u64,
}

pub(super) struct Session {
    /// From 1, and larger than the number of every span before it.
    number: u64,
    started: Instant,
    /// Which it records.
    process: Process,
    lanes: Mutex<Vec<Arc<Lane>>>,
    spans: [Mutex<HashMap<u64, Arc<Span>>>; SHARDS],
    budget_bytes: usize,
    /// Relaxed, both: counters that nothing else depends on.
    used_bytes: AtomicUsize,
    dropped_records: AtomicU64,
}

impl Session {
    pub(super) fn new() -> Self {
        Self::with_budget(BUDGET_BYTES)
    }

    fn with_budget(budget_bytes: usize) -> Self {
        Self {
            number: next_id(),
            started: Instant::now(),
            process: Process::this(),
            lanes: Mutex::new(Vec::new()),
            spans: std::array::from_fn(|_| Mutex::new(HashMap::new())),
            budget_bytes,
            used_bytes: AtomicUsize::new(0),
            dropped_records: AtomicU64::new(0),
        }
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Takes `size_bytes` from the budget, or takes nothing.
    fn reserve(&self, size_bytes: usize) -> bool {
        let before = self.used_bytes.fetch_add(size_bytes, Ordering::Relaxed);
        let fits = before.saturating_add(size_bytes) <= self.budget_bytes;
        if !fits {
            self.used_bytes.fetch_sub(size_bytes, Ordering::Relaxed);
        }
        fits
    }

    fn drop_record(&self) {
        self.dropped_records.fetch_add(1, Ordering::Relaxed);
    }

    fn shard(&self, id: u64) -> &Mutex<HashMap<u64, Arc<Span>>> {
        &self.spans[id as usize % SHARDS]
    }

    /// The span of that number; none if it belongs to an older recording, was dropped, or is closed.
    fn span(&self, id: u64) -> Option<Arc<Span>> {
        self.shard(id).lock().get(&id).cloned()
    }

    pub(super) fn add_span(&self, id: u64, metadata: &'static Metadata<'static>, fields: Fields) {
        if self.reserve(size_of::<Span>() + fields.size_bytes()) {
            let span = Span { metadata, handles: AtomicUsize::new(1), fields: Mutex::new(fields) };
            self.shard(id).lock().insert(id, Arc::new(span));
        } else {
            self.drop_record();
        }
    }

    pub(super) fn add_fields(&self, id: u64, fields: Fields) {
        let Some(span) = self.span(id) else { return };
        if self.reserve(fields.size_bytes()) {
            span.fields.lock().merge(fields);
        } else {
            self.drop_record();
        }
    }

    pub(super) fn retain_span(&self, id: u64) {
        if let Some(span) = self.span(id) {
            span.handles.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// True if that was the last handle.
    pub(super) fn release_span(&self, id: u64) -> bool {
        // AcqRel, with itself: what other handles' threads did to the span is done before it leaves the map.
        let Some(span) = self.span(id).filter(|span| span.handles.fetch_sub(1, Ordering::AcqRel) == 1) else {
            return false;
        };
        let in_map = self.shard(id).lock().remove(&id);
        drop(in_map);
        if Arc::strong_count(&span) == 1 {
            // No thread was ever inside: it leaves no record.
            let size_bytes = size_of::<Span>() + span.fields.lock().size_bytes();
            let _ = self
                .used_bytes
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| Some(used.saturating_sub(size_bytes)));
        }
        true
    }

    /// Ends what is open and takes everything out. Called once, when no thread finds this session any more; a thread
    /// that found it before may still write into what is left, which no thread reads.
    pub(super) fn finish(&self) -> Recording {
        let end = self.now();
        let lanes = mem::take(&mut *self.lanes.lock());
        let tracks = lanes.iter().map(|lane| lane.finish(end)).collect();
        for shard in &self.spans {
            let spans = mem::take(&mut *shard.lock());
            drop(spans);
        }
        Recording { tracks, dropped_records: self.dropped_records.load(Ordering::Relaxed) }
    }
}

/// The way of a thread, or of a stream, to the session that records.
pub(super) struct Local {
    session: Arc<Session>,
    /// None if the budget was spent before it had anything to record.
    lane: Option<Arc<Lane>>,
}

per_thread!(static LOCAL: RefCell<Option<Rc<Local>>> = RefCell::new(None));

/// None when nothing is recorded or this thread is ending.
pub(super) fn local() -> Option<Rc<Local>> {
    let number = super::ACTIVE.load(Ordering::Relaxed);
    if number == 0 {
        return None;
    }
    let known = LOCAL.try_with(|local| local.borrow().clone()).ok()?;
    if let Some(local) = known.filter(|local| local.is_of(number)) {
        return Some(local);
    }
    let local = Rc::new(Local::new(numbered(number)?, Lane::new));
    let old = LOCAL.try_with(|slot| slot.replace(Some(Rc::clone(&local)))).ok()?;
    drop(old);
    Some(local)
}

/// The session that records, if it has that number.
pub(super) fn numbered(number: u64) -> Option<Arc<Session>> {
    super::state().session.clone().filter(|session| session.number == number)
}

impl Local {
    pub(super) fn new(session: Arc<Session>, lane: impl FnOnce() -> Lane) -> Self {
        let lane = session.reserve(size_of::<Lane>()).then(|| Arc::new(lane()));
        session.lanes.lock().extend(lane.clone());
        Self { session, lane }
    }

    /// Whether it leads to the session of that number, of this process.
    pub(super) fn is_of(&self, number: u64) -> bool {
        self.session.number == number && self.session.process.is_this()
    }

    pub(super) fn session(&self) -> &Session {
        &self.session
    }

    pub(super) fn enter(&self, id: u64) {
        if let Some(span) = self.session.span(id) {
            self.begin(id, Recorded::Span(span));
        }
    }

    pub(super) fn exit(&self, id: u64) {
        self.end(id, self.session.now());
    }

    pub(super) fn event(&self, metadata: &'static Metadata<'static>, fields: Fields) {
        let start = self.session.now();
        if let Some(lane) = self.lane_with_room(size_of::<Record>() + fields.size_bytes()) {
            lane.instant(Recorded::Event(metadata, Box::new(fields)), start);
        }
    }

    /// What began before the recording did is shown from its beginning on.
    pub(super) fn told(&self, what: Told, times: Range<Instant>) {
        let since = |time: Instant| time.saturating_duration_since(self.session.started);
        let (start, end) = (since(times.start), since(times.end));
        let size_bytes = size_of::<Record>() + size_of::<Told>() + what.name.capacity() + what.fields.size_bytes();
        if let Some(lane) = self.lane_with_room(size_bytes) {
            lane.told(what, start, end.saturating_sub(start));
        }
    }

    /// False if there is no room for it.
    fn begin(&self, id: u64, what: Recorded) -> bool {
        // The record is paid for here, so that what began can always end.
        let lane = self.lane_with_room(size_of::<Record>());
        if let Some(lane) = lane {
            lane.begin(id, what, self.session.now());
        }
        lane.is_some()
    }

    /// False if this thread is not inside that span.
    fn end(&self, id: u64, now: Duration) -> bool {
        self.lane.as_ref().is_some_and(|lane| lane.end(id, now))
    }

    /// Where to put a record of that size; none, and a dropped record, if there is no room for it.
    fn lane_with_room(&self, size_bytes: usize) -> Option<&Lane> {
        let lane = self.lane.as_deref().filter(|_| self.session.reserve(size_bytes));
        if lane.is_none() {
            self.session.drop_record();
        }
        lane
    }
}

/// The number of the new span, or 0.
pub(super) fn begin_named(name: &'static CStr) -> u64 {
    let id = next_id();
    match local() {
        Some(local) if local.begin(id, Recorded::Named(name)) => id,
        _ => 0,
    }
}

/// Ends the span wherever it began: an object of C++ may die on another thread than the one that made it.
pub(super) fn end_named(id: u64) {
    let Some(local) = local() else { return };
    let session = local.session();
    let now = session.now();
    if id < session.number || local.end(id, now) {
        return;
    }
    let lanes = session.lanes.lock().clone();
    lanes.iter().any(|lane| lane.end(id, now));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of the spans on `track`, in its order.
    fn names(track: &Track) -> Vec<&str> {
        let name = |record: &Record| match record.what {
            Recorded::Named(name) => name.to_str().expect("the names in tests are ASCII"),
            _ => panic!("only named spans are recorded here"),
        };
        track.records.iter().map(name).collect()
    }

    #[test]
    fn what_does_not_fit_is_counted_and_thrown_away() {
        let room = size_of::<Lane>() + 2 * size_of::<Record>();
        let session = Arc::new(Session::with_budget(room));
        let local = Local::new(Arc::clone(&session), Lane::new);
        assert!(local.begin(1, Recorded::Named(c"one")));
        assert!(local.begin(2, Recorded::Named(c"two")));
        assert!(!local.begin(3, Recorded::Named(c"three")));
        assert!(!local.end(3, session.now()));
        assert!(local.end(2, session.now()), "what began can end");
        // A thread that is later has no lane at all.
        let late = Local::new(Arc::clone(&session), Lane::new);
        assert!(!late.begin(4, Recorded::Named(c"four")));
        let recording = session.finish();
        assert_eq!(recording.dropped_records, 2);
        assert_eq!(recording.tracks.len(), 1);
        assert_eq!(names(&recording.tracks[0]), ["one", "two"]);
    }

    #[test]
    fn what_did_not_fit_takes_no_room() {
        let session = Session::with_budget(100);
        assert!(!session.reserve(101));
        assert!(session.reserve(60));
        assert!(!session.reserve(usize::MAX));
        assert!(session.reserve(40));
        assert!(!session.reserve(1));
    }

    #[test]
    fn spans_that_are_open_end_with_the_recording() {
        let session = Arc::new(Session::new());
        let local = Local::new(Arc::clone(&session), Lane::new);
        assert!(local.begin(1, Recorded::Named(c"outer")));
        assert!(local.begin(2, Recorded::Named(c"inner")));
        let recording = session.finish();
        assert_eq!(names(&recording.tracks[0]), ["outer", "inner"]);
        let ends: Vec<_> = recording.tracks[0].records.iter().map(|record| record.start + record.length).collect();
        assert_eq!(ends[0], ends[1]);
        assert!(!local.end(2, session.now()), "it is over");
    }
}
