//! A run records a span with program, launch id and device.

mod fixture;

use std::fmt;
use std::sync::{Arc, Mutex};

use fixture::*;
use purlin_program::ExecuteOptions;
use tracing::field::{Field, Visit};
use tracing::{Metadata, Subscriber, span};

/// A subscriber that records spans as `name field=value ...`.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Vec<String>>>);

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.push_str(&format!(" {field}={value:?}"));
    }
}

impl Subscriber for Spans {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "purlin" && metadata.name() == "launch"
    }

    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        let mut fields = Fields(span.metadata().name().to_owned());
        span.record(&mut fields);
        self.0.lock().unwrap().push(fields.0);
        span::Id::from_u64(1)
    }

    fn record(&self, _span: &span::Id, _values: &span::Record<'_>) {}
    fn record_follows_from(&self, _span: &span::Id, _follows: &span::Id) {}
    fn event(&self, _event: &tracing::Event<'_>) {}
    fn enter(&self, _span: &span::Id) {}
    fn exit(&self, _span: &span::Id) {}
}

#[test]
fn a_run_is_a_span() {
    let (client, spans) = (host(), Spans::default());
    let loaded = load(&client, add_one(8));
    let argument = buffer(&client, &[1; 8]);
    tracing::subscriber::with_default(spans.clone(), || {
        let options = ExecuteOptions { launch_id: 7, ..Default::default() };
        assert!(loaded.execute(&[argument], &options).unwrap().done.is_ready(), "it runs on this thread");
    });
    assert_eq!(*spans.0.lock().unwrap(), [r#"launch program="add_one" launch_id=7 device=0"#]);
}
