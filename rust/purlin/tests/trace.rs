//! Recordings, from start to the file. One process has one recorder, so these tests take turns.

#![expect(clippy::disallowed_methods, reason = "a user's program, which is none of the library's files")]

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use purlin::trace::DeviceLane;
use purlin::{EventPromise, StatusCode, ThreadPool, ThreadPoolOptions, UserContext, UserContextScope, trace};
use serde_json::Value;
use tracing::level_filters::LevelFilter;
use tracing::{info, info_span, trace_span};

/// This test's turn, and a directory of its own that is removed at the end.
struct Turn {
    directory: PathBuf,
    _turn: MutexGuard<'static, ()>,
}

impl Turn {
    fn new() -> Self {
        static TURN: Mutex<()> = Mutex::new(());
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("purlin-trace-{}-{number}", process::id()));
        fs::create_dir(&directory).expect("the temporary directory can be written to");
        Self { directory, _turn: turn }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn names(&self) -> BTreeSet<String> {
        let entries = fs::read_dir(&self.directory).expect("the directory is there");
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
    }

    /// What is recorded while `work` runs.
    fn record(&self, work: impl FnOnce()) -> Trace {
        let path = self.path("trace.json");
        trace::start(&path).expect("nothing is in the way");
        work();
        trace::stop().expect("nothing is in the way");
        assert_eq!(self.names(), BTreeSet::from(["trace.json".to_owned()]));
        Trace::read(&path)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // A test that failed may have left a recording to the next one.
        let _ = trace::stop();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// A file that was read back.
struct Trace {
    text: String,
    json: Value,
}

impl Trace {
    fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).expect("the file is there and holds UTF-8");
        let json = serde_json::from_str(&text).expect("the file holds JSON");
        Self { text, json }
    }

    fn records(&self) -> impl Iterator<Item = &Value> {
        self.json["traceEvents"].as_array().expect("a list").iter().filter(|record| record["ph"] != "M")
    }

    fn names(&self) -> Vec<&str> {
        self.records().map(|record| record["name"].as_str().expect("a name")).collect()
    }

    #[track_caller]
    fn one(&self, name: &str) -> &Value {
        let mut found = self.records().filter(|record| record["name"] == name);
        let one = found.next().unwrap_or_else(|| panic!("{name:?} is not among {:?}", self.names()));
        assert!(found.next().is_none(), "{name:?} is there twice");
        one
    }

    fn thread_name(&self, tid: &Value) -> &str {
        let records = self.json["traceEvents"].as_array().expect("a list");
        let name = records.iter().find(|record| record["name"] == "thread_name" && record["tid"] == *tid);
        name.expect("each thread has a name")["args"]["name"].as_str().expect("a text")
    }
}

/// From begin to end, in nanoseconds since the recording began.
fn interval(record: &Value) -> (u64, u64) {
    let nanoseconds = |field: &str| (record[field].as_f64().expect("a number") * 1000.0).round() as u64;
    let start = nanoseconds("ts");
    (start, start + nanoseconds("dur"))
}

fn is_inside(inner: &Value, outer: &Value) -> bool {
    let ((inner_start, inner_end), (outer_start, outer_end)) = (interval(inner), interval(outer));
    inner["tid"] == outer["tid"] && outer_start <= inner_start && inner_end <= outer_end
}

#[test]
fn spans_nest_and_carry_their_fields() {
    let turn = Turn::new();
    let trace = turn.record(|| {
        let _outer = trace_span!(target: "purlin", "run", label = "gradient", bytes = 256u64).entered();
        let _inner =
            info_span!("host work", step = -3, ratio = 0.5, last = true, missing = tracing::field::Empty).entered();
    });
    let (outer, inner) = (trace.one("run"), trace.one("host work"));
    assert!(is_inside(inner, outer), "{}", trace.text);
    assert_eq!((&outer["ph"], &outer["cat"], &outer["pid"]), (&"X".into(), &"purlin".into(), &process::id().into()));
    assert_eq!(outer["args"], serde_json::json!({"label": "gradient", "bytes": 256}));
    assert_eq!(inner["cat"], "trace", "the target is the module");
    assert_eq!(inner["args"], serde_json::json!({"step": -3, "ratio": 0.5, "last": true}));
    assert_eq!(trace.json["otherData"]["dropped_records"], 0);
    assert_eq!(trace.names(), ["run", "host work"]);
}

#[test]
fn a_span_entered_twice_is_there_twice() {
    let turn = Turn::new();
    let trace = turn.record(|| {
        let span = trace_span!("resumed", polls = tracing::field::Empty);
        let copy = span.clone();
        span.in_scope(|| span.record("polls", 1));
        drop(span);
        copy.in_scope(|| copy.record("polls", 2));
    });
    assert_eq!(trace.names(), ["resumed", "resumed"]);
    // The value that was recorded last, and once: names within an object are unique.
    assert!(trace.records().all(|record| record["args"] == serde_json::json!({"polls": 2})), "{}", trace.text);
    assert_eq!(trace.text.matches("polls").count(), 2);
}

#[test]
fn a_span_that_nobody_enters_leaves_nothing() {
    let turn = Turn::new();
    let trace = turn.record(|| drop(trace_span!("never entered")));
    assert_eq!(trace.names(), [""; 0]);
}

#[test]
fn events_are_instants_named_by_their_message() {
    let turn = Turn::new();
    let trace = turn.record(|| {
        info!(target: "purlin", waiters = 2, "a waiter panicked");
        info!(target: "purlin", waiters = 3);
    });
    let event = trace.one("a waiter panicked");
    assert_eq!((&event["ph"], &event["s"]), (&"i".into(), &"t".into()));
    assert_eq!(event["args"]["waiters"], 2);
    let bare = trace.records().find(|record| record["args"]["waiters"] == 3).expect("it is there");
    assert!(bare["name"].as_str().is_some_and(|name| name.starts_with("event ")), "{bare}");
}

#[test]
fn every_thread_has_a_track_with_its_name() {
    let turn = Turn::new();
    let trace = turn.record(|| {
        let threads: Vec<_> = (0..4)
            .map(|number| {
                let work = move || {
                    for step in 0..100 {
                        let _span = trace_span!("step", number, step).entered();
                    }
                };
                thread::Builder::new().name(format!("worker {number}")).spawn(work).expect("a thread can be made")
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("the thread does not panic"));
    });
    assert_eq!(trace.records().count(), 400);
    let mut tracks = BTreeSet::new();
    for number in 0..4 {
        let records: Vec<_> = trace.records().filter(|record| record["args"]["number"] == number).collect();
        let tid = &records[0]["tid"];
        assert_eq!(trace.thread_name(tid), format!("worker {number}"));
        assert!(records.iter().all(|record| record["tid"] == *tid));
        assert!(records.iter().map(|record| record["args"]["step"].as_i64()).eq((0..100).map(Some)));
        tracks.insert(tid.as_u64());
    }
    assert_eq!(tracks.len(), 4);
}

#[test]
fn a_second_start_fails_and_the_first_goes_on() {
    let turn = Turn::new();
    let trace = turn.record(|| {
        let error = trace::start(&turn.path("second.json")).expect_err("one is being recorded");
        assert_eq!(error.code(), StatusCode::FailedPrecondition);
        assert!(error.message().contains("second.json"), "{error}");
        drop(trace_span!("after").entered());
    });
    assert_eq!(trace.names(), ["after"]);
}

#[test]
fn a_stop_without_a_start_fails() {
    let _turn = Turn::new();
    assert_eq!(trace::stop().expect_err("nothing is recorded").code(), StatusCode::FailedPrecondition);
}

#[test]
fn a_path_that_cannot_be_written_fails_at_once_and_leaves_nothing() {
    let turn = Turn::new();
    let missing = turn.path("missing").join("trace.json");
    let error = trace::start(&missing).expect_err("the directory is missing");
    assert_eq!(error.code(), StatusCode::NotFound);
    assert!(error.message().contains(missing.to_str().expect("a plain path")), "{error}");
    let error = trace::start(&turn.directory).expect_err("that is a directory");
    assert_eq!(error.code(), StatusCode::FailedPrecondition);
    assert_eq!(trace::start(Path::new("")).expect_err("that is no path").code(), StatusCode::InvalidArgument);
    assert!(turn.names().is_empty());
    assert_eq!(trace::stop().expect_err("nothing is recorded").code(), StatusCode::FailedPrecondition);
    drop(turn.record(|| ()));
}

#[test]
fn while_recording_nothing_is_on_disk() {
    let turn = Turn::new();
    trace::start(&turn.path("trace.json")).expect("nothing is in the way");
    assert!(turn.names().is_empty());
}

#[test]
fn a_file_that_cannot_be_written_in_the_end_is_said_and_the_recording_is_over() {
    let turn = Turn::new();
    let directory = turn.path("directory");
    fs::create_dir(&directory).expect("the directory can be made");
    let path = directory.join("trace.json");
    trace::start(&path).expect("nothing is in the way yet");
    fs::remove_dir(&directory).expect("it is empty");
    let error = trace::stop().expect_err("the directory is gone");
    assert_eq!(error.code(), StatusCode::NotFound);
    assert!(error.message().contains(path.to_str().expect("a plain path")), "{error}");
    assert_eq!(trace::stop().expect_err("it is over").code(), StatusCode::FailedPrecondition);

    let path = turn.path("trace.json");
    trace::start(&path).expect("nothing is in the way yet");
    fs::create_dir(&path).expect("the directory can be made");
    let error = trace::stop().expect_err("a file cannot replace a directory");
    assert_eq!(error.code(), StatusCode::FailedPrecondition);
    assert_eq!(turn.names(), BTreeSet::from(["trace.json".to_owned()]), "no temporary file is left");
    fs::remove_dir(&path).expect("it is empty");
    drop(turn.record(|| ()));
}

#[test]
fn recordings_are_apart() {
    // One call site, so that the answer would be an old one if the site were not notified.
    let is_listened_to = || tracing::enabled!(tracing::Level::ERROR);
    let turn = Turn::new();
    let old = trace_span!("made before the first");
    let (mut crossing, mut named) = (None, 0);
    let first = turn.record(|| {
        assert!(is_listened_to());
        drop(trace_span!("in the first").entered());
        crossing = Some(trace_span!("crossing").entered());
        named = trace::begin_span(c"named crossing");
    });
    assert_eq!(first.names(), ["in the first", "crossing", "named crossing"]);
    assert!(is_inside(first.one("named crossing"), first.one("crossing")), "open spans end with the recording");

    // In between nothing is recorded, and no call site pays.
    assert!(!is_listened_to());
    assert_eq!(LevelFilter::current(), LevelFilter::OFF);
    drop(trace_span!("in between").entered());
    assert_eq!(trace::begin_span(c"in between"), 0);

    let second = turn.record(|| {
        assert!(is_listened_to());
        drop(trace_span!("in the second").entered());
        trace::end_span(named);
        drop(crossing.take());
        drop(old.entered());
    });
    assert_eq!(second.names(), ["in the second"]);
    assert_eq!(first.one("crossing")["tid"], second.one("in the second")["tid"]);
}

#[test]
fn the_work_of_a_pool_is_seen() {
    let turn = Turn::new();
    let trace = turn.record(|| {
        let options = ThreadPoolOptions { thread_count: 1, name: "pool".to_owned() };
        let pool = ThreadPool::new(&options).expect("a thread can be made");
        pool.schedule(c"gradient", || drop(trace_span!("mine").entered())).expect("the pool is open");
        pool.shutdown().expect("this is no thread of the pool");
        let promise = EventPromise::new(c"never");
        assert!(promise.event().wait_for(Duration::from_millis(1)).is_err());
    });
    let of = |name: &str, label: &str| {
        let mut found = trace.records().filter(|record| record["name"] == name && record["args"]["label"] == label);
        found.next().unwrap_or_else(|| panic!("no {name} of {label} in {}", trace.text))
    };
    let (schedule, run, wait) = (of("schedule", "gradient"), of("run", "gradient"), of("wait", "never"));
    assert!(is_inside(trace.one("mine"), run), "{}", trace.text);
    assert_eq!(trace.thread_name(&run["tid"]), "pool/0");
    assert_eq!(schedule["tid"], wait["tid"], "both on this thread");
    assert!(interval(schedule).0 <= interval(run).0);
}

#[test]
fn spans_carry_the_number_of_the_user_context_if_there_is_one() {
    let turn = Turn::new();
    let context = UserContext::new("train.py:42");
    let trace = turn.record(|| {
        let options = ThreadPoolOptions { thread_count: 1, name: "pool".to_owned() };
        let pool = ThreadPool::new(&options).expect("a thread can be made");
        let step = || {
            EventPromise::new(c"waited for").event().wait_for(Duration::ZERO).expect_err("nobody sets it");
        };
        pool.schedule(c"plain", step).expect("the pool is open");
        let scope = UserContextScope::new(context.clone());
        pool.schedule(c"in context", step).expect("the pool is open");
        drop(scope);
        pool.shutdown().expect("this is no thread of the pool");
    });
    // Those that JavaScript would round are text.
    let number = |id: &Value| id.to_string().trim_matches('"').parse().expect("a number");
    let contexts = |name: &str| -> Vec<Option<u64>> {
        let found = trace.records().filter(|record| record["name"] == name);
        found.map(|record| record["args"].get("context").map(number)).collect()
    };
    assert_eq!(contexts("schedule"), [None, Some(context.id())]);
    assert!(contexts("wait").contains(&Some(context.id())), "it was carried to the worker: {}", trace.text);
    assert!(contexts("wait").contains(&None), "{}", trace.text);
}

#[test]
fn spans_of_cpp_nest_with_those_of_rust() {
    let turn = Turn::new();
    let trace = turn.record(|| {
        let outer = trace::begin_span(c"outer");
        let between = trace_span!("between").entered();
        let inner = trace::begin_span(c"inner");
        assert!(outer != 0 && inner != 0 && outer != inner);
        trace::end_span(inner);
        drop(between);
        trace::end_span(outer);
        trace::end_span(outer);
        trace::end_span(0);
        trace::end_span(u64::MAX);
    });
    assert_eq!(trace.names(), ["outer", "between", "inner"]);
    assert!(is_inside(trace.one("inner"), trace.one("between")));
    assert!(is_inside(trace.one("between"), trace.one("outer")));
}

#[test]
fn a_span_of_cpp_may_end_on_another_thread() {
    let turn = Turn::new();
    let trace = turn.record(|| {
        let id = trace::begin_span(c"moved");
        thread::spawn(move || trace::end_span(id)).join().expect("the thread does not panic");
        drop(trace_span!("later").entered());
    });
    let (moved, later) = (trace.one("moved"), trace.one("later"));
    assert_eq!(moved["tid"], later["tid"], "it stays on the track where it began");
    assert!(interval(moved).1 <= interval(later).0, "it ended before, not with the recording");
}

#[test]
fn what_a_device_did_is_told_afterwards() {
    let turn = Turn::new();
    let before = Instant::now();
    let lane = DeviceLane::new("GPU 3".to_owned());
    lane.span("early".to_owned(), before..before, Vec::new());
    let trace = turn.record(|| {
        assert!(trace::is_recording());
        let begin = Instant::now();
        let middle = begin + Duration::from_nanos(1500);
        // A later one first, one that began too early, and one whose end is before its beginning.
        let values = || vec![("bytes", trace::Value::Unsigned(7)), ("kernel", trace::Value::Text("a\"b".to_owned()))];
        lane.span("second".to_owned(), middle..middle + Duration::from_nanos(20), values());
        lane.span(
            "first".to_owned(),
            begin..middle,
            vec![("n", trace::Value::Signed(1)), ("n", trace::Value::Signed(2))],
        );
        lane.span("from before".to_owned(), before..begin, Vec::new());
        lane.span("backwards".to_owned(), middle..begin, Vec::new());
        let of_another_thread = &lane;
        thread::scope(|scope| {
            scope.spawn(move || of_another_thread.span("elsewhere".to_owned(), middle..middle, Vec::new()));
        });
    });
    assert!(!trace::is_recording());
    lane.span("late".to_owned(), before..before, Vec::new());
    let mut names = trace.names();
    names.sort_unstable();
    assert_eq!(names, ["backwards", "elsewhere", "first", "from before", "second"]);
    let [first, second, from_before] = ["first", "second", "from before"].map(|name| trace.one(name));
    assert!(trace.records().all(|record| record["tid"] == first["tid"] && record["cat"] == "purlin"));
    assert_eq!(trace.thread_name(&first["tid"]), "GPU 3");
    let ((begin, middle), (again, end)) = (interval(first), interval(second));
    assert_eq!((middle - begin, again, end - again), (1500, middle, 20));
    assert_eq!(interval(from_before), (0, begin));
    assert_eq!(trace.one("backwards")["dur"], 0.0);
    assert_eq!(second["args"], serde_json::json!({"bytes": 7, "kernel": "a\"b"}));
    assert_eq!(first["args"], serde_json::json!({"n": 2}));
}

#[test]
fn a_lane_of_a_device_is_in_each_recording_anew() {
    let turn = Turn::new();
    let lane = DeviceLane::new("stream".to_owned());
    for name in ["one", "two"] {
        let trace = turn.record(|| lane.span(name.to_owned(), Instant::now()..Instant::now(), Vec::new()));
        assert_eq!(trace.names(), [name]);
        assert_eq!(trace.thread_name(&trace.one(name)["tid"]), "stream");
    }
}

#[test]
fn odd_characters_arrive_whole() {
    let turn = Turn::new();
    let odd: String =
        (0..=0x20).chain([0x22, 0x5c, 0x2f, 0x7f, 0x85, 0x2028, 0xfeff, 0x1f9a7]).filter_map(char::from_u32).collect();
    let trace = turn.record(|| {
        let _span = trace_span!("odd \"name\"\\\n", text = odd.as_str(), "odd \"field\"" = ?odd).entered();
        let thread_name: String = odd.chars().filter(|&character| character != '\0').collect();
        let work = || trace::end_span(trace::begin_span(c"\xff\x01\"\xc3\xa4"));
        let thread = thread::Builder::new().name(thread_name).spawn(work).expect("a thread can be made");
        thread.join().expect("the thread does not panic");
    });
    let span = trace.one("odd \"name\"\\\n");
    assert_eq!(span["args"]["text"], odd.as_str());
    assert_eq!(span["args"]["odd \"field\""], format!("{odd:?}"));
    let named = trace.one("\u{fffd}\u{1}\"\u{e4}");
    assert_eq!(trace.thread_name(&named["tid"]), &odd[1..]);
    assert!(!trace.text.chars().any(|character| character.is_control() && character != '\n'));
}

#[test]
fn numbers_that_json_cannot_hold_are_texts() {
    let turn = Turn::new();
    let trace = turn.record(|| {
        let limits =
            trace_span!("limits", least = i64::MIN, most = u64::MAX, wide = i128::MAX, exact = 1u64 << 53).entered();
        drop(limits);
        let floats = trace_span!(
            "floats",
            nan = f64::NAN,
            low = f64::NEG_INFINITY,
            large = f64::MAX,
            tiny = 5e-324,
            whole = 2.0
        );
        drop(floats.entered());
    });
    let limits = serde_json::json!({
        "least": i64::MIN.to_string(), "most": u64::MAX.to_string(), "wide": i128::MAX.to_string(), "exact": 1u64 << 53
    });
    assert_eq!(trace.one("limits")["args"], limits);
    let floats = &trace.one("floats")["args"];
    assert_eq!((&floats["nan"], &floats["low"]), (&"NaN".into(), &"-inf".into()));
    assert_eq!(floats["large"].as_f64(), Some(f64::MAX));
    assert_eq!(floats["tiny"].as_f64(), Some(5e-324));
    assert_eq!(floats["whole"].as_f64(), Some(2.0));
}

/// A value whose `Debug` does what it should not.
struct Stranger<F: Fn(&mut fmt::Formatter<'_>) -> fmt::Result>(F);

impl<F: Fn(&mut fmt::Formatter<'_>) -> fmt::Result> fmt::Debug for Stranger<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0(f)
    }
}

#[test]
fn a_debug_may_fail_or_panic() {
    let turn = Turn::new();
    let fails = Stranger(|f| f.write_str("half").and(Err(fmt::Error)));
    let panics = Stranger(|_| panic!("planted"));
    let trace = turn.record(|| {
        drop(trace_span!("fails", value = ?fails).entered());
        let result = std::panic::catch_unwind(|| drop(trace_span!("panics", value = ?panics).entered()));
        assert!(result.is_err());
        drop(trace_span!("after").entered());
    });
    assert_eq!(trace.names(), ["fails", "after"]);
    assert_eq!(trace.one("fails")["args"]["value"], "half");
}

#[test]
fn a_debug_may_record_too() {
    let turn = Turn::new();
    let records = Stranger(|f| {
        let _span = trace_span!("from within").entered();
        info!("said from within");
        trace::end_span(trace::begin_span(c"named from within"));
        f.write_str("done")
    });
    let trace = turn.record(|| {
        let span = trace_span!("outer", early = ?records, late = tracing::field::Empty).entered();
        span.record("late", tracing::field::debug(&records));
        info!(value = ?records, "event");
    });
    assert_eq!(trace.records().filter(|record| record["name"] == "from within").count(), 3);
    assert_eq!(trace.one("outer")["args"], serde_json::json!({"early": "done", "late": "done"}));
    assert_eq!(trace.one("event")["args"]["value"], "done");
}

#[test]
fn a_debug_may_stop_the_recording() {
    let turn = Turn::new();
    let stops = Stranger(|f| f.write_str(if trace::stop().is_ok() { "stopped" } else { "not stopped" }));
    trace::start(&turn.path("trace.json")).expect("nothing is in the way");
    let span = trace_span!("cut short").entered();
    info!(value = ?stops, "comes too late");
    drop(span);
    assert_eq!(Trace::read(&turn.path("trace.json")).names(), ["cut short"]);
}

#[test]
fn recordings_come_and_go_while_threads_work() {
    let turn = Turn::new();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for number in 0..3 {
            let is_over = &is_over;
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let outer = trace_span!("outer", number, text = %"a label").entered();
                    let named = trace::begin_span(c"named");
                    drop(trace_span!("inner").entered());
                    trace::end_span(named);
                    drop(outer);
                }
            });
        }
        // Stops the threads also when an assertion below fails.
        struct Over<'a>(&'a AtomicBool);
        impl Drop for Over<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let _over = Over(&is_over);
        for _ in 0..20 {
            let trace = turn.record(|| drop(trace_span!("mine").entered()));
            trace.one("mine");
            for record in trace.records() {
                let name = record["name"].as_str().expect("a name");
                assert!(["outer", "inner", "named", "mine"].contains(&name), "{record}");
            }
        }
    });
}
