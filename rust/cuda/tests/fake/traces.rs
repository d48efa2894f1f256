//! Traces: what a GPU did when, by its own times, and what a trace costs.

#![allow(unsafe_code, reason = "copies are made by address")]

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use purlin::{Event, LaunchOptions, RawBuffer, trace};
use purlin_fakecuda::{Options, process};
use serde_json::Value;

use crate::calls::{BUT, counted, quiet, warm};
use crate::flows;
use crate::graphs;
use crate::launches::{fill, start};
use crate::support::*;

const BYTES: usize = 4096;
const ELAPSED: &str = "cuEventElapsedTime";

/// What a recording has: spans on the lanes of GPUs, and on those of threads.
struct Trace(Vec<Value>, Vec<Value>);

impl Trace {
    /// What is recorded while `work` runs.
    #[track_caller]
    fn of(work: impl FnOnce()) -> Self {
        let ((), text) = recorded(work);
        let all = serde_json::from_str::<Value>(&text).unwrap();
        let records = all["traceEvents"].as_array().unwrap();
        let lane = |record: &Value| {
            let name = records.iter().find(|name| name["name"] == "thread_name" && name["tid"] == record["tid"]);
            name.unwrap()["args"]["name"].clone()
        };
        let spans = records.iter().filter(|record| record["ph"] == "X").cloned().map(|mut record| {
            record["lane"] = lane(&record);
            record
        });
        let (of_gpus, of_threads) = spans.partition(|span| span["lane"].as_str().unwrap().starts_with("cuda:"));
        Self(of_gpus, of_threads)
    }

    /// Lane and name of each, sorted.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> =
            self.0.iter().map(|span| format!("{}: {}", text(span, "lane"), text(span, "name"))).collect();
        names.sort();
        names
    }

    #[track_caller]
    fn on(&self, lane: &str) -> &Value {
        self.0.iter().find(|span| span["lane"] == lane).unwrap_or_else(|| panic!("{lane}: {:?}", self.names()))
    }
}

/// What `work` gives, and the trace that is recorded meanwhile.
#[track_caller]
pub(crate) fn recorded<T>(work: impl FnOnce() -> T) -> (T, String) {
    let path = file();
    trace::start(&path).unwrap();
    let done = work();
    trace::stop().unwrap();
    let text = fs::read_to_string(&path).unwrap();
    fs::remove_file(&path).unwrap();
    (done, text)
}

fn file() -> PathBuf {
    std::env::temp_dir().join(format!("purlin-cuda-trace-{}.json", std::process::id()))
}

fn text<'a>(span: &'a Value, field: &str) -> &'a str {
    span[field].as_str().unwrap()
}

/// Begin and end, in nanoseconds since the recording began.
fn interval(span: &Value) -> (i64, i64) {
    let nanoseconds = |field: &str| (span[field].as_f64().unwrap() * 1000.0).round() as i64;
    (nanoseconds("ts"), nanoseconds("ts") + nanoseconds("dur"))
}

/// Up, a kernel, to another block, and down, each behind the one before by events, on the fake driver all asked for
/// before any begins. The moment from which on they may begin: all go on within a span of this thread, "under way".
fn chain(session: &Session) -> Instant {
    let device = &session.client.devices()[0];
    let kernel = fill(device, 7, BYTES).unwrap();
    let host = session.block(0, "pinned_host", BYTES);
    let [block, other] = [(); 2].map(|()| session.block(0, "device", BYTES));
    let held = Held::new(&session.driver);
    let under_way = || (Instant::now(), trace::begin_span(c"under way"));
    let at_once = (!session.driver.control.is_fake()).then(under_way);
    let up = copy(&host, &block, &[]);
    let options = LaunchOptions { dependencies: &[up], ..LaunchOptions::default() };
    let filled = start(&kernel, &[&block], &options).unwrap();
    let across = copy(&block, &other, &[filled]);
    let down = copy(&other, &host, &[across]);
    let (begin, under_way) = at_once.unwrap_or_else(under_way);
    drop(held);
    outcome(&down).unwrap();
    trace::end_span(under_way);
    begin
}

#[test]
fn each_submission_is_a_span_with_the_times_of_the_gpu() {
    process::run("traces::each_submission_is_a_span_with_the_times_of_the_gpu", &Options::default(), || {
        Session::with(1, |session| {
            chain(session);
            let lanes = ["host to device", "launches", "within the device", "device to host"];
            // An anchor serves for a second, and two are not equally right: a machine may be as slow as that.
            let mut first = None;
            let is_in_order = (0..5).any(|_| {
                let mut begin = None;
                let trace = Trace::of(|| begin = Some(chain(session)));
                // Anchors are made from then on, and each is wrong by at most half of the time in which it was made.
                let wrong = first.or(begin).unwrap().elapsed() / 2 + Duration::from_millis(1);
                first = first.or(begin);
                let names =
                    ["device to host: copy", "host to device: copy", "launches: fill_32", "within the device: copy"];
                assert_eq!(trace.names(), names.map(|name| format!("cuda:0, {name}")));
                let spans = lanes.map(|lane| trace.on(&format!("cuda:0, {lane}")));
                for (span, ends) in [
                    (spans[0], ["pinned_host", "device"]),
                    (spans[2], ["device"; 2]),
                    (spans[3], ["device", "pinned_host"]),
                ] {
                    let arguments = &span["args"];
                    assert_eq!((&arguments["bytes"], &arguments["label"]), (&BYTES.into(), &"copy".into()));
                    assert_eq!(
                        [text(arguments, "from"), text(arguments, "to")],
                        ends.map(|kind| format!("cuda:0/{kind}"))
                    );
                    assert!(text(arguments, "place").contains("traces.rs"), "{arguments}");
                }
                assert_eq!(spans[1]["args"]["kernels"], "fill_32");
                let (begin, end) = interval(trace.1.iter().find(|span| span["name"] == "under way").unwrap());
                let wrong = i64::try_from(wrong.as_nanos()).unwrap();
                for (span, lane) in spans.iter().zip(lanes) {
                    let times = interval(span);
                    let is_inside = times.0 >= begin - wrong && times.1 <= end + wrong;
                    assert!(is_inside, "{lane}: {times:?} is not within {:?}, by {wrong}", (begin, end));
                }
                // All was asked for before any of it began, so the order is the GPU's.
                spans.windows(2).all(|pair| interval(pair[0]).1 <= interval(pair[1]).0)
            });
            assert!(is_in_order, "what comes after something begins before that is over");
        });
    });
}

#[test]
fn a_graph_is_one_span_with_its_kernels_and_no_event_has_times_when_nothing_is_traced() {
    let name = "traces::a_graph_is_one_span_with_its_kernels_and_no_event_has_times_when_nothing_is_traced";
    process::run(name, &Options::default(), || {
        Session::with(1, |session| {
            let (list, block) = (graphs::twenty(), session.block(0, "device", 80));
            let launch = || outcome(&graphs::launch(session, &list, &block, &[])).unwrap();
            (0..2).for_each(|_| launch());
            assert_eq!(Trace::of(launch).names(), ["cuda:0, launches: recorded"]);
            warm(session);
            launch();
            assert_eq!(session.calls(&BUT), counted(&[("cuGraphLaunch", 1), ("cuEventRecord", 1)]));
            quiet(session);
            Trace::of(launch);
            let [around, behind] = [2, 1];
            let mut traced = counted(&[("cuGraphLaunch", 1), ("cuEventRecord", around + behind), (ELAPSED, 2)]);
            // An anchor serves for a second; then there is another one.
            if session.driver.control.calls("cuStreamSynchronize") == 1 {
                traced.insert("cuStreamSynchronize", 1);
                traced.insert("cuEventRecord", around + behind + 1);
            }
            assert_eq!(session.calls(&BUT), traced);
        });
    });
}

#[test]
fn steps_that_bytes_of_the_gpu_choose_are_spans_with_their_own_kernels() {
    let name = "traces::steps_that_bytes_of_the_gpu_choose_are_spans_with_their_own_kernels";
    process::run(name, &Options::default(), || {
        Session::with(1, |session| {
            let trace = Trace::of(|| assert_eq!(flows::work(&session.client), Ok(None)));
            let of_launches = trace.0.iter().filter(|span| span["lane"] == "cuda:0, launches");
            let told: Vec<_> = of_launches.map(|span| (&span["args"]["kernels"], &span["args"]["bytes"])).collect();
            // Loops of 3, 1 and 0 rounds: a round has a kernel, and each choice copies the byte that chooses.
            assert_eq!(told.iter().filter(|(kernels, _)| *kernels == "fill_32").count(), 3 + 1, "{told:?}");
            assert_eq!(told.iter().filter(|(_, bytes)| **bytes == 1).count(), 4 + 2 + 1, "{told:?}");
        });
    });
}

#[test]
fn parts_of_a_copy_are_spans_with_their_own_bytes() {
    process::run("traces::parts_of_a_copy_are_spans_with_their_own_bytes", &Options::default(), || {
        Session::with(1, |session| {
            const MANY: usize = 9 << 20;
            let block = session.block(0, "device", MANY);
            let trace = Trace::of(|| {
                write(&block, &vec![3; MANY]).unwrap();
                read(&block).unwrap();
            });
            for lane in ["host to device", "device to host, by chunks"] {
                let lane = format!("cuda:0, {lane}");
                let spans: Vec<_> = trace.0.iter().filter(|span| span["lane"] == *lane).collect();
                let bytes: u64 = spans.iter().map(|span| span["args"]["bytes"].as_u64().unwrap()).sum();
                assert!(spans.len() > 1 && bytes == MANY as u64, "{lane}: {} spans of {bytes} bytes", spans.len());
                let mut times: Vec<_> = spans.iter().map(|span| interval(span)).collect();
                times.sort_unstable();
                assert!(times.iter().all(|(begin, end)| begin <= end), "{times:?}");
            }
        });
    });
}

#[test]
fn a_span_outlives_its_kernel_its_client_and_its_recording() {
    process::run("traces::a_span_outlives_its_kernel_its_client_and_its_recording", &Options::default(), || {
        let names = Trace::of(|| Session::with(1, |session| _ = chain(session))).names();
        assert!(names.contains(&"cuda:0, launches: fill_32".to_owned()), "{names:?}");
        Session::with(1, |session| {
            // What is under way when a recording ends is in none.
            let [block, other] = [(); 2].map(|()| session.block(0, "device", BYTES));
            let held = Held::new(&session.driver);
            let (copied, text) = recorded(|| copy(&block, &other, &[]));
            drop(held);
            outcome(&copied).unwrap();
            assert!(!(session.driver.control.is_fake() && text.contains("cuda:0, ")), "{text}");
        });
    });
}

/// A copy, and whether it went well.
fn copied(blocks: &[RawBuffer; 2]) -> bool {
    let event: Event = copy(&blocks[0], &blocks[1], &[]);
    outcome(&event).is_ok()
}

#[test]
fn a_call_that_the_driver_refuses_costs_a_span_alone() {
    process::run("traces::a_call_that_the_driver_refuses_costs_a_span_alone", &Options::default(), || {
        // 1 is "invalid value", 2 is "out of memory", and no table has 4242.
        for code in [1, 2, 4242] {
            for (entry, times) in [
                (ELAPSED, 2),
                ("cuStreamCreate", 1),
                ("cuStreamSynchronize", 1),
                ("cuEventCreate", 3),
                ("cuEventRecord", 4),
            ] {
                for time in 1..=times {
                    Session::with(1, |session| {
                        let blocks = [(); 2].map(|()| session.block(0, "device", BYTES));
                        // What creates an event from here on is the trace: the copies have all that they need.
                        warm(session);
                        assert!(copied(&blocks), "nothing is in the way");
                        quiet(session);
                        let mut is_copied = false;
                        let trace = Trace::of(|| {
                            session.driver.control.set_faults(&format!("{entry}:{time}:{code}"));
                            is_copied = copied(&blocks);
                            assert!(session.driver.control.calls(entry) >= time, "{entry} {time}");
                            session.driver.control.set_faults("");
                        });
                        // Around the work, behind it, and that of the anchor.
                        let is_of_the_copy = (entry, time) == ("cuEventRecord", 3);
                        assert_eq!(is_copied, !is_of_the_copy, "{entry} {time} {code}");
                        assert!(trace.0.is_empty(), "{entry} {time} {code}: {:?}", trace.names());
                        assert_eq!(Trace::of(|| assert!(copied(&blocks))).0.len(), 1, "{entry} {time} {code}");
                    });
                }
            }
        }
    });
}
