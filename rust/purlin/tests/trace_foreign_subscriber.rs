//! A program that has a `tracing` subscriber of its own keeps it. A process of its own, because subscribers stay.

use std::fs;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use purlin::{StatusCode, trace};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber, trace_span};

static SPANS: AtomicU32 = AtomicU32::new(0);

/// Counts spans.
struct Foreign;

impl Subscriber for Foreign {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(u64::from(SPANS.fetch_add(1, Ordering::Relaxed)) + 1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn a_foreign_subscriber_is_left_alone() {
    tracing::subscriber::set_global_default(Foreign).expect("this process has none");
    let directory = std::env::temp_dir().join(format!("purlin-trace-foreign-{}", process::id()));
    fs::create_dir(&directory).expect("the temporary directory can be written to");
    let path = directory.join("trace.json");
    for _ in 0..2 {
        let error = trace::start(&path).expect_err("the other one is there");
        assert_eq!(error.code(), StatusCode::FailedPrecondition);
        assert!(error.message().contains("trace.json") && error.message().contains("subscriber"), "{error}");
        assert_eq!(trace::begin_span(c"not recorded"), 0);
        assert_eq!(trace::stop().expect_err("nothing is recorded").code(), StatusCode::FailedPrecondition);
    }
    let left = fs::read_dir(&directory).expect("the directory is there").count();
    fs::remove_dir_all(&directory).expect("the directory can be removed");
    assert_eq!(left, 0);
    drop(trace_span!("theirs").entered());
    assert_eq!(SPANS.load(Ordering::Relaxed), 1);
}
